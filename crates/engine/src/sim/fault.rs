//! Faults on demand: wishes for them enter, the errors that batches then answer with leave.

use breakeven_ir::backend::{Health, RunError, Status};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is wrong with a device.
#[derive(Default)]
pub(super) struct Faults {
    /// How often it was lost or came back: odd while it is lost.
    turns: AtomicU64,
    /// Of the last loss. Locked while the turns change.
    why: Mutex<String>,
    /// Batches that are still to fail.
    to_fail: AtomicUsize,
}

/// One life of a device, from opening or coming back to loss.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Life(u64);

impl Life {
    pub(super) fn generation(self) -> u64 {
        self.0.div_ceil(2)
    }
}

impl Faults {
    fn why(&self) -> MutexGuard<'_, String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_odd(turns: u64) -> bool {
        turns % 2 == 1
    }

    pub(super) fn is_lost(&self) -> bool {
        Faults::is_odd(self.turns.load(Relaxed))
    }

    /// How often it was lost.
    pub(super) fn generation(&self) -> u64 {
        Life(self.turns.load(Relaxed)).generation()
    }

    /// A device that is lost already stays lost for the reason it had.
    pub(super) fn lose(&self, why: String) {
        let mut said = self.why();
        if !self.is_lost() {
            *said = why;
            self.turns.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn recover(&self) {
        let _said = self.why();
        if self.is_lost() {
            self.turns.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn fail_next(&self, count: usize) {
        self.to_fail.store(count, Relaxed);
    }

    fn lost(&self, device: &str) -> RunError {
        RunError::Lost { device: device.into(), why: self.why().clone() }
    }

    /// The life that work begins in.
    pub(super) fn life(&self, device: &str) -> Result<Life, RunError> {
        let turns = self.turns.load(Relaxed);
        if Faults::is_odd(turns) { Err(self.lost(device)) } else { Ok(Life(turns)) }
    }

    /// Did this life last until now? One that has come back since does not have the work of the one before.
    pub(super) fn check(&self, device: &str, life: Life) -> Result<(), RunError> {
        if self.turns.load(Relaxed) == life.0 { Ok(()) } else { Err(self.lost(device)) }
    }

    /// Is a batch to fail? Then one less is from now on.
    pub(super) fn batch(&self, device: &str) -> Result<(), RunError> {
        match self.to_fail.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1)) {
            Ok(_) => Err(RunError::Device { device: device.into(), message: "it was told to fail".into() }),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn health(&self) -> Health {
        if self.is_lost() {
            return Health { status: Status::Lost, reason: self.why().clone() };
        }
        Health { status: Status::Healthy, reason: "nothing can be wrong with it".into() }
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
