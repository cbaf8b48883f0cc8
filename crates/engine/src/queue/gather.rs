//! Small jobs of one program as one batch: whether that pays, how long it is worth waiting for more, and the batch.

use super::job::{Inputs, Priority, What};
use super::pool::TaskRef;
use super::seat::Seat;
use super::sync::lock;
use super::ticket::{Answer, Task};
use super::{Core, views};
use crate::array::Array;
use crate::error::Result;
use crate::execute::Views;
use crate::many::Many;
use crate::profile::{self, Waited};
use crate::program::Program;
use breakeven_ir::backend::Stop;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// On the CPU jobs up to this size are gathered: a call costs about 100 ns, and several run side by side on its threads
/// where each alone would not be worth a second one.
const SMALL_ON_CPU_NS: u64 = 50_000;
/// Of a device's time for a small job this share is what every batch pays, before its costs are known.
const FIXED_SHARE: u64 = 8;

impl Core {
    /// Do jobs like this one pay as one batch on this device?
    pub(super) fn gathering_pays(&self, seat: &Seat, task: &Task, each_ns: u64) -> bool {
        if task.program == 0 || self.config.gather < 2 {
            return false;
        }
        match seat.device {
            0 => each_ns < SMALL_ON_CPU_NS && self.engine.config.slow_cpu == 1,
            // Every job that goes along saves the fixed cost of a batch, if that is a part of it that counts.
            device => match self.engine.router.costs(device) {
                Some(costs) => costs.fixed_ns * FIXED_SHARE as f64 > each_ns as f64,
                None => true,
            },
        }
    }

    /// What one more job in a batch is expected to add.
    pub(super) fn one_more_ns(&self, seat: &Seat, each_ns: u64) -> u64 {
        match (seat.device, self.engine.router.costs(seat.device)) {
            (0, _) => each_ns,
            (_, Some(costs)) => each_ns.saturating_sub(costs.fixed_ns as u64).max(each_ns / 16),
            (_, None) => each_ns / FIXED_SHARE,
        }
    }

    /// Waits for more jobs of the same program, if that is allowed and worth it, and takes those that came.
    pub(super) fn wait_for_more(self: &Arc<Core>, seat: &Seat, jobs: &mut Vec<TaskRef>) {
        // A CPU that waits computes nothing; and whoever is in a hurry is not made to wait.
        if seat.device == 0 || jobs.len() >= self.config.gather {
            return;
        }
        let Some(first) = jobs.first().filter(|first| first.program != 0).cloned() else { return };
        let window = |task: &Task| match task.priority() {
            Priority::Interactive => self.config.interactive_window,
            Priority::Normal => self.config.window,
            Priority::Bulk => self.config.bulk_window,
        };
        let shortest = jobs.iter().map(|task| window(task)).min().unwrap_or_default();
        if shortest.is_zero() {
            return;
        }
        let mut until = Instant::now() + shortest;
        if !self.gathering_pays(seat, &first, self.expected(&first)[seat.device]) {
            return;
        }
        while jobs.len() < self.config.gather && Instant::now() < until && !self.is_closed() {
            let next = until.min(Instant::now() + Duration::from_micros(50));
            self.intake.sleep(seat.device, Some(next), || (!self.intake.is_empty()).then_some(()));
            let before = jobs.len();
            let is_urgent = self.take_more(seat, first.program, jobs);
            if is_urgent {
                break;
            }
            // Whoever joins waits no longer than he has agreed to.
            if let Some(shortest) = jobs[before..].iter().map(|task| window(task)).min() {
                until = until.min(Instant::now() + shortest);
            }
        }
    }

    /// Takes those that came. Is there one of another kind that must not wait for this seat?
    fn take_more(self: &Arc<Core>, seat: &Seat, program: usize, jobs: &mut Vec<TaskRef>) -> bool {
        use super::lanes::Verdict;
        let (most, mut came, mut is_urgent) = (self.config.gather, 0, false);
        let mut state = lock(&self.state);
        self.sort(&mut state);
        let room = most - jobs.len();
        let judge = |task: &TaskRef| {
            if !task.may_run_on(seat.device) || task.is_answered() {
                return Verdict::Pass;
            }
            if task.program != program {
                is_urgent |= task.priority() == Priority::Interactive && self.config.interactive_window.is_zero();
                return Verdict::Pass;
            }
            came += 1;
            if came > room { Verdict::Enough } else { Verdict::Take }
        };
        let before = jobs.len();
        state.lanes.take(most, judge, |task| jobs.push(task));
        lock(&seat.running).clone_from(jobs);
        seat.is_listed.store(true, Relaxed);
        drop(state);
        self.leave_queue(jobs.len() - before);
        is_urgent
    }

    /// Runs jobs of one program as one batch. Those that come back have to be done elsewhere.
    pub(super) fn run_gathered(self: &Arc<Core>, seat: &Seat, jobs: Vec<TaskRef>) -> Vec<TaskRef> {
        let mut taken: Vec<(TaskRef, Program, Inputs)> = Vec::with_capacity(jobs.len());
        for task in jobs {
            match task.take_program() {
                Some((program, inputs)) if !task.is_answered() => taken.push((task, program, inputs)),
                _ => self.note_end(&task),
            }
        }
        let Some((_, program, _)) = taken.first() else { return Vec::new() };
        self.counters.gathered_batches.fetch_add(1, Relaxed);
        self.counters.gathered_jobs.fetch_add(taken.len() as u64, Relaxed);
        let program = program.clone();
        let result = {
            let tasks: Vec<Views<'_>> = taken.iter().map(|(_, _, inputs)| views(inputs)).collect();
            let stops: Vec<&Stop> = taken.iter().map(|(task, ..)| &task.stop).collect();
            profile::note_job(|| Waited {
                since: taken.iter().filter_map(|(task, ..)| task.submitted).min(),
                is_told: taken.iter().all(|(task, ..)| task.is_told),
            });
            self.run_caught(|| {
                let mut results = Many::empty();
                results.fill_on(&program.inner, &tasks, seat.device, &stops)?;
                Ok(results)
            })
        };
        match result {
            Ok(results) => {
                seat.succeeded();
                for (number, (task, ..)) in taken.into_iter().enumerate() {
                    self.finish_task(seat, &task, answer_of(&results, number, seat).map_err(super::run::failed));
                }
                Vec::new()
            }
            Err(error) if super::run::is_fault(&error) => {
                seat.failed(self.now_ns());
                let back = taken.into_iter().map(|(task, program, inputs)| {
                    task.put_back(What::Program { program, inputs });
                    task
                });
                let back: Vec<TaskRef> = back.collect();
                self.hand_over(seat, &back, &error)
            }
            Err(_) if taken.len() > 1 => {
                // One of them is wrong in itself: alone, each gets its own answer.
                let again = taken.into_iter().filter_map(|(task, program, inputs)| {
                    task.put_back(What::Program { program, inputs });
                    self.run_one(seat, task)
                });
                again.collect()
            }
            Err(error) => {
                for (task, ..) in &taken {
                    self.finish_task(seat, task, Err(super::run::failed(error.clone())));
                }
                Vec::new()
            }
        }
    }
}

fn answer_of(results: &Many, task: usize, seat: &Seat) -> Result<Answer> {
    let outputs: Result<Vec<Array>> = (0..results.outputs()).map(|output| results.array(task, output)).collect();
    Ok(Answer::Arrays { outputs: outputs?, device: seat.name.clone(), decision: None })
}
