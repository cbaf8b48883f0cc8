//! What a run says: the arms' times enter row by row, ratios and the verdicts on the bars leave.

use serde::Serialize;

use crate::grid::time;
use crate::groups::Row;
use crate::measure::{ArmReport, Outcome};
use crate::side_by_side::{Paired, Sampled};

/// The libraries that are general channels.
const CHANNELS: [&str; 4] = ["crossbeam", "flume", "kanal", "tokio"];
/// The variant with metrics, in an arm's name.
pub(crate) const ON: &str = "metrics";
/// A round trip that takes longer has slept, as on a machine that others keep busy.
const AWAKE_NS: f64 = 10_000.0;
/// Noise between equal arms: "as fast as" begins here.
const EQUAL: f64 = 0.95;

/// What is promised of our arm.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Fewer nanoseconds than these.
    BelowNs(f64),
    /// No slower than the fastest general channel.
    BestChannel,
    /// With metrics, at most so many times what it takes without, by the median ratio of a round.
    Metrics {
        /// Of the time without metrics.
        most: f64,
    },
}

/// A promise.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bar {
    /// In words.
    pub promise: &'static str,
    /// In numbers.
    pub limit: Limit,
}

impl Bar {
    /// Our arm takes fewer nanoseconds than these.
    pub fn below(promise: &'static str, ns: f64) -> Bar {
        Bar { promise, limit: Limit::BelowNs(ns) }
    }
}

/// What became of a promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Kept,
    /// It does not: what was measured.
    Missed(String),
    /// Nothing to judge: why.
    Void(String),
}

/// A promise and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The promise.
    pub bar: Bar,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// One row of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The group.
    pub group: &'static str,
    /// What of the group.
    pub case: String,
    /// Commands in an iteration.
    pub commands: u64,
    /// The arm that ratios are against: ours, or the fastest where ours takes no part.
    pub base: Option<String>,
    /// Is that ours?
    pub has_ours: bool,
    /// Every arm, nanoseconds an iteration.
    pub arms: Vec<ArmReport>,
    /// The promises.
    pub bars: Vec<Judged>,
    /// What every arm does.
    pub job: &'static str,
    /// With metrics over without, where the row has both.
    pub metrics: Option<Paired>,
}

impl Measured {
    /// Judges the arms of one row.
    pub fn new(row: &Row, arms: Vec<Sampled>) -> Measured {
        let samples = |name: &str| arms.iter().find(|arm| arm.report.name == name).map(|arm| &arm.samples[..]);
        let metrics = samples(&format!("{}-{ON}", row.ours)).zip(samples(row.ours));
        let metrics = metrics.and_then(|(with, without)| Paired::of(with, without));
        let arms: Vec<ArmReport> = arms.into_iter().map(|arm| arm.report).collect();
        let ours = median(&arms, row.ours);
        let fastest = arms
            .iter()
            .filter_map(|arm| Some((arm, arm.median_ns()?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(arm, _)| arm.name.clone());
        let base = if ours.is_some() { Some(row.ours.to_owned()) } else { fastest };
        let judged = |&bar| Judged { bar, verdict: judge(bar, row.ours, &arms, metrics) };
        let bars = row.bars.iter().map(judged).collect();
        let (group, case, commands, job) = (row.group, row.case.clone(), row.commands, row.job);
        Measured { group, case, commands, base, has_ours: ours.is_some(), arms, bars, job, metrics }
    }

    /// An arm's time over the base's.
    pub fn ratio(&self, arm: &ArmReport) -> Option<f64> {
        Some(arm.median_ns()? / median(&self.arms, self.base.as_deref()?)?)
    }

    /// Who is faster than ours, if anybody is: the fastest first.
    pub fn faster_than_ours(&self) -> Option<String> {
        let ours = self.base.as_deref().filter(|_| self.has_ours)?;
        let ns = median(&self.arms, ours)?;
        let library = self.arms.iter().find(|arm| arm.name == ours).map(|arm| &arm.library);
        let others = self.arms.iter().filter(|arm| Some(&arm.library) != library);
        let mut faster: Vec<(f64, &str)> =
            others.filter_map(|arm| Some((arm.median_ns().filter(|&other| other < ns)?, arm.name.as_str()))).collect();
        faster.sort_by(|a, b| a.0.total_cmp(&b.0));
        let list: Vec<String> = faster.iter().map(|(ns, name)| format!("{name} {}", time(*ns))).collect();
        (!list.is_empty())
            .then(|| format!("faster than our {} at {}, {}: {}", time(ns), self.group, self.case, list.join(", ")))
    }
}

fn median(arms: &[ArmReport], name: &str) -> Option<f64> {
    arms.iter().find(|arm| arm.name == name)?.median_ns()
}

fn best_channel(arms: &[ArmReport]) -> Option<(&str, f64)> {
    let channels = arms.iter().filter(|arm| CHANNELS.contains(&arm.library.as_str()));
    channels.filter_map(|arm| Some((arm.name.as_str(), arm.median_ns()?))).min_by(|a, b| a.1.total_cmp(&b.1))
}

fn judge(bar: Bar, ours: &str, arms: &[ArmReport], metrics: Option<Paired>) -> Verdict {
    let Some(ns) = median(arms, ours) else {
        return Verdict::Void(why_not(arms, ours));
    };
    let verdict = |kept: bool, measured: String| if kept { Verdict::Kept } else { Verdict::Missed(measured) };
    match bar.limit {
        Limit::BelowNs(most) => verdict(ns < most, time(ns)),
        Limit::BestChannel => match best_channel(arms) {
            Some((name, best)) => verdict(best / ns >= EQUAL, format!("{:.2} of {name}'s speed", best / ns)),
            None => Verdict::Void("no channel was measured".to_owned()),
        },
        // A share of a round trip that ends in sleeping would be next to nothing.
        Limit::Metrics { .. } if ns > AWAKE_NS => Verdict::Void(format!("a round trip took {}", time(ns))),
        Limit::Metrics { most } => match metrics {
            Some(paired) => verdict(paired.ratio <= most, format!("{:+.1} %", (paired.ratio - 1.0) * 100.0)),
            None => Verdict::Void(why_not(arms, &format!("{ours}-{ON}"))),
        },
    }
}

/// Why an arm has no time.
fn why_not(arms: &[ArmReport], name: &str) -> String {
    match arms.iter().find(|arm| arm.name == name).map(|arm| &arm.outcome) {
        Some(Outcome::Wrong(why)) => format!("{name} is wrong: {why}"),
        Some(Outcome::Failed(why)) => format!("{name} failed: {why}"),
        Some(Outcome::Timed(_)) | None => format!("{name} is not in this run"),
    }
}

/// Everything that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The CPU.
    pub machine: String,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// The rows.
    pub rows: Vec<Measured>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Stats;

    fn arm(name: &str, ns: f64) -> ArmReport {
        let library = name.split('-').next().unwrap_or_default().to_owned();
        ArmReport { library, name: name.to_owned(), outcome: Outcome::Timed(Stats::of(&[ns])) }
    }

    #[test]
    fn bars_are_judged_by_our_arm() {
        let arms = [arm("ours", 100.0), arm("ours-metrics", 103.0), arm("kanal-awake", 96.0), arm("mutex", 10.0)];
        let metrics = Paired::of(&[103.0], &[100.0]);
        let judged = |limit| judge(Bar { promise: "", limit }, "ours", &arms, metrics);
        assert_eq!(judged(Limit::BelowNs(101.0)), Verdict::Kept);
        assert_eq!(judged(Limit::BelowNs(100.0)), Verdict::Missed("100 ns".into()));
        // Within the noise; and the mutex is no channel.
        assert_eq!(judged(Limit::BestChannel), Verdict::Kept);
        assert_eq!(judged(Limit::Metrics { most: 1.02 }), Verdict::Missed("+3.0 %".into()));
        let void = judge(Bar::below("", 1.0), "ours", &arms[2..], None);
        assert_eq!(void, Verdict::Void("ours is not in this run".into()));
    }
}
