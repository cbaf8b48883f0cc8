//! What batches of one plan took on one device lately: times enter, a robust expectation leaves.
//!
//! The median of a short window: one spike changes nothing, a device that has become slow shows within half a window.
//! What was measured long ago is forgotten when something new is heard of a device.

/// How many of the last times are kept.
const WINDOW: usize = 9;
/// Times that make up an opinion of their own; before that the prediction counts.
const ENOUGH: usize = 3;

/// The last times of one plan on one device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct History {
    ns: [u64; WINDOW],
    len: usize,
    next: usize,
    /// Was there ever enough for an opinion? A silence makes it weaker, and not a matter of the prediction again, which
    /// may have been wrong from the start.
    is_known: bool,
    /// The batch of this plan, counted over all devices, after which the last time was taken.
    pub(crate) last_batch: u64,
}

impl History {
    /// Notes a time. After a long silence, what was known counts no more than one opinion among the new ones.
    pub(crate) fn push(&mut self, ns: u64, batch: u64) {
        if self.len > 0 && batch.saturating_sub(self.last_batch) > SILENCE {
            let median = self.median_ns().unwrap_or(ns);
            *self = History { len: 1, next: 1, is_known: self.is_known, ..History::default() };
            self.ns[0] = median;
        }
        self.ns[self.next] = ns.max(1);
        self.next = (self.next + 1) % WINDOW;
        self.len = (self.len + 1).min(WINDOW);
        self.is_known |= self.len >= ENOUGH;
        self.last_batch = batch;
    }

    /// The median of what is known; `None` before enough is.
    pub(crate) fn expected_ns(&self) -> Option<u64> {
        if self.is_known { self.median_ns() } else { None }
    }

    /// The last time.
    pub(crate) fn last_ns(&self) -> Option<u64> {
        (self.len > 0).then(|| self.ns[(self.next + WINDOW - 1) % WINDOW])
    }

    fn median_ns(&self) -> Option<u64> {
        let mut sorted = self.ns;
        let known = &mut sorted[..self.len];
        known.sort_unstable();
        known.get(self.len / 2).copied()
    }
}

/// Batches without news of a device after which what was known about it counts little.
const SILENCE: u64 = 16;

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
