//! Where a batch runs: a wish enters, the device that has the results and the record of it leave.
//!
//! A device that fails costs time, never a result: the next one, and at last the CPU, computes the same batch from the
//! same host inputs. Only where failing was asked for (`strict`) does a fault reach the caller.

mod outcome;

pub(crate) use outcome::{OnCpu, Outcome, cpu_reason, duration, queue_reason, single};

use crate::config::Device;
use crate::devices::Slot;
use crate::divided::Part;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::profile::mark;
use crate::router::{Choice, DEVICES, Halves, Objective, Routed, SEVERAL};
use breakeven_ir::Plan;
use breakeven_ir::backend::{Prepared, Timings};
use breakeven_ir::plan::Cut;
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
    /// What is to be small; the engine's setting by default.
    pub objective: Option<Objective>,
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
    /// Its plan.
    fn plan(&self) -> &Arc<Plan>;
    /// How many tasks it has.
    fn tasks(&self) -> usize {
        1
    }
    /// In which ways it can be divided, as bits: [`CUT`](crate::router::CUT), and [`SEVERAL`] if devices may work `at_once`.
    fn divides(&self, at_once: bool) -> u32 {
        let _ = at_once;
        0
    }
    /// Its two halves, each on a device or on the CPU.
    fn on_halves(
        &mut self,
        cut: &Cut,
        front: Option<&Slot>,
        back: Option<&Slot>,
    ) -> Option<Result<(Self::Output, Timings), Error>> {
        let _ = (cut, front, back);
        None
    }
    /// Each of these has its part of the tasks or rows, all at once. `None` if it can't be divided, or not yet.
    fn on_several(&mut self, parts: &[Part<'_>]) -> Option<Result<(Self::Output, Timings), Error>> {
        let _ = parts;
        None
    }
    /// Why a device did not do its part of a batch that is done, because the CPU did that, too.
    fn take_fault(&mut self) -> Option<String> {
        None
    }
    /// Bytes of its inputs that lie on a device.
    fn resident_bytes(&self, _device: &str) -> u64 {
        0
    }
}

/// Runs a batch where it is wished for, and elsewhere if that fails.
pub(crate) fn run<A: Attempt>(engine: &Shared, options: &RunOptions, batch: &mut A) -> Result<(A::Output, Outcome)> {
    let wish = options.device.unwrap_or(engine.config.device);
    match wish {
        Device::Auto | Device::All => run_where_it_pays(engine, options, wish, batch),
        Device::Cpu | Device::Gpu(_) => run_as_told(engine, options, wish, batch),
    }
}

/// On the device that is expected to be done first.
fn run_where_it_pays<A: Attempt>(
    engine: &Shared,
    options: &RunOptions,
    wish: Device,
    batch: &mut A,
) -> Result<(A::Output, Outcome)> {
    let start = Instant::now();
    let mut outcome = Outcome::new(wish);
    let router = &engine.router;
    if !router.is_open() {
        let from = mark();
        let (output, timings) = batch.on_cpu()?;
        let attempt = (from, mark());
        return Ok((output, Outcome { actual_ns: between(start, Instant::now()), timings, attempt, ..outcome }));
    }
    let routed = router.routed(batch.plan(), batch.tasks());
    let open = |device: usize| engine.devices.opened(device - 1).filter(|slot| slot.is_usable());
    // One device after the other may always be; all at once only where that was asked for.
    let ways = batch.divides(wish == Device::All);
    let usable = (1..DEVICES).filter(|device| open(*device).is_some()).fold(ways, |mask, device| mask | 1 << device);
    let objective = options.objective.unwrap_or(engine.config.objective);
    let resident = |device: usize| match device {
        0 => 0,
        _ => open(device).map_or(0, |slot| batch.resident_bytes(slot.backend.id())),
    };
    let wait_ns = |device: usize| match device {
        0 => 0,
        _ => open(device).map_or(0, |slot| slot.backend.pending_ns()),
    };
    let choice = router.choose(&routed, usable, objective, resident, wait_ns);
    outcome.choice = Some(choice);
    let from = mark();
    if choice.device >= DEVICES {
        match run_divided(engine, &routed, &choice, batch) {
            Some(Ok((output, timings))) => {
                let done = Instant::now();
                outcome.attempt = (from, mark());
                let actual_ns = if timings.total_ns > 0 { timings.total_ns } else { between(start, done) };
                if let Some(fault) = batch.take_fault() {
                    // The device is left alone for a while; what the batch took says nothing about either.
                    router.learn(&routed, &choice, 0, actual_ns, true);
                    (outcome.fallbacks, outcome.faults) = (1, vec![fault]);
                    return Ok((output, Outcome { actual_ns, timings, ..outcome }));
                }
                router.learn(&routed, &choice, choice.device, actual_ns, timings.created > 0);
                return Ok((output, Outcome { device: choice.device, actual_ns, timings, ..outcome }));
            }
            Some(Err(Error::Run(error))) if !error.is_device_fault() => return Err(error.into()),
            Some(Err(error)) => {
                outcome.fallbacks += 1;
                outcome.faults.push(error.to_string());
            }
            None => outcome.faults.push("this batch can't be divided, or its parts are still being made".into()),
        }
    } else if let Some(slot) = choice.device.checked_sub(1).and_then(|number| engine.devices.opened(number)) {
        let id = slot.backend.id();
        if !batch.is_ready(slot).unwrap_or(true) {
            outcome.faults.push(format!("{id}: its pipelines are still being made"));
        } else {
            match batch.on(slot) {
                Ok((output, timings)) => {
                    let done = Instant::now();
                    outcome.attempt = (from, mark());
                    let actual_ns = if slot.backend.is_simulated() { timings.total_ns } else { between(start, done) };
                    router.learn(&routed, &choice, choice.device, actual_ns, timings.created > 0);
                    return Ok((output, Outcome { device: choice.device, actual_ns, timings, ..outcome }));
                }
                Err(Error::Run(error)) if !error.is_device_fault() => return Err(error.into()),
                Err(error) => {
                    outcome.fallbacks += 1;
                    outcome.faults.push(error.to_string());
                }
            }
        }
    }
    let (from, begun) = (mark(), Instant::now());
    let (output, timings) = batch.on_cpu()?;
    let (done, to) = (Instant::now(), mark());
    router.learn(&routed, &choice, 0, between(begun, done), false);
    Ok((output, Outcome { actual_ns: between(start, done), timings, attempt: (from, to), ..outcome }))
}

/// On several devices, one after the other or at once. The time of simulated ones is told, and comes back as the total.
fn run_divided<A: Attempt>(
    engine: &Shared,
    routed: &Routed,
    choice: &Choice,
    batch: &mut A,
) -> Option<Result<(A::Output, Timings)>> {
    let slot =
        |device: usize| device.checked_sub(1).and_then(|number| engine.devices.opened(number)).map(|slot| &**slot);
    if choice.device == SEVERAL {
        let mut parts = Vec::with_capacity(DEVICES);
        for device in (1..DEVICES).chain([0]).filter(|device| choice.shares[*device] > 0.0) {
            let slot = if device == 0 { None } else { Some(slot(device)?) };
            parts.push(Part { slot, share: choice.shares[device] });
        }
        return batch.on_several(&parts);
    }
    let Halves { cut, front, back } = engine.router.halves(routed)?;
    batch.on_halves(&cut, slot(front), slot(back))
}

/// On the device that was named, or on others if that fails and may.
fn run_as_told<A: Attempt>(
    engine: &Shared,
    options: &RunOptions,
    wish: Device,
    batch: &mut A,
) -> Result<(A::Output, Outcome)> {
    let strict = options.strict.unwrap_or(engine.config.strict);
    let start = Instant::now();
    let mut outcome = Outcome::new(wish);
    let candidates = match engine.devices.candidates(wish) {
        Ok(candidates) => candidates,
        Err(error) if strict => return Err(error),
        Err(error) => {
            (outcome.fallbacks, outcome.faults) = (1, vec![error.to_string()]);
            Vec::new()
        }
    };
    for (at, (number, slot)) in candidates.iter().enumerate() {
        let id = slot.backend.id();
        let is_last_chance = strict && at + 1 == candidates.len();
        if let Some(refusal) = slot.refusal() {
            outcome.fallbacks += 1;
            outcome.faults.push(refusal.to_string());
            if is_last_chance {
                return Err(Error::Strict { wish: wish.to_string(), why: Box::new(refusal.into()) });
            }
            continue;
        }
        if !strict && !batch.is_ready(slot).unwrap_or(true) {
            outcome.faults.push(format!("{id}: its pipelines are still being made"));
            continue;
        }
        let from = mark();
        match batch.on(slot) {
            Ok((output, timings)) => {
                let done = Instant::now();
                outcome.attempt = (from, mark());
                let actual_ns = if slot.backend.is_simulated() { timings.total_ns } else { between(start, done) };
                if timings.created == 0 && batch.resident_bytes(id) == 0 {
                    hear(engine, batch, number + 1, actual_ns);
                }
                return Ok((output, Outcome { device: number + 1, actual_ns, timings, ..outcome }));
            }
            // The data is wrong, and would be anywhere.
            Err(Error::Run(error)) if !error.is_device_fault() => return Err(error.into()),
            Err(error) => {
                outcome.fallbacks += 1;
                outcome.faults.push(error.to_string());
                if is_last_chance {
                    return Err(Error::Strict { wish: wish.to_string(), why: Box::new(error) });
                }
            }
        }
    }
    let (from, begun) = (mark(), Instant::now());
    let (output, timings) = batch.on_cpu()?;
    let (done, to) = (Instant::now(), mark());
    hear(engine, batch, 0, between(begun, done));
    Ok((output, Outcome { actual_ns: between(start, done), timings, attempt: (from, to), ..outcome }))
}

/// A batch that was placed by its caller teaches what such batches take, too.
fn hear<A: Attempt>(engine: &Shared, batch: &A, device: usize, actual_ns: u64) {
    if engine.router.is_open() && device < DEVICES {
        engine.router.hear(&engine.router.routed(batch.plan(), batch.tasks()), device, actual_ns);
    }
}

fn between(start: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX)
}
