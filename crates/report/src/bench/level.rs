//! What a row takes when nothing disturbs it: its samples by passes enter, one time leaves.
//!
//! Load, heat and other tenants make a run slower, never faster; a change of the code makes the fast ones slower, too. So
//! both measures look at the fast side. Which of them tells less of nothing depends on the machine: where processes differ a
//! little and evenly, medians do; where neighbours come and go, nothing but the fastest runs is the same twice.

use super::interval::median;
use serde::{Deserialize, Serialize};

/// How times of many passes become one.
///
/// ```
/// use breakeven_report::bench::Level;
/// let passes = [vec![100, 120, 140], vec![90, 150, 160], vec![200, 210, 220]];
/// assert_eq!(Level::Typical.of(&passes), Some(135.0));
/// assert_eq!(Level::Fastest.of(&passes), Some(95.0));
/// assert_eq!(Level::Fastest.of(&[vec![]]), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The mean of the faster half of the passes' medians.
    #[default]
    Typical,
    /// The mean of the two fastest passes, by the fastest sample of each: one may have been lucky. On a machine whose
    /// typical levels differed by 5 % from one dozen passes to the next, these differed by 0.5 %.
    Fastest,
}

impl Level {
    /// Both.
    pub const ALL: [Level; 2] = [Level::Typical, Level::Fastest];

    /// Of samples by passes; `None` if there are none.
    pub fn of(self, passes: &[Vec<u64>]) -> Option<f64> {
        self.of_times(&mut self.pass_times(passes))
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Level::Typical => "the faster half of the passes' medians",
            Level::Fastest => "the two fastest passes, by the fastest sample of each",
        }
    }

    /// What stands for each pass that has samples.
    pub(super) fn pass_times(self, passes: &[Vec<u64>]) -> Vec<f64> {
        passes.iter().filter(|pass| !pass.is_empty()).map(|pass| self.pass_time(pass)).collect()
    }

    /// What stands for a pass, which has samples.
    pub(super) fn pass_time(self, pass: &[u64]) -> f64 {
        match self {
            Level::Typical => median(&mut pass.iter().map(|&ns| time(ns)).collect::<Vec<_>>()),
            Level::Fastest => pass.iter().min().map_or(1.0, |&ns| time(ns)),
        }
    }

    /// Of what stands for the passes; `None` if there are none.
    pub(super) fn of_times(self, times: &mut [f64]) -> Option<f64> {
        let count = match self {
            Level::Typical => times.len().div_ceil(2),
            Level::Fastest => times.len().min(2),
        };
        lowest(times, count)
    }

    /// The same of half of the passes, to be compared with the other half: of half as many, half as many are fast.
    pub(super) fn of_half(self, times: &mut [f64]) -> Option<f64> {
        let count = match self {
            Level::Typical => times.len().div_ceil(2),
            Level::Fastest => times.len().min(1),
        };
        lowest(times, count)
    }
}

/// The mean of the smallest `count`.
fn lowest(times: &mut [f64], count: usize) -> Option<f64> {
    times.sort_unstable_by(f64::total_cmp);
    (count > 0).then(|| times[..count].iter().sum::<f64>() / count as f64)
}

/// A time that can be divided by: a zero, which a coarse clock gives, counts as one.
pub(super) fn time(ns: u64) -> f64 {
    ns.max(1) as f64
}
