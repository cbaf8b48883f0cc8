//! The life of one device object, from opening to loss: its latch, strikes, pending work and progress.
//!
//! Everything here is read and written without a call into the driver, so that a watchdog can decide while the owner
//! thread hangs in it. A lost life stays lost; a rebuilt device is a new life with the next generation.

use crate::session::next_look;
use breakeven_ir::backend::Stop;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Timeouts without any progress in between that mean that a device is lost.
pub(crate) const STRIKES: u32 = 3;

/// Batches after which the measured drain rate replaces the configured limit of pending work.
const MEASURED_AFTER: u64 = 8;

/// What a driver is known to do wrong. Found by the self-test; until then what is safe is assumed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quirks {
    /// Loop iterations after which the driver silently stops an invocation.
    pub(crate) loop_cap: Option<u32>,
    /// Submissions that may be in flight without blocking each other.
    pub(crate) in_flight: u32,
    /// Are mapped reads slow, so that results are better copied out at once?
    pub(crate) slow_mapped_reads: bool,
    /// Are denormals flushed to zero?
    pub(crate) flushes_denormals: bool,
    /// Kernel classes whose results are wrong.
    pub(crate) broken: Vec<breakeven_ir::plan::Class>,
}

impl Quirks {
    /// What is safe before anything is known. Mesa's software drivers cut loops short.
    pub(crate) fn assumed(kind: crate::adapters::Kind) -> Quirks {
        let software = kind == crate::adapters::Kind::Software;
        Quirks {
            loop_cap: software.then_some(65_535),
            in_flight: 1,
            slow_mapped_reads: false,
            flushes_denormals: false,
            broken: Vec::new(),
        }
    }

    /// In words.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(cap) = self.loop_cap {
            words.push(format!("loops end silently after {cap} iterations: longer work is cut into parts"));
        }
        if self.in_flight == 1 {
            words.push("a second submission gains nothing or waits for the first: one is sent at a time".into());
        }
        if self.slow_mapped_reads {
            words.push("mapped memory is read slowly: results are copied out at once instead of read in place".into());
        }
        if self.flushes_denormals {
            words.push("denormals are flushed to zero: its stated tolerance allows for it".into());
        }
        words.extend(
            self.broken
                .iter()
                .map(|class| format!("{class} kernels give wrong results: plans that need them are refused")),
        );
        words
    }
}

/// One device object.
pub(crate) struct Life {
    pub(crate) generation: u64,
    lost: AtomicBool,
    why: Mutex<Option<String>>,
    /// Dropped on loss, which wakes everyone who waits for an answer.
    alive: Mutex<Option<Sender<Infallible>>>,
    pub(crate) ended: Receiver<Infallible>,
    strikes: AtomicU32,
    /// Submissions that were completed.
    pub(crate) completed: AtomicU64,
    /// The moving average of the time that a batch takes.
    pub(crate) batch_ns: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    /// The bytes of a batch with everything that it needs: the largest one of late.
    pub(crate) batch_bytes: AtomicU64,
    /// A test asks that the device be destroyed under its work.
    pub(crate) destroy: AtomicBool,
    pending: Mutex<Pending>,
    drained: Condvar,
}

#[derive(Default)]
struct Pending {
    batches: u32,
    predicted_ns: u64,
}

impl Life {
    pub(crate) fn new(generation: u64) -> Arc<Life> {
        let (alive, ended) = bounded(0);
        Arc::new(Life {
            generation,
            lost: AtomicBool::new(false),
            why: Mutex::new(None),
            alive: Mutex::new(Some(alive)),
            ended,
            strikes: AtomicU32::new(0),
            completed: AtomicU64::new(0),
            batch_ns: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            batch_bytes: AtomicU64::new(0),
            destroy: AtomicBool::new(false),
            pending: Mutex::default(),
            drained: Condvar::new(),
        })
    }

    /// Latches the loss; true for the first who saw it.
    pub(crate) fn lose(&self, why: &str) -> bool {
        if self.lost.swap(true, Relaxed) {
            return false;
        }
        *lock(&self.why) = Some(why.into());
        *lock(&self.alive) = None;
        self.drained.notify_all();
        true
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// Why it was lost.
    pub(crate) fn why(&self) -> String {
        lock(&self.why).clone().unwrap_or_else(|| "its owner thread ended".into())
    }

    /// A caller waited in vain; true if that was one time too many.
    pub(crate) fn strike(&self) -> bool {
        self.strikes.fetch_add(1, Relaxed) + 1 >= STRIKES
    }

    /// Timeouts since the last progress.
    pub(crate) fn strikes(&self) -> u32 {
        self.strikes.load(Relaxed)
    }

    /// A submission was completed.
    pub(crate) fn progress(&self, ns: u64) {
        self.strikes.store(0, Relaxed);
        self.completed.fetch_add(1, Relaxed);
        self.busy_ns.fetch_add(ns, Relaxed);
        let before = self.batch_ns.load(Relaxed);
        self.batch_ns.store(if before == 0 { ns } else { (before * 7 + ns) / 8 }, Relaxed);
    }

    /// A batch has its memory. Large ones are forgotten again: after 16 others an eighth of one is left.
    pub(crate) fn takes(&self, bytes: u64) {
        let before = self.batch_bytes.load(Relaxed);
        self.batch_bytes.store(bytes.max(before - before / 8), Relaxed);
    }

    /// How many batches may be pending: what drains in a quarter of the timeout, once that is measured.
    pub(crate) fn pending_limit(&self, at_first: u32, timeout: Duration) -> u32 {
        if self.completed.load(Relaxed) < MEASURED_AFTER {
            return at_first.max(1);
        }
        let drained = timeout.as_nanos() as u64 / 4 / self.batch_ns.load(Relaxed).max(1);
        drained.clamp(2, 4 * u64::from(at_first.max(1))) as u32
    }

    /// Waits until there is room for another batch, until `deadline`, loss or a stop.
    pub(crate) fn enter(
        self: &Arc<Life>,
        limit: impl Fn() -> u32,
        predicted_ns: u64,
        deadline: Instant,
        stop: Option<&Stop>,
    ) -> Option<Permit> {
        let mut pending = lock(&self.pending);
        while pending.batches >= limit() {
            if Instant::now() >= deadline || self.is_lost() || stop.is_some_and(Stop::is_told) {
                return None;
            }
            let left = next_look(stop, deadline).saturating_duration_since(Instant::now());
            // Woken by a permit that ends; now and then anyway, since a loss is announced without the lock.
            let nap = left.min(Duration::from_millis(50));
            pending = self.drained.wait_timeout(pending, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.batches += 1;
        pending.predicted_ns += predicted_ns;
        Some(Permit { life: self.clone(), predicted_ns })
    }

    /// Pending batches and their predicted nanoseconds.
    pub(crate) fn pending(&self) -> (u32, u64) {
        let pending = lock(&self.pending);
        (pending.batches, pending.predicted_ns)
    }
}

/// The place of a batch among those pending. It travels with the batch: a caller that gives up leaves it behind.
pub(crate) struct Permit {
    life: Arc<Life>,
    predicted_ns: u64,
}

impl Permit {
    /// What the batch was expected to take.
    pub(crate) fn predicted_ns(&self) -> u64 {
        self.predicted_ns
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut pending = lock(&self.life.pending);
        pending.batches -= 1;
        pending.predicted_ns = pending.predicted_ns.saturating_sub(self.predicted_ns);
        drop(pending);
        self.life.drained.notify_one();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
