//! How many batches are worth having in the owner's hands at once: what the driver bears and what a batch needs enter, a
//! number of callers leaves.

use crate::health::lock;
use crate::session::Session;
use std::sync::atomic::Ordering::Relaxed;

/// Beyond this nobody gains: one is computed, one is sent, one is copied, one is read.
const MOST: u64 = 4;

/// What the number depends on.
struct Needs {
    /// Submissions that the driver bears at once.
    in_flight: u32,
    /// What a batch needs.
    batch_bytes: u64,
    /// What all of them may need together.
    memory_bytes: u64,
    /// Batches that may wait for the device at first.
    max_pending: u32,
}

impl Session {
    pub(crate) fn depth(&self) -> usize {
        // Buffers beyond what the pool keeps would be created for every batch anew. Half of the device's memory is left to
        // values that stay, and to others.
        let memory_bytes = self.info.memory_bytes.map_or(u64::MAX, |bytes| bytes / 2).min(self.config.pool_bytes);
        depth(&Needs {
            in_flight: lock(&self.quirks).in_flight,
            batch_bytes: self.current().life.batch_bytes.load(Relaxed),
            memory_bytes,
            max_pending: self.config.max_pending,
        })
    }
}

/// One more than the device works on: its caller copies meanwhile.
fn depth(needs: &Needs) -> usize {
    let useful = (u64::from(needs.in_flight) + 1).clamp(2, MOST);
    let fits = needs.memory_bytes / needs.batch_bytes.max(1);
    useful.min(fits).min(u64::from(needs.max_pending)).max(1) as usize
}

#[cfg(test)]
#[path = "depth_tests.rs"]
mod tests;
