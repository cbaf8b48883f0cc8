//! Finds out about devices while the CPU serves: in the background, and only once it has been busy for long enough that
//! it could matter. A program that is done in a moment never looks for a GPU.

use crate::calibrate::DeviceBench;
use crate::config::Config;
use crate::cost::{Costs, CostsFile, DeviceKey, Effort, Progress, measure, telling_steps};
use crate::devices::Devices;
use crate::machine;
use crate::router::{DEVICES, Router};
use breakeven_cpu::Cpu;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The CPU's work after which devices that were measured before are opened.
const KNOWN_NS: u64 = 20_000_000;
/// The CPU's work after which an unknown machine is looked at: finding its drivers takes about a tenth of that.
const UNKNOWN_NS: u64 = 1_000_000_000;
/// What a first look at a device may take, and what it may take if it would be for nothing otherwise.
const PROBE: Duration = Duration::from_millis(90);
const SLOW_PROBE: Duration = Duration::from_secs(1);
/// How long an engine that ends waits for this.
const FAREWELL: Duration = Duration::from_secs(2);

/// Everything that measuring needs, shared with the background.
pub(crate) struct Parts {
    pub(crate) cpu: Arc<Cpu>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) router: Arc<Router>,
    pub(crate) config: Config,
    pub(crate) threads: usize,
}

/// Finds out about devices.
pub(crate) struct Scout {
    parts: Arc<Parts>,
    spent_ns: AtomicU64,
    threshold_ns: u64,
    started: AtomicBool,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Scout {
    pub(crate) fn new(parts: Arc<Parts>) -> Scout {
        let threshold_ns = if parts.file().0.has_devices() { KNOWN_NS } else { UNKNOWN_NS };
        Scout {
            parts,
            spent_ns: AtomicU64::new(0),
            threshold_ns,
            started: AtomicBool::new(false),
            stop: Arc::default(),
            thread: Mutex::default(),
        }
    }

    /// Counts work of the CPU that another device might have done.
    #[inline]
    pub(crate) fn note(&self, ns: u64) {
        if self.started.load(Relaxed) {
            return;
        }
        if self.spent_ns.fetch_add(ns, Relaxed) + ns > self.threshold_ns {
            self.start();
        }
    }

    fn start(&self) {
        if self.started.swap(true, Relaxed) {
            return;
        }
        let (parts, stop) = (self.parts.clone(), self.stop.clone());
        let look = move || parts.look_around(&stop);
        // Without a thread to be had the CPU goes on alone.
        if let Ok(thread) = std::thread::Builder::new().name("breakeven scout".into()).spawn(look) {
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
    }
}

impl Drop for Scout {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // A driver that hangs must not hang whoever ends; a process that ends under a driver's feet crashes.
        let until = Instant::now() + FAREWELL;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

impl Parts {
    /// The costs on disk.
    pub(crate) fn file(&self) -> (CostsFile, Option<String>) {
        let cpu = machine::cpu_name();
        match &self.config.cache_dir {
            Some(dir) => CostsFile::read(dir, &cpu, self.threads),
            None => (CostsFile::empty(&cpu, self.threads), None),
        }
    }

    /// The key of a device: 0 is the CPU.
    pub(crate) fn key(&self, device: usize) -> Option<DeviceKey> {
        match device.checked_sub(1) {
            None => Some(DeviceKey { name: machine::cpu_name(), backend: "cpu".into(), driver: self.cpu_level() }),
            Some(number) => self.devices.known(number).map(|info| DeviceKey {
                name: info.name.clone(),
                backend: info.backend.clone(),
                driver: info.driver.clone(),
            }),
        }
    }

    fn cpu_level(&self) -> String {
        use breakeven_ir::backend::Backend;
        match self.config.slow_cpu {
            0 | 1 => self.cpu.name().to_owned(),
            times => format!("{}, slowed {times} times", self.cpu.name()),
        }
    }

    /// Takes what is known about this machine, and has a first look at what is not.
    fn look_around(&self, stop: &AtomicBool) {
        let (file, _) = self.file();
        for device in 0..=self.devices.count().min(DEVICES - 1) {
            let Some(key) = self.key(device) else { continue };
            if let Some(costs) = self.known(&file, &key) {
                // Opened here, so that no batch waits for it.
                if device == 0 || self.devices.slot(device - 1).is_ok() {
                    self.router.set_costs(device, costs.clone());
                }
                continue;
            }
            let begun = Instant::now();
            let telling = telling_steps(device > 0);
            let mut watch = |progress: &Progress| {
                let limit = if progress.done < telling { SLOW_PROBE } else { PROBE };
                let over = stop.load(Relaxed) || begun.elapsed() > limit;
                if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            // A device that can't be opened or measured is not routed to.
            let _ = self.measure(device, Effort::Probe, &mut watch);
            if stop.load(Relaxed) {
                return;
            }
        }
    }

    /// Loads what is known about devices that are there already.
    pub(crate) fn load(&self) {
        let (file, _) = self.file();
        for device in 0..=self.devices.count().min(DEVICES - 1) {
            if let Some(costs) = self.key(device).and_then(|key| self.known(&file, &key).cloned()) {
                self.router.set_costs(device, costs);
            }
        }
    }

    /// What a file says about a device, if it says enough to go by.
    fn known<'f>(&self, file: &'f CostsFile, key: &DeviceKey) -> Option<&'f Costs> {
        file.get(key).filter(|costs| self.is_usable(costs, key.is_processor()))
    }

    fn is_usable(&self, costs: &Costs, is_processor: bool) -> bool {
        costs.is_telling(!is_processor) && (!is_processor || costs.is_processor(self.config.slow_cpu))
    }

    /// Measures a device; what it costs is used at once, and remembered as it is measured. What was interrupted before
    /// it says enough, or measured while the processor was elsewhere, is neither.
    pub(crate) fn measure(
        &self,
        device: usize,
        effort: Effort,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> crate::error::Result<(Costs, bool)> {
        let slot = device.checked_sub(1).map(|number| self.devices.slot(number)).transpose()?;
        let id = slot.as_ref().map_or("cpu", |slot| slot.backend.id()).to_owned();
        let mut bench = DeviceBench { cpu: &self.cpu, slot: slot.as_deref(), slow_cpu: self.config.slow_cpu };
        // Half a measurement is better than none, and worse than a whole one from before.
        let was_known = self.key(device).is_some_and(|key| self.known(&self.file().0, &key).is_some());
        let mut step = |costs: &Costs, what: &str, done: usize, total: usize| {
            if !was_known && done.is_multiple_of(16) && self.is_usable(costs, device == 0) {
                self.remember(device, costs);
            }
            watch(&Progress { device: id.clone(), what: what.to_owned(), done, total })
        };
        let (costs, complete) = measure(&mut bench, effort, &mut step)?;
        if self.is_usable(&costs, device == 0) {
            if complete || !was_known {
                self.remember(device, &costs);
            }
            self.router.set_costs(device, costs.clone());
        }
        Ok((costs, complete))
    }

    fn remember(&self, device: usize, costs: &Costs) {
        let (Some(dir), Some(key)) = (&self.config.cache_dir, self.key(device)) else { return };
        // Read again: another process may have measured another device meanwhile.
        let (mut file, _) = self.file();
        file.put(&key, costs.clone());
        // A folder that can't be written costs the next process a measurement, and nobody a result.
        let _ = file.write(dir);
    }
}
