//! How an engine is set up: from code, or from the environment. Every environment variable is read here and nowhere
//! else.

use crate::error::{Error, Result};
use crate::queue::QueueConfig;
use crate::router::Objective;
use breakeven_ir::backend::Api;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The environment variable that sets the number of threads.
pub const THREADS_VAR: &str = "BREAKEVEN_THREADS";
/// The environment variable that chooses the device: `auto`, `cpu`, `gpu`, `gpu:N` or `all`.
pub const DEVICE_VAR: &str = "BREAKEVEN_DEVICE";
/// The environment variable that says which graphics interfaces are asked for adapters, separated by commas.
pub const BACKENDS_VAR: &str = "BREAKEVEN_BACKENDS";
/// The environment variable that sets how long a device may stay silent: `5`, `2.5s`, `800ms`.
pub const SYNC_TIMEOUT_VAR: &str = "BREAKEVEN_SYNC_TIMEOUT";
/// The environment variable that sets the folder in which measurements and pipelines are remembered.
pub const CACHE_DIR_VAR: &str = "BREAKEVEN_CACHE_DIR";

/// More threads than this are a mistake, not a machine.
const MAX_THREADS: usize = 4096;

/// Where batches run.
///
/// ```
/// use breakeven::Device;
/// assert_eq!("gpu:1".parse(), Ok(Device::Gpu(Some(1))));
/// assert_eq!(Device::Gpu(None).to_string(), "gpu");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Device {
    /// Where it pays. As long as nothing has been measured on this machine, that is the CPU.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On the GPU of this number, or on the first one that works.
    Gpu(Option<usize>),
    /// As [`Device::Auto`], and at once on all devices that are worth it where a batch can be divided.
    All,
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Device, String> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Device::Auto),
            None if text == "cpu" => Ok(Device::Cpu),
            None if text == "gpu" => Ok(Device::Gpu(None)),
            None if text == "all" => Ok(Device::All),
            Some(("gpu", number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                number.parse().map(|n| Device::Gpu(Some(n))).map_err(|_| DEVICES.to_owned())
            }
            _ => Err(DEVICES.to_owned()),
        }
    }
}

/// What names a device.
const DEVICES: &str = "auto, cpu, gpu, gpu:N or all";

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(None) => f.write_str("gpu"),
            Device::All => f.write_str("all"),
            Device::Gpu(Some(n)) => write!(f, "gpu:{n}"),
        }
    }
}

/// The settings of an engine.
///
/// ```
/// use breakeven::{Config, Engine};
/// let engine = Engine::with_config(Config { threads: Some(1), ..Config::default() })?;
/// assert_eq!(engine.threads(), 1);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Threads of the CPU, the calling one included; by default one for each core that this process may use.
    pub threads: Option<usize>,
    /// How many plans are remembered; the least recently used one goes first.
    pub plan_cache: usize,
    /// Where batches run.
    pub device: Device,
    /// If a GPU was asked for and fails, fail too, instead of computing the results elsewhere.
    pub strict: bool,
    /// The graphics interfaces that are asked for adapters.
    pub apis: Vec<Api>,
    /// How long a device may stay silent, beyond what its work is predicted to take.
    pub sync_timeout: Duration,
    /// Where measurements and pipelines are remembered; `None` remembers nothing beyond this process.
    pub cache_dir: Option<PathBuf>,
    /// The share of a GPU's batches that are computed again on the CPU and compared. A device whose results are wrong is
    /// not used any more.
    pub verify: f64,
    /// What is to be small where the choice is ours.
    pub objective: Objective,
    /// The share of the time that may go into looking whether another device has become better.
    pub explore: f64,
    /// Are the quickest variants of a GPU's kernels looked for while it is idle? What was found before is used in any case.
    pub tune: bool,
    /// How [`Engine::submit`](crate::Engine::submit) works.
    pub queue: QueueConfig,
    /// Makes the CPU take so many times as long, by waiting: to try routing as on a machine with a slower one.
    pub slow_cpu: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            threads: None,
            plan_cache: 1024,
            device: Device::Auto,
            strict: false,
            apis: Api::ALL.to_vec(),
            // Longer than any dispatch that is ever submitted (250 ms), shorter than anyone waits.
            sync_timeout: Duration::from_secs(5),
            cache_dir: None,
            verify: 0.0,
            objective: Objective::Latency,
            explore: 0.01,
            tune: true,
            slow_cpu: 1,
            queue: QueueConfig::default(),
        }
    }
}

impl Config {
    /// The defaults, changed by what the environment says. Measurements are remembered in the user's cache folder.
    pub fn from_env() -> Result<Config> {
        let mut config = Config { cache_dir: user_cache_dir(), ..Config::default() };
        if let Some(threads) = setting(THREADS_VAR, "a whole number from 1 to 4096", |text| {
            text.parse().ok().filter(|t| (1..=MAX_THREADS).contains(t))
        })? {
            config.threads = Some(threads);
        }
        if let Some(device) = setting(DEVICE_VAR, DEVICES, |text| text.parse().ok())? {
            config.device = device;
        }
        let expected = "some of vulkan, gl, dx12, metal, separated by commas";
        let apis = |text: &str| text.split(',').map(|api| api.trim().parse().ok()).collect::<Option<Vec<Api>>>();
        if let Some(apis) = setting(BACKENDS_VAR, expected, apis)? {
            config.apis = apis;
        }
        if let Some(timeout) = setting(SYNC_TIMEOUT_VAR, TIME, parse_time)? {
            config.sync_timeout = timeout;
        }
        if let Some(dir) = std::env::var_os(CACHE_DIR_VAR) {
            config.cache_dir = Some(PathBuf::from(dir)).filter(|dir| !dir.as_os_str().is_empty());
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

/// An environment variable, if it is set; a value that `parse` refuses is an error that says what was expected.
fn setting<T>(
    name: &'static str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let found = value.to_str().and_then(|text| parse(text.trim()));
    let refuse = |value: &OsStr| Error::Setting { name, value: value.to_string_lossy().into_owned(), expected };
    found.map(Some).ok_or_else(|| refuse(&value))
}

/// What [`parse_time`] reads, in words.
pub const TIME: &str = "a time such as 5, 2.5s or 800ms";

/// `5` (seconds), `2.5s` or `800ms`: more than nothing, and at most a day.
///
/// ```
/// assert_eq!(breakeven::parse_time("800ms"), Some(std::time::Duration::from_millis(800)));
/// assert_eq!(breakeven::parse_time("soon"), None);
/// ```
pub fn parse_time(text: &str) -> Option<Duration> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (seconds > 0.0 && seconds <= 86_400.0).then(|| Duration::from_secs_f64(seconds))
}

/// The folder of this program in the user's cache folder, by the customs of the platform.
fn user_cache_dir() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        var("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        var("HOME").map(|home| home.join("Library/Caches"))
    } else {
        var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("breakeven"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse_time("5"), Some(Duration::from_secs(5)));
        assert_eq!(parse_time("2.5s"), Some(Duration::from_millis(2500)));
        assert_eq!(parse_time("800ms"), Some(Duration::from_millis(800)));
        for bad in ["", "0", "-1", "s", "ms", "nan", "inf", "1e9", "5 minutes"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn devices_are_read_as_they_are_printed() {
        for device in [Device::Auto, Device::Cpu, Device::Gpu(None), Device::Gpu(Some(3)), Device::All] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        for bad in ["", "GPU", "gpu:", "gpu:x", "gpu:-1", "tpu", "gpu:99999999999999999999999"] {
            assert!(bad.parse::<Device>().is_err(), "{bad}");
        }
    }
}
