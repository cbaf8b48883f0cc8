//! Runs jobs and answers them: jobs enter, answers leave; what a device failed at goes to another one.

use super::carry::carry_out;
use super::command::Order;
use super::job::What;
use super::pool::TaskRef;
use super::seat::Seat;
use super::sync::lock;
use super::ticket::{Answer, Task};
use super::{Core, Event, sampled, views};
use crate::config::Device;
use crate::decision::Decision;
use crate::engine::{Ran, run_batch};
use crate::error::{Error, Result};
use crate::many::Many;
use crate::profile::{self, FrameKind, Waited};
use crate::route::{RunOptions, queue_reason};
use breakeven_ir::Tensor;
use breakeven_ir::backend::RunError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long [`Order::Synchronize`] sleeps between two looks at what the device does.
const LOOK: Duration = Duration::from_micros(50);

/// Below this one device is done before two have agreed.
const WORTH_DIVIDING_NS: u64 = 1_000_000;

/// Is it a device's doing, so that another one would have a result?
pub(super) fn is_fault(error: &Error) -> bool {
    match error {
        Error::Run(error) => error.is_device_fault(),
        Error::Strict { .. } | Error::OpenDevice { .. } | Error::NoDevice { .. } => true,
        _ => false,
    }
}

/// What the owner of a job that failed is told.
pub(super) fn failed(error: Error) -> Error {
    Error::Failed { why: Box::new(error) }
}

impl Core {
    /// Runs what a worker has taken; when it was done.
    pub(super) fn serve(self: &Arc<Core>, seat: &Seat, jobs: &mut Vec<TaskRef>) -> Instant {
        self.wait_for_more(seat, jobs);
        let begun = Instant::now();
        let count = jobs.len();
        if self.config.metrics {
            for task in jobs.iter() {
                if let Some((stands_for, submitted)) = sampled(task.id).zip(task.submitted) {
                    let waited = begun.saturating_duration_since(submitted).as_nanos() as u64;
                    seat.tallies.waited_ns.add(waited * stands_for);
                }
            }
        }
        let mut back = Vec::new();
        let is_batch = count > 1 && jobs[0].program != 0 && jobs.iter().all(|task| task.program == jobs[0].program);
        if is_batch && self.gathering_pays(seat, &jobs[0], self.expected(&jobs[0])[seat.device].max(1)) {
            back = self.run_gathered(seat, std::mem::take(jobs));
        } else {
            // Each is let go when it is answered: whoever waits for it has the place to himself.
            for task in jobs.drain(..) {
                if self.aborted.load(Relaxed) {
                    self.end(&task, Error::Aborted);
                }
                back.extend(self.run_one(seat, task));
            }
        }
        if seat.is_listed.load(Relaxed) {
            seat.is_listed.store(false, Relaxed);
            lock(&seat.running).clear();
        }
        let done = Instant::now();
        let ns = done.saturating_duration_since(begun).as_nanos() as u64;
        self.counters.served(count, ns);
        if self.config.metrics {
            seat.tallies.ran_ns.add(ns);
        }
        seat.free_at_ns.store(0, Relaxed);
        self.leave(count - back.len());
        if !back.is_empty() {
            self.take_back(back);
        }
        done
    }

    /// Jobs that another device has to do, at the beginning of their rows.
    fn take_back(self: &Arc<Core>, jobs: Vec<TaskRef>) {
        let mut state = lock(&self.state);
        // They are in the queue again. Nobody was promised their room: it may be over-full for a moment.
        self.taken.fetch_sub(jobs.len() as u64, Relaxed);
        for task in jobs.into_iter().rev() {
            state.lanes.push_front(task.priority() as usize, task.producer, task.id, task);
        }
        drop(state);
        self.wake();
    }

    /// Runs one job; it comes back if it has to be done elsewhere.
    pub(super) fn run_one(self: &Arc<Core>, seat: &Seat, task: TaskRef) -> Option<TaskRef> {
        if let Some(order) = task.order.as_ref().filter(|_| !task.is_answered()) {
            let _command = profile::enter(FrameKind::Phase, || "command".into());
            // Most say no more than that it is done: what else there could be, errors above all, is large, and is not moved.
            let run = || match self.run_order(seat, &task, order) {
                Ok(Answer::Done) => self.complete(seat, &task, Task::answer_done),
                Ok(answer) => self.complete(seat, &task, |task| task.answer(Ok(answer))),
                Err(error) => self.end(&task, failed(error)),
            };
            if let Err(panic) = caught(run) {
                self.end(&task, failed(panic));
            }
            return None;
        }
        let what = if task.is_answered() { None } else { task.take() };
        let Some(what) = what else {
            self.note_end(&task);
            return None;
        };
        note_job(&task);
        let error = match self.run_caught(|| self.run_what(seat, &task, &what)) {
            Ok(answer) => {
                seat.succeeded();
                self.finish_task(seat, &task, Ok(answer));
                return None;
            }
            Err(error) => error,
        };
        let stays = seat.device == 0 || !is_fault(&error);
        if stays {
            // A task that was stopped has its answer already.
            self.finish_task(seat, &task, Err(failed(error)));
            return None;
        }
        seat.failed(self.now_ns());
        task.put_back(what);
        self.hand_over(seat, std::slice::from_ref(&task), &error).pop()
    }

    /// What a device failed at is done by another one: those come back. Where there is none, the CPU does it here and now,
    /// unless that is not allowed.
    pub(super) fn hand_over(self: &Arc<Core>, seat: &Seat, jobs: &[TaskRef], error: &Error) -> Vec<TaskRef> {
        self.look_at_device(seat);
        let mut back = Vec::new();
        for task in jobs {
            self.counters.fallbacks.fetch_add(1, Relaxed);
            let (job, device) = (task.id, seat.name.clone());
            self.events.tell(|| Event::FellBack { job, device, why: error.to_string() });
            if task.leave(seat.device) != 0 {
                back.push(task.clone());
            } else if self.engine.config.strict {
                self.finish_task(seat, task, Err(failed(error.clone())));
            } else {
                let what = task.take();
                note_job(task);
                let result = what.map(|what| self.run_caught(|| self.run_on_cpu(task, &what)));
                if let Some(result) = result {
                    self.finish_task(seat, task, result.map_err(failed));
                }
            }
        }
        back
    }

    /// Runs it; a panic is an error like any other.
    pub(super) fn run_caught<R>(&self, run: impl FnOnce() -> Result<R>) -> Result<R> {
        caught(run).flatten()
    }

    /// Answers a task, unless somebody has.
    pub(super) fn finish_task(&self, seat: &Seat, task: &Task, answer: Result<Answer>) {
        match answer {
            Ok(answer) => self.complete(seat, task, |task| task.answer(Ok(answer))),
            Err(error) => self.end(task, error),
        }
    }

    /// Answers a task with its result, unless somebody has.
    #[inline]
    fn complete(&self, seat: &Seat, task: &Task, answer: impl FnOnce(&Task) -> bool) {
        // Counted first: whoever has the answer finds it counted.
        seat.tallies.completed.add(1);
        if answer(task) {
            self.events.tell(|| {
                let (job, device) = (task.id, seat.name.clone());
                // Whoever subscribed after it was submitted hears of it without its time.
                let took = task.submitted.map_or(Duration::ZERO, |submitted| submitted.elapsed());
                Event::Completed { job, device, took }
            });
        } else {
            seat.tallies.completed.take_back(1);
            self.note_end(task);
        }
    }

    fn run_order(&self, seat: &Seat, task: &Task, order: &Order) -> Result<Answer> {
        if matches!(order, Order::Synchronize { .. }) {
            self.synchronize(seat, task)?;
        }
        carry_out(&self.engine, order, &task.stop)
    }

    fn run_what(self: &Arc<Core>, seat: &Seat, task: &Task, what: &What) -> Result<Answer> {
        match what {
            What::Command(order) => self.run_order(seat, task, order),
            What::Program { .. } | What::Batch(_) if self.may_be_divided(task) => self.run_divided(task, what, seat),
            What::Program { .. } | What::Batch(_) if seat.device == 0 => self.run_on_cpu(task, what),
            What::Program { .. } | What::Batch(_) => {
                let device = Some(Device::Gpu(seat.device.checked_sub(1)));
                self.run_with(task, what, &RunOptions { device, strict: Some(true), ..RunOptions::default() }, seat)
            }
        }
    }

    /// Is it worth asking whether several devices do it at once? Only if they have nothing else to do.
    fn may_be_divided(&self, task: &Task) -> bool {
        let is_wanted = match self.config.devices[..] {
            [] => self.engine.config.device == Device::All,
            ref devices => devices.contains(&Device::All),
        };
        is_wanted
            && !task.is_told
            && self.engine.router.is_open()
            && self.queued() == 0
            && self.expected(task).into_iter().filter(|ns| *ns > 0).min() > Some(WORTH_DIVIDING_NS)
    }

    /// On the devices that are expected to be done first together.
    fn run_divided(&self, task: &Task, what: &What, seat: &Seat) -> Result<Answer> {
        let options = RunOptions { device: Some(Device::All), ..RunOptions::default() };
        let explained = task.is_explained;
        let (outputs, decision) = self.run_told(task, what, &options, true)?;
        let device = decision.as_ref().map_or_else(|| seat.name.clone(), |decision| decision.device.as_str().into());
        Ok(Answer::Arrays { outputs, device, decision: decision.filter(|_| explained) })
    }

    fn run_on_cpu(&self, task: &Task, what: &What) -> Result<Answer> {
        if let What::Program { program, inputs } = what
            && !task.is_explained
            && self.engine.config.slow_cpu == 1
        {
            let views = views(inputs);
            let outputs = if program.inner.fits(&views) {
                program.run_here(&views, &task.stop)?
            } else {
                let mut results = Many::empty();
                results.fill_on(&program.inner, &[views], 0, &[&task.stop])?;
                (0..results.outputs()).map(|output| results.array(0, output)).collect::<Result<_>>()?
            };
            return Ok(Answer::Arrays { outputs, device: self.cpu.clone(), decision: None });
        }
        let options = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
        let (outputs, decision) = self.run_told(task, what, &options, task.is_explained)?;
        Ok(Answer::Arrays { outputs, device: self.cpu.clone(), decision })
    }

    fn run_with(&self, task: &Task, what: &What, options: &RunOptions, seat: &Seat) -> Result<Answer> {
        let (outputs, decision) = self.run_told(task, what, options, task.is_explained)?;
        Ok(Answer::Arrays { outputs, device: seat.name.clone(), decision })
    }

    /// Where it is told to; the record of it says that the queue told it, unless its owner did.
    fn run_told(
        &self,
        task: &Task,
        what: &What,
        options: &RunOptions,
        wanted: bool,
    ) -> Result<(Vec<crate::Array>, Decided)> {
        let Ran { outputs, decision } = match what {
            What::Program { program, inputs } => {
                let views = views(inputs);
                if !program.inner.fits(&views) {
                    let mut results = Many::empty();
                    let decision = results.fill_with(&program.inner, &[views], options)?;
                    let outputs = (0..results.outputs()).map(|output| results.array(0, output));
                    return Ok((
                        outputs.collect::<Result<_>>()?,
                        wanted.then(|| Box::new(self.as_chosen(task, decision))),
                    ));
                }
                program.run_until(&views, options, &task.stop)?
            }
            What::Batch(outputs) => {
                let outputs: Vec<&Tensor> = outputs.iter().collect();
                run_batch(&self.engine, &outputs, options, Some(&task.stop))?
            }
            What::Command(_) => return Ok((Vec::new(), None)),
        };
        Ok((outputs, wanted.then(|| Box::new(self.as_chosen(task, decision)))))
    }

    fn as_chosen(&self, task: &Task, mut decision: Decision) -> Decision {
        if !task.is_told && decision.fallbacks == 0 && decision.predicted.is_empty() {
            decision.reason = queue_reason(&decision.device);
        }
        decision
    }

    /// Waits until the other workers of this device are done with what they have now.
    fn synchronize(&self, seat: &Seat, task: &Task) -> Result<()> {
        if !seat.has_others {
            return Ok(());
        }
        let busy: Vec<TaskRef> = {
            let state = lock(&self.state);
            let others = state.seats.iter().filter(|other| other.device == seat.device && !other.is_first);
            others.flat_map(|other| lock(&other.running).clone()).collect()
        };
        while busy.iter().any(|other| !other.is_answered()) {
            task.stop.check()?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// What came of it, or what a panic, a driver's perhaps, says.
fn caught<R>(run: impl FnOnce() -> R) -> Result<R> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        RunError::Device { device: "the worker".into(), message: format!("it panicked: {text}") }.into()
    })
}

/// The next batch of this worker is this job, if a profile is recorded.
fn note_job(task: &Task) {
    profile::note_job(|| Waited { since: task.submitted, is_told: task.is_told });
}

type Decided = Option<Box<Decision>>;
