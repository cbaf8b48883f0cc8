//! How a device fares, from measured facts. Nothing here calls wgpu: the owner thread leaves its figures behind, the
//! rest is read from the system.

use crate::adapters::Kind;
use crate::config::Thresholds;
use crate::health::lock;
use crate::session::Session;
use breakeven_ir::backend::{Health, Status};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The system's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SystemMemory {
    pub(crate) total_bytes: u64,
    pub(crate) available_bytes: u64,
}

/// The system's memory, where the system tells.
pub(crate) fn system_memory() -> Option<SystemMemory> {
    parse_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_meminfo(text: &str) -> Option<SystemMemory> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    };
    Some(SystemMemory { total_bytes: field("MemTotal")?, available_bytes: field("MemAvailable")? })
}

/// The memory of an adapter, where that is known.
pub(crate) fn memory_bytes(kind: Kind, pci: &str) -> Option<u64> {
    if kind.is_unified() {
        return Some(system_memory()?.total_bytes);
    }
    read_number(&Path::new("/sys/bus/pci/devices").join(pci).join("mem_info_vram_total"))
}

/// Degrees Celsius of the hottest sensor of a PCI device, where the system shows them.
pub(crate) fn temperature(pci: &str) -> Option<f64> {
    if pci.is_empty() {
        return None;
    }
    let sensors = std::fs::read_dir(Path::new("/sys/bus/pci/devices").join(pci).join("hwmon")).ok()?;
    let millis = sensors.flatten().filter_map(|sensor| read_number(&sensor.path().join("temp1_input"))).max()?;
    Some(millis as f64 / 1000.0)
}

fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// What the owner thread saw last, and the samples that a trend needs.
#[derive(Default)]
pub(crate) struct Monitor {
    /// Bytes that the driver's allocator has handed out; 0 where it does not tell.
    pub(crate) allocated_bytes: AtomicU64,
    samples: Mutex<VecDeque<Sample>>,
}

#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    memory_bytes: u64,
    busy_ns: u64,
}

/// Samples are at least this far apart, so that a caller in a loop does not fill the window with one moment.
const APART: Duration = Duration::from_millis(100);

/// The facts that a judgement is made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Bytes in use and bytes that there are, if both are known.
    pub(crate) memory: Option<(u64, u64)>,
    pub(crate) pending: u32,
    pub(crate) pending_ms: u64,
    pub(crate) strikes: u32,
    /// The share of the last samples' time in which it was at work.
    pub(crate) busy: f64,
    /// Bytes by which memory has grown over the last samples, if each had more than the one before.
    pub(crate) growth_bytes: u64,
    pub(crate) temperature: Option<f64>,
    /// Batches that a rebuilt device still has to complete before it is trusted.
    pub(crate) probation: u64,
}

impl Monitor {
    fn own_bytes(&self, reserved_bytes: u64) -> u64 {
        self.allocated_bytes.load(Relaxed).max(reserved_bytes)
    }

    /// Takes a sample if the last one is old enough; the trend and the share of time at work. Memory is what the pool has, or what
    /// the driver's allocator has handed out if that is more.
    pub(crate) fn observe(&self, reserved_bytes: u64, busy_ns: u64, wanted: usize) -> (u64, f64) {
        let memory_bytes = self.own_bytes(reserved_bytes);
        let mut samples = lock(&self.samples);
        let now = Sample { at: Instant::now(), memory_bytes, busy_ns };
        if samples.back().is_none_or(|last| now.at - last.at >= APART) {
            samples.push_back(now);
        }
        while samples.len() > wanted.max(2) {
            samples.pop_front();
        }
        let grows = samples.len() >= wanted
            && samples
                .iter()
                .zip(samples.iter().skip(1))
                .all(|(before, after)| after.memory_bytes > before.memory_bytes);
        let Some(first) = samples.front() else { return (0, 0.0) };
        let growth = if grows { now.memory_bytes.saturating_sub(first.memory_bytes) } else { 0 };
        let span = (now.at - first.at).as_nanos() as f64;
        // A rebuilt device counts from zero again.
        let busy = now.busy_ns.saturating_sub(first.busy_ns) as f64;
        (growth, if span > 0.0 { (busy / span).min(1.0) } else { 0.0 })
    }
}

/// The worst that the facts say, and why.
pub(crate) fn judge(facts: &Facts, thresholds: &Thresholds) -> Health {
    let mut findings: Vec<(Status, String)> = Vec::new();
    let mut find = |status, reason| findings.push((status, reason));
    if let Some((used, total)) = facts.memory.filter(|(_, total)| *total > 0) {
        let share = used as f64 / total as f64;
        let words = || format!("{:.0} % of {} MiB of memory are in use", share * 100.0, total >> 20);
        if share >= thresholds.memory_critical {
            find(Status::Critical, words());
        } else if share >= thresholds.memory_warning {
            find(Status::Warning, words());
        }
    }
    let words = || format!("{} batches of about {} ms are pending", facts.pending, facts.pending_ms);
    if facts.pending_ms >= thresholds.pending_critical_ms {
        find(Status::Critical, words());
    } else if facts.pending_ms >= thresholds.pending_warning_ms {
        find(Status::Warning, words());
    }
    if facts.strikes > 0 {
        find(Status::Warning, format!("{} timeouts without progress", facts.strikes));
    }
    if facts.growth_bytes >= thresholds.growth_bytes {
        find(Status::Warning, format!("memory grew by {} MiB and is still growing", facts.growth_bytes >> 20));
    }
    if let Some(degrees) = facts.temperature.filter(|degrees| *degrees >= thresholds.temperature_warning) {
        find(Status::Warning, format!("it is {degrees:.0} degrees Celsius hot"));
    }
    if facts.probation > 0 {
        find(Status::Warning, format!("it was lost and rebuilt: trusted after {} more batches", facts.probation));
    }
    match findings.into_iter().rev().max_by_key(|(status, _)| *status) {
        Some((status, reason)) => Health { status, reason },
        None => {
            Health { status: Status::Healthy, reason: format!("answers in time, busy {:.0} %", facts.busy * 100.0) }
        }
    }
}

impl Session {
    /// How the device fares.
    pub(crate) fn health(&self) -> Health {
        let handle = self.current();
        let life = &handle.life;
        if life.is_lost() {
            return Health { status: Status::Lost, reason: format!("{}; it is being rebuilt", life.why()) };
        }
        judge(&self.facts(), &self.config.thresholds)
    }

    fn facts(&self) -> Facts {
        let handle = self.current();
        let life = &handle.life;
        let thresholds = &self.config.thresholds;
        let reserved = handle.pool.stats().reserved_bytes;
        let memory = if self.info.kind.is_unified() {
            system_memory().map(|memory| (memory.total_bytes - memory.available_bytes, memory.total_bytes))
        } else {
            let used = read_number(&Path::new("/sys/bus/pci/devices").join(&self.pci).join("mem_info_vram_used"));
            self.info.memory_bytes.map(|total| (used.unwrap_or_else(|| self.monitor.own_bytes(reserved)), total))
        };
        let (growth_bytes, busy) =
            self.monitor.observe(reserved, life.busy_ns.load(Relaxed), thresholds.growth_samples);
        let (pending, pending_ns) = life.pending();
        let rebuilt = life.generation > 0;
        Facts {
            memory,
            pending,
            pending_ms: pending_ns / 1_000_000,
            strikes: life.strikes(),
            busy,
            growth_bytes,
            temperature: temperature(&self.pci),
            probation: if rebuilt { thresholds.trust_after.saturating_sub(life.completed.load(Relaxed)) } else { 0 },
        }
    }
}

#[cfg(test)]
#[path = "monitor_tests.rs"]
mod tests;
