//! A simulated device as its plans and values know it: what work takes enters, the time that passed leaves.

use super::fault::{Faults, Life};
use super::pace::{Pace, Parts, Slot};
use super::plan::SimPlan;
use super::profile::SimProfile;
use breakeven_cpu::Cpu;
use breakeven_ir::backend::{RunError, Stop};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The device.
pub(super) struct Simulated {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) profile: SimProfile,
    pub(super) cpu: Cpu,
    /// The bits of an f64.
    pub(super) slowdown: AtomicU64,
    pub(super) spike_ns: AtomicU64,
    pub(super) virtual_ns: AtomicU64,
    /// Nothing where time is only told.
    pub(super) pace: OnceLock<Pace>,
    pub(super) faults: Faults,
    /// By the address of the plan, which is not another's for as long as the plan is here.
    plans: Mutex<HashMap<usize, Weak<SimPlan>>>,
}

impl Simulated {
    pub(super) fn new(id: String, profile: SimProfile, cpu: Cpu) -> Simulated {
        Simulated {
            id,
            name: format!("{} (simulated)", profile.name()),
            profile,
            cpu,
            slowdown: AtomicU64::new(1.0f64.to_bits()),
            spike_ns: AtomicU64::new(0),
            virtual_ns: AtomicU64::new(0),
            pace: OnceLock::new(),
            faults: Faults::default(),
            plans: Mutex::default(),
        }
    }

    pub(super) fn plans(&self) -> MutexGuard<'_, HashMap<usize, Weak<SimPlan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all costs are multiplied with now.
    pub(super) fn slowdown(&self) -> f64 {
        f64::from_bits(self.slowdown.load(Relaxed)) / self.pace.get().map_or(1.0, Pace::speed)
    }

    /// Work begins.
    pub(super) fn begin(&self, parts: &Parts) -> Result<Passage<'_>, RunError> {
        let life = self.faults.life(&self.id)?;
        let total_ns = parts.total_ns();
        add(&self.virtual_ns, total_ns);
        let slot = self.pace.get().map(|pace| (pace, pace.reserve(parts)));
        Ok(Passage { device: self, life, total_ns, slot })
    }

    /// Bytes go up, and the engine that does that is busy.
    pub(super) fn begin_upload(&self, bytes: usize) -> Result<Passage<'_>, RunError> {
        let upload_ns = self.profile.costs().upload_ns(bytes as u64, self.slowdown());
        self.begin(&Parts { upload_ns, ..Parts::default() })
    }

    /// Bytes come back, and the engine that does that is busy.
    pub(super) fn begin_readback(&self, bytes: usize) -> Result<Passage<'_>, RunError> {
        let readback_ns = self.profile.costs().readback_ns(bytes as u64, self.slowdown());
        self.begin(&Parts { readback_ns, ..Parts::default() })
    }
}

/// Work that has begun. Meanwhile the CPU computes its results.
pub(super) struct Passage<'a> {
    device: &'a Simulated,
    life: Life,
    total_ns: u64,
    slot: Option<(&'a Pace, Slot)>,
}

impl Passage<'_> {
    /// Of the life that it began in.
    pub(super) fn generation(&self) -> u64 {
        self.life.generation()
    }

    /// Lets the time pass and tells what it was, unless the device is lost or the work stopped.
    pub(super) fn end(self, stop: Option<&Stop>) -> Result<u64, RunError> {
        let lives = || self.device.faults.check(&self.device.id, self.life);
        match self.slot {
            Some((pace, slot)) => pace.wait(slot, stop, lives).map(|()| slot.took_ns()),
            None => lives().map(|()| self.total_ns),
        }
    }
}

/// Adds to a time that stays at its largest value rather than begin anew.
pub(super) fn add(total: &AtomicU64, ns: u64) {
    // The closure always has a value, so that this can't fail.
    let _ = total.fetch_update(Relaxed, Relaxed, |total| Some(total.saturating_add(ns)));
}
