//! What changed since a baseline: two runs of the suite enter, one [`Change`] for each row and a verdict leave.
//!
//! A row counts as slower if three things hold:
//!
//! 1. It takes longer than the baseline by more than the limit. What is compared is the [`Level`] of both sides, of the two
//!    kinds the one by which the passes of these runs differ less among themselves ([`Gate::level`]).
//! 2. The difference is more than what these two runs can't tell ([`Change::needed`]): more than the device's floor in
//!    either null test, more than every other of the row's passes differs from those between, and three and a half times as
//!    much as the passes of each run's rows differ among themselves.
//! 3. At least 95 of 100 resamples of both sides' passes and samples say that it is slower.
//!
//! Passes are few and machines are noisy, so whoever measures asks again before that is believed. The protocol:
//!
//! - A baseline has [`BASELINE_PASSES`] passes or more: it can't be measured again when it is compared with.
//! - After the usual passes, [`Gate::of`] is asked. As long as there are [`Gate::suspects`], up to [`ROUNDS`] times, those
//!   groups run again, [`Gate::passes_again`] more passes each in new processes. Their samples are appended to the rows'
//!   `passes`, each row is settled ([`super::Row::settle`]), and [`Gate::of`] is asked anew.
//! - [`Gate::failed`] of the last one counts.
//!
//! Where the fastest runs are compared, a change that leaves them as fast as they were, such as one that has to wait now and
//! then, is not seen: medians and their intervals are in the table of the run.

use super::{Bench, Expected, Level, Ratio, Row, missed, spread};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// How many passes a baseline has at least. On a shared machine whose passes' medians differed by 12 %, a row of 40 that took
/// 15 % longer was found 97 to 99 times of 100 with twelve passes and 89 to 95 times with eight.
pub const BASELINE_PASSES: u32 = 12;
/// How often groups that look slower are run again, at most. On the same machine unchanged code was called slower in one run
/// of ten after three rounds, and never after four or more.
pub const ROUNDS: u32 = 6;
/// A change counts if this part of all resamples agrees.
const SURE: f64 = 0.95;
/// Rows slower by more than this part of the limit are looked at again, however little these runs can tell: more passes
/// are what makes them tell more. A row that is really slower may look less so at first.
const SUSPECT: f64 = 0.5;
/// Rows that are surely slower by so many times what is needed are believed at once: at a limit of 10 % they take three times
/// as long.
const BEYOND_DOUBT: f64 = 20.0;

/// The case that copies bytes in the host's memory.
pub(super) const MEMCPY: &str = "memcpy";
/// What is slower beyond doubt is so in two passes at least: one may have had a neighbour all along.
const SURE_PASSES: usize = 2;

/// Two runs of the suite, compared.
///
/// ```
/// use breakeven_report::bench::{Bench, ChangeKind, Gate, Group, Row};
/// let run = |ns: u64| {
///     let mut row = Row { case: "exp".into(), device: "cpu".into(), passes: vec![vec![ns; 9]; 6], ..Row::default() };
///     row.settle();
///     Bench { groups: vec![Group { name: "unary".into(), rows: vec![row], ..Group::default() }], ..Bench::default() }
/// };
/// let gate = Gate::of(&run(1000), &run(1150), 0.10);
/// assert!(gate.failed());
/// assert_eq!((gate.changes[0].kind, gate.suspects()), (ChangeKind::Slower, vec!["unary"]));
/// assert!(!Gate::of(&run(1000), &run(1050), 0.10).failed());
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Gate {
    /// The part of a time by which a row may become slower: 0.1 is 10 %.
    pub limit: f64,
    /// How many more passes a group that looks slower should get in a round: a third of what the baseline has.
    pub passes_again: u32,
    /// By which measure times are compared.
    pub level: Level,
    /// In the order of the later run, then what only the baseline has. Rows that were not asked for are left out.
    pub changes: Vec<Change>,
}

/// What became of one row.
///
/// ```
/// use breakeven_report::bench::{Change, ChangeKind};
/// let change = Change { case: "exp".into(), size: 1024, unit: "elements".into(), kind: ChangeKind::Gone, ..Change::default() };
/// assert_eq!((change.name(), change.kind.word()), ("exp, 1024 elements".to_owned(), "gone"));
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Change {
    /// The row's group.
    pub group: String,
    /// The row's case.
    pub case: String,
    /// The row's size.
    pub size: u64,
    /// What the size counts.
    pub unit: String,
    /// The row's device.
    pub device: String,
    /// What became of it.
    pub kind: ChangeKind,
    /// What it took, by [`Gate::level`].
    pub before_ns: Option<u64>,
    /// What it takes now, by the same measure.
    pub after_ns: Option<u64>,
    /// The one by the other; `None` unless both were measured.
    pub ratio: Option<Ratio>,
    /// By which part of its time it had to change to count: the limit, or what these runs can't tell if that is more.
    pub needed: f64,
    /// In how many passes it was measured now.
    #[serde(default)]
    pub passes: usize,
    /// Why it was not measured.
    #[serde(default)]
    pub why: Option<String>,
}

/// What can become of a row.
///
/// ```
/// use breakeven_report::bench::ChangeKind;
/// assert!(ChangeKind::Unmeasured.fails() && !ChangeKind::Suspect.fails());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is slower by more than is allowed, and that is sure.
    Slower,
    /// It was in the baseline and asked for now, and was not measured: something went wrong, its device is missing, or there
    /// was no time for it.
    Unmeasured,
    /// It looks slower by more than the limit, but these runs can't tell.
    Suspect,
    /// It is faster by as much as a slower one would have to be slower.
    Faster,
    /// No change that counts.
    #[default]
    Same,
    /// It is not in the baseline.
    New,
    /// It is only in the baseline: a case that the suite does not have any more.
    Gone,
}

impl ChangeKind {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            ChangeKind::Slower => "slower",
            ChangeKind::Unmeasured => "not measured any more",
            ChangeKind::Suspect => "not sure",
            ChangeKind::Faster => "faster",
            ChangeKind::Same => "the same",
            ChangeKind::New => "new",
            ChangeKind::Gone => "gone",
        }
    }

    /// Does it make the gate fail?
    pub fn fails(self) -> bool {
        matches!(self, ChangeKind::Slower | ChangeKind::Unmeasured)
    }
}

impl Change {
    /// The case and its size.
    pub fn name(&self) -> String {
        super::name(&self.case, self.size, &self.unit)
    }

    /// Does it look slower, but not beyond doubt?
    fn is_suspect(&self, limit: f64) -> bool {
        let doubt = |r: Ratio| self.passes < SURE_PASSES || r.low <= 1.0 + BEYOND_DOUBT * self.needed;
        self.ratio.is_some_and(|r| looks_slower(r.ratio, limit) && doubt(r))
    }
}

/// The rule: what two runs can tell of each other.
struct Rule {
    limit: f64,
    level: Level,
    /// What the null tests can't tell, for each device.
    floors: HashMap<String, f64>,
    spreads: [spread::Spread; 2],
}

impl Rule {
    fn of(baseline: &Bench, now: &Bench, limit: f64) -> Rule {
        let spreads = Level::ALL.map(|level| [baseline, now].map(|bench| spread::of(bench, level)));
        let off = |spreads: &[spread::Spread; 2]| spreads[0].all().hypot(spreads[1].all());
        let [typical, fastest] = spreads;
        let (level, spreads) =
            if off(&fastest) < off(&typical) { (Level::Fastest, fastest) } else { (Level::Typical, typical) };
        let floor = |bench: &Bench, device: &str| bench.null.as_ref().map_or(0.0, |null| null.floor_of(device, level));
        let ids: HashSet<&str> = rows(now).map(|(key, _)| key.device).collect();
        let either = |id: &str| floor(baseline, id).max(floor(now, id));
        let floors = ids.into_iter().map(|id| (id.to_owned(), either(id))).collect();
        Rule { limit, level, floors, spreads }
    }

    /// By which part of its time a row must change to count.
    fn needed(&self, old: &Row, row: &Row) -> f64 {
        let [old, new] = [(&self.spreads[0], old), (&self.spreads[1], row)].map(|(spread, row)| spread.of_row(row));
        let floor = self.floors.get(&row.device).copied().unwrap_or_default();
        super::interval::rounded(self.limit.max(floor).max(old.hypot(new)))
    }

    /// What became of a row that both have; how sure that is will be asked only if it matters.
    fn kind(&self, ratio: f64, needed: f64, sure: impl FnOnce() -> f64) -> ChangeKind {
        let counts = |by: f64| ratio.ln().abs() > by.ln_1p();
        match ratio > 1.0 {
            slower if counts(needed) && sure() >= SURE => {
                if slower {
                    ChangeKind::Slower
                } else {
                    ChangeKind::Faster
                }
            }
            true if counts(self.limit) => ChangeKind::Suspect,
            _ => ChangeKind::Same,
        }
    }
}

fn looks_slower(ratio: f64, limit: f64) -> bool {
    ratio > 1.0 + SUSPECT * limit
}

impl Gate {
    /// Every row of both runs; `limit` is the part of its time by which a row may become slower. Of rows that only the
    /// baseline has, those are missed whose group had trouble or whose device is not there.
    pub fn of(baseline: &Bench, now: &Bench, limit: f64) -> Gate {
        Gate::expecting(baseline, now, limit, &|_, _| Expected::Unknown)
    }

    /// The same for whoever knows what was asked for: `expected` is asked about a group's rows that only the baseline has.
    pub fn expecting(baseline: &Bench, now: &Bench, limit: f64, expected: &dyn Fn(&str, &Row) -> Expected) -> Gate {
        let before: HashMap<Key<'_>, &Row> = rows(baseline).collect();
        let after: HashSet<Key<'_>> = rows(now).map(|(key, _)| key).collect();
        let rule = Rule::of(baseline, now, limit);
        let mut changes = Vec::new();
        for (key, row) in rows(now) {
            changes.push(match before.get(&key) {
                Some(old) => compared(key, old, row, &rule),
                None => Change {
                    kind: ChangeKind::New,
                    after_ns: level_ns(rule.level, row),
                    passes: row.passes.len(),
                    ..empty(key, limit)
                },
            });
        }
        let passes = rows(baseline).map(|(_, row)| row.passes.len()).max().unwrap_or(0);
        for (key, row) in rows(baseline).filter(|(key, _)| !after.contains(key)) {
            // What the baseline itself left out now and then is at the border of what there is time for.
            let usual = 2 * row.passes.len() >= passes;
            let expected = if usual { expected(key.group, row) } else { Expected::NotAsked };
            if let Some((kind, why)) = missed::verdict(now, key.group, row, expected) {
                changes.push(Change { kind, before_ns: level_ns(rule.level, row), why, ..empty(key, limit) });
            }
        }
        Gate { limit, passes_again: again(passes), level: rule.level, changes }
    }

    /// Did something become slower, or could something not be measured any more?
    pub fn failed(&self) -> bool {
        self.changes.iter().any(|change| change.kind.fails())
    }

    /// The groups with a row that looks slower, in order: those that should run again before it is believed. What is slower
    /// beyond doubt needs no second look.
    pub fn suspects(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for change in self.changes.iter().filter(|change| change.is_suspect(self.limit)) {
            if !groups.contains(&change.group.as_str()) {
                groups.push(&change.group);
            }
        }
        groups
    }

    /// Those of one kind: whatever changed most comes first.
    pub fn of_kind(&self, kind: ChangeKind) -> Vec<&Change> {
        let mut found: Vec<&Change> = self.changes.iter().filter(|change| change.kind == kind).collect();
        let size = |change: &Change| change.ratio.map_or(0.0, |r| r.ratio.ln().abs());
        found.sort_by(|a, b| size(b).total_cmp(&size(a)));
        found
    }
}

/// What tells rows apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'b> {
    group: &'b str,
    case: &'b str,
    size: u64,
    unit: &'b str,
    device: &'b str,
}

/// Every row that is judged: those that have samples, copies in the host's memory apart. They are there to be compared
/// with, and are no code of ours that could become slower.
fn rows(bench: &Bench) -> impl Iterator<Item = (Key<'_>, &Row)> {
    let all = bench.groups.iter().flat_map(|group| group.rows.iter().map(|row| (group.name.as_str(), row)));
    all.filter(|(_, row)| row.case != MEMCPY && row.passes.iter().any(|pass| !pass.is_empty()))
        .map(|(group, row)| (Key { group, case: &row.case, size: row.size, unit: &row.unit, device: &row.device }, row))
}

fn empty(key: Key<'_>, limit: f64) -> Change {
    Change {
        group: key.group.to_owned(),
        case: key.case.to_owned(),
        size: key.size,
        unit: key.unit.to_owned(),
        device: key.device.to_owned(),
        needed: limit,
        ..Change::default()
    }
}

/// A row that both have.
fn compared(key: Key<'_>, old: &Row, row: &Row, rule: &Rule) -> Change {
    let needed = rule.needed(old, row);
    let ratio = Ratio::of(rule.level, &old.passes, &row.passes);
    let [before_ns, after_ns] = [old, row].map(|row| level_ns(rule.level, row));
    let kind = ratio.map_or(ChangeKind::Same, |found| rule.kind(found.ratio, needed, || found.sure));
    let passes = row.passes.len();
    Change { kind, before_ns, after_ns, ratio, needed, passes, ..empty(key, rule.limit) }
}

/// What a row takes when nothing disturbs it.
fn level_ns(level: Level, row: &Row) -> Option<u64> {
    level.of(&row.passes).map(|ns| ns.round() as u64)
}

/// How many passes a group gets on top, beside a baseline of so many.
fn again(passes: usize) -> u32 {
    u32::try_from(passes.div_ceil(3).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod simulation;
