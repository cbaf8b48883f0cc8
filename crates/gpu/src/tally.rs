//! What a device did since it was opened, through all its generations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a device did since it was opened, through all its generations.
///
/// ```
/// assert_eq!(breakeven_gpu::Counters::default().submits, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Submissions.
    pub submits: u64,
    /// Dispatches, without those that warm pipelines up.
    pub dispatches: u64,
    /// Buffers created.
    pub created_buffers: u64,
    /// Pipelines compiled.
    pub created_pipelines: u64,
    /// Bind groups created.
    pub created_bind_groups: u64,
    /// Packed uploads.
    pub uploads: u64,
    /// Packed readbacks.
    pub readbacks: u64,
    /// Callers that waited in vain.
    pub timeouts: u64,
    /// Devices that were lost.
    pub losses: u64,
    /// The device's generation: how often it was rebuilt.
    pub generation: u64,
    /// Batches that wait or run.
    pub pending: u64,
    /// Self-tests: 0 if what an earlier one found was remembered.
    pub self_tests: u64,
    /// How long the self-test took.
    pub self_test_ns: u64,
}

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) submits: AtomicU64,
    pub(crate) dispatches: AtomicU64,
    pub(crate) created_buffers: AtomicU64,
    pub(crate) created_pipelines: AtomicU64,
    pub(crate) created_bind_groups: AtomicU64,
    pub(crate) uploads: AtomicU64,
    pub(crate) readbacks: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) losses: AtomicU64,
    pub(crate) self_tests: AtomicU64,
    pub(crate) self_test_ns: AtomicU64,
}

impl Tally {
    /// A self-test was run. What it did belongs to the opening and does not count.
    pub(crate) fn tested(&self, ns: u64) {
        let done = [&self.submits, &self.dispatches, &self.uploads, &self.readbacks];
        let created = [&self.created_buffers, &self.created_pipelines, &self.created_bind_groups];
        done.into_iter().chain(created).for_each(|counter| counter.store(0, Relaxed));
        self.self_tests.fetch_add(1, Relaxed);
        self.self_test_ns.store(ns, Relaxed);
    }

    pub(crate) fn counters(&self, generation: u64, pending: u64) -> Counters {
        Counters {
            submits: self.submits.load(Relaxed),
            dispatches: self.dispatches.load(Relaxed),
            created_buffers: self.created_buffers.load(Relaxed),
            created_pipelines: self.created_pipelines.load(Relaxed),
            created_bind_groups: self.created_bind_groups.load(Relaxed),
            uploads: self.uploads.load(Relaxed),
            readbacks: self.readbacks.load(Relaxed),
            timeouts: self.timeouts.load(Relaxed),
            losses: self.losses.load(Relaxed),
            generation,
            pending,
            self_tests: self.self_tests.load(Relaxed),
            self_test_ns: self.self_test_ns.load(Relaxed),
        }
    }
}
