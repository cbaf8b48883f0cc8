//! What can go wrong while a device is found and opened. What goes wrong while it runs is a
//! [`RunError`](breakeven_ir::backend::RunError).

/// Why there is no device.
///
/// ```
/// use breakeven_gpu::{Adapters, GpuConfig};
/// let error = Adapters::find(&[]).open(0, &GpuConfig::default()).err().expect("nothing was searched");
/// assert!(error.to_string().starts_with("there is no adapter 0"));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No such adapter.
    #[error("there is no adapter {index}, {found} were found: {}", crate::adapters::driver_hint())]
    NoAdapter {
        /// What was asked for.
        index: usize,
        /// How many there are.
        found: usize,
    },
    /// The driver refused to open it.
    #[error("{device} ({name}) can't be opened: {why}")]
    Open {
        /// The device's id.
        device: String,
        /// The adapter's name.
        name: String,
        /// What the driver said.
        why: String,
    },
}
