//! How an engine is set up: from code, or from the environment. Every environment variable is read here and nowhere
//! else.

use crate::error::{Error, Result};

/// The environment variable that sets the number of threads.
pub const THREADS_VAR: &str = "BREAKEVEN_THREADS";
/// More threads than this are a mistake, not a machine.
const MAX_THREADS: usize = 4096;

/// The settings of an engine.
///
/// ```
/// use breakeven::{Config, Engine};
/// let engine = Engine::with_config(Config { threads: Some(1), ..Config::default() })?;
/// assert_eq!(engine.threads(), 1);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Threads of the CPU, the calling one included; by default one for each core that this process may use.
    pub threads: Option<usize>,
    /// How many plans are remembered; the least recently used one goes first.
    pub plan_cache: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config { threads: None, plan_cache: 1024 }
    }
}

impl Config {
    /// The defaults, changed by what the environment says.
    pub fn from_env() -> Result<Config> {
        let mut config = Config::default();
        if let Some(value) = std::env::var_os(THREADS_VAR) {
            let expected = "a whole number from 1 to 4096";
            let refuse = || Error::Setting { name: THREADS_VAR, value: value.to_string_lossy().into_owned(), expected };
            let threads = value.to_str().and_then(|v| v.trim().parse::<usize>().ok()).ok_or_else(refuse)?;
            config.threads = Some(threads).filter(|t| (1..=MAX_THREADS).contains(t));
            if config.threads.is_none() {
                return Err(refuse());
            }
        }
        Ok(config)
    }

    /// The number of threads to start.
    pub(crate) fn thread_count(&self) -> Result<usize> {
        match self.threads {
            None => Ok(std::thread::available_parallelism().map_or(1, |n| n.get())),
            Some(n) if (1..=MAX_THREADS).contains(&n) => Ok(n),
            Some(n) => Err(Error::Setting { name: "threads", value: n.to_string(), expected: "1 to 4096" }),
        }
    }
}
