//! What plans took where: batches, predictions and reruns enter, a row for each stage and plan leaves.
//!
//! A figure keeps where it comes from: what the run measured, what was run again to compare, and what is only predicted
//! are never mixed.

use super::merged::Merged;
use super::stages::StageRow;
use super::{BatchRecord, Profile};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where a figure comes from.
///
/// ```
/// use breakeven::profile::Basis;
/// assert_eq!(Basis::Predicted.name(), "predicted");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The run itself.
    Measured,
    /// Runs of the same plan on made-up data, afterwards.
    Rerun,
    /// A model, which may be wrong.
    Predicted,
    /// What follows from measured times by arithmetic, if nothing else changes.
    Calculated,
}

impl Basis {
    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Rerun => "rerun",
            Basis::Predicted => "predicted",
            Basis::Calculated => "calculated",
        }
    }
}

/// What a plan took, or is expected to take, on one device.
///
/// ```
/// use breakeven::profile::{Basis, Profile};
/// let analysis = Profile::example().analysis()?;
/// let figure = &analysis.plans[0].figures[0];
/// assert_eq!((figure.device.as_str(), figure.basis), ("cpu", Basis::Measured));
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// The device's id; several at once where they shared the work.
    pub device: String,
    /// Where the figure comes from.
    pub basis: Basis,
    /// How many batches, samples or predictions it is the median of.
    pub samples: u64,
    /// The median; none if nothing was measured.
    pub median_ns: Option<u64>,
    /// What is to be known about it: why there is none, or on which other machine it was run again.
    pub note: Option<String>,
}

/// What one plan took in one stage, always of so many tasks.
///
/// ```
/// use breakeven::profile::Profile;
/// let plan = &Profile::example().analysis()?.plans[0];
/// assert_eq!((plan.stage.as_str(), plan.batches, plan.tasks), ("score", 3, 20));
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlanRow {
    /// The stage: its path.
    pub stage: String,
    /// The plan in [`Profile::plans`].
    pub plan: u32,
    /// What it computes.
    pub title: String,
    /// Could a GPU run it?
    pub gpu_eligible: bool,
    /// How many tasks at once.
    pub tasks: u64,
    /// How many batches.
    pub batches: u64,
    /// Their time, from their beginning to their end.
    pub total_ns: u64,
    /// What is known of it, by device: measured first, then run again, then predicted where nothing was measured.
    pub figures: Vec<Figure>,
    /// The only device for which there is more than a prediction, if so.
    pub only_on: Option<String>,
}

/// The rows, the most time first.
pub(super) fn compared(profile: &Profile, tree: &Merged, stages: &[StageRow], stage_of: &[usize]) -> Vec<PlanRow> {
    let mut groups: BTreeMap<(usize, u32, u64), Vec<&BatchRecord>> = BTreeMap::new();
    for batch in &profile.batches {
        let place = tree.places[batch.thread as usize].get(batch.frame as usize);
        let Some(place) = place else { continue };
        groups.entry((stage_of[*place], batch.plan, batch.tasks)).or_default().push(batch);
    }
    let row = |((stage, plan, tasks), batches): ((usize, u32, u64), Vec<&BatchRecord>)| {
        let record = &profile.plans[plan as usize];
        let figures = figures(profile, plan, tasks, &batches);
        let known: Vec<&str> = figures
            .iter()
            .filter(|f| f.basis != Basis::Predicted && f.median_ns.is_some())
            .map(|f| &*f.device)
            .collect();
        let only_on = known.first().filter(|first| known.iter().all(|device| device == *first));
        PlanRow {
            stage: stages[stage].path.clone(),
            plan,
            title: record.title.clone(),
            gpu_eligible: record.gpu_eligible,
            tasks,
            batches: batches.len() as u64,
            total_ns: batches.iter().map(|batch| batch.end_ns - batch.begin_ns).fold(0, u64::saturating_add),
            only_on: only_on.map(|device| (*device).to_owned()),
            figures,
        }
    };
    let mut rows: Vec<PlanRow> = groups.into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

fn figures(profile: &Profile, plan: u32, tasks: u64, batches: &[&BatchRecord]) -> Vec<Figure> {
    let mut measured: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut predicted: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for batch in batches {
        measured.entry(&batch.decision.device).or_default().push(batch.decision.actual_ns);
        for expected in &batch.decision.predicted {
            predicted.entry(&expected.device).or_default().push(expected.expected_ns);
        }
    }
    let figure = |basis: Basis| {
        move |(device, mut ns): (&str, Vec<u64>)| Figure {
            device: device.to_owned(),
            basis,
            samples: ns.len() as u64,
            median_ns: median(&mut ns),
            note: None,
        }
    };
    let reruns: Vec<Figure> = profile
        .reruns
        .iter()
        .filter(|rerun| (rerun.plan, rerun.tasks) == (plan, tasks))
        .map(|rerun| Figure {
            device: rerun.device.clone(),
            basis: Basis::Rerun,
            samples: rerun.samples as u64,
            median_ns: Some(rerun.median_ns).filter(|_| rerun.samples > 0),
            note: rerun
                .missing
                .clone()
                .or_else(|| rerun.elsewhere.as_ref().map(|cpu| format!("on another machine: {cpu}"))),
        })
        .collect();
    predicted.retain(|device, _| {
        !measured.contains_key(device) && !reruns.iter().any(|r| r.device == *device && r.median_ns.is_some())
    });
    let mut all: Vec<Figure> = measured.into_iter().map(figure(Basis::Measured)).collect();
    all.extend(reruns);
    all.extend(predicted.into_iter().map(figure(Basis::Predicted)));
    all
}

/// The middle one; of an even number the mean of the middle two; none of none.
pub(super) fn median(ns: &mut [u64]) -> Option<u64> {
    ns.sort_unstable();
    let (low, high) = (*ns.get(ns.len().checked_sub(1)? / 2)?, *ns.get(ns.len() / 2)?);
    Some(low + (high - low) / 2)
}
