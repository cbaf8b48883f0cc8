//! The rows of a scan as curves: rows enter, one entry for each op with a line for each device leaves. Lines are
//! straight between sizes on logarithmic axes, which is how costs behave: a constant, then a power of the size.

use crate::scan::{Row, Scan};
use crate::stats::Stats;

/// The classes in the order in which they are shown; others follow.
const CLASSES: [&str; 6] = ["map", "reduce", "rows", "scan", "contract", "many"];

/// One op, measured at some sizes on some devices.
pub(crate) struct Curves<'s> {
    pub op: &'s str,
    pub class: &'s str,
    pub unit: &'s str,
    /// One for each device that has measurements, in the scan's order of devices.
    pub lines: Vec<Line<'s>>,
}

/// One device's times of an op, by size.
pub(crate) struct Line<'s> {
    /// The number of the device in the scan.
    pub device: usize,
    /// Sizes go up.
    pub points: Vec<(u64, &'s Stats)>,
}

impl Line<'_> {
    /// What was measured at this very size.
    pub fn at(&self, size: u64) -> Option<&Stats> {
        self.points.binary_search_by_key(&size, |p| p.0).ok().map(|found| self.points[found].1)
    }

    /// The logarithm of the median between measured sizes; `None` beyond them.
    pub fn ln_ns(&self, ln_size: f64) -> Option<f64> {
        let after = self.points.iter().position(|p| ln(p.0) >= ln_size - 1e-9)?;
        let (x1, y1) = (ln(self.points[after].0), ln(self.points[after].1.median_ns));
        if x1 <= ln_size + 1e-9 {
            return Some(y1);
        }
        let before = self.points.get(after.checked_sub(1)?)?;
        let (x0, y0) = (ln(before.0), ln(before.1.median_ns));
        Some(y0 + (y1 - y0) * (ln_size - x0) / (x1 - x0))
    }
}

impl Curves<'_> {
    /// Every size that any device was measured at, going up.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.lines.iter().flat_map(|line| line.points.iter().map(|p| p.0)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// The natural logarithm of a size or a time. A zero, which no measurement gives, counts as one.
pub(crate) fn ln(value: u64) -> f64 {
    (value.max(1) as f64).ln()
}

/// The curves of every op, grouped by class, otherwise in the order of the rows. Rows of devices that the scan does not
/// tell about are left out.
pub(crate) fn curves(scan: &Scan) -> Vec<Curves<'_>> {
    let mut all: Vec<Curves> = Vec::new();
    for row in &scan.rows {
        let Some(device) = scan.devices.iter().position(|d| d.id == row.device) else { continue };
        let curves = match all.iter().position(|c| is_of(c, row)) {
            Some(known) => &mut all[known],
            None => {
                all.push(Curves { op: &row.op, class: &row.class, unit: &row.unit, lines: Vec::new() });
                let last = all.len() - 1;
                &mut all[last]
            }
        };
        match curves.lines.iter_mut().find(|line| line.device == device) {
            Some(line) => line.points.push((row.size, &row.stats)),
            None => curves.lines.push(Line { device, points: vec![(row.size, &row.stats)] }),
        }
    }
    for curves in &mut all {
        curves.lines.sort_by_key(|line| line.device);
        for line in &mut curves.lines {
            line.points.sort_by_key(|p| p.0);
            line.points.dedup_by_key(|p| p.0);
        }
    }
    all.sort_by_key(|c| rank(c.class));
    all
}

/// Where a class stands among the others.
pub(crate) fn rank(class: &str) -> (usize, &str) {
    (CLASSES.iter().position(|&known| known == class).unwrap_or(CLASSES.len()), class)
}

/// Is this row a point of these curves? One op may be measured in several ways.
fn is_of(curves: &Curves<'_>, row: &Row) -> bool {
    (curves.op, curves.class, curves.unit) == (row.op.as_str(), row.class.as_str(), row.unit.as_str())
}
