//! `bench.json` and baselines: a run of the suite enters or leaves as text. A file that some other version wrote, or that
//! can't come from measurements, is refused with what to do about it: a gate must not be passed by a damaged baseline.

use super::layout::Lines;
use super::{Bench, Gate, Group, Row, VERSION};
use crate::read::mistake;
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Why a text is no run of the suite.
///
/// ```
/// use breakeven_report::bench::{Bench, ReadError};
/// let error = Bench::from_json(r#"{"version": 99}"#).unwrap_err();
/// assert!(matches!(error, ReadError::Version { found: 99, .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No JSON, or not the fields of a run.
    #[error("this is no bench.json: {0}; `breakeven bench --save-baseline NAME` writes one")]
    Form(#[from] serde_json::Error),
    /// Written by some other version.
    #[error(
        "this bench.json has version {found}, but version {expected} is read here: run \
         `breakeven bench --save-baseline NAME` again, or read it with the Breakeven that wrote it"
    )]
    Version {
        /// What it has.
        found: u64,
        /// What it must have.
        expected: u32,
    },
    /// Nothing was measured.
    #[error(
        "this bench.json has no rows: nothing was measured, or the run was interrupted before its first result; run \
         `breakeven bench --save-baseline NAME` again"
    )]
    Empty,
    /// Some part that can't come from a run.
    #[error(
        "{what} of this bench.json {why}: the file was changed or damaged; run `breakeven bench --save-baseline NAME` \
         again"
    )]
    Part {
        /// Which part.
        what: String,
        /// What is wrong.
        why: &'static str,
    },
}

/// The only field that is read before the version is known.
#[derive(Deserialize)]
struct Head {
    version: u64,
}

/// What `--json` prints: a run and, beside a baseline, what changed.
#[derive(Serialize)]
struct Document<'b> {
    #[serde(flatten)]
    bench: &'b Bench,
    gate: Option<&'b Gate>,
}

/// `bench.json` with what changed since a baseline in its last field, `gate`. Whoever reads it as a run ignores that.
///
/// ```
/// use breakeven_report::bench::{Bench, Gate, document};
/// assert!(document(&Bench::default(), &Gate { limit: 0.1, ..Gate::default() }).contains("\"limit\": 0.1"));
/// ```
pub fn document(bench: &Bench, gate: &Gate) -> String {
    text(&Document { bench, gate: Some(gate) })
}

fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut out = serde_json::Serializer::with_formatter(&mut bytes, Lines::default());
    value.serialize(&mut out).expect("structs of text and numbers always become JSON");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is text")
}

impl Bench {
    /// Reads `bench.json` or a baseline.
    ///
    /// ```
    /// use breakeven_report::bench::Bench;
    /// let error = Bench::from_json("hello").unwrap_err();
    /// assert!(error.to_string().contains("`breakeven bench --save-baseline NAME` writes one"));
    /// ```
    pub fn from_json(text: &str) -> Result<Bench, ReadError> {
        let Head { version } = serde_json::from_str(text)?;
        if version != u64::from(VERSION) {
            return Err(ReadError::Version { found: version, expected: VERSION });
        }
        let bench: Bench = serde_json::from_str(text)?;
        bench.check()?;
        Ok(bench)
    }

    /// Writes `bench.json`, which is also what a baseline is.
    ///
    /// ```
    /// use breakeven_report::bench::Bench;
    /// assert!(Bench::default().to_json().starts_with("{\n  \"version\": 1,"));
    /// ```
    pub fn to_json(&self) -> String {
        text(self)
    }

    /// Can this come from measurements?
    fn check(&self) -> Result<(), ReadError> {
        let wrong = |what: String, why| Err(ReadError::Part { what, why });
        let mut ids = HashSet::new();
        for (number, device) in self.devices.iter().enumerate() {
            if device.id.is_empty() {
                return wrong(format!("device {number}"), "has no id");
            }
            if !ids.insert(device.id.as_str()) {
                return wrong(format!("device {number} (`{}`)", device.id), "is there twice");
            }
        }
        if self.devices.iter().filter(|device| device.is_cpu()).count() > 1 {
            return wrong("the list of devices".to_owned(), "has more than one CPU");
        }
        let times = self.groups.iter().map(|group| (format!("`seconds` of group `{}`", group.name), group.seconds));
        for (what, seconds) in times.chain([("`how.seconds`".to_owned(), self.how.seconds)]) {
            if !seconds.is_finite() || seconds < 0.0 {
                return wrong(what, "is no time");
            }
        }
        if self.null.as_ref().is_some_and(|null| !null.floor.is_finite() || null.floor < 0.0) {
            return wrong("`null.floor`".to_owned(), "is no part of a time");
        }
        if self.groups.iter().all(|group| group.rows.is_empty()) {
            return Err(ReadError::Empty);
        }
        let mut names = HashSet::new();
        for group in &self.groups {
            if group.name.is_empty() || !names.insert(group.name.as_str()) {
                return wrong(format!("group `{}`", group.name), "has no name or is there twice");
            }
            check_group(group, &ids)?;
        }
        Ok(())
    }
}

/// Can the rows come from measurements on these devices?
fn check_group(group: &Group, ids: &HashSet<&str>) -> Result<(), ReadError> {
    let mut seen = HashSet::new();
    for row in &group.rows {
        let (low, high) = row.interval;
        let why = match mistake(&row.stats) {
            _ if row.case.is_empty() => "has no case",
            Some(why) => why,
            None if !ids.contains(row.device.as_str()) => "names a device that is not in the list of devices",
            None if Some(row.stats) != of_all(row) => "has statistics that are not those of its samples",
            None if low > row.stats.median_ns || high < row.stats.median_ns => "has an interval without its median",
            None if !seen.insert((&row.case, row.size, &row.unit, &row.device)) => "is there twice",
            None => continue,
        };
        let what = format!("`{}` of group `{}` on `{}`", row.name(), group.name, row.device);
        return Err(ReadError::Part { what, why });
    }
    Ok(())
}

fn of_all(row: &Row) -> Option<Stats> {
    Stats::of(&row.passes.concat())
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
