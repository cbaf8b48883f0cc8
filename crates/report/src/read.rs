//! `scan.json`: a scan enters or leaves as text. A file that some other version wrote, or that can't come from
//! measurements, is refused with what to do about it: better no report than a wrong one.

use crate::scan::{Scan, VERSION};
use crate::stats::Stats;
use serde::Deserialize;
use std::collections::HashSet;

/// Why a text is no scan.
///
/// ```
/// use breakeven_report::{ReadError, Scan};
/// let error = Scan::from_json(r#"{"version": 99}"#).unwrap_err();
/// assert!(matches!(error, ReadError::Version { found: 99, .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No JSON, or not the fields of a scan.
    #[error("this is no scan.json: {0}; `breakeven scan -o DIR` writes one")]
    Form(#[from] serde_json::Error),
    /// Written by some other version.
    #[error(
        "this scan.json has version {found}, but version {expected} is read here: run `breakeven scan -o DIR` again, \
         or read it with the Breakeven that wrote it"
    )]
    Version {
        /// What it has.
        found: u64,
        /// What it must have.
        expected: u32,
    },
    /// Nothing was measured.
    #[error(
        "this scan.json has no rows: nothing was measured, or the scan was interrupted before its first result; \
         run `breakeven scan -o DIR` again"
    )]
    Empty,
    /// A row that can't come from a measurement.
    #[error(
        "row {row} of this scan.json ({what}) {why}: the file was changed or damaged; run `breakeven scan -o DIR` again"
    )]
    Row {
        /// Which one, counted from 0.
        row: usize,
        /// Its op, size and device.
        what: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Some other part that can't come from a scan.
    #[error("{what} of this scan.json {why}: the file was changed or damaged; run `breakeven scan -o DIR` again")]
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

impl Scan {
    /// Reads `scan.json`.
    ///
    /// ```
    /// use breakeven_report::Scan;
    /// let error = Scan::from_json("hello").unwrap_err();
    /// assert!(error.to_string().contains("`breakeven scan -o DIR` writes one"));
    /// ```
    pub fn from_json(text: &str) -> Result<Scan, ReadError> {
        let Head { version } = serde_json::from_str(text)?;
        if version != u64::from(VERSION) {
            return Err(ReadError::Version { found: version, expected: VERSION });
        }
        let scan: Scan = serde_json::from_str(text)?;
        scan.check()?;
        Ok(scan)
    }

    /// Writes `scan.json`.
    ///
    /// ```
    /// use breakeven_report::Scan;
    /// assert!(Scan::default().to_json().starts_with("{\n  \"version\": 1,"));
    /// ```
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("structs of text and numbers always become JSON");
        text.push('\n');
        text
    }

    /// Can this come from measurements?
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        let mut ids = HashSet::new();
        for (number, device) in self.devices.iter().enumerate() {
            let what = format!("device {number}");
            if device.id.is_empty() {
                return Err(ReadError::Part { what, why: "has no id" });
            }
            if !ids.insert(device.id.as_str()) {
                return Err(ReadError::Part { what: format!("{what} (`{}`)", device.id), why: "is there twice" });
            }
        }
        if self.devices.iter().filter(|device| device.is_cpu()).count() > 1 {
            return Err(ReadError::Part { what: "the list of devices".to_owned(), why: "has more than one CPU" });
        }
        if self.rows.is_empty() {
            return Err(ReadError::Empty);
        }
        let mut seen = HashSet::new();
        for (number, row) in self.rows.iter().enumerate() {
            let why = match mistake(&row.stats) {
                _ if row.op.is_empty() => "has no op",
                _ if row.size == 0 => "has size 0",
                Some(why) => why,
                None if !ids.contains(row.device.as_str()) => "names a device that is not in the list of devices",
                None if !seen.insert((&row.op, &row.class, &row.unit, row.size, &row.device)) => "is there twice",
                None => continue,
            };
            let what = format!("`{}` at {} on `{}`", row.op, row.size, row.device);
            return Err(ReadError::Row { row: number, what, why });
        }
        self.check_transfers(&ids)?;
        let named = self.overheads.iter().map(|o| ("overhead", &o.device));
        for (what, device) in named.chain(self.fused.iter().map(|f| ("fused entry", &f.device))) {
            if !ids.contains(device.as_str()) {
                let why = "names a device that is not in the list of devices";
                return Err(ReadError::Part {
                    what: format!("an {what} (`{device}`)").replace("an fused", "a fused"),
                    why,
                });
            }
        }
        if !self.how.seconds.is_finite() || self.how.seconds < 0.0 {
            return Err(ReadError::Part { what: "`how.seconds`".to_owned(), why: "is no time" });
        }
        Ok(())
    }

    /// Can the transfers come from measurements on these devices?
    fn check_transfers(&self, ids: &HashSet<&str>) -> Result<(), ReadError> {
        let mut seen = HashSet::new();
        for transfer in &self.transfers {
            let why = match mistake(&transfer.stats) {
                _ if transfer.bytes == 0 => "moves 0 bytes",
                Some(why) => why,
                None if !ids.contains(transfer.device.as_str()) => "names a device that is not in the list of devices",
                None if !seen.insert((&transfer.device, &transfer.direction, &transfer.way, transfer.bytes)) => {
                    "is there twice"
                }
                None => continue,
            };
            let (direction, way, device) = (&transfer.direction, &transfer.way, &transfer.device);
            let what = format!("a transfer (`{direction}` `{way}` of {} bytes on `{device}`)", transfer.bytes);
            return Err(ReadError::Part { what, why });
        }
        Ok(())
    }
}

/// What samples can't say.
pub(crate) fn mistake(s: &Stats) -> Option<&'static str> {
    // Whoever knows the extremes has seen the samples.
    let seen = s.samples > 0 || s.min_ns > 0 || s.max_ns > 0;
    let known = [s.min_ns, s.p10_ns, s.median_ns, s.p90_ns, s.max_ns].into_iter().filter_map(|ns| s.known(ns));
    match () {
        () if s.samples == 0 && seen => Some("has no samples"),
        () if s.median_ns == 0 => Some("takes 0 ns"),
        () if !known.is_sorted() => Some("has percentiles that are not in order"),
        () if s.interval_ns.is_some_and(|(low, high)| !(low..=high).contains(&s.median_ns)) => {
            Some("has a median outside of its interval")
        }
        () => None,
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
