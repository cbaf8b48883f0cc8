//! Which of two ways is faster, found out while they are used: how long runs took enters, the way of the next one leaves.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Both are tried four times in turn at first, and once in so many runs again.
const FIRST_RUNS: u32 = 8;
const AGAIN_RUNS: u32 = 64;
/// So many runs in a row that all take longer than the best by more than this part of it are no accident: the memory is another one or somebody else
/// uses it too, and which way is faster may have changed.
const SLOW_RUNS: u32 = 3;
const SLOW_PART: u64 = 4;

/// What is known of two ways.
pub(crate) struct Either {
    /// What each takes at best, forgotten slowly: one run on a quiet machine does not decide forever.
    best_ns: [AtomicU64; 2],
    runs: AtomicU32,
    /// Slow ones among the last runs, in a row.
    slow: AtomicU32,
}

impl Either {
    pub(crate) fn new() -> Either {
        Either {
            best_ns: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
            runs: AtomicU32::new(0),
            slow: AtomicU32::new(0),
        }
    }

    /// The way of the next run. Runs at the same time may count as one: it is only about how often to look again.
    pub(crate) fn next(&self) -> usize {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let best = |way: usize| self.best_ns[way].load(Ordering::Relaxed);
        if number < FIRST_RUNS || number % AGAIN_RUNS < 2 {
            number as usize % 2
        } else {
            usize::from(best(1) < best(0))
        }
    }

    /// A run of this way took so long.
    pub(crate) fn took(&self, way: usize, ns: u64) {
        let old = self.best_ns[way].load(Ordering::Relaxed);
        let is_slow = ns > old.saturating_add(old / SLOW_PART);
        let slow = if is_slow { self.slow.load(Ordering::Relaxed) + 1 } else { 0 };
        if slow < SLOW_RUNS {
            self.slow.store(slow, Ordering::Relaxed);
            self.best_ns[way].store(ns.min(old.saturating_add(old / 256)), Ordering::Relaxed);
            return;
        }
        self.best_ns.iter().for_each(|best| best.store(u64::MAX, Ordering::Relaxed));
        self.slow.store(0, Ordering::Relaxed);
        self.runs.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each way is gone in so many runs that take what `ns` says of them.
    fn runs(either: &Either, count: u32, ns: [u64; 2]) -> [u32; 2] {
        let mut ways = [0; 2];
        for _ in 0..count {
            let way = either.next();
            ways[way] += 1;
            either.took(way, ns[way]);
        }
        ways
    }

    #[test]
    fn the_faster_one_is_gone_after_trying_both() {
        for (ns, faster) in [([900, 1000], 0), ([1000, 900], 1)] {
            let either = Either::new();
            assert_eq!(runs(&either, 8, ns), [4, 4]);
            assert_eq!(runs(&either, 56, ns)[faster], 56);
            assert_eq!(runs(&either, 64, ns)[1 - faster], 1, "the other one is looked at again");
        }
    }

    #[test]
    fn a_slow_run_changes_nothing_and_slow_memory_has_both_tried_again() {
        let either = Either::new();
        runs(&either, 8, [1000, 900]);
        for _ in 0..10 {
            either.took(1, 5000);
            either.took(1, 5000);
            assert_eq!(runs(&either, 1, [1000, 900]), [0, 1]);
        }
        // Everything takes longer now, and the other way is faster: it is found out within a dozen runs.
        runs(&either, 3 + 8, [1500, 1800]);
        assert_eq!(runs(&either, 40, [1500, 1800]), [40, 0]);
    }

    #[test]
    fn what_takes_longer_than_can_be_counted_is_no_mistake() {
        let either = Either::new();
        runs(&either, 100, [u64::MAX, u64::MAX - 1]);
    }
}
