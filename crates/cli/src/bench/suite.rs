//! The suite: what is to be measured enters, a [`Bench`] leaves. Every pass runs each group once, in an order of its own and
//! in a process of its own; what goes wrong in one is told as its trouble, and the others run on.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use breakeven::Device;
use breakeven_report::Machine;
use breakeven_report::bench::{
    Bench, Gate, Group, How, Missing, Null, NullCase, Row, Surroundings, Trouble, TroubleKind,
};

use super::groups::Wanted;
use super::inject::{Injected, Injection};
use super::job::{Ask, Job, Said};
use super::judge::Against;
use super::process::{self, Ended, Then};
use super::{calm, child};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::scan::facts;

/// What a group of usual weight may take for its cases in one pass, quick or not. Most take less.
const BUDGET: [Duration; 2] = [Duration::from_secs(7), Duration::from_secs(30)];
/// What the same code twice may take in one pass.
const NULL_BUDGET: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(6)];
/// What opening devices, draining them and ending a process take about, for the time that is left.
const AROUND: Duration = Duration::from_secs(2);
/// What finding devices may take. On their first day they are tested, which takes seconds on slow machines.
const FINDING: Duration = Duration::from_secs(60);
/// Calm is waited for at most so many times as long as before one group: a machine that is busy stays so.
const CALMS: u32 = 10;

/// What is measured, and how.
pub struct Suite<'a> {
    /// The groups.
    pub wanted: Vec<Wanted>,
    /// On these devices; on all if there are none.
    pub devices: Vec<Device>,
    /// Threads of the CPU; as the environment says without a number.
    pub threads: Option<usize>,
    /// Fewer sizes.
    pub quick: bool,
    /// Samples of each case in one pass.
    pub samples: u32,
    /// How often each group runs.
    pub passes: u32,
    /// What the order is made from; as they are given without one.
    pub seed: u64,
    /// Is the order made from the seed?
    pub shuffled: bool,
    /// All in this process.
    pub in_process: bool,
    /// How long calm is waited for before a group.
    pub calm: Duration,
    /// What a group may take in one pass before it is killed.
    pub timeout: Duration,
    /// What is to go wrong.
    pub inject: Vec<Injection>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

/// A run of the suite.
pub(super) struct Run<'a> {
    pub(super) suite: &'a Suite<'a>,
    pub(super) bench: Bench,
    pub(super) notes: BTreeSet<String>,
    progress: Progress,
    /// Parts that are done, of all.
    done: usize,
    pub(super) total: usize,
    calm_left: Duration,
}

impl Suite<'_> {
    /// Measures all of it, and what changed since a baseline. What there is until Ctrl-C is kept. `accept` looks at the
    /// machine and its devices before anything is measured.
    pub fn run(
        &self,
        accept: impl FnOnce(&Bench) -> Result<(), Failure>,
        against: Option<Against<'_>>,
    ) -> Result<(Bench, Option<Gate>), Failure> {
        let begun = Instant::now();
        let total = self.passes as usize * (self.wanted.len() + 1);
        let progress = Progress::new(0);
        let calm_left = self.calm * CALMS;
        let mut run =
            Run { suite: self, bench: Bench::default(), notes: BTreeSet::new(), progress, done: 0, total, calm_left };
        run.bench.how = How {
            samples: self.samples,
            passes: self.passes,
            quick: self.quick,
            in_process: self.in_process,
            seed: self.seed,
            order_given: !self.shuffled,
            date: facts::date(),
            ..How::default()
        };
        let group = |wanted: &Wanted| Group { name: wanted.group.name.to_owned(), ..Group::default() };
        run.bench.groups = self.wanted.iter().map(group).collect();
        run.find_devices()?;
        accept(&run.bench)?;
        if let Some(against) = &against {
            run.compare_devices(against.baseline)?;
        }
        run.null(self.passes);
        for pass in 0..self.passes {
            for at in self.order(pass) {
                if self.interrupt.is_set() {
                    break;
                }
                run.group(at, pass);
            }
        }
        run.settle();
        let gate = against.map(|against| run.judge(&against));
        let mut bench = run.bench;
        bench.how.notes = run.notes.into_iter().collect();
        bench.how.seconds = begun.elapsed().as_secs_f64();
        bench.how.interrupted = self.interrupt.is_set();
        Ok((bench, gate))
    }

    /// The groups of a pass, by their numbers.
    fn order(&self, pass: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.wanted.len()).collect();
        if self.shuffled {
            fastrand::Rng::with_seed(self.seed.wrapping_add(pass.into())).shuffle(&mut order);
        }
        order
    }

    fn job(&self, ask: Ask, devices: Vec<String>, budget: Duration) -> Job {
        Job {
            devices,
            threads: self.threads,
            quick: self.quick,
            samples: self.samples as usize,
            budget_ms: budget.as_millis() as u64,
            ..Job::asking(ask, &[])
        }
    }

    /// Has a job done, in a process of its own or in this one.
    fn ask(&self, job: &Job, limit: Duration, listen: &mut dyn FnMut(Said) -> Then) -> Ended {
        let stop = || self.interrupt.is_set();
        if !self.in_process {
            return process::run(job, limit, &stop, listen);
        }
        let work = || child::work(job, &mut |said| _ = listen(said), &stop);
        match catch_unwind(AssertUnwindSafe(work)) {
            _ if stop() => Ended::Stopped,
            Ok(()) => Ended::Done,
            Err(_) => Ended::Crashed("it panicked".to_owned()),
        }
    }
}

impl Run<'_> {
    /// Finds out which devices there are, in a process of its own: a driver that crashes takes nothing else with it.
    fn find_devices(&mut self) -> Result<(), Failure> {
        let suite = self.suite;
        // Whoever wants the CPU alone does not wait for drivers.
        let only_cpu = suite.devices == [Device::Cpu];
        let devices = if only_cpu { vec!["cpu".to_owned()] } else { Vec::new() };
        let bench = &mut self.bench;
        let mut troubles = Vec::new();
        let mut listen = |said| {
            match said {
                Said::Machine(machine) => bench.machine = machine,
                Said::Device(device) => bench.devices.push(device),
                Said::Missing(missing) => bench.missing.push(missing),
                Said::Trouble(trouble) => troubles.push(trouble.why),
                _ => {}
            }
            Then::GoOn
        };
        let ended = suite.ask(&suite.job(Ask::Devices, devices, Duration::ZERO), FINDING, &mut listen);
        match ended {
            Ended::Done if troubles.is_empty() => {}
            Ended::Stopped => return Err(Failure::Interrupted("interrupted before anything was measured".to_owned())),
            ended => {
                troubles.extend(Some(ended.why()).filter(|_| ended != Ended::Done));
                let why = format!("the search for GPUs failed: {}", troubles.join("; "));
                bench.missing.push(Missing { device: "gpu".to_owned(), why });
            }
        }
        if bench.devices.is_empty() {
            bench.devices.push(facts::cpu());
            bench.machine = Machine { cpu: breakeven::cpu_name(), ..Machine::default() };
        }
        if bench.devices.len() == 1 && bench.missing.is_empty() && !only_cpu {
            bench.missing.push(Missing { device: "gpu".to_owned(), why: breakeven::driver_hint().to_owned() });
        }
        self.choose()
    }

    /// Leaves the devices that were asked for.
    fn choose(&mut self) -> Result<(), Failure> {
        let (bench, wanted) = (&mut self.bench, &self.suite.devices);
        let found: Vec<String> = bench.devices.iter().map(|device| device.id.clone()).collect();
        if let Some(unknown) = wanted.iter().map(Device::to_string).find(|id| !found.contains(id)) {
            let known = bench.missing.iter().find(|missing| missing.device == unknown || missing.device == "gpu");
            let why = known.map_or(String::new(), |missing| format!("; {}", missing.why));
            return Err(Failure::mistake(format_args!("there is no {unknown} here, only {}{why}", found.join(", "))));
        }
        if !wanted.is_empty() {
            let ids: Vec<String> = wanted.iter().map(Device::to_string).collect();
            bench.devices.retain(|device| ids.contains(&device.id));
            bench.missing.retain(|missing| ids.contains(&missing.device));
        }
        Ok(())
    }

    /// Puts rows into the order of the table, and makes something of their samples.
    pub(super) fn settle(&mut self) {
        let bench = &mut self.bench;
        for (group, wanted) in bench.groups.iter_mut().zip(&self.suite.wanted) {
            let case = |row: &Row| wanted.group.cases.iter().position(|case| case.name == row.case);
            let device = |row: &Row| bench.devices.iter().position(|device| device.id == row.device);
            group.rows.sort_by_key(|row| (case(row), row.size, device(row)));
            group.rows.iter_mut().for_each(Row::settle);
        }
    }

    fn ids(&self) -> Vec<String> {
        self.bench.devices.iter().map(|device| device.id.clone()).collect()
    }

    /// The same code twice, in so many passes more.
    pub(super) fn null(&mut self, passes: u32) {
        let suite = self.suite;
        let (mut all, mut loaded) =
            self.bench.null.take().map_or_else(Default::default, |null| (null.cases, null.loaded));
        for pass in 1..=passes {
            // What is taken for this machine's floor should not be that of a moment.
            loaded |= self.wait_for_calm().loaded;
            let job = suite.job(Ask::Null, self.ids(), NULL_BUDGET[usize::from(!suite.quick)]);
            let (mut cases, mut troubles) = (Vec::new(), Vec::new());
            let ended = self.part("null", &job, |said| {
                match said {
                    Said::Null(case) => cases.push(case),
                    Said::Trouble(trouble) => troubles.push(trouble.why),
                    _ => {}
                }
                Then::GoOn
            });
            troubles.extend(Some(ended.why()).filter(|_| !matches!(ended, Ended::Done | Ended::Stopped)));
            for why in troubles {
                self.notes.insert(format!("the same code twice, pass {pass}: {why}"));
            }
            cases.into_iter().for_each(|case| add_case(&mut all, case));
        }
        self.bench.null = (!all.is_empty()).then(|| Null { loaded, ..Null::of(all) });
    }

    /// A group in one pass.
    pub(super) fn group(&mut self, at: usize, pass: u32) {
        let suite = self.suite;
        let wanted = &suite.wanted[at];
        let begun = Instant::now();
        let surroundings = self.wait_for_calm();
        let loaded = surroundings.loaded;
        self.bench.groups[at].surroundings.push(surroundings);
        let injected = suite.inject.iter().filter(|injection| injection.group == wanted.group.name);
        let inject: Vec<Injected> = injected.map(|injection| injection.what.clone()).collect();
        let ask = Ask::Group(wanted.group.name.to_owned());
        let job = suite.job(ask, self.ids(), BUDGET[usize::from(!suite.quick)] * wanted.group.weight);
        let job = Job { cases: wanted.cases.clone(), pass, inject, ..job };
        let (mut rows, mut troubles, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let kills = job.inject.contains(&Injected::Kill);
        let ended = self.part(wanted.group.name, &job, |said| {
            match said {
                Said::Row(row) => {
                    rows.push(row);
                    if kills {
                        return Then::Kill;
                    }
                }
                Said::Trouble(trouble) => troubles.push(trouble),
                Said::LeftOut(left) => left_out.push(left),
                _ => {}
            }
            Then::GoOn
        });
        let trouble = |kind, why| Some(Trouble { kind, pass, device: None, why });
        troubles.extend(match ended {
            Ended::Done | Ended::Stopped => None,
            Ended::Hung(why) => trouble(TroubleKind::Hung, why),
            Ended::Crashed(why) => trouble(TroubleKind::Crashed, why),
        });
        let name = wanted.group.name;
        self.bench.how.order.push(name.to_owned());
        let group = &mut self.bench.groups[at];
        rows.into_iter().for_each(|row| add_row(&mut group.rows, row, loaded));
        for left in left_out {
            // Each pass expects another time of it: it is told once.
            if !group.left_out.iter().any(|known| known.is_same(&left)) {
                group.left_out.push(left);
            }
        }
        group.troubles.extend(troubles);
        group.seconds += begun.elapsed().as_secs_f64();
    }

    fn wait_for_calm(&mut self) -> Surroundings {
        let stop = || self.suite.interrupt.is_set();
        let seen = calm::wait(self.suite.calm.min(self.calm_left), &stop);
        self.calm_left = self.calm_left.saturating_sub(Duration::from_secs_f64(seen.waited_seconds));
        seen
    }

    /// Has a job done while the bar moves.
    fn part(&mut self, name: &str, job: &Job, mut listen: impl FnMut(Said) -> Then) -> Ended {
        let (suite, progress, done, total) = (self.suite, &mut self.progress, self.done, self.total);
        let budget = BUDGET[usize::from(!suite.quick)] + suite.calm + AROUND;
        let mut show = |share: f64, what: &str| {
            let most = budget.mul_f64(total as f64 - done as f64 - share);
            progress.show_share((done as f64 + share) / total.max(1) as f64, most, &format!("{name}, {what}"));
        };
        show(0.0, "opening devices");
        let ended = suite.ask(job, suite.timeout, &mut |said| {
            if let Said::Doing { what, share } = &said {
                show(*share, what);
            }
            listen(said)
        });
        self.done += 1;
        ended
    }
}

/// The samples of a pass join those of the passes before.
fn add_row(rows: &mut Vec<Row>, row: Row, loaded: bool) {
    let same = |known: &&mut Row| (&known.case, known.size, &known.device) == (&row.case, row.size, &row.device);
    match rows.iter_mut().find(same) {
        Some(known) => {
            known.passes.extend(row.passes);
            known.loaded |= loaded;
            // What copying took belongs to the samples: the mean of the passes.
            if let (Some(sum), Some(more)) = (known.memcpy_ns, row.memcpy_ns) {
                let passes = known.passes.len() as u64;
                known.memcpy_ns = Some((sum * (passes - 1) + more) / passes);
            }
        }
        None => rows.push(Row { loaded, ..row }),
    }
}

fn add_case(cases: &mut Vec<NullCase>, case: NullCase) {
    match cases.iter_mut().find(|known| known.case == case.case) {
        Some(known) => {
            known.first.extend(case.first);
            known.second.extend(case.second);
        }
        None => cases.push(case),
    }
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;
