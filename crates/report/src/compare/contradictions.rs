//! What the rows contradict: sides and their curves enter; claims with what became of them, and every contradiction with
//! its evidence in words leave. Only differences beyond the spread count: see [`Stats::clearly_faster_than`].

mod claims;
mod disagreement;

use super::{Side, join::Joined};
use crate::crossover::{Crossover, of_op};
use crate::curves::{Curves, Line};
use crate::stats::Stats;
use crate::words::{ratio, rounded, sized, time};
use serde::Serialize;

pub use claims::{Checked, Outcome};

/// What can be contradictory.
///
/// ```
/// use breakeven_report::compare::ContradictionKind;
/// assert_eq!(ContradictionKind::Noise.words(), "crossover inside the noise");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContradictionKind {
    /// A crossover that is claimed, and that the rows do not show.
    Claim,
    /// A crossover of fused or separate calls that the rows do not show.
    Fused,
    /// Sides that do not agree who is faster.
    Disagreement,
    /// Curves that cross more than once.
    CrossesOften,
    /// A crossover where both take the same, as far as can be told.
    Noise,
}

impl ContradictionKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            ContradictionKind::Claim => "claim against rows",
            ContradictionKind::Fused => "fused crossover against rows",
            ContradictionKind::Disagreement => "sides disagree",
            ContradictionKind::CrossesOften => "crosses more than once",
            ContradictionKind::Noise => "crossover inside the noise",
        }
    }
}

/// Something that can't be true together with something else.
///
/// ```
/// use breakeven_report::compare::{Contradiction, ContradictionKind};
/// let found = Contradiction {
///     kind: ContradictionKind::Claim, sides: vec!["vk".into()], op: "add".into(), device: "gpu:0".into(),
///     sizes: vec![262_144], words: "at 262 k elements the CPU is faster".into(),
/// };
/// assert_eq!(found.kind.words(), "claim against rows");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Contradiction {
    /// What kind.
    pub kind: ContradictionKind,
    /// The labels of the sides that it is about.
    pub sides: Vec<String>,
    /// The op that it is about.
    pub op: String,
    /// The device that it is about, by its id; its kind if it is about several.
    pub device: String,
    /// At which sizes it shows.
    pub sizes: Vec<u64>,
    /// What contradicts what.
    pub words: String,
}

/// Everything that is claimed, and everything that is contradictory: claims first, each kind in the order of ops.
pub(super) fn find(sides: &[Side], joined: &[Joined<'_>]) -> (Vec<Checked>, Vec<Contradiction>) {
    let (checked, mut found) = claims::check(sides, joined);
    for op in joined {
        found.extend(disagreement::find(sides, op));
        for (side, curves) in sides.iter().zip(&op.sides) {
            for duel in curves.iter().flat_map(|curves| duels(side, curves)) {
                found.extend(crosses_often(&duel));
                found.extend(inside_noise(&duel));
            }
        }
    }
    found.sort_by_key(|contradiction| contradiction.kind);
    (checked, found)
}

/// A size with what the CPU and the device took.
type Row<'d> = (u64, &'d Stats, &'d Stats);

/// One device against the CPU at one op on one side.
struct Duel<'d> {
    side: &'d Side,
    op: &'d str,
    unit: &'d str,
    /// The device's id and its label.
    device: &'d str,
    label: String,
    /// Where both were measured, sizes going up.
    rows: Vec<Row<'d>>,
    crossover: Crossover,
}

impl Duel<'_> {
    fn contradiction(&self, kind: ContradictionKind, sizes: Vec<u64>, words: String) -> Contradiction {
        Contradiction {
            kind,
            sides: vec![self.side.label.clone()],
            op: self.op.to_owned(),
            device: self.device.to_owned(),
            sizes,
            words,
        }
    }
}

/// Every device of a side against its CPU.
fn duels<'d>(side: &'d Side, curves: &'d Curves<'d>) -> Vec<Duel<'d>> {
    let devices = &side.scan.devices;
    let line = |is: &dyn Fn(&Line<'_>) -> bool| curves.lines.iter().find(|line| is(line));
    let Some(cpu) = line(&|line| devices[line.device].is_cpu()) else { return Vec::new() };
    let duel = |crossover: Crossover| {
        let device = devices.iter().find(|device| device.id == crossover.device)?;
        let line = line(&|line| devices[line.device].id == device.id)?;
        let rows = line.points.iter().filter_map(|&(size, stats)| Some((size, cpu.at(size)?, stats))).collect();
        let (op, unit, label) = (curves.op, curves.unit, device.label());
        Some(Duel { side, op, unit, device: &device.id, label, rows, crossover })
    };
    of_op(devices, curves).into_iter().filter_map(duel).collect()
}

/// Who takes what at a size, and who is faster by how much.
fn evidence(duel: &Duel<'_>, (size, cpu, device): &Row<'_>) -> String {
    let (c, d) = (cpu.median_ns.max(1) as f64, device.median_ns.max(1) as f64);
    let faster = match c / d {
        r if ratio(r.max(1.0 / r)) == "1.0x" => "about the same".to_owned(),
        r if r < 1.0 => format!("the CPU is {} as fast", ratio(1.0 / r)),
        r => format!("{} is {} as fast", duel.label, ratio(r)),
    };
    let (c, d) = (time(cpu.median_ns), time(device.median_ns));
    format!("at {} the CPU takes {c} and {} {d}: {faster}", sized(*size, duel.unit), duel.label)
}

/// Curves that cross more than once, or the wrong way.
fn crosses_often(duel: &Duel<'_>) -> Option<Contradiction> {
    if duel.crossover.verdict != crate::Verdict::Mixed {
        return None;
    }
    // Stretches of sizes with the same winner.
    let mut stretches: Vec<(bool, u64, u64)> = Vec::new();
    for (size, cpu, device) in &duel.rows {
        let faster = device.median_ns < cpu.median_ns;
        match stretches.last_mut() {
            Some(last) if last.0 == faster => last.2 = *size,
            _ => stretches.push((faster, *size, *size)),
        }
    }
    let told: Vec<String> = stretches
        .iter()
        .map(|&(device, from, to)| {
            let who = if device { duel.label.as_str() } else { "the CPU" };
            let until = if from == to { String::new() } else { format!(" to {}", sized(to, duel.unit)) };
            format!("{who} at {}{until}", if from == to { sized(from, duel.unit) } else { sized(from, "") })
        })
        .collect();
    let crossings = match stretches.len() - 1 {
        1 => "once, but the wrong way".to_owned(),
        more => format!("{more} times"),
    };
    let words = format!(
        "{}: {} on {} crosses the CPU's curve {crossings}: faster is {}",
        duel.side.label,
        duel.op,
        duel.label,
        told.join(", then ")
    );
    let sizes = stretches.iter().skip(1).map(|stretch| stretch.1).collect();
    Some(duel.contradiction(ContradictionKind::CrossesOften, sizes, words))
}

/// A crossover at both sides of which the two can't be told apart.
fn inside_noise(duel: &Duel<'_>) -> Option<Contradiction> {
    let (before, after) = duel.crossover.between?;
    let at = duel.crossover.at?;
    let row = |size: u64| duel.rows.iter().find(|row| row.0 == size);
    let unclear = |(_, cpu, device): &Row<'_>| {
        // Without spreads nothing can be said about noise.
        let known = cpu.band().is_some() && device.band().is_some();
        known && !cpu.clearly_faster_than(device) && !device.clearly_faster_than(cpu)
    };
    let (before, after) = (row(before).filter(|row| unclear(row))?, row(after).filter(|row| unclear(row))?);
    let band =
        |stats: &Stats| stats.band().map_or_else(String::new, |(low, high)| format!("{} to {}", time(low), time(high)));
    let told = |(size, cpu, device): &Row<'_>| {
        format!("at {} the CPU takes {} and the device {}", sized(*size, duel.unit), band(cpu), band(device))
    };
    let last_clear =
        duel.rows.iter().rev().find(|(size, cpu, device)| *size < before.0 && cpu.clearly_faster_than(device));
    let first_clear = duel.rows.iter().find(|(size, cpu, device)| *size > after.0 && device.clearly_faster_than(cpu));
    let bracket = match (last_clear, first_clear) {
        (Some(low), Some(high)) => {
            format!("it lies anywhere between {} and {}", sized(low.0, ""), sized(high.0, duel.unit))
        }
        (Some(low), None) => format!("it lies anywhere above {}, if there is one", sized(low.0, duel.unit)),
        (None, Some(high)) => format!("it lies anywhere below {}", sized(high.0, duel.unit)),
        (None, None) => "no size tells the two apart".to_owned(),
    };
    let words = format!(
        "{}: the crossover of {} on {} at {} lies inside the noise: {}, {}; {bracket}",
        duel.side.label,
        duel.op,
        duel.label,
        sized(rounded(at), duel.unit),
        told(before),
        told(after)
    );
    Some(duel.contradiction(ContradictionKind::Noise, vec![before.0, after.0], words))
}

#[cfg(test)]
#[path = "contradictions_tests.rs"]
mod tests;
