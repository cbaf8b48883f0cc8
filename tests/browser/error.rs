//! What can go wrong between a test and its browser.

use std::time::Duration;

/// Why a browser did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// There is none.
    #[error(
        "the tests of pages need Chromium, and none of {names} is on the PATH: install it (as root on Debian: \
         apt-get install chromium), or name its program in BREAKEVEN_CHROMIUM"
    )]
    Missing {
        /// What was looked for.
        names: String,
    },
    /// It could not be started.
    #[error("{program} did not start: {why}")]
    Start {
        /// What was started.
        program: String,
        /// What it said.
        why: String,
    },
    /// It ended by itself.
    #[error("it ended at once: {0}")]
    Ended(std::process::ExitStatus),
    /// It took too long.
    #[error("the browser has not answered within {limit:?}: {what}")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// The connection broke.
    #[error("the connection to the browser broke: {0}")]
    Wire(#[from] Box<tungstenite::Error>),
    /// It refused.
    #[error("the browser refused {method}: {why}")]
    Refused {
        /// What was asked for.
        method: String,
        /// What it said.
        why: String,
    },
    /// A script threw.
    #[error("a script threw: {0}")]
    Script(String),
    /// A file or folder could not be used.
    #[error("a file of the browser can't be used: {0}")]
    File(#[from] std::io::Error),
}

impl From<tungstenite::Error> for BrowserError {
    fn from(error: tungstenite::Error) -> BrowserError {
        BrowserError::Wire(Box::new(error))
    }
}
