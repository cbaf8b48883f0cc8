//! Several scans side by side: labelled [`Scan`]s enter, a [`Comparison`] leaves, and from it `compare.csv`, `compare.json`,
//! Markdown, a table for the terminal and one HTML page.
//!
//! It finds by itself what the sides differ in, sets crossovers beside each other, says who is the fastest at every size
//! that two of them measured, and flags what the rows contradict. Nothing is interpolated between sides: only sizes that
//! were measured on both are compared.

mod contradictions;
mod csv;
mod differences;
mod html;
mod join;
mod lists;
mod markdown;
mod pairs;
mod table;

pub use contradictions::{Checked, Contradiction, ContradictionKind, Outcome};
pub use csv::csv;
pub use differences::{Aspect, Difference};
pub use html::html;
pub use markdown::markdown;
pub use pairs::{Cell, CellState, Fastest, Only, PairRatio, SideBySide, Timed};
pub use table::table;

use crate::scan::{Device, Scan};
use serde::Serialize;

/// The version of `compare.json` that this crate writes. It goes up when a field changes its meaning.
pub const VERSION: u32 = 1;

/// Scans that can't be compared.
///
/// ```
/// use breakeven_report::compare::Comparison;
/// let error = Comparison::of(Vec::new()).unwrap_err();
/// assert!(error.to_string().contains("two scans or more"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// Nothing to compare with.
    #[error("a comparison needs two scans or more, but there is {found}: name another scan.json, CSV or folder")]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// A scan without measurements.
    #[error("`{label}` has no rows, so that there is nothing to compare: run `breakeven scan -o DIR` again")]
    Empty {
        /// Which one.
        label: String,
    },
}

/// One of the scans that are compared.
///
/// ```
/// use breakeven_report::{Device, Scan, compare::Side};
/// let scan = Scan { devices: vec![Device::cpu("Xeon")], ..Scan::default() };
/// let side = Side { label: "old".into(), gpu_missing: true, scan };
/// assert_eq!(side.about(), "Xeon");
/// assert_eq!(side.gpus().count(), 0);
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Side {
    /// What it is called; no two sides have the same.
    pub label: String,
    /// No device but the CPU was measured.
    pub gpu_missing: bool,
    /// What was measured.
    pub scan: Scan,
}

impl Side {
    /// Every device but the CPU.
    pub fn gpus(&self) -> impl Iterator<Item = &Device> {
        self.scan.devices.iter().filter(|device| !device.is_cpu())
    }

    /// The machine in one line; files of other tools do not tell it.
    pub fn about(&self) -> String {
        let told = self.scan.machine.summary();
        let cpu = self.scan.devices.iter().find(|device| device.is_cpu()).map_or("", |cpu| cpu.name.as_str());
        [told.as_str(), cpu, "machine unknown"]
            .into_iter()
            .find(|words| !words.is_empty())
            .unwrap_or_default()
            .to_owned()
    }

    /// A device of this side, for whoever reads of several sides.
    pub fn device_label(&self, id: &str) -> String {
        format!("{} {}", self.label, self.scan.label(id))
    }

    /// Why there is no device but the CPU, as far as the scan says.
    pub fn why_missing(&self) -> String {
        let told = self.scan.how.notes.iter().find(|note| note.contains("no GPU") || note.contains("was not measured"));
        told.cloned().unwrap_or_else(|| "no device but the CPU was measured".to_owned())
    }
}

/// What several scans say together.
///
/// ```
/// use breakeven_report::{Device, Row, Scan, Stats, compare::Comparison};
/// let scan = |ns: u64| Scan {
///     devices: vec![Device::cpu("Xeon")],
///     rows: vec![Row {
///         op: "exp".into(), class: "map".into(), size: 1000, unit: "elements".into(), device: "cpu".into(),
///         stats: Stats::of(&[ns]).unwrap_or_default(),
///     }],
///     ..Scan::default()
/// };
/// let comparison = Comparison::of(vec![("old".into(), scan(900)), ("new".into(), scan(300))])?;
/// assert_eq!(comparison.fastest[0].best.side, "new");
/// assert_eq!(comparison.ratios[0].words(), "new is 3.0x as fast as old");
/// # Ok::<(), breakeven_report::compare::CompareError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// [`VERSION`].
    pub version: u32,
    /// What is compared, in one line.
    pub about: String,
    /// What the sides differ in.
    pub differences: Vec<Difference>,
    /// What the rows contradict; nothing, hopefully.
    pub contradictions: Vec<Contradiction>,
    /// Every claim, tested against the rows.
    pub claims: Vec<Checked>,
    /// For each op, from which size on each side's devices pay.
    pub crossovers: Vec<SideBySide>,
    /// Who is the fastest at each size that two sides or more measured.
    pub fastest: Vec<Fastest>,
    /// Each pair of sides over the rows that both have.
    pub ratios: Vec<PairRatio>,
    /// What only some sides have.
    pub only: Vec<Only>,
    /// What is compared.
    pub sides: Vec<Side>,
}

impl Comparison {
    /// Compares scans in this order. Labels that are there twice are numbered.
    pub fn of(scans: Vec<(String, Scan)>) -> Result<Comparison, CompareError> {
        if scans.len() < 2 {
            return Err(CompareError::TooFew { found: scans.len() });
        }
        let mut sides: Vec<Side> = Vec::new();
        for (label, scan) in scans {
            let label = unused(&sides, if label.is_empty() { "side" } else { &label });
            if scan.rows.is_empty() {
                return Err(CompareError::Empty { label });
            }
            sides.push(Side { label, gpu_missing: scan.devices.iter().all(Device::is_cpu), scan });
        }
        let joined = join::join(&sides);
        let (claims, contradictions) = contradictions::find(&sides, &joined);
        Ok(Comparison {
            version: VERSION,
            about: differences::about(&sides),
            differences: differences::find(&sides),
            contradictions,
            claims,
            crossovers: pairs::crossovers(&sides, &joined),
            fastest: pairs::fastest(&sides, &joined),
            ratios: pairs::ratios(&sides, &joined),
            only: pairs::only(&sides, &joined),
            sides,
        })
    }

    /// What is to be said if no size of any operation was measured on two sides, so that no times were compared.
    ///
    /// ```
    /// use breakeven_report::{Row, Scan, Stats, compare::Comparison};
    /// let row = |op: &str| Row { op: op.into(), size: 9, device: "cpu".into(), stats: Stats::partial(5), ..Row::default() };
    /// let scan = |op: &str| Scan { rows: vec![row(op)], ..Scan::default() };
    /// let comparison = Comparison::of(vec![("old".into(), scan("add")), ("new".into(), scan("mul"))])?;
    /// assert!(comparison.nothing_in_common().unwrap_or_default().contains("old has add; new has mul"));
    /// # Ok::<(), breakeven_report::compare::CompareError>(())
    /// ```
    pub fn nothing_in_common(&self) -> Option<String> {
        let ops = |side: &Side| {
            let mut ops: Vec<&str> = Vec::new();
            side.scan.rows.iter().for_each(|row| ops.extend(Some(&*row.op).filter(|op| !ops.contains(op))));
            let more = if ops.len() > 3 { ", .." } else { "" };
            format!("{} has {}{more}", side.label, ops.iter().take(3).copied().collect::<Vec<_>>().join(", "))
        };
        let sides: Vec<String> = self.sides.iter().map(ops).collect();
        self.fastest.is_empty().then(|| {
            format!(
                "NO TIMES WERE COMPARED: no size of any operation was measured on two sides ({}); measure the same sizes, \
                 or name the operation of a CSV with `--op NAME` or a line `# op: NAME`",
                sides.join("; ")
            )
        })
    }

    /// Writes `compare.json`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("structs of text and numbers always become JSON");
        text.push('\n');
        text
    }
}

/// The label, with a number where another side has it already.
fn unused(sides: &[Side], label: &str) -> String {
    let is_free = |wish: &String| sides.iter().all(|side| side.label != *wish);
    let numbered = (2..).map(|number| format!("{label} {number}"));
    std::iter::once(label.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
