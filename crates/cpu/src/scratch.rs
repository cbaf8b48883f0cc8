//! Working memory of the threads: blocks that are lent out and given back, so that running a plan allocates nothing.

use std::sync::{Mutex, PoisonError};

/// Blocks that are not in use. Each thread that works on a kernel borrows one.
#[derive(Default)]
pub(crate) struct Scratches {
    free: Mutex<Vec<Scratch>>,
}

/// A block of lanes, aligned to a cache line.
pub(crate) struct Scratch {
    words: Vec<Line>,
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "only ever used through pointers")] [u8; 64]);

impl Scratches {
    /// Runs `work` with a block of at least `bytes` bytes, whose contents are arbitrary.
    pub(crate) fn with<R>(&self, bytes: usize, work: impl FnOnce(*mut u8) -> R) -> R {
        let mut scratch = self.free().pop().unwrap_or(Scratch { words: Vec::new() });
        let lines = bytes.div_ceil(64);
        if scratch.words.len() < lines {
            // The old contents are not needed: a new block instead of one that is copied.
            scratch.words = vec![Line([0; 64]); lines];
        }
        let result = work(scratch.words.as_mut_ptr().cast());
        self.free().push(scratch);
        result
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        // A panic elsewhere leaves the list as it was: every block in it is whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
