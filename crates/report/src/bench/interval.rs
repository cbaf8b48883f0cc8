//! How far a median and a ratio of two could be off: samples by passes enter, intervals that hold 19 times of 20 leave.
//!
//! Runs of one process resemble each other more than those of two. So passes are drawn first, with replacement, then
//! samples within each; with one pass only, samples alone. The draws come from a fixed seed: the same samples always give
//! the same interval.

use super::level::time;
use super::{Level, Row};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};

/// How often samples are drawn anew. The bounds are then the 25th value from either end, which moves by about a tenth of
/// the interval's width from one seed to another.
const RESAMPLES: usize = 1000;
/// How many resamples are drawn of each pass before passes are.
const DRAWN: usize = 100;
/// Any number would do; it must only stay the same.
const SEED: u64 = 0x6272_6561_6b65_7665;

/// How many times as long something takes as something else, and how sure that is.
///
/// ```
/// use breakeven_report::bench::{Level, Ratio};
/// let ratio = Ratio::of(Level::Typical, &[vec![100, 101, 102]], &[vec![120, 121, 123]]).unwrap();
/// assert_eq!((ratio.words(), ratio.sure), ("+19.8 %".to_owned(), 1.0));
/// assert!(ratio.low > 1.17 && ratio.high < 1.24);
/// assert_eq!(Ratio::of(Level::Typical, &[vec![]], &[vec![1]]), None);
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Ratio {
    /// The later time by the earlier one: 1.1 takes a tenth longer.
    pub ratio: f64,
    /// It is larger than this, 39 times of 40.
    pub low: f64,
    /// It is smaller than this, 39 times of 40.
    pub high: f64,
    /// The part of all resamples that lie on the same side of 1.
    pub sure: f64,
}

impl Ratio {
    /// Of two rows' passes; `None` if one of them has no samples.
    pub fn of(level: Level, before: &[Vec<u64>], after: &[Vec<u64>]) -> Option<Ratio> {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let (from, to) = (level.of(before)?, level.of(after)?);
        let (before, after) = (drawn(level, before, &mut rng), drawn(level, after, &mut rng));
        let mut room = Vec::new();
        let mut draw = |passes: &[Vec<f64>], rng: &mut fastrand::Rng| {
            room.clear();
            room.extend((0..passes.len()).map(|_| one(&passes[rng.usize(..passes.len())], rng)));
            level.of_times(&mut room)
        };
        let ratios = (0..RESAMPLES).filter_map(|_| Some(draw(&after, &mut rng)? / draw(&before, &mut rng)?)).collect();
        Some(Ratio::from_resamples(to / from, ratios))
    }

    /// Of the same passes: each has samples of both, taken in turns, so that what a process or a moment adds to one it
    /// adds to the other.
    pub(super) fn of_pairs(level: Level, first: &[Vec<u64>], second: &[Vec<u64>]) -> Option<Ratio> {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let pairs: Vec<_> = first.iter().zip(second).filter(|(a, b)| !a.is_empty() && !b.is_empty()).collect();
        if pairs.is_empty() {
            return None;
        }
        let times = pairs.iter().map(|(a, b)| (level.pass_time(a), level.pass_time(b))).collect();
        let drawn: Vec<_> = pairs.iter().map(|(a, b)| (draws(level, a, &mut rng), draws(level, b, &mut rng))).collect();
        let mut draw = || {
            let pass = |_| {
                let (a, b) = &drawn[rng.usize(..drawn.len())];
                (one(a, &mut rng), one(b, &mut rng))
            };
            paired(level, (0..drawn.len()).map(pass).collect())
        };
        let resamples = (0..RESAMPLES).map(|_| draw()).collect();
        Some(Ratio::from_resamples(paired(level, times), resamples))
    }

    fn from_resamples(ratio: f64, mut resamples: Vec<f64>) -> Ratio {
        resamples.sort_unstable_by(f64::total_cmp);
        let same = resamples.iter().filter(|&&other| if ratio >= 1.0 { other > 1.0 } else { other < 1.0 }).count();
        let (low, high) = bounds(&resamples);
        let [ratio, low, high] = [ratio, low, high].map(rounded);
        Ratio { ratio, low, high, sure: same as f64 / resamples.len() as f64 }
    }

    /// The difference in words: `+12.3 %`, `-4.0 %`.
    pub fn words(&self) -> String {
        super::words::change(self.ratio)
    }
}

impl Row {
    /// Fills `stats` and `interval` from `passes`; of no samples they become zeros. Whoever adds a pass calls it.
    ///
    /// ```
    /// use breakeven_report::bench::Row;
    /// let mut row = Row { passes: vec![vec![100, 102, 104], vec![101, 103, 190]], ..Row::default() };
    /// row.settle();
    /// assert_eq!((row.stats.median_ns, row.stats.samples), (102, 6));
    /// assert!(row.interval.0 >= 100 && row.interval.1 <= 190);
    /// ```
    pub fn settle(&mut self) {
        let all: Vec<u64> = self.passes.concat();
        self.stats = Stats::of(&all).unwrap_or_default();
        let (low, high) = of_median(&self.passes).unwrap_or_default();
        // The median of an even number lies between two samples, and so may be outside of what resamples had.
        self.interval = (low.min(self.stats.median_ns), high.max(self.stats.median_ns));
    }
}

/// How many times as long the second of pairs takes, of at least one pair.
fn paired(level: Level, pairs: Vec<(f64, f64)>) -> f64 {
    match level {
        // Pairs share what makes their pass slow.
        Level::Typical => median(&mut pairs.iter().map(|(a, b)| b / a).collect::<Vec<_>>()),
        Level::Fastest => {
            let (mut a, mut b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            level.of_times(&mut b).zip(level.of_times(&mut a)).map_or(1.0, |(b, a)| b / a)
        }
    }
}

/// Where the median of all samples lies; `None` without any.
fn of_median(passes: &[Vec<u64>]) -> Option<(u64, u64)> {
    let passes: Vec<&Vec<u64>> = passes.iter().filter(|pass| !pass.is_empty()).collect();
    let mut values: Vec<u64> = passes.iter().flat_map(|pass| pass.iter().copied()).collect();
    values.sort_unstable();
    if values.is_empty() {
        return None;
    }
    let rank = |sample: &u64| values.partition_point(|value| value < sample);
    let ranks: Vec<Vec<usize>> = passes.iter().map(|pass| pass.iter().map(rank).collect()).collect();
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut counts = vec![0; values.len()];
    let mut draw = || {
        counts.fill(0);
        let mut all = 0;
        for _ in 0..ranks.len() {
            let pass = &ranks[rng.usize(..ranks.len())];
            (0..pass.len()).for_each(|_| counts[pass[rng.usize(..pass.len())]] += 1);
            all += pass.len();
        }
        let [low, high] = middle(&counts, all).map(|rank| values[rank]);
        low + (high - low) / 2
    };
    let mut resamples: Vec<u64> = (0..RESAMPLES).map(|_| draw()).collect();
    resamples.sort_unstable();
    Some(bounds(&resamples))
}

/// What 19 of 20 sorted values lie between.
fn bounds<T: Copy>(sorted: &[T]) -> (T, T) {
    let outside = sorted.len() / 40;
    (sorted[outside], sorted[sorted.len() - 1 - outside])
}

/// What stands for resamples of each pass that has samples.
fn drawn(level: Level, passes: &[Vec<u64>], rng: &mut fastrand::Rng) -> Vec<Vec<f64>> {
    passes.iter().filter(|pass| !pass.is_empty()).map(|pass| draws(level, pass, rng)).collect()
}

/// What stands for resamples of one pass, which has samples.
fn draws(level: Level, pass: &[u64], rng: &mut fastrand::Rng) -> Vec<f64> {
    let mut sorted = pass.to_vec();
    sorted.sort_unstable();
    let mut counts = vec![0; sorted.len()];
    let mut draw = || match level {
        Level::Typical => {
            counts.fill(0);
            (0..pass.len()).for_each(|_| counts[rng.usize(..pass.len())] += 1);
            let [low, high] = middle(&counts, pass.len());
            f64::midpoint(time(sorted[low]), time(sorted[high]))
        }
        Level::Fastest => time(sorted[(0..pass.len()).map(|_| rng.usize(..pass.len())).min().unwrap_or(0)]),
    };
    (0..DRAWN).map(|_| draw()).collect()
}

/// The ranks of the middle two of `all` values, which are one if their number is odd, by how many there are of each rank:
/// the median of a resample without sorting it.
fn middle(counts: &[usize], all: usize) -> [usize; 2] {
    let mut before = 0;
    let mut found = [None; 2];
    for (rank, count) in counts.iter().enumerate() {
        before += count;
        for (place, at) in found.iter_mut().zip([all.div_ceil(2), all / 2 + 1]) {
            if place.is_none() && before >= at {
                *place = Some(rank);
            }
        }
    }
    found.map(|rank| rank.unwrap_or(counts.len() - 1))
}

/// One of them.
fn one(of: &[f64], rng: &mut fastrand::Rng) -> f64 {
    of[rng.usize(..of.len())]
}

/// Of at least one.
pub(super) fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    f64::midpoint(times[(times.len() - 1) / 2], times[times.len() / 2])
}

/// A part of a time, to a millionth: more would be digits without a meaning, which not every reader of JSON keeps.
pub(super) fn rounded(part: f64) -> f64 {
    (part * 1e6).round() / 1e6
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
