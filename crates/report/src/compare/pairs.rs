//! Sides against each other: ops with their curves on each side enter; crossovers side by side, the fastest at each
//! common size, mean ratios of pairs and what only some sides have leave.

use super::{Side, join::Joined};
use crate::crossover::{Crossover, of_op};
use crate::curves::Line;
use crate::scan::Device;
use crate::words::{ratio, size};
use serde::Serialize;

/// The crossovers of one op, a cell for each side.
///
/// ```
/// use breakeven_report::compare::SideBySide;
/// let row = SideBySide { op: "exp".into(), class: "map".into(), unit: "elements".into(), device: 0, cells: vec![] };
/// assert_eq!(row.device, 0);
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SideBySide {
    /// What is computed.
    pub op: String,
    /// Its class.
    pub class: String,
    /// What sizes count.
    pub unit: String,
    /// Each side's first device besides the CPU is 0, its second 1.
    pub device: usize,
    /// One for each side, in their order.
    pub cells: Vec<Cell>,
}

/// What there is to say about an op on one device of one side.
///
/// ```
/// use breakeven_report::compare::CellState;
/// assert_eq!(CellState::Missing.words(), "missing");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// It was measured: there is a crossover or a reason why not.
    Measured,
    /// The side has no device but the CPU.
    Missing,
    /// The side has fewer devices than others.
    NoDevice,
    /// The device is there, but this op was not measured on it.
    NotMeasured,
}

impl CellState {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            CellState::Measured => "measured",
            CellState::Missing => "missing",
            CellState::NoDevice => "no such device",
            CellState::NotMeasured => "not measured",
        }
    }
}

/// An op on one device of one side.
///
/// ```
/// use breakeven_report::compare::{Cell, CellState};
/// let cell = Cell { state: CellState::Missing, device: None, kind: None, crossover: None };
/// assert_eq!(cell.words(), "missing");
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// Whether there is anything.
    pub state: CellState,
    /// The device's id.
    pub device: Option<String>,
    /// The device's kind.
    pub kind: Option<String>,
    /// From which size on it pays.
    pub crossover: Option<Crossover>,
}

impl Cell {
    /// In a few words.
    pub fn words(&self) -> String {
        self.crossover.as_ref().map_or_else(|| self.state.words().to_owned(), Crossover::words)
    }
}

/// A device of a side and what it took.
///
/// ```
/// let timed = breakeven_report::compare::Timed { side: "vk".into(), device: "cpu".into(), median_ns: 500 };
/// assert_eq!(timed.median_ns, 500);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Timed {
    /// The side's label.
    pub side: String,
    /// The device's id.
    pub device: String,
    /// Its median.
    pub median_ns: u64,
}

/// Who is the fastest of all sides' devices at one size of an op.
///
/// ```
/// use breakeven_report::compare::{Fastest, Timed};
/// let timed = |side: &str, median_ns| Timed { side: side.into(), device: "cpu".into(), median_ns };
/// let fastest = Fastest {
///     op: "exp".into(), unit: "elements".into(), size: 1000, best: timed("a", 100), next: timed("b", 250), clear: true,
/// };
/// assert_eq!(fastest.ratio(), 2.5);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fastest {
    /// What is computed.
    pub op: String,
    /// What `size` counts.
    pub unit: String,
    /// The size.
    pub size: u64,
    /// The fastest.
    pub best: Timed,
    /// The next one, which may be of the same side.
    pub next: Timed,
    /// The two differ by more than they spread.
    pub clear: bool,
}

impl Fastest {
    /// How many times as fast the best is as the next.
    pub fn ratio(&self) -> f64 {
        self.next.median_ns as f64 / self.best.median_ns.max(1) as f64
    }
}

/// Two sides over all rows that both have: CPU against CPU, GPU against GPU.
///
/// ```
/// use breakeven_report::compare::PairRatio;
/// let pair = PairRatio {
///     first: "vk".into(), second: "gl".into(), first_device: "gpu:0".into(), second_device: "gpu:0".into(), rows: 12,
///     first_over_second: 0.5,
/// };
/// assert_eq!(pair.words(), "vk is 2.0x as fast as gl");
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairRatio {
    /// One side's label.
    pub first: String,
    /// The other's.
    pub second: String,
    /// The device of the first side, by its id.
    pub first_device: String,
    /// The device of the second side, by its id.
    pub second_device: String,
    /// How many rows both have.
    pub rows: usize,
    /// The geometric mean of the first's medians over the second's: below 1 the first is faster. 1 without rows.
    pub first_over_second: f64,
}

impl PairRatio {
    /// In words.
    pub fn words(&self) -> String {
        let (first, second, r) = (&self.first, &self.second, self.first_over_second);
        match r {
            _ if self.rows == 0 => format!("{first} and {second} have no rows in common"),
            r if ratio(r.max(1.0 / r)) == "1.0x" => format!("{first} and {second} are as fast as each other"),
            r if r < 1.0 => format!("{first} is {} as fast as {second}", ratio(1.0 / r)),
            r => format!("{second} is {} as fast as {first}", ratio(r)),
        }
    }
}

/// Something that only some sides have.
///
/// ```
/// let only = breakeven_report::compare::Only { what: "matmul".into(), sides: vec!["vk".into()] };
/// assert_eq!(only.words(), "matmul: only vk");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Only {
    /// What.
    pub what: String,
    /// The labels of those that have it.
    pub sides: Vec<String>,
}

impl Only {
    /// In words.
    pub fn words(&self) -> String {
        format!("{}: only {}", self.what, self.sides.join(", "))
    }
}

/// From which size on each side's devices pay, for every op.
pub(super) fn crossovers(sides: &[Side], joined: &[Joined<'_>]) -> Vec<SideBySide> {
    // A comparison without any device but CPUs still says that they are missing.
    let most = sides.iter().map(|side| side.gpus().count()).max().unwrap_or(0).max(1);
    let mut rows = Vec::new();
    for op in joined {
        for device in 0..most {
            let cells: Vec<Cell> =
                sides.iter().zip(&op.sides).map(|(side, of)| cell(side, of.as_ref(), device)).collect();
            if device == 0 || cells.iter().any(|cell| cell.state == CellState::Measured) {
                let [name, class, unit] = [op.op, op.class, op.unit].map(str::to_owned);
                rows.push(SideBySide { op: name, class, unit, device, cells });
            }
        }
    }
    rows
}

/// An op on one device of a side.
fn cell(side: &Side, curves: Option<&crate::curves::Curves<'_>>, device: usize) -> Cell {
    let Some(gpu) = side.gpus().nth(device) else {
        let state = if side.gpu_missing && device == 0 { CellState::Missing } else { CellState::NoDevice };
        return Cell { state, device: None, kind: None, crossover: None };
    };
    let all = curves.map_or_else(Vec::new, |curves| of_op(&side.scan.devices, curves));
    let crossover = all.into_iter().find(|c| c.device == gpu.id);
    let state = if crossover.is_some() { CellState::Measured } else { CellState::NotMeasured };
    Cell { state, device: Some(gpu.id.clone()), kind: Some(gpu.kind.clone()), crossover }
}

/// Who is the fastest at each size that at least two sides have.
pub(super) fn fastest(sides: &[Side], joined: &[Joined<'_>]) -> Vec<Fastest> {
    let mut found = Vec::new();
    for op in joined {
        for size in common_sizes(op) {
            let mut timed: Vec<(usize, &Line<'_>, &crate::Stats)> =
                op.lines().filter_map(|(side, line)| Some((side, line, line.at(size)?))).collect();
            // Equal times stay in the order of sides and devices.
            timed.sort_by_key(|(.., stats)| stats.median_ns);
            let [(side, line, best), (next_side, next_line, next), ..] = timed.as_slice() else { continue };
            let named = |side: usize, line: &Line<'_>, stats: &crate::Stats| Timed {
                side: sides[side].label.clone(),
                device: sides[side].scan.devices[line.device].id.clone(),
                median_ns: stats.median_ns,
            };
            found.push(Fastest {
                op: op.op.to_owned(),
                unit: op.unit.to_owned(),
                size,
                best: named(*side, line, best),
                next: named(*next_side, next_line, next),
                clear: best.clearly_faster_than(next),
            });
        }
    }
    found
}

/// Sizes that at least two sides have, going up.
fn common_sizes(op: &Joined<'_>) -> Vec<u64> {
    let mut sizes: Vec<u64> = op.sides.iter().flatten().flat_map(|curves| curves.sizes()).collect();
    sizes.sort_unstable();
    let twice = sizes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let mut twice: Vec<u64> = twice.collect();
    twice.dedup();
    twice
}

/// Every pair of sides, CPU against CPU and GPU against GPU.
pub(super) fn ratios(sides: &[Side], joined: &[Joined<'_>]) -> Vec<PairRatio> {
    let mut found = Vec::new();
    for (a, first) in sides.iter().enumerate() {
        for (b, second) in sides.iter().enumerate().skip(a + 1) {
            for (x, y) in alike(first, second) {
                let logs = joined.iter().flat_map(|op| ln_ratios(op, (a, x), (b, y)));
                let (rows, sum) = logs.fold((0, 0.0), |(rows, sum), ln| (rows + 1, sum + ln));
                let mean = (sum / f64::from(rows.max(1))).exp();
                found.push(PairRatio {
                    first: first.label.clone(),
                    second: second.label.clone(),
                    first_device: first.scan.devices[x].id.clone(),
                    second_device: second.scan.devices[y].id.clone(),
                    rows: rows as usize,
                    // Other machines' logarithms differ in the last digits, which no ratio is good for.
                    first_over_second: (mean * 1e6).round() / 1e6,
                });
            }
        }
    }
    found
}

/// The logarithms of one device's medians over another's, where both were measured.
fn ln_ratios(op: &Joined<'_>, first: (usize, usize), second: (usize, usize)) -> Vec<f64> {
    let line = |(side, device): (usize, usize)| {
        op.sides[side].as_ref().and_then(|curves| curves.lines.iter().find(|line| line.device == device))
    };
    let (Some(first), Some(second)) = (line(first), line(second)) else { return Vec::new() };
    let ln = crate::curves::ln;
    let ratio = |&(size, stats): &(u64, &crate::Stats)| Some(ln(stats.median_ns) - ln(second.at(size)?.median_ns));
    first.points.iter().filter_map(ratio).collect()
}

/// Which device of one side is compared with which of the other, by their numbers: CPU with CPU; GPUs with those of the
/// same id, and if no id is on both sides, each with each.
pub(super) fn alike(first: &Side, second: &Side) -> Vec<(usize, usize)> {
    let (left, right) = (&first.scan.devices, &second.scan.devices);
    let all = || (0..left.len()).flat_map(|x| (0..right.len()).map(move |y| (x, y)));
    let gpus = |&(x, y): &(usize, usize)| !left[x].is_cpu() && !right[y].is_cpu();
    let same_id = |&(x, y): &(usize, usize)| left[x].id == right[y].id;
    let cpus = all().filter(|&(x, y)| left[x].is_cpu() && right[y].is_cpu());
    let same: Vec<_> = all().filter(gpus).filter(same_id).collect();
    let others = if same.is_empty() { all().filter(gpus).collect() } else { same };
    cpus.chain(others).collect()
}

/// What only some of the sides have: devices, ops, sizes.
pub(super) fn only(sides: &[Side], joined: &[Joined<'_>]) -> Vec<Only> {
    let labels = |has: &[bool]| -> Vec<String> {
        sides.iter().zip(has).filter(|(_, has)| **has).map(|(side, _)| side.label.clone()).collect()
    };
    let some = |has: &[bool]| has.contains(&true) && has.contains(&false);
    let mut found = Vec::new();
    for (what, is) in [("a CPU", true), ("a GPU", false)] {
        let has: Vec<bool> = sides.iter().map(|s| s.scan.devices.iter().any(|d: &Device| d.is_cpu() == is)).collect();
        if some(&has) {
            found.push(Only { what: what.to_owned(), sides: labels(&has) });
        }
    }
    // Ops that the same sides have are told together, and so are sizes.
    let mut ops: Vec<(Vec<bool>, Vec<String>)> = Vec::new();
    for op in joined {
        gather(&mut ops, op.sides.iter().map(Option::is_some).collect(), format!("{} ({})", op.op, op.unit));
    }
    let partly = ops.into_iter().filter(|(has, _)| some(has));
    found.extend(partly.map(|(has, ops)| Only { what: ops.join(", "), sides: labels(&has) }));
    for op in joined.iter().filter(|op| op.sides.iter().flatten().count() > 1) {
        let of_sides: Vec<Vec<u64>> =
            op.sides.iter().map(|of| of.as_ref().map_or_else(Vec::new, |curves| curves.sizes())).collect();
        let mut all = of_sides.concat();
        all.sort_unstable();
        all.dedup();
        let mut sizes: Vec<(Vec<bool>, Vec<String>)> = Vec::new();
        for of in all {
            gather(&mut sizes, of_sides.iter().map(|sizes| sizes.contains(&of)).collect(), size(of));
        }
        // Sides that lack the whole op are told above.
        let lacks = |has: &[bool]| has.iter().zip(&op.sides).any(|(has, of)| !has && of.is_some());
        let partly = sizes.into_iter().filter(|(has, _)| lacks(has));
        let told = |sizes: Vec<String>| format!("{} ({}) at {}", op.op, op.unit, sizes.join(", "));
        found.extend(partly.map(|(has, sizes)| Only { what: told(sizes), sides: labels(&has) }));
    }
    found
}

/// Adds words to those that the same sides have.
fn gather(all: &mut Vec<(Vec<bool>, Vec<String>)>, has: Vec<bool>, words: String) {
    match all.iter_mut().find(|(known, _)| *known == has) {
        Some((_, known)) => known.push(words),
        None => all.push((has, vec![words])),
    }
}
