//! How plans are found again: a plan and a number of tasks enter, a key and its hash leave.

use breakeven_ir::plan::Plan;
use std::sync::Arc;

/// A plan by its address, and the order of magnitude of how many tasks there are of it.
pub(super) type Key = (usize, u32);

pub(super) fn key(plan: &Arc<Plan>, tasks: usize) -> Key {
    (Arc::as_ptr(plan) as usize, tasks.max(1).ilog2())
}

/// Addresses and small numbers, which nobody chooses to collide: a batch of 500 ns would feel a stronger hash.
#[derive(Default)]
pub(super) struct Mix(u64);

impl std::hash::Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        // Multiplied by the golden ratio: neighbours lie far apart, also in the upper bits that the table looks at.
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}
