//! A wish that work stop: whoever waits for it enters, whoever runs it looks.

use super::RunError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells work to stop. Whoever runs it looks between kernels, tiles and tasks. Clones are the same wish: work that outlives
/// its caller keeps one.
///
/// ```
/// use breakeven_ir::backend::{RunError, Stop};
/// let stop = Stop::new();
/// assert_eq!(stop.check(), Ok(()));
/// stop.clone().stop();
/// assert_eq!(stop.check(), Err(RunError::Stopped));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop {
    told: Arc<AtomicBool>,
}

impl Stop {
    /// Nothing is to be stopped yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// The work is to stop.
    pub fn stop(&self) {
        // What has to be seen along with it is handed over elsewhere: this alone says only that the work is in vain.
        self.told.store(true, Ordering::Relaxed);
    }

    /// As new, for other work. Whoever has a clone keeps what it was.
    pub fn renew(&mut self) {
        match Arc::get_mut(&mut self.told) {
            Some(told) => *told.get_mut() = false,
            None => *self = Stop::new(),
        }
    }

    /// Is the work to stop?
    #[inline]
    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// As an error.
    pub fn check(&self) -> Result<(), RunError> {
        if self.is_told() { Err(RunError::Stopped) } else { Ok(()) }
    }
}
