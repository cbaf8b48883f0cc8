//! What repeated runs say: samples in nanoseconds enter, their median, spread and extremes leave.

use serde::{Deserialize, Serialize};

/// From this part of the median on, the median absolute deviation counts as wide. On a quiet machine the runs of one
/// kernel stay within 1 to 3 %; at 10 % two devices that differ by a fifth can no longer be told apart by their
/// medians.
pub const WIDE: f64 = 0.10;

/// What the samples of one measurement say. Percentiles are samples themselves, never values between two of them.
///
/// ```
/// use breakeven_report::Stats;
/// let stats = Stats::of(&[100, 101, 102, 103, 900]).unwrap();
/// assert_eq!((stats.median_ns, stats.min_ns, stats.max_ns), (102, 100, 900));
/// assert_eq!(stats.mad_ns, 1); // one run that was disturbed changes nothing
/// assert!(!stats.wide);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// The middle sample; of an even number, the mean of the middle two.
    pub median_ns: u64,
    /// One run of ten took no longer.
    pub p10_ns: u64,
    /// Nine runs of ten took no longer.
    pub p90_ns: u64,
    /// The fastest run.
    pub min_ns: u64,
    /// The slowest run.
    pub max_ns: u64,
    /// The median distance from the median.
    pub mad_ns: u64,
    /// How many runs were timed.
    pub samples: u32,
    /// The spread stayed too wide: the median absolute deviation is over [`WIDE`] of the median.
    pub wide: bool,
}

impl Stats {
    /// Of at least one sample; `None` of none.
    pub fn of(samples_ns: &[u64]) -> Option<Stats> {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
        let median_ns = median(&sorted);
        let mut off: Vec<u64> = sorted.iter().map(|ns| ns.abs_diff(median_ns)).collect();
        off.sort_unstable();
        let mad_ns = median(&off);
        Some(Stats {
            median_ns,
            p10_ns: percentile(&sorted, 10),
            p90_ns: percentile(&sorted, 90),
            min_ns,
            max_ns,
            mad_ns,
            samples: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            wide: mad_ns as f64 > WIDE * median_ns as f64,
        })
    }
}

/// Of sorted samples, at least one.
fn median(sorted: &[u64]) -> u64 {
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    low + (high - low) / 2
}

/// The smallest sample that at least this many of a hundred do not exceed; of sorted samples, at least one.
fn percentile(sorted: &[u64], of_hundred: usize) -> u64 {
    sorted[(sorted.len() * of_hundred).div_ceil(100).max(1) - 1]
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;
