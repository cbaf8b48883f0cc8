//! How a batch went: where it ran, what was expected and what failed enter; the record of it, in words, leaves.

use super::Attempt;
use crate::config::Device;
use crate::decision::{Decision, Predicted};
use crate::engine::Shared;
use crate::profile::{DecisionRecord, Expected};
use crate::router::{CUT, Choice, DEVICES, MOST, SEVERAL, Why};
use breakeven_cpu::Moment;
use breakeven_ir::Plan;
use breakeven_ir::backend::Timings;
use std::sync::Arc;

/// How a batch went; a [`Decision`] can be made of it.
#[derive(Clone)]
pub(crate) struct Outcome {
    /// 0 is the CPU, 1 is `gpu:0`.
    pub(crate) device: usize,
    pub(super) wish: Device,
    pub(super) choice: Option<Choice>,
    pub(crate) actual_ns: u64,
    pub(crate) timings: Timings,
    pub(super) fallbacks: u32,
    pub(super) faults: Vec<String>,
    /// When the device that has the results began with the batch, and when it had them; only where a profile wants to know.
    pub(crate) attempt: (Option<Moment>, Option<Moment>),
}

/// Why a batch ran on the CPU without being routed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnCpu {
    /// It was asked for.
    Asked,
    /// No other device is known.
    Unmeasured,
    /// It is beyond doubt.
    Settled,
    /// Its worker took the job.
    Queue,
    /// Unfused kernels run nowhere else.
    Unfused,
}

/// Why a batch ran on the CPU, in words.
pub(crate) fn cpu_reason(why: OnCpu) -> &'static str {
    match why {
        OnCpu::Asked => "cpu was asked for",
        OnCpu::Unmeasured => UNMEASURED,
        OnCpu::Settled => "no other device can be done first, by what they cost here: it is not asked any more",
        OnCpu::Queue => "cpu took it from the queue: nobody is expected to have it sooner",
        OnCpu::Unfused => "unfused batches run on the CPU",
    }
}

/// Why a worker of the queue ran a job that was left to all of them.
pub(crate) fn queue_reason(device: &str) -> String {
    format!("{device} took it from the queue: nobody is expected to have it sooner")
}

impl Outcome {
    pub(crate) fn new(wish: Device) -> Outcome {
        Outcome {
            device: 0,
            wish,
            choice: None,
            actual_ns: 0,
            timings: Timings::default(),
            fallbacks: 0,
            faults: Vec::new(),
            attempt: (None, None),
        }
    }

    /// Why it ran on the CPU, if that is all there is to say: nothing was weighed, and nothing failed.
    pub(crate) fn plain_cpu(&self, is_queued: bool) -> Option<OnCpu> {
        let is_plain = self.device == 0 && self.choice.is_none() && self.fallbacks == 0 && self.faults.is_empty();
        match self.wish {
            _ if !is_plain => None,
            _ if is_queued => Some(OnCpu::Queue),
            Device::Auto | Device::All => Some(OnCpu::Unmeasured),
            Device::Cpu => Some(OnCpu::Asked),
            Device::Gpu(_) => None,
        }
    }

    /// Is its time what a simulated device tells, rather than what passed?
    fn is_simulated(&self, engine: &Shared) -> bool {
        let is_simulated = |device: usize| {
            let slot = device.checked_sub(1).and_then(|number| engine.devices.opened(number));
            slot.is_some_and(|slot| slot.backend.is_simulated())
        };
        match self.device {
            CUT | SEVERAL => (1..DEVICES).any(is_simulated),
            device => is_simulated(device),
        }
    }

    /// The record of it.
    pub(crate) fn decision<A: Attempt>(self, engine: &Shared, batch: &A) -> Decision {
        let id = |device: usize| self.id(device, engine, Some(batch.plan()), batch.tasks());
        let predicted = self.predicted(id);
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

    /// The record of it as a profile keeps it. Was it a job that a worker took on its own accord?
    pub(crate) fn record(
        &self,
        engine: &Shared,
        plan: Option<&Arc<Plan>>,
        tasks: usize,
        is_queued: bool,
    ) -> DecisionRecord {
        let id = |device: usize| self.id(device, engine, plan, tasks);
        let predicted = self.predicted(id);
        let device = id(self.device);
        let reason = match is_queued && self.fallbacks == 0 && predicted.is_empty() {
            true => queue_reason(&device),
            false => self.reason(&predicted),
        };
        let regret_ns = self.regret_ns(&predicted);
        let expected = |p: Predicted| Expected { device: p.device, expected_ns: p.expected_ns, measured: p.measured };
        DecisionRecord {
            device,
            reason,
            predicted: predicted.into_iter().map(expected).collect(),
            actual_ns: self.actual_ns,
            regret_ns,
            submits: self.timings.submits,
            upload_bytes: self.timings.upload_bytes,
            readback_bytes: self.timings.readback_bytes,
            fallbacks: self.fallbacks,
            faults: self.faults.clone(),
            simulated: self.is_simulated(engine),
        }
    }

    /// The id of a device, or of several.
    fn id(&self, device: usize, engine: &Shared, plan: Option<&Arc<Plan>>, tasks: usize) -> String {
        match device {
            CUT => {
                let halves = plan.and_then(|plan| engine.router.halves(&engine.router.routed(plan, tasks)));
                halves.map_or(String::new(), |h| format!("{}+{}", single(h.front), single(h.back)))
            }
            SEVERAL => {
                let shares = self.choice.map_or([0.0; DEVICES], |choice| choice.shares);
                let names = (0..DEVICES).filter(|device| shares[*device] > 0.0).map(single);
                names.collect::<Vec<_>>().join("+")
            }
            device => single(device),
        }
    }

    fn predicted(&self, id: impl Fn(usize) -> String) -> Vec<Predicted> {
        let predicted = self.choice.iter().flat_map(|choice| {
            let known = (0..MOST).filter(|device| choice.expected_ns[*device] > 0);
            known.map(|device| Predicted {
                device: id(device),
                expected_ns: choice.expected_ns[device],
                parts: choice.predicted[device],
                measured: choice.measured >> device & 1 == 1,
            })
        });
        predicted.collect()
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
                CUT => format!("two devices were chosen, but {}", trouble()),
                SEVERAL => {
                    let parts = choice.shares.iter().filter(|share| **share > 0.0).count();
                    let count = if parts == 2 { "two" } else { "several" };
                    format!("{count} devices were chosen, but {}", trouble())
                }
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
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
