//! Measures the arms of one row side by side: arms enter, one report for each leaves.
//!
//! In rounds, so that a slow minute of the machine hits every arm, and in another order each time, so that none always follows the
//! same one, which may leave it memory in its caches or none; each arm sleeps, warms up and is then timed, so
//! that its own helper threads are awake and those of the arm before it have gone to sleep. Results are judged
//! before anything is timed.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::arm::{Arm, Runner};
use crate::reference::Expected;

/// Longer than any in-process pool here spins before it parks.
const SETTLE: Duration = Duration::from_micros(300);
/// Untimed calls before each sample: a parked helper arrives after 125 us on a quiet machine, and after most of a
/// millisecond where others want its core. Some pools spin for longer than an arm sleeps and others do not: what is
/// timed is the steady state of all.
const WARM_UP: Duration = Duration::from_millis(1);
/// A sample lasts at least this long (or one call), so that the clock's 25 ns do not count.
const SAMPLE_NS: f64 = 200_000.0;
/// An arm this many times slower than the fastest cannot become the best peer: a few rounds say enough about it.
const OUT_OF_REACH: f64 = 3.0;

/// Begins the orders in which arms go.
const ORDER: u64 = 20_261_119;

/// How long a row is measured.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Rounds that every arm within reach of the fastest gets.
    pub min_rounds: usize,
    /// Rounds at most, while the budget lasts.
    pub max_rounds: usize,
    /// Rounds after which an arm out of reach is let go.
    pub scout_rounds: usize,
    /// Time after which no round beyond the minimum starts.
    pub budget: Duration,
}

impl Effort {
    /// For numbers that are quoted.
    pub const FULL: Effort =
        Effort { min_rounds: 11, max_rounds: 31, scout_rounds: 3, budget: Duration::from_millis(2500) };
    /// For a look while working.
    pub const QUICK: Effort =
        Effort { min_rounds: 5, max_rounds: 9, scout_rounds: 2, budget: Duration::from_millis(500) };
}

/// Times of one arm, nanoseconds a call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Stats {
    /// The number that is compared.
    pub median_ns: f64,
    /// Median absolute deviation from the median.
    pub mad_ns: f64,
    /// Nine of ten samples took no longer.
    pub p90_ns: f64,
    /// The fastest sample.
    pub min_ns: f64,
    /// The slowest sample.
    pub max_ns: f64,
    /// Samples that these numbers come from.
    pub samples: usize,
}

/// What became of one arm.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Right, and timed.
    Timed(Stats),
    /// Its result is wrong: not timed, not compared.
    Wrong(String),
    /// It could not run.
    Failed(String),
}

/// One arm of one row.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ArmReport {
    /// The library, as the summary counts it.
    pub library: String,
    /// Library and variant.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
}

impl ArmReport {
    /// The median in nanoseconds, where the arm was right.
    pub fn median_ns(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Timed(stats) => Some(stats.median_ns),
            Outcome::Wrong(_) | Outcome::Failed(_) => None,
        }
    }
}

struct Lane<'w> {
    arm: Arm<'w>,
    calls: u32,
    samples: Vec<f64>,
    failure: Option<Outcome>,
}

/// Judges, calibrates and times `arms`.
pub fn measure(arms: Vec<Arm<'_>>, expected: &Expected, effort: Effort) -> Vec<ArmReport> {
    let mut lanes: Vec<Lane<'_>> = arms.into_iter().map(|arm| Lane::judged(arm, expected)).collect();
    // The same orders in every run.
    let mut random = fastrand::Rng::with_seed(ORDER);
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    let start = Instant::now();
    for round in 0..effort.max_rounds {
        if round >= effort.min_rounds && start.elapsed() > effort.budget {
            break;
        }
        let reach = lanes.iter().filter_map(Lane::so_far).fold(f64::INFINITY, f64::min) * OUT_OF_REACH;
        random.shuffle(&mut order);
        for at in &order {
            let lane = &mut lanes[*at];
            let out_of_reach = lane.arm.library != crate::OURS && lane.so_far().is_some_and(|ns| ns > reach);
            if lane.failure.is_none() && !(round >= effort.scout_rounds && out_of_reach) {
                lane.take_sample();
            }
        }
    }
    lanes.into_iter().map(Lane::report).collect()
}

impl<'w> Lane<'w> {
    fn judged(mut arm: Arm<'w>, expected: &Expected) -> Lane<'w> {
        let failure = match arm.runner.result() {
            Ok(result) => expected.judge(&result).err().map(Outcome::Wrong),
            Err(error) => Some(Outcome::Failed(error.to_string())),
        };
        let mut lane = Lane { arm, calls: 1, samples: Vec::new(), failure };
        if lane.failure.is_none() {
            match calibrate(lane.arm.runner.as_mut()) {
                Ok(calls) => lane.calls = calls,
                Err(error) => lane.failure = Some(Outcome::Failed(error.to_string())),
            }
        }
        lane
    }

    fn take_sample(&mut self) {
        std::thread::sleep(SETTLE);
        match self.arm.runner.sample(WARM_UP, self.calls) {
            Ok(ns) => self.samples.push(ns),
            Err(error) => self.failure = Some(Outcome::Failed(error.to_string())),
        }
    }

    fn so_far(&self) -> Option<f64> {
        // The best of them: a few rounds may all be hit by something else, and nobody is dropped for that.
        self.samples.iter().copied().reduce(f64::min)
    }

    fn report(self) -> ArmReport {
        let outcome = self.failure.unwrap_or_else(|| Outcome::Timed(Stats::of(&self.samples)));
        ArmReport { library: self.arm.library.to_owned(), name: self.arm.name(), outcome }
    }
}

/// Calls a sample: found twice, because the first guess is made while everything is cold.
fn calibrate(runner: &mut dyn Runner) -> crate::arm::Fallible<u32> {
    let calls_for = |ns: f64| (SAMPLE_NS / ns.max(1.0)).ceil().clamp(1.0, 1e6) as u32;
    let cold = calls_for(runner.sample(WARM_UP, 1)?);
    if cold == 1 {
        return Ok(1);
    }
    Ok(calls_for(runner.sample(WARM_UP, cold)?))
}

impl Stats {
    /// Statistics of at least one sample.
    pub fn of(samples: &[f64]) -> Stats {
        let sorted = sorted(samples.iter().copied());
        let median_ns = middle(&sorted);
        Stats {
            median_ns,
            mad_ns: middle(&self::sorted(samples.iter().map(|ns| (ns - median_ns).abs()))),
            p90_ns: sorted[(sorted.len() * 9).div_ceil(10) - 1],
            min_ns: sorted[0],
            max_ns: sorted[sorted.len() - 1],
            samples: sorted.len(),
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_known_samples() {
        let stats = Stats::of(&[5.0, 1.0, 2.0, 100.0, 3.0]);
        assert_eq!((stats.median_ns, stats.mad_ns, stats.p90_ns), (3.0, 2.0, 100.0));
    }
}
