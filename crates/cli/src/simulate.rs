//! A device that is not here: the name of a profile or its file enters, an engine whose `gpu:0` it is leaves. Its results
//! are the CPU's, its times the profile's.

use std::sync::Arc;

use breakeven::{Config, Engine, SimBackend, SimProfile};

use crate::failure::Failure;

/// The id of the simulated device.
pub const ID: &str = "gpu:0";

/// An engine with the CPU and that device. What is measured on it is never remembered: the user's cache folder is for
/// devices that are there.
pub fn engine(profile: &str, config: Config) -> Result<Engine, Failure> {
    let profile = SimProfile::load(profile).map_err(Failure::mistake)?;
    let device = SimBackend::new(ID, profile)?;
    Ok(Engine::with_backends(Config { cache_dir: None, ..config }, vec![Arc::new(device)])?)
}
