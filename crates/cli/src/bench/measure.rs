//! The cases of a group: an engine and its devices enter, rows leave one by one, with what was left out and why.
//!
//! Small sizes of all cases come first, so that whatever ends a group early leaves something of each. Results are compared
//! before times: a device whose results are wrong has no row.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use breakeven::{Device, Engine};
use breakeven_report::bench::{LeftOut, Row, Trouble, TroubleKind};
use breakeven_report::words;

use super::calls::Subject;
use super::check;
use super::groups::{Case, Group, How, Make, is_wanted};
use super::inject::{self, Injected};
use super::job::{Fault, Job, Said};
use super::transfer;
use crate::memory;
use crate::scan::cell::{self, Care, Rules};

/// Runs that a case takes at least: the one that is compared, a warm-up, and three samples.
const LEAST_RUNS: u32 = 5;
/// A case may take so many times its share of the time that is left, for small ones take far less; but not so much that
/// nothing is left for those after it.
const SHARES: u32 = 3;
const MOST: f64 = 0.6;
/// The part of the whole time that each case has, even if those before took too long: one device at least has its row.
const AT_LEAST: u32 = 10;
/// Copies of an array of 4-byte elements that there are at once, with those of devices.
const ARRAY_BYTES: u64 = 8 * 4;

/// A device that is measured.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its id.
    pub id: String,
    /// The same as a wish.
    pub device: Device,
    /// It was lost, so that it is not measured any more.
    pub lost: bool,
}

/// A group at work.
pub struct Work<'a> {
    /// On its devices.
    pub engine: &'a Engine,
    /// On these.
    pub arms: Vec<Arm>,
    /// What was asked for.
    pub job: &'a Job,
    /// Until then.
    pub until: Instant,
    /// Who hears of it.
    pub tell: &'a mut dyn FnMut(Said),
    /// Whether to stop at once.
    pub stop: &'a dyn Fn() -> bool,
    /// What a run took last, by the wall clock, for each case and device, and at which size.
    takes: HashMap<(&'static str, String), (u64, Duration)>,
    /// Cases for which there was no time.
    late: Vec<String>,
    rows: usize,
}

impl<'a> Work<'a> {
    /// With nothing done.
    pub fn new(
        engine: &'a Engine,
        arms: Vec<Arm>,
        job: &'a Job,
        tell: &'a mut dyn FnMut(Said),
        stop: &'a dyn Fn() -> bool,
    ) -> Work<'a> {
        let until = Instant::now() + Duration::from_millis(job.budget_ms);
        Work { engine, arms, job, until, tell, stop, takes: HashMap::new(), late: Vec::new(), rows: 0 }
    }

    /// Measures what is wanted of a group.
    pub fn group(&mut self, group: &'static Group) {
        let wanted: Vec<&'static Case> =
            group.cases.iter().filter(|case| is_wanted(case.name, &self.job.cases)).collect();
        let moved: Vec<&'static Case> =
            wanted.iter().copied().filter(|case| matches!(case.how, How::Transfer)).collect();
        transfer::measure(self, &moved);
        let mut cells = Vec::new();
        for case in &wanted {
            if let How::Each(make) = case.how {
                cells.extend(
                    case.sizes(self.job.quick).iter().enumerate().map(|(level, size)| (level, *case, *size, make)),
                );
            }
        }
        cells.sort_by_key(|(level, ..)| *level);
        for (done, (_, case, size, make)) in cells.iter().enumerate() {
            if (self.stop)() {
                return;
            }
            self.doing(&name(case, *size), done, cells.len());
            self.cell(case, *size, *make, cells.len() - done);
        }
        if !self.late.is_empty() {
            let late = std::mem::take(&mut self.late).join("; ");
            self.trouble(
                None,
                Fault { kind: TroubleKind::OutOfTime, why: format!("there was no time left for {late}") },
            );
        }
    }

    /// One case of one size on all devices.
    fn cell(&mut self, case: &'static Case, size: u64, make: Make, cells: usize) {
        let budget = Duration::from_millis(self.job.budget_ms);
        let now = Instant::now();
        if now > self.until + budget / 2 {
            self.late.push(name(case, size));
            return;
        }
        let left = self.until.saturating_duration_since(now).max(budget / AT_LEAST);
        let bytes = if case.power == 3 { size * size } else { size }.saturating_mul(ARRAY_BYTES);
        if !memory::fits(bytes) {
            return self.leave_out(case, size, None, "the memory of this machine is too small".to_owned());
        }
        let arms = self.affordable(case, size, left);
        if arms.is_empty() {
            return;
        }
        let mut subject = match make(self.engine, size) {
            Ok(subject) => subject,
            Err(fault) => return self.case_trouble(None, case, size, fault),
        };
        let arms = self.checked(&mut *subject, arms, case, size);
        let most = if cells > 1 { left.mul_f64(MOST) } else { left };
        let until = Instant::now() + most.min(left / cells.max(1) as u32 * SHARES);
        self.time(&mut *subject, &arms, case, size, until);
    }

    /// The devices for which there is time; the others are told.
    fn affordable(&mut self, case: &'static Case, size: u64, left: Duration) -> Vec<Arm> {
        let mut arms: Vec<Arm> = self.arms.iter().filter(|arm| !arm.lost).cloned().collect();
        let takes = &self.takes;
        let expected = |arm: &Arm| {
            let (before, took) = takes.get(&(case.name, arm.id.clone()))?;
            Some(took.mul_f64((size as f64 / (*before).max(1) as f64).powi(case.power).max(1.0)))
        };
        let takes: Vec<Duration> = arms.iter().map(|arm| expected(arm).unwrap_or_default()).collect();
        let (mut slow, mut total) = (Vec::new(), takes.iter().sum::<Duration>());
        // The slowest goes first.
        let mut order: Vec<usize> = (0..arms.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(takes[*at]));
        for at in order {
            if total * LEAST_RUNS <= left {
                break;
            }
            total -= takes[at];
            slow.push((arms[at].id.clone(), takes[at]));
        }
        arms.retain(|arm| !slow.iter().any(|(id, _)| *id == arm.id));
        for (id, takes) in slow {
            let takes = words::time(takes.as_nanos() as u64);
            self.leave_out(case, size, Some(id), format!("a run would take about {takes}, for which there is no time"));
        }
        arms
    }

    /// The devices that compute what the first of them does.
    fn checked(&mut self, subject: &mut dyn Subject, arms: Vec<Arm>, case: &'static Case, size: u64) -> Vec<Arm> {
        let mut expected: Option<Vec<Vec<f64>>> = None;
        let mut sound = Vec::new();
        for arm in arms {
            let fault = match (subject.results(arm.device), &expected) {
                (Err(fault), _) => fault,
                (Ok(found), None) => {
                    expected = Some(found);
                    sound.push(arm);
                    continue;
                }
                (Ok(found), Some(expected)) => match check::difference(&found, expected) {
                    None => {
                        sound.push(arm);
                        continue;
                    }
                    Some(why) => Fault::failed(format_args!("its result is wrong: {why}")),
                },
            };
            self.case_trouble(Some(&arm.id), case, size, fault);
        }
        sound
    }

    /// Times it on these devices in turn.
    fn time(&mut self, subject: &mut dyn Subject, arms: &[Arm], case: &'static Case, size: u64, until: Instant) {
        let slow = self.job.inject.iter().find_map(|injected| match injected {
            Injected::Slow { case: slow, by } if slow == case.name => Some(*by),
            _ => None,
        });
        let mut faults: Vec<Option<Fault>> = vec![None; arms.len()];
        let mut run = |at: usize| match subject.run(arms[at].device) {
            Ok(ns) => Ok(slow.map_or(ns, |by| inject::slowed(ns, by))),
            Err(fault) => {
                let why = fault.why.clone();
                faults[at] = Some(fault);
                Err(why)
            }
        };
        let rules = Rules { samples: self.job.samples, until, stop: self.stop, care: Care::BENCH };
        let sides = cell::measure(&vec![false; arms.len()], &rules, &mut run);
        for ((arm, side), fault) in arms.iter().zip(sides).zip(faults) {
            self.takes.insert((case.name, arm.id.clone()), (size, side.wall));
            if let Some(fault) = fault {
                self.case_trouble(Some(&arm.id), case, size, fault);
            } else if side.stats.is_some() {
                self.row(case, size, &arm.id, side.samples);
            }
            self.injected(subject, arm);
        }
    }

    fn row(&mut self, case: &'static Case, size: u64, device: &str, samples: Vec<u64>) {
        self.told_row(Row {
            case: case.name.to_owned(),
            size,
            unit: case.unit.to_owned(),
            device: device.to_owned(),
            passes: vec![samples],
            beside: case.beside.map(str::to_owned),
            ..Row::default()
        });
    }

    /// A row is there.
    pub fn told_row(&mut self, row: Row) {
        self.rows += 1;
        (self.tell)(Said::Row(row));
    }

    /// Lets go wrong what is to go wrong after the first row.
    fn injected(&mut self, subject: &mut dyn Subject, arm: &Arm) {
        if self.rows != 1 {
            return;
        }
        let devices: Vec<Device> = self.arms.iter().map(|arm| arm.device).collect();
        let fault = match () {
            // Whoever kills it has heard of the first row; there is to be no second one on its way.
            () if self.job.inject.contains(&Injected::Kill) => {
                std::thread::sleep(inject::UNTIL_KILLED);
                Ok(())
            }
            () if self.job.inject.contains(&Injected::Hang) => inject::hang(self.engine, &devices),
            () if self.job.inject.contains(&Injected::Lose) => {
                let gpu = self.arms.iter().find(|arm| arm.device != Device::Cpu).unwrap_or(arm).clone();
                let fault = inject::lose(self.engine, gpu.device, &mut || subject.run(gpu.device));
                return self.device_trouble(&gpu.id, fault);
            }
            () => Ok(()),
        };
        if let Err(fault) = fault {
            self.trouble(None, fault);
        }
    }

    /// What went wrong with one case.
    pub fn case_trouble(&mut self, device: Option<&str>, case: &Case, size: u64, fault: Fault) {
        let fault = Fault { why: format!("{}: {}", name(case, size), fault.why), ..fault };
        match device {
            Some(device) => self.device_trouble(device, fault),
            None => self.trouble(None, fault),
        }
    }

    /// What went wrong with a device. One that was lost is not measured any more: what it does next says nothing about it.
    fn device_trouble(&mut self, device: &str, fault: Fault) {
        if fault.kind == TroubleKind::DeviceLost {
            self.arms.iter_mut().filter(|arm| arm.id == device).for_each(|arm| arm.lost = true);
        }
        self.trouble(Some(device), fault);
    }

    fn trouble(&mut self, device: Option<&str>, fault: Fault) {
        let (pass, device) = (self.job.pass, device.map(str::to_owned));
        (self.tell)(Said::Trouble(Trouble { kind: fault.kind, pass, device, why: fault.why }));
    }

    /// A case is not measured, on one device or on all of them.
    pub fn leave_out(&mut self, case: &Case, size: u64, device: Option<String>, why: String) {
        let (case, unit) = (case.name.to_owned(), case.unit.to_owned());
        (self.tell)(Said::LeftOut(LeftOut { case, size, unit, device, why }));
    }

    /// It works on this.
    pub fn doing(&mut self, what: &str, done: usize, total: usize) {
        (self.tell)(Said::Doing { what: what.to_owned(), share: done as f64 / total.max(1) as f64 });
    }
}

/// A case and its size.
pub fn name(case: &Case, size: u64) -> String {
    if size == 0 { case.name.to_owned() } else { format!("{}, {}", case.name, words::sized(size, case.unit)) }
}
