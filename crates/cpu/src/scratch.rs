//! Working memory of the threads: blocks that are lent out and given back, so that running a plan allocates nothing.

use std::sync::atomic::{AtomicPtr, Ordering};

/// Places where a block that is not in use waits. More threads than places allocate, which is slower and not wrong.
const PLACES: usize = 64;
/// Blocks of up to this many lines lie on the stack: taking one and giving it back are two locked instructions, about
/// 20 ns of the 110 that a call takes.
const SMALL_LINES: usize = 8;

/// Blocks that are not in use. Each thread that works on a kernel borrows one.
pub(crate) struct Scratches {
    places: [Waiting; PLACES],
}

/// One block that is not in use, or none; on a cache line of its own, so that threads do not slow each other down.
#[repr(align(128))]
struct Waiting(AtomicPtr<Scratch>);

/// A block of cache lines.
struct Scratch {
    lines: Vec<Line>,
}

/// A cache line: what blocks of memory are made of, here and in `blocks`.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(#[allow(dead_code, reason = "only ever used through pointers")] [u8; 64]);

impl Line {
    pub(crate) const ZERO: Line = Line([0; 64]);
}

impl Default for Scratches {
    fn default() -> Scratches {
        Scratches { places: std::array::from_fn(|_| Waiting(AtomicPtr::new(std::ptr::null_mut()))) }
    }
}

impl Scratches {
    /// Runs `work` with a block of at least `bytes` bytes, whose contents are arbitrary.
    #[inline]
    pub(crate) fn with<R>(&self, bytes: usize, work: impl FnOnce(*mut u8) -> R) -> R {
        let mut small = [Line::ZERO; SMALL_LINES];
        let mut taken = None;
        let block = if bytes <= size_of_val(&small) {
            small.as_mut_ptr().cast()
        } else {
            taken.insert(self.take(bytes.div_ceil(64))).lines.as_mut_ptr().cast()
        };
        let result = work(block);
        if let Some(scratch) = taken {
            self.give_back(scratch);
        }
        result
    }

    /// Where this thread looks first: stacks lie at least a page apart, so their addresses tell threads apart, and
    /// asking the system for a thread's number would cost more than the rest.
    fn place(&self) -> usize {
        let here = 0u8;
        (&raw const here as usize >> 16) % PLACES
    }

    /// A block of at least that many lines.
    fn take(&self, lines: usize) -> Box<Scratch> {
        let mut scratch = self.take_any();
        if scratch.lines.len() < lines {
            // The old contents are not needed: a new block instead of one that is copied.
            scratch.lines = vec![Line::ZERO; lines];
        }
        scratch
    }

    fn take_any(&self) -> Box<Scratch> {
        let first = self.place();
        for at in 0..4 {
            let taken = self.places[(first + at) % PLACES].0.swap(std::ptr::null_mut(), Ordering::Acquire);
            if !taken.is_null() {
                // SAFETY: it was made by `Box::into_raw` in `give_back`, and the swap made it ours alone.
                return unsafe { Box::from_raw(taken) };
            }
        }
        Box::new(Scratch { lines: Vec::new() })
    }

    fn give_back(&self, scratch: Box<Scratch>) {
        let raw = Box::into_raw(scratch);
        let first = self.place();
        for at in 0..4 {
            let place = &self.places[(first + at) % PLACES].0;
            if place.compare_exchange(std::ptr::null_mut(), raw, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: it was just made from a box, and no place took it.
        drop(unsafe { Box::from_raw(raw) });
    }
}

impl Drop for Scratches {
    fn drop(&mut self) {
        for place in &mut self.places {
            let taken = std::mem::replace(place.0.get_mut(), std::ptr::null_mut());
            if !taken.is_null() {
                // SAFETY: as in `take_any`.
                drop(unsafe { Box::from_raw(taken) });
            }
        }
    }
}
