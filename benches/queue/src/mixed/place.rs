//! Where batches run: the machine enters, an engine for the CPU, for each adapter and for the simulated device leaves.

use std::sync::Arc;

use breakeven::{Config, Device, Engine, SimBackend, SimProfile};

use crate::arm::Fallible;

/// The profile of the simulated DX12 device.
pub const PROFILE: &str = "dx12-laptop";

/// What times of a place mean, and what is promised of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// This machine's CPU: no promise, there is next to no fixed cost to save.
    Cpu,
    /// An adapter that is here.
    Adapter,
    /// Virtual times.
    Simulated,
}

/// A place.
pub struct Place {
    /// Its id in the table.
    pub id: String,
    /// The id that the engine's decisions give.
    pub device: String,
    /// In words.
    pub name: String,
    /// What its times mean.
    pub kind: Kind,
    /// Runs everything there and nowhere else.
    pub engine: Engine,
}

/// Every place that is there; why one is missing goes to `notes`.
pub fn places(filter: &str, notes: &mut Vec<String>) -> Fallible<Vec<Place>> {
    let wanted = |id: &str| id.contains(filter);
    let mut places = Vec::new();
    if wanted("cpu") {
        let engine = Engine::with_config(Config { device: Device::Cpu, ..Config::from_env()? })?;
        let name = engine.device_name("cpu");
        places.push(Place { id: "cpu".into(), device: "cpu".into(), name, kind: Kind::Cpu, engine });
    }
    let adapters = Engine::with_config(Config::from_env()?)?.devices();
    // The first one is the CPU.
    for (number, info) in adapters.iter().skip(1).enumerate().filter(|(_, info)| wanted(&info.id)) {
        let config = Config { device: Device::Gpu(Some(number)), strict: true, ..Config::from_env()? };
        let engine = Engine::with_config(config)?;
        let name = format!("{}, {}, {} {}", info.kind, info.name, info.backend, info.driver);
        let (id, device) = (info.id.clone(), info.id.clone());
        places.push(Place { id, device, name, kind: Kind::Adapter, engine });
    }
    if adapters.len() < 2 {
        notes.push(format!("there is no adapter here: its bars are not judged. {}", breakeven::driver_hint()));
    }
    if wanted("simulated") {
        let device = SimBackend::new("gpu:0", SimProfile::by_name(PROFILE)?)?;
        let config = Config { device: Device::Gpu(Some(0)), strict: true, ..Config::default() };
        let engine = Engine::with_backends(config, vec![Arc::new(device)])?;
        let (id, name) = (format!("simulated {PROFILE}"), engine.device_name("gpu:0"));
        places.push(Place { id, device: "gpu:0".into(), name, kind: Kind::Simulated, engine });
    }
    match places.is_empty() {
        true => Err(format!("no device has {filter} in its name; cpu is one").into()),
        false => Ok(places),
    }
}
