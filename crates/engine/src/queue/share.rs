//! Which device takes which job: what each is expected to take, and who will be done first.
//!
//! A worker that is free goes through the jobs in the order in which they are due, and leaves those to other workers that
//! will have them done sooner, although they are busy now. What it is left with at last is what it is best for.

use super::job::What;
use super::lanes::Verdict;
use super::pool::TaskRef;
use super::seat::Seat;
use super::sync::lock;
use super::ticket::Task;
use super::{Core, State};
use crate::router::DEVICES;
use breakeven_ir::Plan;
use breakeven_ir::backend::Prepared;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Jobs that a worker looks at before it takes one or rests.
const LOOKS: usize = 1024;
/// Jobs below this are taken several at once: looking for the next one costs as much as they do.
const QUICK_NS: u64 = 10_000;
/// So many at once, and no more than these nanoseconds together.
const HANDFUL: usize = 32;
const HANDFUL_NS: u64 = 40_000;
/// What a command is taken to cost before anything is known.
const COMMAND_NS: u64 = 1_000;

/// When the other workers will be free, as jobs are given to them in thought.
type Others = SmallVec<[(usize, u64); 8]>;

impl Core {
    /// What a worker does next: one job, several of one program that pay as one batch, or a handful of quick ones. Is that
    /// all there is?
    pub(super) fn next(self: &Arc<Core>, seat: &Seat, jobs: &mut Vec<TaskRef>) -> bool {
        let is_lost = self.look_at_device(seat);
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        self.sort(state);
        // Whoever is alone compares no times.
        let now_ns = if state.seats.len() > 1 { self.now_ns() } else { 0 };
        let mut others = others(state, seat, now_ns);
        let willing = !is_lost && seat.is_willing(now_ns);
        let mut leader: Option<Leader> = None;
        let mut dropped = 0;
        let judge = |task: &TaskRef| {
            if task.is_answered() {
                return Verdict::Take;
            }
            if !task.may_run_on(seat.device) {
                return Verdict::Pass;
            }
            if task.is_command && !seat.is_first {
                return Verdict::Pass;
            }
            if let Some(leader) = &mut leader {
                return leader.joins(self, seat, task, now_ns, &mut others);
            }
            // What nobody else can do, or wants to, is tried here: where it fails, the CPU does it.
            let only_here = task.devices.load(Relaxed) == 1 << seat.device
                || !others.iter().any(|(device, _)| task.may_run_on(*device) && self.expected(task)[*device] > 0);
            if !only_here
                && (!willing || !self.is_best(seat, task, self.expected(task)[seat.device], now_ns, &mut others))
            {
                return Verdict::Pass;
            }
            leader = Some(Leader::new(self, seat, task));
            Verdict::Take
        };
        state.lanes.take(LOOKS, judge, |task| {
            if task.is_answered() {
                self.note_end(&task);
                dropped += 1;
            } else {
                jobs.push(task);
            }
        });
        if seat.device != 0 || leader.as_ref().is_some_and(|leader| !leader.is_quick) {
            lock(&seat.running).clone_from(jobs);
            seat.is_listed.store(true, Relaxed);
        }
        let is_all = state.lanes.is_empty();
        drop(guard);
        self.leave_queue(dropped + jobs.len());
        self.leave(dropped);
        if let Some(leader) = leader.filter(|_| !jobs.is_empty()) {
            seat.free_at_ns.store(now_ns.saturating_add(leader.total_ns), Relaxed);
        } else if dropped > 0 && jobs.is_empty() {
            // Those that nobody waits for any more were in the way.
            return self.next(seat, jobs);
        }
        is_all
    }

    /// Would nobody else have it done sooner than in this time?
    fn is_best(&self, seat: &Seat, task: &Task, own: u64, now_ns: u64, others: &mut Others) -> bool {
        if others.is_empty() {
            return true;
        }
        let expected = self.expected(task);
        if own == 0 {
            return false;
        }
        if seat.is_picky && task.may_run_on(0) && expected[0] > 0 && expected[seat.device] > expected[0] {
            return false;
        }
        let rivals = others.iter_mut().filter(|(device, _)| task.may_run_on(*device) && expected[*device] > 0);
        let best = rivals.min_by_key(|(device, free_at)| free_at.saturating_add(expected[*device]));
        match best {
            Some((device, free_at)) if free_at.saturating_add(expected[*device]) < now_ns.saturating_add(own) => {
                // It is theirs, and what comes after waits for it.
                *free_at = free_at.saturating_add(expected[*device]);
                false
            }
            _ => true,
        }
    }

    /// What a task is expected to take on each device: 0 where it can't run.
    pub(super) fn expected(&self, task: &Task) -> [u64; DEVICES] {
        if task.is_command {
            return [COMMAND_NS; DEVICES];
        }
        *task.expected_ns.get_or_init(|| task.with_what(|what| self.expected_of(what)).unwrap_or([1; DEVICES]))
    }

    /// What a task is expected to take on one device.
    #[inline]
    fn expected_on(&self, task: &Task, device: usize) -> u64 {
        if task.is_command { COMMAND_NS } else { self.expected(task)[device] }
    }

    /// The same for work that is not in the queue yet.
    pub(super) fn expected_of(&self, what: &What) -> [u64; DEVICES] {
        match what {
            What::Program { program, .. } => self.expected_for(&program.inner.bound.prepared, 1),
            What::Batch(outputs) => {
                let outputs: Vec<&breakeven_ir::Tensor> = outputs.iter().collect();
                let (key, _) = breakeven_ir::plan_key(&outputs);
                match self.engine.plans.get(key, &outputs, &*self.engine.cpu) {
                    Ok(prepared) => self.expected_for(&prepared, 1),
                    // Whoever runs it finds out what is wrong.
                    Err(_) => [1; DEVICES],
                }
            }
            What::Command(_) => [COMMAND_NS; DEVICES],
        }
    }

    /// What so many tasks of a plan are expected to take on each device.
    pub(super) fn expected_for(&self, prepared: &Arc<dyn Prepared>, tasks: usize) -> [u64; DEVICES] {
        let engine = &self.engine;
        let routed = engine.router.is_open().then(|| engine.router.routed(prepared.plan(), tasks));
        std::array::from_fn(|device| {
            let learned = routed.as_ref().and_then(|routed| engine.router.expected_ns(routed, device));
            if let Some(ns) = learned {
                return ns.max(1);
            }
            let Some(number) = device.checked_sub(1) else {
                return (prepared.estimate_ns().saturating_mul(tasks as u64)).max(1);
            };
            let Some(slot) = engine.devices.opened(number) else { return 0 };
            let on_device = |plan: &Arc<Plan>| slot.ready(plan).map(|ready| ready.estimate_ns());
            // One that can't run the plan is not asked again for this job.
            on_device(prepared.plan()).map_or(0, |ns| ns.max(1))
        })
    }
}

/// When each other worker that takes jobs will be free.
fn others(state: &State, seat: &Seat, now_ns: u64) -> Others {
    let devices = state.seats.iter().any(|other| other.device != seat.device);
    if !devices {
        return Others::new();
    }
    let willing = state.seats.iter().filter(|other| other.device != seat.device && other.is_willing(now_ns));
    willing.map(|other| (other.device, other.free_at_ns.load(Relaxed).max(now_ns))).collect()
}

/// The first job of several that are taken at once.
struct Leader {
    program: usize,
    is_quick: bool,
    is_command: bool,
    gathers: bool,
    jobs: usize,
    total_ns: u64,
    each_ns: u64,
}

impl Leader {
    fn new(core: &Core, seat: &Seat, task: &Task) -> Leader {
        let each_ns = core.expected_on(task, seat.device).max(1);
        Leader {
            program: task.program,
            is_quick: each_ns < QUICK_NS,
            is_command: task.is_command,
            gathers: !task.is_command && core.gathering_pays(seat, task, each_ns),
            jobs: 1,
            total_ns: each_ns,
            each_ns,
        }
    }

    /// Does this job go along?
    fn joins(&mut self, core: &Core, seat: &Seat, task: &Task, now_ns: u64, others: &mut Others) -> Verdict {
        if self.gathers {
            if self.jobs >= core.config.gather {
                return Verdict::Enough;
            }
            if task.program != self.program {
                return Verdict::Pass;
            }
            let with_it = self.total_ns + core.one_more_ns(seat, self.each_ns);
            if !core.is_best(seat, task, with_it, now_ns, others) {
                return Verdict::Pass;
            }
            self.jobs += 1;
            self.total_ns = with_it;
            return Verdict::Take;
        }
        if !self.is_quick || self.jobs >= HANDFUL || self.total_ns >= HANDFUL_NS || task.is_command != self.is_command {
            return Verdict::Enough;
        }
        let each_ns = core.expected_on(task, seat.device);
        if each_ns == 0 || each_ns >= QUICK_NS {
            return Verdict::Enough;
        }
        self.jobs += 1;
        self.total_ns += each_ns;
        Verdict::Take
    }
}
