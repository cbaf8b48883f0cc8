//! What `breakeven bench` measured, as plain values: the measuring fills them, everything else of this module reads them.
//! As JSON they are `bench.json` and a baseline. Fields that are not known are ignored, so that an older Breakeven reads
//! what a newer one of the same version wrote.

mod baseline;
mod csv;
mod gate;
mod html;
mod interval;
mod json;
mod layout;
mod level;
mod lists;
mod markdown;
mod missed;
mod null;
mod spread;
mod table;
pub(crate) mod words;

#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod formats_tests;

pub use baseline::{Foreign, matches};
pub use csv::csv;
pub use gate::{BASELINE_PASSES, Change, ChangeKind, Gate, ROUNDS};
pub use html::html;
pub use interval::Ratio;
pub use json::{ReadError, document};
pub use level::Level;
pub use markdown::markdown;
pub use missed::Expected;
pub use table::{gate_table, table};

use crate::scan::{Device, Machine};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};

/// The version of `bench.json` that this crate writes and reads. It goes up when a field changes its meaning.
pub const VERSION: u32 = 1;

/// From this part of the median on, what is left uncertain of it (half of its interval) is shown as noise.
pub const NOISY: f64 = 0.05;

/// Everything that a run of the suite measured.
///
/// ```
/// use breakeven_report::bench::{Bench, Group};
/// let bench = Bench { groups: vec![Group { name: "unary".into(), ..Group::default() }], ..Bench::default() };
/// assert!(bench.groups[0].is_sound());
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bench {
    /// [`VERSION`].
    pub version: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// The CPU and every adapter that was measured.
    pub devices: Vec<Device>,
    /// Devices that were asked for, or are usually there, and were not.
    #[serde(default)]
    pub missing: Vec<Missing>,
    /// The same code against itself, measured first; `None` if that was not done.
    #[serde(default)]
    pub null: Option<Null>,
    /// In the order of the suite, which is not the order in which they ran.
    pub groups: Vec<Group>,
    /// How it was measured.
    pub how: How,
}

impl Default for Bench {
    fn default() -> Bench {
        Bench {
            version: VERSION,
            machine: Machine::default(),
            devices: Vec::new(),
            missing: Vec::new(),
            null: None,
            groups: Vec::new(),
            how: How::default(),
        }
    }
}

/// A device that is not there.
///
/// ```
/// let missing = breakeven_report::bench::Missing { device: "gpu:1".into(), why: "no driver".into() };
/// assert_eq!(missing.device, "gpu:1");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Missing {
    /// Its id, or the interface through which it would be reached.
    pub device: String,
    /// Why it was not measured.
    pub why: String,
}

/// The same code twice, as if it were two: what this machine makes of no difference.
///
/// ```
/// use breakeven_report::bench::{Null, NullCase};
/// let (first, second) = (vec![vec![100, 101]], vec![vec![100, 102]]);
/// let case = NullCase { case: "exp".into(), device: "cpu".into(), first, second };
/// let null = Null { cases: vec![case], ..Null::default() };
/// assert_eq!(null.cases.len(), 1);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Null {
    /// What was run.
    pub cases: Vec<NullCase>,
    /// Did it show a difference where there is none?
    pub differs: bool,
    /// Differences below this part of a time can't be told here: 0.03 is 3 %.
    pub floor: f64,
    /// Some of it was taken while the machine was busy with something else.
    #[serde(default)]
    pub loaded: bool,
}

/// One code against itself.
///
/// ```
/// assert!(breakeven_report::bench::NullCase::default().first.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NullCase {
    /// What was run.
    pub case: String,
    /// The device's id.
    #[serde(default)]
    pub device: String,
    /// Samples in nanoseconds, one list for each pass.
    pub first: Vec<Vec<u64>>,
    /// The same once more, taken in turns with the first.
    pub second: Vec<Vec<u64>>,
}

/// A group of the suite.
///
/// ```
/// use breakeven_report::bench::{Group, Trouble, TroubleKind};
/// let trouble = Trouble { kind: TroubleKind::Hung, pass: 0, device: Some("gpu:0".into()), why: "60 s without a row".into() };
/// let group = Group { name: "matmul".into(), troubles: vec![trouble], ..Group::default() };
/// assert!(!group.is_sound());
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// What went wrong; nothing, hopefully.
    #[serde(default)]
    pub troubles: Vec<Trouble>,
    /// What the machine was doing otherwise before each pass.
    #[serde(default)]
    pub surroundings: Vec<Surroundings>,
    /// What was left out on purpose in some pass, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// How long it took, all passes together.
    pub seconds: f64,
    /// The measurements: in the group's order of cases, then of devices.
    pub rows: Vec<Row>,
}

impl Group {
    /// Did nothing go wrong?
    pub fn is_sound(&self) -> bool {
        self.troubles.is_empty()
    }
}

/// A case that a group did not measure, because it would take too long or too much memory.
///
/// ```
/// use breakeven_report::bench::LeftOut;
/// let left = LeftOut { case: "exp".into(), size: 4096, unit: "elements".into(), why: "no time".into(), device: None };
/// assert_eq!(left.name(), "exp, 4096 elements");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LeftOut {
    /// The case.
    pub case: String,
    /// Its size.
    pub size: u64,
    /// What the size counts.
    pub unit: String,
    /// The device; `None` is all of them.
    #[serde(default)]
    pub device: Option<String>,
    /// Why.
    pub why: String,
}

impl LeftOut {
    /// The case and its size.
    pub fn name(&self) -> String {
        name(&self.case, self.size, &self.unit)
    }

    /// Is it the same case on the same device, for whatever reason?
    pub fn is_same(&self, other: &LeftOut) -> bool {
        let of = |left: &LeftOut| (left.case.clone(), left.size, left.unit.clone(), left.device.clone());
        of(self) == of(other)
    }

    /// Would this row have been it?
    fn is_of(&self, row: &Row) -> bool {
        let device = self.device.as_ref().is_none_or(|device| *device == row.device);
        device && (&self.case, self.size, &self.unit) == (&row.case, row.size, &row.unit)
    }
}

/// Something that went wrong in a group.
///
/// ```
/// use breakeven_report::bench::{Trouble, TroubleKind};
/// let trouble = Trouble { kind: TroubleKind::Crashed, pass: 1, device: None, why: "killed by signal 9".into() };
/// assert_eq!(trouble.kind.word(), "crashed");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Trouble {
    /// What kind of trouble.
    pub kind: TroubleKind,
    /// In which pass, from 0.
    pub pass: u32,
    /// The device that it is about, if it is about one.
    #[serde(default)]
    pub device: Option<String>,
    /// What is known about it.
    pub why: String,
}

/// What can go wrong.
///
/// ```
/// assert_eq!(breakeven_report::bench::TroubleKind::Leftover.word(), "left something behind");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// A case failed with an error.
    Failed,
    /// Nothing came of its process any more, which was ended.
    Hung,
    /// Its process ended by itself.
    Crashed,
    /// A device was lost.
    DeviceLost,
    /// Memory, pending work or a health that were not so before.
    Leftover,
    /// There was no time for all of it.
    OutOfTime,
}

impl TroubleKind {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            TroubleKind::Failed => "failed",
            TroubleKind::Hung => "hung",
            TroubleKind::Crashed => "crashed",
            TroubleKind::DeviceLost => "lost the device",
            TroubleKind::Leftover => "left something behind",
            TroubleKind::OutOfTime => "ran out of time",
        }
    }
}

/// What the machine was doing otherwise, as far as that is visible.
///
/// ```
/// assert!(!breakeven_report::bench::Surroundings::default().loaded);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Surroundings {
    /// The part of all cores' time that others took, from 0 to 1.
    pub busy: Option<f64>,
    /// The part of it that the host of this virtual machine took.
    #[serde(default)]
    pub stolen: Option<f64>,
    /// Memory that was available.
    pub free_bytes: Option<u64>,
    /// Degrees Celsius of the hottest sensor.
    pub celsius: Option<f64>,
    /// How long calm was waited for.
    pub waited_seconds: f64,
    /// It did not become calm: rows of this pass were taken under load.
    pub loaded: bool,
}

/// One case on one device.
///
/// ```
/// use breakeven_report::bench::Row;
/// let row = Row { case: "exp".into(), size: 100_000, unit: "elements".into(), device: "cpu".into(), ..Row::default() };
/// assert_eq!(row.name(), "exp, 100 k elements");
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// What was run.
    pub case: String,
    /// How much of it; 0 if that means nothing here.
    pub size: u64,
    /// What `size` counts.
    pub unit: String,
    /// The device's id.
    pub device: String,
    /// Samples in nanoseconds, one list for each pass: a pass is a process of its own, unless everything ran in one.
    pub passes: Vec<Vec<u64>>,
    /// What all samples say.
    pub stats: Stats,
    /// Where the median lies, 19 times of 20, in nanoseconds.
    pub interval: (u64, u64),
    /// Some of it was taken while the machine was busy with something else.
    #[serde(default)]
    pub loaded: bool,
    /// How many bytes one run moves, where that is what counts.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What copying as many bytes in the host's memory took, in turns with it.
    #[serde(default)]
    pub memcpy_ns: Option<u64>,
    /// The case that it is to be read beside, such as the same work in one call.
    #[serde(default)]
    pub beside: Option<String>,
}

impl Row {
    /// The case and its size.
    pub fn name(&self) -> String {
        name(&self.case, self.size, &self.unit)
    }

    /// Is more than [`NOISY`] of the median uncertain?
    pub fn is_noisy(&self) -> bool {
        let (low, high) = self.interval;
        high.saturating_sub(low) as f64 / 2.0 > NOISY * self.stats.median_ns as f64
    }
}

/// A case and its size; 0 is none.
fn name(case: &str, size: u64, unit: &str) -> String {
    match (size, unit) {
        (0, _) => case.to_owned(),
        (_, "bytes") => format!("{case}, {}", crate::words::bytes(size)),
        _ => format!("{case}, {}", crate::words::sized(size, unit)),
    }
}

/// How a run of the suite was made.
///
/// ```
/// let how = breakeven_report::bench::How { seed: 7, order: vec!["unary".into()], ..Default::default() };
/// assert_eq!(how.order, ["unary"]);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct How {
    /// How many samples of each were taken in a pass, at most.
    pub samples: u32,
    /// How often each group ran.
    pub passes: u32,
    /// Fewer cases and samples than usual.
    pub quick: bool,
    /// All groups ran in one process.
    pub in_process: bool,
    /// What the order was made from.
    pub seed: u64,
    /// The groups ran in the order in which they were given, not in one that was made from the seed.
    #[serde(default)]
    pub order_given: bool,
    /// The groups in the order in which they ran, all passes.
    pub order: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// It was stopped before everything was measured.
    pub interrupted: bool,
    /// When.
    pub date: String,
    /// What else is to be known.
    #[serde(default)]
    pub notes: Vec<String>,
}
