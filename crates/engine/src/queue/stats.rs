//! What the queue counts.

use super::seat::Seat;
use super::sync::lock;
use crate::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How the queue fares.
///
/// ```
/// use breakeven::{Engine, Job, Tensor};
/// let engine = Engine::new()?;
/// engine.submit(Job::batch(&[&Tensor::from_slice(&[1.0f32], [1])?.exp()?]))?.wait()?;
/// let stats = engine.queue_stats();
/// assert_eq!((stats.submitted, stats.completed, stats.queued), (1, 1, 0));
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Jobs that were taken in.
    pub submitted: u64,
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs answered with their results.
    pub completed: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were cancelled.
    pub cancelled: u64,
    /// Jobs whose deadline has passed.
    pub late: u64,
    /// Jobs that were left when the queue was aborted.
    pub aborted: u64,
    /// Times that a job moved on because a device failed.
    pub fallbacks: u64,
    /// Batches that several jobs were gathered into.
    pub gathered_batches: u64,
    /// Jobs in them.
    pub gathered_jobs: u64,
    /// From submission to the start of the work, of all jobs together, if `QueueConfig::metrics` is on: from one job in
    /// eight, and after some thousands from one in 64.
    pub waited: Duration,
    /// From the start of the work to its end, of all batches together, if `QueueConfig::metrics` is on.
    pub ran: Duration,
}

/// What one worker counts, and nobody else: a plain addition, where a counter that several write takes a step that other
/// cores wait for. Others read it.
#[derive(Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// By the worker whose it is.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// By the worker whose it is.
    #[inline]
    pub(crate) fn take_back(&self, less: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(less), Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What each worker counts for itself.
#[derive(Default)]
pub(crate) struct Tallies {
    pub(crate) completed: Tally,
    pub(crate) waited_ns: Tally,
    pub(crate) ran_ns: Tally,
}

#[derive(Default)]
pub(crate) struct Counters {
    failed: AtomicU64,
    cancelled: AtomicU64,
    late: AtomicU64,
    aborted: AtomicU64,
    pub(crate) fallbacks: AtomicU64,
    pub(crate) gathered_batches: AtomicU64,
    pub(crate) gathered_jobs: AtomicU64,
    /// What a job took lately.
    service_ns: AtomicU64,
}

impl Counters {
    /// So many jobs more were answered with this error.
    pub(crate) fn count(&self, error: &Error, jobs: i64) {
        let counter = match error {
            Error::Cancelled => &self.cancelled,
            Error::DeadlineExceeded { .. } => &self.late,
            Error::Aborted => &self.aborted,
            _ => &self.failed,
        };
        counter.fetch_add(jobs as u64, Relaxed);
    }

    /// A worker has done so many jobs in this time.
    pub(crate) fn served(&self, jobs: usize, ns: u64) {
        let each = ns / jobs.max(1) as u64;
        let before = self.service_ns.load(Relaxed);
        let now = if before == 0 { each } else { before - before / 8 + each / 8 };
        self.service_ns.store(now.max(1), Relaxed);
    }

    /// What a job took lately.
    pub(crate) fn service_ns(&self) -> u64 {
        self.service_ns.load(Relaxed)
    }

    fn stats(&self, submitted: u64, queued: usize, workers: &[Arc<Seat>]) -> QueueStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let sum = |of: fn(&Tallies) -> &Tally| workers.iter().map(|seat| of(&seat.tallies).read()).sum();
        QueueStats {
            submitted,
            queued,
            completed: sum(|tallies| &tallies.completed),
            failed: read(&self.failed),
            cancelled: read(&self.cancelled),
            late: read(&self.late),
            aborted: read(&self.aborted),
            fallbacks: read(&self.fallbacks),
            gathered_batches: read(&self.gathered_batches),
            gathered_jobs: read(&self.gathered_jobs),
            waited: Duration::from_nanos(sum(|tallies| &tallies.waited_ns)),
            ran: Duration::from_nanos(sum(|tallies| &tallies.ran_ns)),
        }
    }
}

impl super::Core {
    pub(crate) fn stats(&self) -> QueueStats {
        let state = lock(&self.state);
        self.counters.stats(self.submitted(), self.queued(), &state.seats)
    }
}
