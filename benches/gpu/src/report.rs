//! What a run says: the arms' times enter row by row, ratios and the verdicts on the bars leave.

use serde::Serialize;

use crate::OURS;
use crate::measure::{ArmReport, Outcome};
use crate::workload::{Bar, Spec};

/// What became of a promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Kept,
    /// It does not.
    Missed,
    /// Nothing to compare with: why.
    Void(String),
}

/// A promise and what was measured for it.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The promise.
    pub bar: Bar,
    /// The arm that it is judged by: the fastest right one of its library.
    pub arm: Option<String>,
    /// That arm's time over ours.
    pub ratio: Option<f64>,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// One row of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The workload's name.
    pub workload: &'static str,
    /// Its size.
    pub n: usize,
    /// Our fastest arm's name and median nanoseconds.
    pub ours: Option<(String, f64)>,
    /// Every arm.
    pub arms: Vec<ArmReport>,
    /// The promises.
    pub bars: Vec<Judged>,
}

impl Row {
    /// Judges the arms of one workload.
    pub fn new(spec: Spec, arms: Vec<ArmReport>) -> Row {
        let ours = fastest(&arms, OURS);
        let bars = spec.bars().into_iter().map(|bar| judge(bar, &arms, ours.as_ref())).collect();
        Row { workload: spec.kind.name(), n: spec.n, ours, arms, bars }
    }

    /// An arm's time over ours.
    pub fn ratio(&self, arm: &ArmReport) -> Option<f64> {
        Some(arm.median_ns()? / self.ours.as_ref()?.1)
    }
}

fn fastest(arms: &[ArmReport], library: &str) -> Option<(String, f64)> {
    let timed = arms.iter().filter(|arm| arm.library == library);
    timed.filter_map(|arm| Some((arm.name.clone(), arm.median_ns()?))).min_by(|a, b| a.1.total_cmp(&b.1))
}

fn judge(bar: Bar, arms: &[ArmReport], ours: Option<&(String, f64)>) -> Judged {
    let theirs = fastest(arms, bar.against);
    let ratio = theirs.as_ref().zip(ours).map(|(theirs, ours)| theirs.1 / ours.1);
    let verdict = match (ratio, ours) {
        (Some(ratio), _) if ratio >= bar.least_ratio => Verdict::Kept,
        (Some(_), _) => Verdict::Missed,
        (None, None) => Verdict::Void(format!("no time of ours: {}", why_not(arms, OURS))),
        (None, Some(_)) => Verdict::Void(format!("no time of {}: {}", bar.against, why_not(arms, bar.against))),
    };
    Judged { bar, arm: theirs.map(|(name, _)| name), ratio, verdict }
}

/// Why a library has no time.
fn why_not(arms: &[ArmReport], library: &str) -> String {
    let reason = arms.iter().filter(|arm| arm.library == library).find_map(|arm| match &arm.outcome {
        Outcome::Timed(_) => None,
        Outcome::Wrong(why) => Some(format!("wrong result, {why}")),
        Outcome::Failed(why) => Some(format!("it failed, {why}")),
    });
    reason.unwrap_or_else(|| "not in this run".to_owned())
}

/// Everything that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The adapter that all arms ran on.
    pub adapter: String,
    /// The CPU's name.
    pub machine: String,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Report {
    /// Whether no bar is missed and ours was there for all of them. A peer that is wrong or can't run keeps no promise
    /// from being kept.
    pub fn passes(&self) -> bool {
        self.rows.iter().all(|row| {
            let missed = row.bars.iter().any(|judged| judged.verdict == Verdict::Missed);
            !missed && (row.ours.is_some() || row.bars.is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Stats;

    fn arm(library: &str, ns: f64) -> ArmReport {
        ArmReport { library: library.to_owned(), name: library.to_owned(), outcome: Outcome::Timed(Stats::of(&[ns])) }
    }

    #[test]
    fn bars_are_judged_by_the_fastest_arm_that_is_right() {
        let bar = Bar { against: "hand", least_ratio: 1.0 / 1.1, promise: "" };
        let judged = |ours: f64| judge(bar, &[arm("hand", 100.0), arm("hand", 300.0)], Some(&("ours".into(), ours)));
        assert_eq!(judged(109.0).verdict, Verdict::Kept);
        assert_eq!(judged(111.0).verdict, Verdict::Missed);
        let wrong = ArmReport { library: "hand".into(), name: "hand".into(), outcome: Outcome::Wrong("7".into()) };
        let void = judge(bar, &[wrong], Some(&("ours".into(), 1.0)));
        assert_eq!(void.verdict, Verdict::Void("no time of hand: wrong result, 7".into()));
    }
}
