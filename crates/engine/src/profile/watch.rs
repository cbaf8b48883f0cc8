//! A batch under the eyes of a profile: when it began, when its parts were done and where it ran enter; its frames and its
//! record leave. Where nobody records, it is one look at a thread-local number.

use super::model::{FrameKind, Phase};
use super::plans::Outputs;
use super::recording::lock;
use super::shares::apportion;
use super::thread::{self, Track};
use super::told::{BatchEntry, Phases, Told};
use super::tree::{Part, Tree};
use crate::engine::Shared;
use crate::error::Error;
use crate::route::{OnCpu, Outcome};
use breakeven_cpu::Moment;
use breakeven_ir::Plan;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// A job of the queue whose batch is about to run on this thread.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    /// When it was submitted; of several the first one.
    pub(crate) since: Option<Instant>,
    /// Did its owner say where it is to run?
    pub(crate) is_told: bool,
}

/// Now, where a profile is recorded on this thread.
#[inline]
pub(crate) fn mark() -> Option<Moment> {
    thread::is_joined().then(Moment::now)
}

thread_local! {
    static JOB: Cell<Option<Waited>> = const { Cell::new(None) };
}

/// The next batch of this thread is a job of the queue.
pub(crate) fn note_job(job: impl FnOnce() -> Waited) {
    if thread::is_joined() {
        JOB.set(Some(job()));
    }
}

/// A batch that is watched, or not.
pub(crate) struct Watch {
    /// `None` if nobody records, or not any more.
    begun: Option<Moment>,
    recorded: Option<Moment>,
    planned: Option<Moment>,
    job: Option<Waited>,
    /// How long that has waited.
    waited_ns: Option<u64>,
    /// The engine's address.
    engine: usize,
    /// Of its span, if that was opened.
    serial: u64,
}

type Parts = SmallVec<[Part; Phase::ALL.len()]>;

impl Watch {
    /// A batch of this engine begins.
    #[inline]
    pub(crate) fn begin(engine: &Shared) -> Watch {
        let mut watch =
            Watch { begun: None, recorded: None, planned: None, job: None, waited_ns: None, engine: 0, serial: 0 };
        if thread::is_joined() {
            watch.start(engine);
        }
        watch
    }

    fn start(&mut self, engine: &Shared) {
        self.job = JOB.take();
        self.engine = std::ptr::from_ref(engine) as usize;
        let begun = Moment::now();
        let since = self.job.and_then(|job| job.since);
        self.waited_ns = since.map(|since| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let note = |track: &Arc<Track>| {
            if track.recording.is_ended() {
                return None;
            }
            track.batch_since.store(track.recording.ns(begun) + 1, Relaxed);
            Some(begun)
        };
        let noted = thread::with_track(self.engine, note);
        if matches!(noted, Some(None)) {
            thread::forget_ended();
        }
        self.begun = noted.flatten();
    }

    /// What was recorded is read: now the plan is looked for.
    #[inline]
    pub(crate) fn recorded(&mut self) {
        if self.begun.is_some() {
            self.recorded = Some(Moment::now());
        }
    }

    /// Everything is there: now the kernels run, on the CPU and without a choice.
    #[inline]
    pub(crate) fn planned(&mut self) {
        if self.begun.is_some() {
            self.planned = Some(Moment::now());
        }
    }

    /// It has run on the CPU.
    #[inline]
    pub(crate) fn done_on_cpu(&mut self, engine: &Shared, plan: &Arc<Plan>, tasks: usize, outputs: Outputs<'_>) {
        if self.begun.is_some() {
            let why = match self.job {
                None => engine.why_cpu(),
                Some(Waited { is_told: true, .. }) => OnCpu::Asked,
                Some(_) => OnCpu::Queue,
            };
            self.end_on_cpu(plan, tasks, outputs, why);
        }
    }

    /// It has run on the CPU, for this reason.
    pub(crate) fn end_on_cpu(&mut self, plan: &Arc<Plan>, tasks: usize, outputs: Outputs<'_>, why: OnCpu) {
        let Some(begun) = self.begun.take() else { return };
        let end = Moment::now();
        thread::with_track(self.engine, |track| {
            track.batch_since.store(0, Relaxed);
            let Some(mut tree) = track.live() else { return };
            let ns = |at: Moment| track.recording.ns(at);
            let (begin_ns, end_ns) = (ns(begun), ns(end));
            let planned_ns = self.planned.map_or(begin_ns, ns);
            let mut parts = Parts::new();
            let recorded_ns = self.recorded.map_or(planned_ns, ns);
            parts.push(own(Phase::Record, begin_ns, recorded_ns));
            if self.recorded.is_some() {
                parts.push(own(Phase::Plan, recorded_ns, planned_ns));
            }
            parts.push(own(Phase::Kernels, planned_ns, end_ns));
            let mut phases = taken(&parts);
            self.add_queue(&mut phases);
            let plan = number(track, &mut tree, plan, outputs);
            let (tasks, told) = (tasks as u64, Told::Cpu(why, None));
            let entry = BatchEntry { plan, tasks, frame: 0, begin_ns, end_ns, phases, told, is_plain: true };
            tree.add_batch(plan, &parts, entry, &track.recording.budget);
        });
    }

    /// It is going to be routed: other batches may run inside of it.
    #[inline]
    pub(crate) fn open(&mut self, plan: &Arc<Plan>, outputs: Outputs<'_>) {
        if let Some(begun) = self.begun {
            self.open_span(begun, plan, outputs);
        }
    }

    fn open_span(&mut self, begun: Moment, plan: &Arc<Plan>, outputs: Outputs<'_>) {
        let recorded = *self.recorded.get_or_insert_with(Moment::now);
        self.serial = thread::next_serial();
        thread::with_track(self.engine, |track| {
            track.batch_since.store(0, Relaxed);
            let Some(mut tree) = track.live() else { return };
            let plan = number(track, &mut tree, plan, outputs);
            let (begin_ns, recorded_ns) = (track.recording.ns(begun), track.recording.ns(recorded));
            let record = own(Phase::Record, begin_ns, recorded_ns.max(begin_ns));
            tree.begin_batch(self.serial, plan, record, &track.recording.budget);
        });
    }

    /// It was routed: how it went.
    #[inline]
    pub(crate) fn routed<R>(
        &mut self,
        engine: &Shared,
        plan: &Arc<Plan>,
        tasks: usize,
        done: &Result<(R, Outcome), Error>,
    ) {
        if let Some(begun) = self.begun.take() {
            self.end_routed(engine, begun, plan, tasks, done.as_ref().map(|(_, outcome)| outcome));
        }
    }

    fn end_routed(
        &mut self,
        engine: &Shared,
        begun: Moment,
        plan: &Arc<Plan>,
        tasks: usize,
        done: Result<&Outcome, &Error>,
    ) {
        let end = Moment::now();
        let recorded = self.recorded.unwrap_or(begun);
        thread::with_track(self.engine, |track| {
            let Some(mut tree) = track.live() else { return };
            let ns = |at: Moment| track.recording.ns(at);
            let begin_ns = ns(begun);
            let recorded_ns = ns(recorded).max(begin_ns);
            let end_ns = ns(end).max(recorded_ns);
            let mut parts = Parts::new();
            let mut told_phases = None;
            if let Ok(outcome) = done {
                // Whatever is told of the attempt lies within the batch: cores may differ by some ticks.
                let from_ns = outcome.attempt.0.map_or(recorded_ns, ns).clamp(recorded_ns, end_ns);
                let to_ns = outcome.attempt.1.map_or(end_ns, ns).clamp(from_ns, end_ns);
                parts.push(own(Phase::Plan, recorded_ns, from_ns));
                told_phases = add_attempt(&mut parts, engine, outcome, from_ns, to_ns);
                if end_ns > to_ns {
                    parts.push(own(Phase::Convert, to_ns, end_ns));
                }
            }
            let mut phases = taken(&parts);
            phases.set(Phase::Record, recorded_ns - begin_ns);
            for (phase, ns) in told_phases.into_iter().flatten() {
                phases.set(phase, ns);
            }
            self.add_queue(&mut phases);
            let is_queued = self.job.is_some_and(|job| !job.is_told);
            let told = match done {
                Ok(outcome) => match outcome.plain_cpu(is_queued) {
                    Some(why) => Told::Cpu(why, Some(outcome.actual_ns)),
                    None => Told::Routed { outcome: Box::new(outcome.clone()), is_queued },
                },
                Err(error) => Told::Failed(error.to_string()),
            };
            // It has a number since it was opened.
            let plan = number(track, &mut tree, plan, Outputs::Known);
            let (tasks, is_plain) = (tasks as u64, false);
            let entry = BatchEntry { plan, tasks, frame: 0, begin_ns, end_ns, phases, told, is_plain };
            tree.end_batch(self.serial, &parts, entry, &track.recording.budget);
        });
    }

    /// A job has waited before its batch began.
    fn add_queue(&self, phases: &mut Phases) {
        if let Some(waited_ns) = self.waited_ns {
            phases.add(Phase::Queue, waited_ns);
        }
    }
}

/// A batch that was refused, or that a panic has ended: its time stays with whoever asked for it.
impl Drop for Watch {
    #[inline]
    fn drop(&mut self) {
        if self.begun.is_some() {
            thread::with_track(self.engine, |track| track.batch_since.store(0, Relaxed));
            if self.serial != 0 {
                thread::close(self.serial);
            }
        }
    }
}

/// The parts of a run on the device that has the results, as its thread has seen them; what the device itself tells of them
/// comes back, and is no more than they are.
fn add_attempt(
    parts: &mut Parts,
    engine: &Shared,
    outcome: &Outcome,
    from_ns: u64,
    to_ns: u64,
) -> Option<SmallVec<[(Phase, u64); 4]>> {
    let kernels = |kind: FrameKind| Part { phase: Phase::Kernels, kind, begin_ns: from_ns, end_ns: to_ns };
    if outcome.device == 0 {
        parts.push(kernels(FrameKind::Phase));
        return None;
    }
    let slot = outcome.device.checked_sub(1).and_then(|number| engine.devices.opened(number));
    // Several devices at once: their parts lie beside each other.
    let Some(slot) = slot else {
        parts.push(kernels(FrameKind::DeviceWait));
        return None;
    };
    let timings = &outcome.timings;
    if slot.backend.is_simulated() {
        parts.push(kernels(FrameKind::DeviceWait));
        // Its time is a number, not time that passed: what passed is divided as the device tells.
        let others_ns = timings.upload_ns + timings.queue_ns + timings.readback_ns;
        let kernels_ns = timings.total_ns.saturating_sub(others_ns);
        let told_ns = [timings.upload_ns, timings.queue_ns, kernels_ns, timings.readback_ns];
        let of = [Phase::Upload, Phase::Queue, Phase::Kernels, Phase::Readback];
        let divided = of.into_iter().zip(apportion(&told_ns, to_ns - from_ns));
        // A device that tells nothing has its kernels alone.
        return (timings.total_ns > 0)
            .then(|| divided.filter(|(phase, ns)| *ns > 0 || *phase == Phase::Kernels).collect());
    }
    let mut at_ns = from_ns;
    let mut add = |phase: Phase, kind: FrameKind, end_ns: u64| {
        let end_ns = end_ns.clamp(at_ns, to_ns.max(at_ns));
        if end_ns > at_ns {
            parts.push(Part { phase, kind, begin_ns: at_ns, end_ns });
        }
        at_ns = end_ns;
    };
    // Its thread fills the device's memory itself; for the rest it waits.
    add(Phase::Upload, FrameKind::Phase, from_ns + timings.upload_ns);
    add(Phase::Queue, FrameKind::DeviceWait, from_ns + timings.upload_ns + timings.queue_ns);
    add(Phase::Kernels, FrameKind::DeviceWait, to_ns.saturating_sub(timings.readback_ns));
    add(Phase::Readback, FrameKind::DeviceWait, to_ns);
    // The device's own clock knows better than whoever waits for it.
    let waited_ns =
        parts.iter().filter(|part| part.phase == Phase::Kernels).map(|part| part.end_ns - part.begin_ns).sum();
    (timings.device_ns > 0).then(|| SmallVec::from_iter([(Phase::Kernels, timings.device_ns.min(waited_ns))]))
}

/// A part that the thread works on.
fn own(phase: Phase, begin_ns: u64, end_ns: u64) -> Part {
    Part { phase, kind: FrameKind::Phase, begin_ns, end_ns }
}

/// What parts took.
fn taken(parts: &[Part]) -> Phases {
    let mut phases = Phases::default();
    for part in parts {
        phases.add(part.phase, part.end_ns.saturating_sub(part.begin_ns));
    }
    phases
}

/// The number of a plan in the profile.
fn number(track: &Track, tree: &mut Tree, plan: &Arc<Plan>, outputs: Outputs<'_>) -> u32 {
    tree.plan_number(Arc::as_ptr(plan) as usize, || lock(&track.recording.plans).number(plan, outputs))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
