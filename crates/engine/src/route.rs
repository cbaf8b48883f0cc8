//! Where a batch runs: a wish enters, the device that has the results and the record of it leave.
//!
//! A device that fails costs time, never a result: the next one, and at last the CPU, computes the same batch from the
//! same host inputs. Only where failing was asked for (`strict`) does a fault reach the caller.

use crate::config::Device;
use crate::decision::{Decision, Predicted};
use crate::devices::Slot;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::router::{BOTH, CUT, Choice, DEVICES, Halves, MOST, Objective, Routed, Why};
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
    /// In which ways it can be divided, as bits: [`CUT`], and [`BOTH`] if devices may work `at_once`.
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
    /// A device has this share of its tasks or rows, the CPU the others, both at once. `None` if it can't be divided, or
    /// not yet.
    fn on_both(&mut self, slot: &Slot, share: f64) -> Option<Result<(Self::Output, Timings), Error>> {
        let _ = (slot, share);
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

/// How a batch went; a [`Decision`] can be made of it.
pub(crate) struct Outcome {
    /// 0 is the CPU, 1 is `gpu:0`.
    device: usize,
    wish: Device,
    choice: Option<Choice>,
    actual_ns: u64,
    timings: Timings,
    fallbacks: u32,
    faults: Vec<String>,
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
        let (output, timings) = batch.on_cpu()?;
        return Ok((output, Outcome { actual_ns: ns(start), timings, ..outcome }));
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
    if choice.device >= DEVICES {
        match run_on_two(engine, &routed, &choice, batch) {
            Some(Ok((output, timings))) => {
                let actual_ns = if timings.total_ns > 0 { timings.total_ns } else { ns(start) };
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
                    let actual_ns = if slot.backend.is_simulated() { timings.total_ns } else { ns(start) };
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
    let begun = Instant::now();
    let (output, timings) = batch.on_cpu()?;
    router.learn(&routed, &choice, 0, ns(begun), false);
    Ok((output, Outcome { actual_ns: ns(start), timings, ..outcome }))
}

/// On two devices, one after the other or both at once. The time of simulated ones is told, and comes back as the total.
fn run_on_two<A: Attempt>(
    engine: &Shared,
    routed: &Routed,
    choice: &Choice,
    batch: &mut A,
) -> Option<Result<(A::Output, Timings)>> {
    let slot =
        |device: usize| device.checked_sub(1).and_then(|number| engine.devices.opened(number)).map(|slot| &**slot);
    if choice.device == BOTH {
        return batch.on_both(slot(choice.share.0)?, choice.share.1);
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
        match batch.on(slot) {
            Ok((output, timings)) => {
                let actual_ns = if slot.backend.is_simulated() { timings.total_ns } else { ns(start) };
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
    let begun = Instant::now();
    let (output, timings) = batch.on_cpu()?;
    hear(engine, batch, 0, ns(begun));
    Ok((output, Outcome { actual_ns: ns(start), timings, ..outcome }))
}

/// A batch that was placed by its caller teaches what such batches take, too.
fn hear<A: Attempt>(engine: &Shared, batch: &A, device: usize, actual_ns: u64) {
    if engine.router.is_open() && device < DEVICES {
        engine.router.hear(&engine.router.routed(batch.plan(), batch.tasks()), device, actual_ns);
    }
}

fn ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Outcome {
    fn new(wish: Device) -> Outcome {
        Outcome {
            device: 0,
            wish,
            choice: None,
            actual_ns: 0,
            timings: Timings::default(),
            fallbacks: 0,
            faults: Vec::new(),
        }
    }

    /// The record of it.
    pub(crate) fn decision<A: Attempt>(self, engine: &Shared, batch: &A) -> Decision {
        let share = self.choice.map_or(0, |choice| choice.share.0);
        let halves = || {
            let routed = engine.router.routed(batch.plan(), batch.tasks());
            engine.router.halves(&routed).map_or(String::new(), |h| format!("{}+{}", single(h.front), single(h.back)))
        };
        let id = |device: usize| match device {
            CUT => halves(),
            BOTH => format!("cpu+{}", single(share)),
            device => single(device),
        };
        let predicted = self.choice.iter().flat_map(|choice| {
            let known = (0..MOST).filter(|device| choice.expected_ns[*device] > 0);
            known.map(|device| Predicted {
                device: id(device),
                expected_ns: choice.expected_ns[device],
                parts: choice.predicted[device],
                measured: choice.measured >> device & 1 == 1,
            })
        });
        let predicted: Vec<Predicted> = predicted.collect();
        let slot = self.device.checked_sub(1).and_then(|number| engine.devices.opened(number));
        // It has just run, so it is there.
        let ready = batch.prepared(slot.map(|slot| &**slot));
        let (kernels, kernel_ns) = ready.map_or((0, Vec::new()), |p| (p.plan().kernels.len(), p.kernel_ns()));
        Decision {
            device: id(self.device),
            reason: self.reason(&predicted),
            regret_ns: self.regret_ns(&predicted),
            predicted,
            actual_ns: self.actual_ns,
            kernels,
            kernel_ns,
            timings: self.timings,
            fallbacks: self.fallbacks,
            faults: self.faults,
        }
    }

    /// What it took longer than the best other device took lately, where that is known.
    fn regret_ns(&self, predicted: &[Predicted]) -> Option<u64> {
        let choice = self.choice.as_ref()?;
        let others = (0..MOST).filter(|device| *device != self.device && choice.measured >> device & 1 == 1);
        let best = others.map(|device| choice.expected_ns[device]).min()?;
        (!predicted.is_empty()).then(|| self.actual_ns.saturating_sub(best))
    }

    fn reason(&self, predicted: &[Predicted]) -> String {
        let trouble = || self.faults.join("; ");
        let Some(choice) = &self.choice else {
            return match (self.wish, self.device, self.faults.is_empty()) {
                (Device::Auto | Device::All, ..) => UNMEASURED.to_owned(),
                (wish, _, true) => format!("{wish} was asked for"),
                (wish, 0, false) => format!("{wish} was asked for, but {}", trouble()),
                (wish, _, false) if self.fallbacks == 0 => format!("{wish} was asked for"),
                (wish, _, false) => format!("{wish} was asked for, and others failed: {}", trouble()),
            };
        };
        if !self.faults.is_empty() {
            return match choice.device {
                CUT | BOTH => format!("two devices were chosen, but {}", trouble()),
                device => format!("{} was chosen, but {}", single(device), trouble()),
            };
        }
        let times: Vec<String> = predicted
            .iter()
            .map(|p| {
                let how = if p.measured { "takes" } else { "would take" };
                format!("{} {how} {}", p.device, duration(p.expected_ns))
            })
            .collect();
        let times = times.join(", ");
        match choice.why {
            Why::OnlyCpu => "no other device is usable now".to_owned(),
            Why::Cheapest => format!("expected to be done first: {times}"),
            Why::Stays => format!("another device is not better by enough to move: {times}"),
            Why::Explores => format!("to see what it takes there now: {times}"),
        }
    }
}

/// The id of a device.
pub(crate) fn single(device: usize) -> String {
    match device.checked_sub(1) {
        None => "cpu".to_owned(),
        Some(number) => format!("gpu:{number}"),
    }
}

/// Why the CPU serves a batch that was left to us.
const UNMEASURED: &str =
    "no GPU has been measured on this machine, so none can be known to pay (`breakeven scan` measures)";

/// A time in words.
fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
