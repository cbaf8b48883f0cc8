//! Why a command has no result, and the exit code that says whose fault it was.

use std::{io, io::Write, process::ExitCode};

use breakeven::RunError;

use crate::arrays::ArrayError;
use crate::interrupt;

/// A command that did not succeed. The text is what the user reads.
#[derive(Debug)]
pub enum Failure {
    /// The user's: exit code 2.
    Mistake(String),
    /// The machine's: exit code 1.
    Failed(String),
    /// Ctrl-C ended it; what there was until then is kept: exit code 130.
    Interrupted(String),
    /// Whoever read the output has gone, as `head` does: nothing to say, and no failure.
    Closed,
}

impl Failure {
    /// A user's mistake that is one sentence.
    pub fn mistake(message: impl std::fmt::Display) -> Failure {
        Failure::Mistake(format!("error: {message}"))
    }

    /// A failure that is one sentence.
    pub fn failed(message: impl std::fmt::Display) -> Failure {
        Failure::Failed(format!("error: {message}"))
    }

    /// An array that could not be read: a file that is missing or is none.
    pub fn reading(error: ArrayError) -> Failure {
        Failure::mistake(error)
    }

    /// An array that could not be written.
    pub fn writing(error: ArrayError) -> Failure {
        Failure::failed(error)
    }

    /// The same, with one more thing to say.
    pub fn and(self, more: &str) -> Failure {
        let both = |text: String| format!("{text}; {more}");
        match self {
            Failure::Mistake(text) => Failure::Mistake(both(text)),
            Failure::Failed(text) => Failure::Failed(both(text)),
            Failure::Interrupted(text) => Failure::Interrupted(both(text)),
            Failure::Closed => Failure::Closed,
        }
    }

    /// Says it on stderr and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Failure::Closed => return ExitCode::SUCCESS,
            Failure::Mistake(text) => (text, 2),
            Failure::Failed(text) => (text, 1),
            Failure::Interrupted(text) => (text, interrupt::CODE),
        };
        // Without a stderr there is nobody to tell; the code still says it.
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(code)
    }
}

/// Output that could not be written.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::failed(format_args!("cannot write the output: {error}")),
        }
    }
}

/// What the library refused or could not do.
impl From<breakeven::Error> for Failure {
    fn from(error: breakeven::Error) -> Failure {
        match error {
            breakeven::Error::Record(_) | breakeven::Error::Setting { .. } => Failure::mistake(error),
            // It was asked for by name, and the message says what is there.
            breakeven::Error::NoDevice { .. } => Failure::mistake(error),
            breakeven::Error::Run(RunError::TakeIndex { .. }) => Failure::mistake(error),
            _ => Failure::failed(error),
        }
    }
}
