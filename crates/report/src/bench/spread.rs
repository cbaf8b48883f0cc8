//! How far the passes of a run differ among themselves: a run enters, what is left uncertain of a row of so many passes
//! leaves.
//!
//! Every run is a null test of its own: one half of a row's passes against the other half shows what nothing makes. One row
//! has few passes, but all rows of a device together have many.

use super::interval::median;
use super::{Bench, Level, Row};
use std::collections::HashMap;

/// A change has to be so many times as large. By simulation (see the tests of the gate) unchanged code is then called
/// slower in 2 of 100 runs of 60 rows where processes differ by 10 %, and it is no hindrance where they differ by 4 %.
const TIMES: f64 = 3.5;
/// A device with fewer comparisons of halves than this is judged by all devices.
const ENOUGH: usize = 24;
/// What one pass differs by where no row has two of them, so that nobody measured it.
const UNKNOWN: f64 = 0.04;
/// The standard deviation by the median of absolute values.
const BY_MEDIAN: f64 = 1.4826;

/// How far one pass of a run is off, as a part of its time, for each device.
pub(super) struct Spread {
    level: Level,
    devices: HashMap<String, f64>,
    all: f64,
}

impl Spread {
    /// The part by which a row must change so that it is not the passes' own doing: what is usual, or by how much every
    /// other of its own passes differs from those between, if that is more.
    pub fn of_row(&self, row: &Row) -> f64 {
        let one = self.devices.get(&row.device).unwrap_or(&self.all);
        let usual = TIMES * one / (row.passes.len().max(1) as f64).sqrt();
        let times = self.level.pass_times(&row.passes);
        let every_other =
            |first| self.level.of_half(&mut times.iter().copied().skip(first).step_by(2).collect::<Vec<_>>());
        let own = every_other(0).zip(every_other(1)).map_or(0.0, |(a, b)| (a / b).ln().abs());
        usual.max(own)
    }

    /// By how much one pass is off on all devices.
    pub fn all(&self) -> f64 {
        self.all
    }
}

/// The spread of a run's levels.
pub(super) fn of(bench: &Bench, level: Level) -> Spread {
    let mut devices: HashMap<String, Vec<f64>> = HashMap::new();
    let mut all = Vec::new();
    let rows = || bench.groups.iter().flat_map(|group| &group.rows);
    // What was measured again and again tells more of how far its level is off than what few passes have seen.
    let most = rows().map(|row| row.passes.len()).max().unwrap_or(0);
    for row in rows().filter(|row| 2 * row.passes.len() >= most) {
        let found = halves(level, &row.passes);
        all.extend(&found);
        devices.entry(row.device.clone()).or_default().extend(found);
    }
    devices.retain(|_, found| found.len() >= ENOUGH);
    let devices = devices.into_iter().map(|(device, mut found)| (device, typical(&mut found))).collect();
    Spread { level, devices, all: if all.is_empty() { UNKNOWN } else { typical(&mut all) } }
}

fn typical(found: &mut [f64]) -> f64 {
    BY_MEDIAN * median(found)
}

/// What one pass would have to be off to explain the difference between two halves of them, for each way to halve them
/// that keeps neighbours together.
fn halves(level: Level, passes: &[Vec<u64>]) -> Vec<f64> {
    let mut turned = level.pass_times(passes);
    let half = turned.len() / 2;
    let mut found = Vec::new();
    for _ in 0..turned.len() {
        if let [Some(a), Some(b)] =
            [&turned[..half], &turned[half..2 * half]].map(|half| level.of_half(&mut half.to_vec()))
        {
            found.push((a / b).ln().abs() * (half as f64 / 2.0).sqrt());
        }
        turned.rotate_left(1);
    }
    found
}
