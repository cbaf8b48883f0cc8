//! Measures a row: its arms enter, their times leave, and the samples of each round, which belong together.

use crate::arm::Fallible;
use crate::case::{Case, RIGHT};
use crate::groups::Row;
use crate::measure::{ArmReport, Effort, Outcome, Stats, measure};
use crate::reference::Expected;

/// One arm, over all openings.
pub struct Sampled {
    /// Its name and its times.
    pub report: ArmReport,
    /// Nanoseconds an iteration, round by round; those of two arms are of the same moments.
    pub samples: Vec<f64>,
}

/// Measures those of a row's arms whose name contains `filter`, opened as often as it says.
pub fn side_by_side(row: &Row, filter: &str, effort: Effort) -> Fallible<Vec<Sampled>> {
    let mut all: Vec<Sampled> = Vec::new();
    for _ in 0..row.openings {
        let arms = row.cases()?.into_iter().map(Case::into_arm);
        let (arms, samples): (Vec<_>, Vec<_>) = arms.filter(|(arm, _)| arm.name().contains(filter)).unzip();
        let reports = measure(arms, &Expected::exactly(&[RIGHT]), effort);
        for (report, samples) in reports.into_iter().zip(samples) {
            let samples = samples.take();
            // Calibrating takes samples, too.
            let rounds = match &report.outcome {
                Outcome::Timed(stats) => samples[samples.len() - stats.samples..].to_vec(),
                Outcome::Wrong(_) | Outcome::Failed(_) => Vec::new(),
            };
            // Openings may list their arms in different orders.
            match all.iter_mut().find(|known| known.report.name == report.name) {
                None => all.push(Sampled { report, samples: rounds }),
                Some(before) => before.add(report, &rounds),
            }
        }
    }
    Ok(all)
}

impl Sampled {
    fn add(&mut self, report: ArmReport, rounds: &[f64]) {
        self.samples.extend(rounds);
        match (&mut self.report.outcome, report.outcome) {
            (Outcome::Timed(stats), Outcome::Timed(_)) => *stats = Stats::of(&self.samples),
            (Outcome::Timed(_), failure) => self.report.outcome = failure,
            // The first failure is told.
            (Outcome::Wrong(_) | Outcome::Failed(_), _) => {}
        }
    }
}

/// How many times as long one arm takes as another, from the ratios within each round.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Paired {
    /// The median ratio.
    pub ratio: f64,
    /// Where the median lies in 19 of 20 such runs: from here.
    pub low: f64,
    /// To here.
    pub high: f64,
    /// Rounds.
    pub pairs: usize,
}

impl Paired {
    /// From the samples of both; `None` without a common round.
    pub fn of(with: &[f64], without: &[f64]) -> Option<Paired> {
        let mut ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
        ratios.sort_by(f64::total_cmp);
        let pairs = ratios.len();
        let last = pairs.checked_sub(1)?;
        // Ranks around the middle: how many of the ratios lie below the true median is a coin tossed `pairs` times.
        let off = 0.98 * (pairs as f64).sqrt();
        let rank = |at: f64| ratios[(at.max(0.0) as usize).min(last)];
        let middle = pairs as f64 / 2.0;
        Some(Paired { ratio: ratios[pairs / 2], low: rank(middle - off), high: rank(middle + off), pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_moment_of_both_does_not_change_their_ratio() {
        let without: Vec<f64> = (0..100).map(|round| if round % 7 == 0 { 1000.0 } else { 100.0 }).collect();
        let with: Vec<f64> = without.iter().map(|ns| ns * 1.01).collect();
        let paired = Paired::of(&with, &without).unwrap();
        assert!((paired.ratio - 1.01).abs() < 1e-9 && paired.low <= paired.ratio && paired.ratio <= paired.high);
        assert_eq!((paired.pairs, Paired::of(&[], &without)), (100, None));
    }
}
