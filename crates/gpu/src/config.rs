//! How a device is used: limits with their defaults and the reasons for them.

use std::path::PathBuf;
use std::time::Duration;

/// How a device is used.
///
/// ```
/// use breakeven_gpu::GpuConfig;
/// let config = GpuConfig { max_pending: 4, ..GpuConfig::default() };
/// assert_eq!(config.sync_timeout.as_secs(), 5);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GpuConfig {
    /// How long a caller waits for an answer, on top of the time that the batch is predicted to take. 5 s: longer than
    /// any driver needs to compile a kernel on a slow machine, short enough for a person to wait.
    pub sync_timeout: Duration,
    /// Bytes that the pool keeps. What batches use at the moment is never refused because of it; idle buffers above it
    /// are freed, least recently used first. 1 GiB: less than the memory of any GPU of the last ten years.
    pub pool_bytes: u64,
    /// Batches that may wait for the device at first; later as many as it gets done in a quarter of `sync_timeout`, so
    /// that nobody queues up only to time out.
    pub max_pending: u32,
    /// Where what was found out about a device is kept (its quirks, its quickest variants), and compiled pipelines for
    /// backends that can.
    pub cache_dir: Option<PathBuf>,
    /// The longest that one submission may be predicted to take. 250 ms: operating systems kill a device after 2 s, and
    /// predictions are off by up to a few times.
    pub dispatch_limit: Duration,
    /// Are the quickest variants of kernels found by measurements while the device is idle? They begin after the first
    /// batches, one at a time, and change nothing for plans that are there already.
    pub tune: bool,
    /// When the monitor warns.
    pub thresholds: Thresholds,
}

impl Default for GpuConfig {
    fn default() -> GpuConfig {
        GpuConfig {
            sync_timeout: Duration::from_secs(5),
            pool_bytes: 1 << 30,
            max_pending: 16,
            cache_dir: None,
            dispatch_limit: Duration::from_millis(250),
            tune: true,
            thresholds: Thresholds::default(),
        }
    }
}

/// When the monitor warns.
///
/// ```
/// let thresholds = breakeven_gpu::Thresholds::default();
/// assert!(thresholds.memory_warning < thresholds.memory_critical);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The share of memory in use from which there is a warning: 0.8, half of what is left still fits.
    pub memory_warning: f64,
    /// The share from which it is critical: 0.95, the next batch may not fit.
    pub memory_critical: f64,
    /// Predicted milliseconds of pending work from which there is a warning: 1,000, when people notice.
    pub pending_warning_ms: u64,
    /// From which it is critical: 4,000, close to the timeout.
    pub pending_critical_ms: u64,
    /// Memory samples in a row that grow before there is a warning: 8, which no warm-up takes.
    pub growth_samples: usize,
    /// Growth over those samples below which they don't count: 64 MiB.
    pub growth_bytes: u64,
    /// Degrees Celsius from which there is a warning: 90, GPUs slow down from there on.
    pub temperature_warning: f64,
    /// Batches that a rebuilt device has to complete before it is healthy again: 16.
    pub trust_after: u64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            memory_warning: 0.8,
            memory_critical: 0.95,
            pending_warning_ms: 1_000,
            pending_critical_ms: 4_000,
            growth_samples: 8,
            growth_bytes: 64 << 20,
            temperature_warning: 90.0,
            trust_after: 16,
        }
    }
}
