//! Times of repeated runs: samples enter, their median, 90th percentile and extremes leave.

use serde::Serialize;

/// What the samples say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// How many runs were timed.
    pub samples: usize,
    /// The middle one; of an even number, the mean of the middle two.
    pub median_ns: u64,
    /// Nine of ten runs took no longer.
    pub p90_ns: u64,
    /// The fastest.
    pub min_ns: u64,
    /// The slowest.
    pub max_ns: u64,
}

impl Timing {
    /// Of at least one sample; `None` of none.
    pub fn of(samples_ns: &[u64]) -> Option<Timing> {
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable();
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        // The smallest sample that at least nine tenths do not exceed.
        let p90 = sorted[(sorted.len() * 9).div_ceil(10) - 1];
        Some(Timing {
            samples: sorted.len(),
            median_ns: low + (high - low) / 2,
            p90_ns: p90,
            min_ns: first,
            max_ns: last,
        })
    }
}

/// A time for people.
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        assert_eq!(Timing::of(&[]), None);
        let one = Timing::of(&[7]).unwrap();
        assert_eq!((one.median_ns, one.p90_ns, one.min_ns, one.max_ns), (7, 7, 7, 7));
        let ten: Vec<u64> = (1..=10).rev().map(|i| i * 10).collect();
        let ten = Timing::of(&ten).unwrap();
        assert_eq!((ten.samples, ten.median_ns, ten.p90_ns, ten.min_ns, ten.max_ns), (10, 55, 90, 10, 100));
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(["12 ns", "1.50 us", "2.00 ms", "3.25 s"], [12, 1_500, 2_000_000, 3_250_000_000].map(duration));
    }
}
