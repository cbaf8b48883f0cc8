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
    /// How many runs were timed. 0 if some other tool timed them and only told a part: then a 0 in any other field is
    /// what is not known.
    pub samples: u32,
    /// The spread stayed too wide: the median absolute deviation is over [`WIDE`] of the median.
    pub wide: bool,
    /// Where the median lies, as the tool that timed the runs says; none if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<(u64, u64)>,
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
            interval_ns: None,
        })
    }

    /// A median that some other tool reports, and nothing else.
    ///
    /// ```
    /// let stats = breakeven_report::Stats::partial(850);
    /// assert!(stats.is_partial() && stats.band().is_none() && stats.known(stats.max_ns).is_none());
    /// ```
    pub fn partial(median_ns: u64) -> Stats {
        Stats { median_ns, ..Stats::default() }
    }

    /// Is only a part of it known?
    pub fn is_partial(&self) -> bool {
        self.samples == 0
    }

    /// One of its fields, unless that is not known.
    pub fn known(&self, field: u64) -> Option<u64> {
        (!self.is_partial() || field > 0).then_some(field)
    }

    /// P10 and P90, where both are known.
    pub fn band(&self) -> Option<(u64, u64)> {
        Some((self.known(self.p10_ns)?, self.known(self.p90_ns)?))
    }

    /// Is this faster than the other by more than both spread? That is P90 against P10; where those are not known the
    /// interval of the median, and where that is not known either the median and [`WIDE`] of it.
    ///
    /// ```
    /// use breakeven_report::Stats;
    /// let [fast, slow] = [[90, 100, 110], [105, 120, 130]].map(|samples| Stats::of(&samples).unwrap_or_default());
    /// assert!(fast.median_ns < slow.median_ns && !fast.clearly_faster_than(&slow));
    /// assert!(Stats::partial(80).clearly_faster_than(&slow));
    /// ```
    pub fn clearly_faster_than(&self, other: &Stats) -> bool {
        self.median_ns < other.median_ns && self.reach().1 < other.reach().0
    }

    /// From where to where it may be.
    fn reach(&self) -> (f64, f64) {
        let pair = |(low, high): (u64, u64)| (low as f64, high as f64);
        let median = self.median_ns as f64;
        let around = (median * (1.0 - WIDE / 2.0), median * (1.0 + WIDE / 2.0));
        self.band().or(self.interval_ns).map_or(around, pair)
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
