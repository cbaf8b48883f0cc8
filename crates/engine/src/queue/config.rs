//! How the queue is set up.

use crate::config::Device;
use crate::error::{Error, Result};
use std::time::Duration;

/// The settings of an engine's queue.
///
/// ```
/// use breakeven::{Config, Device, Engine, QueueConfig};
/// let queue = QueueConfig { capacity: 64, devices: vec![Device::Cpu], ..QueueConfig::default() };
/// let engine = Engine::with_config(Config { queue, ..Config::default() })?;
/// assert_eq!(engine.queue_stats().queued, 0);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct QueueConfig {
    /// Jobs that may wait. Beyond that, whoever submits waits, or is refused.
    pub capacity: usize,
    /// The devices that share the jobs. Empty: as [`Config::device`](crate::Config::device) says; `auto` are the CPU and
    /// every device whose costs are known, `all` the CPU and every device there is.
    pub devices: Vec<Device>,
    /// By how many newer jobs of the next greater urgency a job may be overtaken.
    pub ageing: u64,
    /// Jobs of one program that are gathered into one batch at most.
    pub gather: usize,
    /// How long a normal job may wait for others to be gathered with, where that is expected to pay.
    pub window: Duration,
    /// The same for bulk jobs.
    pub bulk_window: Duration,
    /// The same for interactive jobs.
    pub interactive_window: Duration,
    /// Are waits and runs timed? Counters are always kept.
    pub metrics: bool,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            capacity: 4096,
            devices: Vec::new(),
            ageing: 64,
            gather: 256,
            // About a submission's fixed cost on the devices that there are here (60 to 120 us): waiting longer can't pay.
            window: Duration::from_micros(100),
            bulk_window: Duration::from_millis(1),
            interactive_window: Duration::ZERO,
            metrics: true,
        }
    }
}

impl QueueConfig {
    pub(crate) fn check(&self) -> Result<()> {
        let most = 1 << 24;
        if !(1..=most).contains(&self.capacity) {
            let value = self.capacity.to_string();
            return Err(Error::Setting { name: "queue.capacity", value, expected: "1 to 16777216" });
        }
        if self.gather == 0 {
            return Err(Error::Setting { name: "queue.gather", value: "0".into(), expected: "at least 1" });
        }
        Ok(())
    }
}
