//! The device under test. `BREAKEVEN_TEST_DEVICE` says which: `cpu` (the default), or `vulkan` or `gl` for the first GPU
//! behind that interface. A device that is not there fails every test: nothing is skipped in silence.

use breakeven::{Api, Config, Device, Engine, Op};
use std::sync::OnceLock;
use std::time::Duration;

/// The environment variable that chooses the device under test.
pub const TEST_DEVICE_VAR: &str = "BREAKEVEN_TEST_DEVICE";

/// The interface of the GPU under test; `None` for the CPU.
pub fn api() -> Option<Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    *API.get_or_init(read_api)
}

fn read_api() -> Option<Api> {
    let name = std::env::var(TEST_DEVICE_VAR).unwrap_or_else(|_| "cpu".into());
    if name == "cpu" {
        return None;
    }
    Some(name.parse().unwrap_or_else(|expected| panic!("{TEST_DEVICE_VAR}={name}: expected cpu, {expected}")))
}

/// An engine on the device under test, which fails rather than let another device answer.
pub fn engine() -> Engine {
    let Some(api) = api() else { return Engine::new().unwrap() };
    // Software drivers on a busy machine are slow; what is slow is not wrong.
    let sync_timeout = Duration::from_secs(120);
    let config =
        Config { device: Device::Gpu(Some(0)), strict: true, apis: vec![api], sync_timeout, ..Config::default() };
    let engine = Engine::with_config(config).unwrap();
    assert!(engine.devices().len() > 1, "no {} device: {}", api.name(), breakeven::driver_hint());
    engine
}

/// The largest error of an op on the device under test, in units in the last place.
pub fn ulp(op: Op) -> f64 {
    f64::from(if api().is_some() { breakeven_gpu::tolerance::ulp(op) } else { op.row().ulp })
}

/// How many terms of a sum may be added one after the other in f32. On the CPU sums are carried in f64 between blocks,
/// and a lane of a block adds at most this many; on a GPU there is no f64, and blocks are added in f32 as well.
pub fn sum_terms() -> usize {
    if api().is_some() { 400 } else { 64 }
}

/// The rounding of each step of a scan, relative to what it carries: f64 on the CPU, f32 on a GPU.
pub fn scan_rounding() -> f64 {
    if api().is_some() { 1.0 / 16_777_216.0 } else { 1e-15 }
}

/// The environment variable that thins the checks on a GPU: of so many, one is made, chosen by its name. Software
/// drivers compile each of thousands of kernels for 20 to 300 ms; without it every check is made.
pub const SHARE_VAR: &str = "BREAKEVEN_TEST_SHARE";

/// Is this check made?
pub fn takes_part(what: &str) -> bool {
    static SHARE: OnceLock<u64> = OnceLock::new();
    let share = *SHARE.get_or_init(|| match std::env::var(SHARE_VAR) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SHARE_VAR}={text}: expected a whole number")),
        Err(_) => 1,
    });
    let hash = what.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    api().is_none() || (hash >> 32).is_multiple_of(share.max(1))
}
