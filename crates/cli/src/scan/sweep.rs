//! Through ops and sizes: what is to be measured and until when enters, the rows leave, with what was left out and why.
//!
//! Small sizes of all ops come first, so that whoever interrupts it has something of each, and so that it is large sizes
//! that are left out when the time is up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use breakeven::{Device, Engine};
use breakeven_report::{Row, words};

use super::cell::{self, Care, Rules, Side};
use super::ops::Op;
use crate::memory;

/// A device that takes longer is not measured at larger sizes.
const LONGEST: Duration = Duration::from_millis(250);
/// Neither is one that takes so many times as long as the fastest, and is not catching up.
const BEHIND: f64 = 20.0;
/// It is catching up if it is behind by less than so much of what it was at the size before.
const CATCHES_UP: f64 = 0.8;
/// Runs that take less are no time saved, and so short that a fixed cost and its noise look like a trend.
const CHEAP_NS: u64 = 5_000_000;
/// A cell may take so many times its share of the time that is left: small ones take far less.
const SHARES: u32 = 3;
/// Runs that a cell takes at least: warm-up and samples.
const LEAST_RUNS: u32 = 5;
/// Arrays of an op at once, with a device's copies.
const ARRAYS: u64 = 8;

/// A device that is measured.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its id.
    pub id: String,
    /// The same as a wish.
    pub device: Device,
    /// Its times come from a model.
    pub told: bool,
}

/// What is measured.
pub struct Sweep<'a> {
    /// On its devices.
    pub engine: &'a Engine,
    /// On these.
    pub arms: &'a [Arm],
    /// Samples of each.
    pub samples: usize,
    /// Until then.
    pub deadline: Instant,
    /// Whether to stop at once.
    pub stop: &'a dyn Fn() -> bool,
}

/// What came of it.
#[derive(Default)]
pub struct Swept {
    /// The measurements.
    pub rows: Vec<Row>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// Why something was left out; in this order they are told.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// The device fails.
    Failed(String),
    /// It takes too long.
    Slow,
    /// It is far behind.
    Behind,
    /// The memory is too small.
    Memory,
    /// The time is up.
    Time,
}

/// An op on its way through its sizes.
struct Track {
    op: Op,
    sizes: Vec<Size>,
    /// Devices that are still measured.
    live: Vec<bool>,
    /// The sizes before, and what a run took on each device by the wall clock.
    before: Vec<(Size, Vec<Duration>)>,
    /// The median of each device at the size before, and that of the fastest.
    medians: Vec<Option<(u64, u64)>>,
    ended: bool,
}

/// A size as it was asked for and as the op counts it.
#[derive(Clone, Copy, PartialEq)]
struct Size {
    elements: u64,
    size: u64,
}

impl Track {
    fn new(op: Op, elements: &[u64], arms: usize) -> Track {
        let mut sizes: Vec<Size> =
            elements.iter().map(|&elements| Size { elements, size: (op.size)(elements) }).collect();
        sizes.sort_by_key(|size| size.elements);
        sizes.dedup_by_key(|size| size.size);
        Track { op, sizes, live: vec![true; arms], before: Vec::new(), medians: vec![None; arms], ended: false }
    }

    /// What a run will take if it grows as it did between the last two sizes. The first two have nothing to go by; they
    /// are small.
    fn expected(&self, arm: usize, size: Size) -> Duration {
        let [.., (first, then), (last, now)] = &self.before[..] else { return Duration::ZERO };
        let (then, now) = (then[arm].as_secs_f64().max(1e-9), now[arm].as_secs_f64().max(1e-9));
        let grows = |from: Size, to: Size| (to.elements as f64 / from.elements.max(1) as f64).ln();
        let power = ((now / then).ln() / grows(*first, *last)).clamp(0.0, self.op.power);
        Duration::from_secs_f64((now * (power * grows(*last, size)).exp()).min(1e6))
    }

    fn is_last(&self, size: Size) -> bool {
        self.sizes.last() == Some(&size)
    }
}

impl Sweep<'_> {
    /// Measures ops over so many elements. `show` is told how many of the cells are done, and what is next.
    pub fn run(&self, ops: &[Op], elements: &[u64], show: &mut dyn FnMut(usize, usize, &str)) -> Swept {
        let mut tracks: Vec<Track> = ops.iter().map(|op| Track::new(*op, elements, self.arms.len())).collect();
        let levels = tracks.iter().map(|track| track.sizes.len()).max().unwrap_or(0);
        let total: usize = tracks.iter().map(|track| track.sizes.len()).sum();
        let mut done = 0;
        let mut rows = Vec::new();
        let mut left_out = LeftOut::default();
        for level in 0..levels {
            for track in &mut tracks {
                let Some(&size) = track.sizes.get(level) else { continue };
                if (self.stop)() {
                    break;
                }
                show(done, total, track.op.name);
                self.visit(track, size, total - done, &mut rows, &mut left_out);
                done += 1;
            }
        }
        let is_told = |id: &str| self.arms.iter().any(|arm| arm.told && arm.id == id);
        let few = |row: &&Row| (row.stats.samples as usize) < self.samples && !is_told(&row.device);
        let few = rows.iter().filter(few).count();
        let mut notes = left_out.notes();
        if few > 0 {
            notes.push(format!("{few} of {} rows have fewer samples, to save time", rows.len()));
        }
        Swept { rows, notes }
    }

    /// Measures an op at a size, if it is worth it.
    fn visit(&self, track: &mut Track, size: Size, cells: usize, rows: &mut Vec<Row>, left_out: &mut LeftOut) {
        let arms: Vec<usize> = (0..self.arms.len()).filter(|arm| track.live[*arm]).collect();
        if track.ended || arms.is_empty() || !self.says_something(&arms) {
            return;
        }
        let now = Instant::now();
        let left = self.deadline.saturating_duration_since(now);
        let least = arms.iter().map(|arm| track.expected(*arm, size)).sum::<Duration>() * LEAST_RUNS;
        let why = match () {
            () if !memory::fits(size.elements.saturating_mul(ARRAYS * 4)) => Why::Memory,
            () if left.is_zero() || least > left => Why::Time,
            () => {
                let until = now + left.min(left / cells.max(1) as u32 * SHARES);
                let rules = Rules { samples: self.samples, until, stop: self.stop, care: Care::SCAN };
                match self.measure(track.op, size.size, &arms, &rules) {
                    Ok(sides) => return self.judge(track, size, &arms, &sides, rows, left_out),
                    Err(why) => Why::Failed(why),
                }
            }
        };
        track.ended = true;
        left_out.note(why, "", track.op, size);
    }

    /// A device alone, or devices without the CPU that was to be measured, say nothing about where work pays.
    fn says_something(&self, arms: &[usize]) -> bool {
        let is_cpu = |arm: &Arm| arm.device == Device::Cpu;
        let has_cpu = arms.iter().any(|arm| is_cpu(&self.arms[*arm]));
        (arms.len() > 1 || self.arms.len() == 1) && (has_cpu || !self.arms.iter().any(is_cpu))
    }

    fn measure(&self, op: Op, size: u64, arms: &[usize], rules: &Rules<'_>) -> Result<Vec<Side>, String> {
        let load = (op.load)(self.engine, size).map_err(|error| error.to_string())?;
        let told: Vec<bool> = arms.iter().map(|arm| self.arms[*arm].told).collect();
        let mut run = |at: usize| load.run(self.arms[arms[at]].device).map_err(|error| error.to_string());
        Ok(cell::measure(&told, rules, &mut run))
    }

    /// Makes rows of what was measured. Which devices go on to the next size?
    fn judge(
        &self,
        track: &mut Track,
        size: Size,
        arms: &[usize],
        sides: &[Side],
        rows: &mut Vec<Row>,
        left_out: &mut LeftOut,
    ) {
        let fastest = sides.iter().filter_map(|side| side.stats.map(|stats| stats.median_ns)).min().unwrap_or(1);
        let mut takes = vec![Duration::ZERO; self.arms.len()];
        for (&arm, side) in arms.iter().zip(sides) {
            let ns = side.stats.map(|stats| stats.median_ns);
            takes[arm] = side.wall;
            let medians = ns.map(|ns| (ns, fastest));
            let why = match &side.fault {
                Some(fault) => Some(Why::Failed(fault.clone())),
                None if takes[arm] > LONGEST => Some(Why::Slow),
                None if is_left_behind(track.medians[arm], medians) => Some(Why::Behind),
                None => None,
            };
            track.medians[arm] = medians;
            if let Some(why) = why {
                track.live[arm] = false;
                // Nothing is left out after the last size.
                if side.fault.is_some() || !track.is_last(size) {
                    left_out.note(why, &self.arms[arm].id, track.op, size);
                }
            }
            rows.extend(side.stats.map(|stats| Row {
                op: track.op.name.into(),
                class: track.op.class.into(),
                size: size.size,
                unit: track.op.unit.into(),
                device: self.arms[arm].id.clone(),
                stats,
            }));
        }
        track.before.push((size, takes));
    }
}

/// Is a device far behind, and does it look as if it stays there? Its median and that of the fastest, at the size before
/// and now.
fn is_left_behind(before: Option<(u64, u64)>, now: Option<(u64, u64)>) -> bool {
    let (Some(before), Some(now)) = (before, now) else { return false };
    let behind = |(ns, fastest): (u64, u64)| ns as f64 / fastest.max(1) as f64;
    now.0 > CHEAP_NS && behind(now) > BEHIND && behind(now) >= CATCHES_UP * behind(before)
}

/// What was left out: for each reason and device, ops with the size at which that began.
#[derive(Default)]
struct LeftOut {
    all: BTreeMap<(Why, String), Vec<String>>,
}

impl LeftOut {
    fn note(&mut self, why: Why, device: &str, op: Op, size: Size) {
        let what = format!("{} ({})", op.name, words::sized(size.size, op.unit));
        self.all.entry((why, device.to_owned())).or_default().push(what);
    }

    fn notes(&self) -> Vec<String> {
        let note = |((why, device), ops): (&(Why, String), &Vec<String>)| {
            let ops = ops.join(", ");
            match why {
                Why::Failed(fault) if device.is_empty() => format!("failed: {ops}: {fault}"),
                Why::Failed(fault) => format!("failed on {device}: {ops}: {fault}"),
                Why::Slow => {
                    format!("{device} took over {} ms, so that larger sizes were left out: {ops}", LONGEST.as_millis())
                }
                Why::Behind => format!(
                    "{device} took over {BEHIND} times as long as the fastest device and did not catch up, so that \
                     larger sizes were left out: {ops}"
                ),
                Why::Memory => format!("the memory of this machine is too small for these sizes and larger: {ops}"),
                Why::Time => format!(
                    "the time was up before these sizes and larger, which a larger --budget has room for: {ops}"
                ),
            }
        };
        self.all.iter().map(note).collect()
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
