//! The pace of a simulated device: what the parts of a batch take enters, a batch that really took that long leaves.
//!
//! Such a device has three engines that work at the same time: one uploads, one computes, one reads back. A batch goes
//! through them in this order, each engine serves one batch at a time, and no batch overtakes one that came before it.

use breakeven_ir::backend::{RunError, Stop};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Systems wake a thread up to this much too late: 60 us is usual on Linux. What is left is waited for awake.
const AWAKE_NS: u64 = 100_000;

/// Whoever may be told to stop looks this often.
const LOOK_NS: u64 = 1_000_000;

/// One uploads, one computes, one reads back.
pub(super) const ENGINES: usize = 3;

/// What each part of a batch takes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Parts {
    /// On the caller's thread, before any engine has it: the buffers that are created. Callers don't wait for each other.
    pub(super) host_ns: u64,
    pub(super) upload_ns: u64,
    /// The kernels, and what a call costs beyond everything else.
    pub(super) compute_ns: u64,
    pub(super) readback_ns: u64,
}

impl Parts {
    /// What a batch takes that has the device for itself.
    pub(super) fn total_ns(&self) -> u64 {
        [self.host_ns, self.upload_ns, self.compute_ns, self.readback_ns].into_iter().fold(0, u64::saturating_add)
    }
}

/// When a batch came and when it is done, on the device's clock.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    arrived_ns: u64,
    end_ns: u64,
}

impl Slot {
    /// With the time that it waits for engines.
    pub(super) fn took_ns(&self) -> u64 {
        self.end_ns - self.arrived_ns
    }
}

/// The device's clock, and when each of its engines is free.
pub(super) struct Pace {
    since: Instant,
    /// The bits of an f64.
    speed: AtomicU64,
    /// Of the engine that uploads, the one that computes, and the one that reads back.
    free_ns: Mutex<[u64; ENGINES]>,
    lost: Condvar,
}

impl Pace {
    pub(super) fn new() -> Pace {
        let speed = AtomicU64::new(1.0f64.to_bits());
        Pace { since: Instant::now(), speed, free_ns: Mutex::default(), lost: Condvar::new() }
    }

    pub(super) fn speed(&self) -> f64 {
        f64::from_bits(self.speed.load(Relaxed))
    }

    pub(super) fn set_speed(&self, speed: f64) {
        self.speed.store(speed.to_bits(), Relaxed);
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn free_ns(&self) -> MutexGuard<'_, [u64; ENGINES]> {
        self.free_ns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next free time of every engine that a batch needs.
    pub(super) fn reserve(&self, parts: &Parts) -> Slot {
        let mut free_ns = self.free_ns();
        // Read under the lock: whoever comes first is first at every engine.
        let arrived_ns = self.now_ns();
        let mut end_ns = arrived_ns.saturating_add(parts.host_ns);
        for (free_ns, ns) in free_ns.iter_mut().zip([parts.upload_ns, parts.compute_ns, parts.readback_ns]) {
            if ns > 0 {
                end_ns = end_ns.max(*free_ns).saturating_add(ns);
                *free_ns = end_ns;
            }
        }
        Slot { arrived_ns, end_ns }
    }

    /// Waits until a batch is done, unless `check` has something against it or it is told to stop. The engines' time that
    /// it has reserved stays reserved: a device finishes what was submitted.
    pub(super) fn wait(
        &self,
        slot: Slot,
        stop: Option<&Stop>,
        check: impl Fn() -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let check = || stop.map_or(Ok(()), Stop::check).and_then(|()| check());
        let mut free_ns = self.free_ns();
        loop {
            // Under the lock, which a loss takes before it wakes anybody: none is missed.
            check()?;
            let left_ns = slot.end_ns.saturating_sub(self.now_ns());
            if left_ns <= AWAKE_NS {
                break;
            }
            let nap_ns = (left_ns - AWAKE_NS).min(if stop.is_some() { LOOK_NS } else { u64::MAX });
            let woken = self.lost.wait_timeout(free_ns, Duration::from_nanos(nap_ns));
            free_ns = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(free_ns);
        while self.now_ns() < slot.end_ns {
            check()?;
            spin_loop();
        }
        Ok(())
    }

    /// The device is gone and nobody's work is done any more: those who wait look again, and the next ones find it idle.
    pub(super) fn clear(&self) {
        *self.free_ns() = [0; ENGINES];
        self.lost.notify_all();
    }

    /// How long until all engines are free.
    pub(super) fn pending_ns(&self) -> u64 {
        let last_ns = self.free_ns().into_iter().max().unwrap_or(0);
        last_ns.saturating_sub(self.now_ns())
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
