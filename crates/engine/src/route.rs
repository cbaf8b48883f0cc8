//! Where a batch runs: a wish enters, the device that has the results and the record of it leave.
//!
//! A device that fails costs time, never a result: the next one, and at last the CPU, computes the same batch from the
//! same host inputs. Only where failing was asked for (`strict`) does a fault reach the caller.

use crate::config::Device;
use crate::decision::Decision;
use crate::devices::Slot;
use crate::engine::Shared;
use crate::error::{Error, Result};
use breakeven_ir::backend::{Prepared, Timings};
use std::sync::Arc;
use std::time::Instant;

/// How one batch is to be run.
///
/// ```
/// use breakeven::{Device, Engine, RunOptions, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::from_slice(&[4.0f32], [1])?;
/// let options = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
/// assert_eq!(engine.run_with(&[&x.sqrt()?], &options)?.outputs[0].as_slice::<f32>()?, [2.0]);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    /// Where; the engine's setting by default.
    pub device: Option<Device>,
    /// Fail if that device fails; the engine's setting by default.
    pub strict: Option<bool>,
}

/// A batch that may run on several devices.
pub(crate) trait Attempt {
    /// What it gives.
    type Output;
    /// On this device.
    fn on(&mut self, slot: &Slot) -> Result<(Self::Output, Timings), Error>;
    /// On the CPU.
    fn on_cpu(&mut self) -> Result<(Self::Output, Timings), Error>;
    /// Is everything there for a run on this device? While it is not, the CPU serves.
    fn is_ready(&mut self, _slot: &Slot) -> Result<bool, Error> {
        Ok(true)
    }
    /// Its plan, made ready for a device, or for the CPU.
    fn prepared(&self, slot: Option<&Slot>) -> Result<Arc<dyn Prepared>, Error>;
}

/// Why the CPU serves a batch that was left to us.
const UNMEASURED: &str = "no GPU has been measured on this machine, so none can be known to pay";

/// Runs a batch where it is wished for, and elsewhere if that fails.
pub(crate) fn run<A: Attempt>(engine: &Shared, options: &RunOptions, batch: &mut A) -> Result<(A::Output, Decision)> {
    let devices = &engine.devices;
    let wish = options.device.unwrap_or(engine.config.device);
    let strict = options.strict.unwrap_or(engine.config.strict);
    let start = Instant::now();
    let mut faults: Vec<String> = Vec::new();
    let mut fallbacks = 0;
    let done = |device: &str, reason: String, timings, fallbacks, faults, prepared: Result<Arc<dyn Prepared>>| {
        let actual_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // It has just run, so it is there.
        let (kernels, kernel_ns) = prepared.map_or((0, Vec::new()), |p| (p.plan().kernels.len(), p.kernel_ns()));
        Decision { device: device.to_owned(), reason, actual_ns, kernels, kernel_ns, timings, fallbacks, faults }
    };
    let candidates = match devices.candidates(wish) {
        Ok(candidates) => candidates,
        Err(error) if strict => return Err(error),
        Err(error) => {
            (fallbacks, faults) = (1, vec![error.to_string()]);
            Vec::new()
        }
    };
    for (number, slot) in candidates.iter().enumerate() {
        let id = slot.backend.id();
        let is_last_chance = strict && number + 1 == candidates.len();
        if let Some(refusal) = slot.refusal() {
            fallbacks += 1;
            faults.push(refusal.to_string());
            if is_last_chance {
                return Err(Error::Strict { wish: wish.to_string(), why: Box::new(refusal.into()) });
            }
            continue;
        }
        if !strict && !batch.is_ready(slot).unwrap_or(true) {
            faults.push(format!("{id}: its pipelines are still being made"));
            continue;
        }
        match batch.on(slot) {
            Ok((output, timings)) => {
                let reason = match fallbacks {
                    0 => format!("{wish} was asked for"),
                    _ => format!("{wish} was asked for, and others failed: {}", faults.join("; ")),
                };
                return Ok((output, done(id, reason, timings, fallbacks, faults, batch.prepared(Some(slot)))));
            }
            // The data is wrong, and would be anywhere.
            Err(Error::Run(error)) if !error.is_device_fault() => return Err(error.into()),
            Err(error) => {
                fallbacks += 1;
                faults.push(error.to_string());
                if is_last_chance {
                    return Err(Error::Strict { wish: wish.to_string(), why: Box::new(error) });
                }
            }
        }
    }
    let (output, timings) = batch.on_cpu()?;
    let reason = match (wish, faults.is_empty()) {
        (Device::Auto, _) => UNMEASURED.to_owned(),
        (Device::Cpu, _) => "cpu was asked for".to_owned(),
        (_, true) => format!("{wish} is not there"),
        (_, false) => format!("{wish} was asked for, but {}", faults.join("; ")),
    };
    Ok((output, done("cpu", reason, timings, fallbacks, faults, batch.prepared(None))))
}
