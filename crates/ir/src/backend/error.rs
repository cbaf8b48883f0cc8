//! What goes wrong on a device.

/// What went wrong on a device while a batch ran.
///
/// ```
/// use breakeven_ir::backend::RunError;
/// let error = RunError::TakeIndex { index: 7, extent: 5 };
/// assert!(error.to_string().contains("index 7 is out of range for an axis of extent 5"));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// `take` met an index outside its axis.
    #[error(
        "take: index {index} is out of range for an axis of extent {extent}: indices from -{extent} to {extent} - 1 exist"
    )]
    TakeIndex {
        /// The first offending index found.
        index: i32,
        /// The axis' extent.
        extent: usize,
    },
    /// Memory could not be had.
    #[error("{bytes} bytes of memory could not be had: free memory, or run smaller batches")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// The device did not answer in time. It may still be at work.
    #[error(
        "{device} did not answer within {waited_ms} ms; it may still be at work (BREAKEVEN_SYNC_TIMEOUT sets the limit)"
    )]
    Timeout {
        /// The device's id.
        device: String,
        /// How long was waited.
        waited_ms: u64,
    },
    /// The device is gone; what lay on it has to be made again.
    #[error("{device} was lost: {why}")]
    Lost {
        /// The device's id.
        device: String,
        /// What was seen.
        why: String,
    },
    /// The device refused the work.
    #[error("{device} failed: {message}")]
    Device {
        /// The device's id.
        device: String,
        /// What the driver said.
        message: String,
    },
    /// The device can't run this plan.
    #[error("{device} can't run this: {why}")]
    Unsupported {
        /// The device's id.
        device: String,
        /// What it lacks.
        why: String,
    },
    /// A value of an earlier life of the device was used.
    #[error("the value lay on {device} before it was rebuilt: upload or compute it again")]
    Stale {
        /// The device's id.
        device: String,
    },
    /// It was told to stop (see [`Stop`](super::Stop)).
    #[error("the work was stopped before it was done")]
    Stopped,
    /// Bytes outside of memory that was allocated.
    #[error("bytes {offset}..{} of memory that has {size} bytes", offset.saturating_add(*bytes))]
    OutOfRange {
        /// The first byte.
        offset: usize,
        /// How many bytes.
        bytes: usize,
        /// How many there are.
        size: usize,
    },
}

impl RunError {
    /// Is it the device's doing, so that another device would have a result?
    pub fn is_device_fault(&self) -> bool {
        !matches!(self, RunError::TakeIndex { .. } | RunError::Stopped | RunError::OutOfRange { .. })
    }
}
