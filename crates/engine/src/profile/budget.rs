//! How much of a profile is kept one by one: sums are exact without it, so that a long run needs no more memory than a short
//! one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Single spans of a profile that are kept: 32 bytes each, and about as many as Perfetto shows without a pause.
pub(crate) const SPANS: u64 = 200_000;
/// Batches of a profile that are kept: about half a kilobyte each once their decisions are in words.
pub(crate) const BATCHES: u64 = 50_000;
/// Frames of one thread: whoever makes up a new name for every span would fill memory with them. The time of further ones
/// stays with their callers.
pub(crate) const FRAMES: usize = 20_000;
/// Plans of a profile: a plan takes a few kilobytes, and programs that make up a new one for every batch have no end of
/// them. Further ones share a name.
pub(crate) const PLANS: usize = 4096;

/// Threads take so many at once: they would wait for each other's cache line at every span.
const BLOCK: u64 = 256;

/// What may still be kept, for all threads of a profile.
pub(crate) struct Budget {
    spans: AtomicU64,
    batches: AtomicU64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::of(SPANS, BATCHES)
    }
}

impl Budget {
    pub(crate) fn of(spans: u64, batches: u64) -> Budget {
        Budget { spans: AtomicU64::new(spans), batches: AtomicU64::new(batches) }
    }

    /// Some more spans.
    pub(crate) fn take_spans(&self) -> u64 {
        take(&self.spans)
    }

    /// Some more batches.
    pub(crate) fn take_batches(&self) -> u64 {
        take(&self.batches)
    }
}

fn take(left: &AtomicU64) -> u64 {
    let before = left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(BLOCK)));
    before.unwrap_or(0).min(BLOCK)
}
