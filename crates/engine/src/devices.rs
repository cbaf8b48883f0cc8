//! The devices beside the CPU: found and opened when first asked for, each with the plans made ready for it.

use crate::config::{Config, Device};
use crate::error::{Error, Result};
use crate::gpus;
use breakeven_ir::Plan;
use breakeven_ir::backend::{Backend, Health, Prepared, RunError, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What is known about a device.
///
/// ```
/// let engine = breakeven::Engine::new()?;
/// assert_eq!(engine.devices()[0].id, "cpu");
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// `cpu`, `gpu:0`, ..
    pub id: String,
    /// `cpu`, `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// What it is called.
    pub name: String,
    /// The interface through which it is reached.
    pub backend: String,
    /// The driver and its version.
    pub driver: String,
    /// Its memory, where it is known.
    pub memory_bytes: Option<u64>,
    /// Its limits, by name.
    pub limits: Vec<(&'static str, u64)>,
    /// What it can do beyond the least.
    pub features: Vec<String>,
    /// What its driver gets wrong, and what is done about it.
    pub quirks: Vec<String>,
    /// How it fares.
    pub health: Health,
}

impl DeviceInfo {
    pub(crate) fn named(id: &str, name: &str) -> DeviceInfo {
        DeviceInfo {
            id: id.to_owned(),
            kind: "cpu",
            name: name.to_owned(),
            backend: "cpu".into(),
            driver: String::new(),
            memory_bytes: None,
            limits: Vec::new(),
            features: Vec::new(),
            quirks: Vec::new(),
            health: Health { status: Status::Healthy, reason: "always there".into() },
        }
    }
}

/// A device that can be used.
pub(crate) struct Slot {
    pub(crate) backend: Arc<dyn Backend>,
    /// Plans made ready for it, by their address, which is theirs for as long as they are here.
    plans: Mutex<HashMap<usize, Arc<dyn Prepared>>>,
    plan_cache: usize,
    /// Why its results are not trusted any more.
    quarantined: Mutex<Option<String>>,
    batches: AtomicU64,
}

impl Slot {
    fn new(backend: Arc<dyn Backend>, plan_cache: usize) -> Slot {
        Slot {
            backend,
            plans: Mutex::default(),
            plan_cache: plan_cache.max(1),
            quarantined: Mutex::default(),
            batches: AtomicU64::new(0),
        }
    }

    /// The plan made ready for this device, which it may still be compiling.
    pub(crate) fn ready(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        let address = Arc::as_ptr(plan) as usize;
        let lock = || self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prepared) = lock().get(&address) {
            return Ok(prepared.clone());
        }
        let prepared = self.backend.prepare(plan)?;
        let mut plans = lock();
        if plans.len() >= self.plan_cache {
            plans.clear();
        }
        plans.insert(address, prepared.clone());
        Ok(prepared)
    }

    /// Gives back what is kept for batches to come, plans that are ready included.
    pub(crate) fn release(&self) -> Result<(), RunError> {
        let plans = std::mem::take(&mut *self.plans.lock().unwrap_or_else(PoisonError::into_inner));
        drop(plans);
        self.backend.release()
    }

    /// Is this one of the batches that are checked, if a share of `verify` is?
    pub(crate) fn is_sampled(&self, verify: f64) -> bool {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        // Evenly spread: the batches at which the running total passes a whole number.
        ((number + 1) as f64 * verify).floor() > (number as f64 * verify).floor()
    }

    /// Takes the device out of use: its results were wrong.
    pub(crate) fn quarantine(&self, why: String) {
        self.lock().get_or_insert(why);
    }

    /// How it fares; a device whose results were wrong is critical whatever it says itself.
    pub(crate) fn health(&self) -> Health {
        match &*self.lock() {
            Some(why) => Health { status: Status::Critical, reason: format!("not used any more: {why}") },
            None => self.backend.health(),
        }
    }

    /// May batches be sent there? As [`Slot::refusal`], for every batch: it builds no message.
    pub(crate) fn is_usable(&self) -> bool {
        self.lock().is_none() && !self.backend.is_lost()
    }

    /// Why nothing should be sent there now. What it says of its health is only asked for if something is wrong: a GPU reads the
    /// system's memory for that, which took 12 us of every batch.
    pub(crate) fn refusal(&self) -> Option<RunError> {
        if self.is_usable() {
            return None;
        }
        let device = || self.backend.id().to_owned();
        if let Some(why) = &*self.lock() {
            return Some(RunError::Device { device: device(), message: format!("not used any more: {why}") });
        }
        let health = self.backend.health();
        // It may be back by now.
        (health.status == Status::Lost).then(|| RunError::Lost { device: device(), why: health.reason })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A device that was found: what is known without opening it, and how it is opened.
pub(crate) struct Found {
    pub(crate) info: DeviceInfo,
    pub(crate) open: Open,
}

/// Opens a device, or says why it can't be.
pub(crate) type Open = Box<dyn Fn() -> Result<Arc<dyn Backend>, String> + Send + Sync>;

/// A device that was found, and what came of opening it.
type Entry = (Found, OnceLock<Result<Arc<Slot>, String>>);

/// The devices of an engine.
pub(crate) struct Devices {
    config: Config,
    found: OnceLock<Vec<Entry>>,
}

impl Devices {
    /// The machine's devices, which are looked for when first asked for.
    pub(crate) fn new(config: Config) -> Devices {
        Devices { config, found: OnceLock::new() }
    }

    /// These devices and no others.
    pub(crate) fn given(config: Config, backends: Vec<Arc<dyn Backend>>) -> Devices {
        let entry = |backend: Arc<dyn Backend>| {
            let info = DeviceInfo { kind: "other", ..DeviceInfo::named(backend.id(), backend.name()) };
            (Found { info, open: Box::new(move || Ok(backend.clone())) }, OnceLock::new())
        };
        Devices { found: OnceLock::from(backends.into_iter().map(entry).collect::<Vec<_>>()), config }
    }

    fn found(&self) -> &[Entry] {
        let find = || gpus::find(&self.config).into_iter().map(|found| (found, OnceLock::new())).collect();
        self.found.get_or_init(find)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.found().len()
    }

    /// What is known about a device without opening it.
    pub(crate) fn known(&self, number: usize) -> Option<&DeviceInfo> {
        self.found().get(number).map(|(found, _)| &found.info)
    }

    /// A device that is open.
    pub(crate) fn opened(&self, number: usize) -> Option<&Arc<Slot>> {
        // Devices that nobody has looked for are not open.
        self.found.get()?.get(number)?.1.get()?.as_ref().ok()
    }

    /// All devices that are open.
    pub(crate) fn all_opened(&self) -> impl Iterator<Item = &Arc<Slot>> {
        let found = self.found.get().map_or(&[][..], Vec::as_slice);
        found.iter().filter_map(|(_, slot)| slot.get()?.as_ref().ok())
    }

    /// A device, opened if it was not.
    pub(crate) fn slot(&self, number: usize) -> Result<Arc<Slot>> {
        let Some((found, slot)) = self.found().get(number) else {
            return Err(Error::NoDevice { wanted: format!("gpu:{number}"), found: self.count(), hint: gpus::hint() });
        };
        let open = || Ok(Arc::new(Slot::new((found.open)()?, self.config.plan_cache)));
        let opened = slot.get_or_init(open);
        opened.clone().map_err(|why| Error::OpenDevice { device: found.info.id.clone(), why })
    }

    /// The devices to try for this wish, in order, with their numbers.
    pub(crate) fn candidates(&self, wish: Device) -> Result<Vec<(usize, Arc<Slot>)>> {
        match wish {
            Device::Auto | Device::Cpu | Device::All => Ok(Vec::new()),
            Device::Gpu(Some(number)) => Ok(vec![(number, self.slot(number)?)]),
            Device::Gpu(None) => {
                let mut slots = Vec::new();
                let mut refused = None;
                for number in 0..self.count() {
                    match self.slot(number) {
                        Ok(slot) => slots.push((number, slot)),
                        Err(error) => refused = Some(error),
                    }
                }
                match (slots.is_empty(), refused) {
                    (true, Some(error)) => Err(error),
                    (true, None) => Err(Error::NoDevice { wanted: "gpu".into(), found: 0, hint: gpus::hint() }),
                    _ => Ok(slots),
                }
            }
        }
    }

    /// What is known about each, opening all of them.
    pub(crate) fn infos(&self) -> Vec<DeviceInfo> {
        let info = |(number, (found, _)): (usize, &(Found, _))| {
            let (health, quirks) = match self.slot(number) {
                Ok(slot) => (slot.health(), slot.backend.quirks()),
                Err(error) => (Health { status: Status::Lost, reason: error.to_string() }, Vec::new()),
            };
            DeviceInfo { health, quirks, ..found.info.clone() }
        };
        self.found().iter().enumerate().map(info).collect()
    }
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
