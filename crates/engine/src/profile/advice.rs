//! What follows from a profile's figures: the analysis enters, sentences leave, each with where its figures come from.
//!
//! Only what was measured is called measured, what was run again is called a rerun, a prediction is called that, and what would
//! be is called calculated. Where a figure is missing the sentence says how to get it.

use super::analysis::{Analysis, ThreadRow, percent};
use super::compared::{Basis, Figure, PlanRow, median};
use super::stages::StageRow;
use super::{BatchRecord, Phase, Profile};
use crate::route::duration;
use serde::Serialize;
use std::collections::BTreeMap;

/// A part of the batches' time, in hundredths, from which on it is worth a sentence.
const WORTH_A_SENTENCE: u64 = 10;
/// So many batches of one task, each shorter than [`SMALL_NS`], are worth being told of `run_many`.
const MANY: u64 = 100;
/// What a batch of small work takes at most.
const SMALL_NS: u64 = 100_000;
/// Sentences about single plans; the table has them all.
const PLANS: usize = 3;

/// One conclusion.
///
/// ```
/// use breakeven::profile::{Basis, Profile};
/// let advice = Profile::example().analysis()?.advice;
/// let batches = advice.iter().find(|advice| advice.about == "batches").unwrap();
/// assert_eq!(batches.basis, Basis::Measured);
/// assert_eq!(batches.text, "4 batches ran: 3 on cpu, 1 on gpu:0");
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Advice {
    /// What it is about, in one word.
    pub about: &'static str,
    /// Where its figures come from.
    pub basis: Basis,
    /// The sentence.
    pub text: String,
}

/// All conclusions, the most general first.
pub(super) fn advice(
    profile: &Profile,
    analysis: &Analysis,
    threads: &[ThreadRow],
    stages: &[StageRow],
) -> Vec<Advice> {
    let mut list = List(Vec::new());
    bound(analysis, threads, stages, &mut list);
    waiting(threads, &mut list);
    batches(profile, analysis, &mut list);
    phases(analysis, &mut list);
    fallbacks(profile, &mut list);
    regret(profile, &mut list);
    for plan in &analysis.plans {
        small_batches(plan, &mut list);
    }
    plans(&analysis.plans, &mut list);
    not_kept(analysis, &mut list);
    list.0
}

struct List(Vec<Advice>);

impl List {
    fn say(&mut self, about: &'static str, basis: Basis, text: String) {
        self.0.push(Advice { about, basis, text });
    }
}

/// What the bound leaves to do.
fn bound(analysis: &Analysis, threads: &[ThreadRow], stages: &[StageRow], list: &mut List) {
    let amdahl = &analysis.amdahl;
    if amdahl.assumed_ns > 0 {
        let text = format!(
            "{} of the GPU-eligible time belong to batches whose records were not kept; they count as eligible, so that \
             the bound is rather too large than too small",
            duration(amdahl.assumed_ns)
        );
        list.say("bound", Basis::Calculated, text);
    }
    let largest = stages.iter().filter(|stage| stage.is_stage).max_by_key(|stage| stage.busy_ns());
    // What a stage gains is only known where nothing runs beside it.
    let Some(stage) = largest.filter(|stage| threads.len() == 1 && stage.busy_ns() > amdahl.eligible_ns) else {
        return;
    };
    if stage.busy_ns() == 0 {
        return;
    }
    let faster = amdahl.run_ns as f64 / (amdahl.run_ns as f64 - stage.busy_ns() as f64 / 2.0);
    let eligible = match stage.eligible_ns {
        0 => "has no GPU-eligible batches in it".to_owned(),
        ns => format!("is GPU-eligible for {} of its {}", duration(ns), duration(stage.busy_ns())),
    };
    let text = format!(
        "`{}` {eligible}; twice as fast, it would make the run {faster:.2}x faster, more than any GPU",
        stage.name
    );
    let more = amdahl.bound.is_some_and(|bound| faster > bound);
    if more {
        list.say("stage", Basis::Calculated, text);
    }
}

fn waiting(threads: &[ThreadRow], list: &mut List) {
    let sum = |of: fn(&ThreadRow) -> u64| threads.iter().map(of).sum::<u64>();
    let total = sum(|thread| thread.total_ns);
    let kinds = [
        ("for devices or the queue", sum(|thread| thread.device_wait_ns)),
        ("with nothing to do", sum(|thread| thread.idle_ns)),
        ("for something else", sum(|thread| thread.wait_ns)),
    ];
    let waited: u64 = kinds.iter().map(|(_, ns)| ns).sum();
    if waited == 0 {
        return;
    }
    let parts: Vec<String> =
        kinds.iter().filter(|(_, ns)| *ns > 0).map(|(what, ns)| format!("{} {what}", percent(*ns, total))).collect();
    let text =
        format!("threads waited for {} of their time, which is no work: {}", percent(waited, total), parts.join(", "));
    list.say("waiting", Basis::Measured, text);
}

fn batches(profile: &Profile, analysis: &Analysis, list: &mut List) {
    if profile.batches.is_empty() {
        return;
    }
    let on: Vec<String> = analysis.devices.iter().map(|row| format!("{} on {}", row.batches, row.device)).collect();
    let ran = match profile.batches.len() {
        1 => "1 batch ran".to_owned(),
        many => format!("{many} batches ran"),
    };
    list.say("batches", Basis::Measured, format!("{ran}: {}", on.join(", ")));
}

/// Parts of batches that take more than they should.
fn phases(analysis: &Analysis, list: &mut List) {
    for row in &analysis.devices {
        let of = |phase: Phase| row.phases_ns.get(&phase).copied().unwrap_or(0);
        let all: u64 = row.phases_ns.values().copied().fold(0, u64::saturating_add);
        let counts = |ns: u64| ns > 0 && u128::from(ns) * 100 >= u128::from(all) * u128::from(WORTH_A_SENTENCE);
        let device = &row.device;
        let queue = of(Phase::Queue);
        if counts(queue) {
            let text = format!(
                "queueing is {} of the time of batches on {device}: more work waits than it can take",
                percent(queue, all)
            );
            list.say("queueing", Basis::Measured, text);
        }
        let moved = of(Phase::Upload).saturating_add(of(Phase::Readback));
        if counts(moved) && moved > of(Phase::Kernels) {
            let text = format!(
                "transfers are {} of the time of batches on {device}, kernels {}: values that stay there \
                 (`Engine::pin`, `Engine::run_resident`) are not moved again",
                percent(moved, all),
                percent(of(Phase::Kernels), all)
            );
            list.say("transfers", Basis::Measured, text);
        }
        let before = of(Phase::Record).saturating_add(of(Phase::Plan));
        if counts(before) {
            let text = format!(
                "recording and planning are {} of the time of batches on {device}: a compiled program \
                 (`Engine::compile`) does neither",
                percent(before, all)
            );
            list.say("planning", Basis::Measured, text);
        }
    }
}

/// What devices that failed cost: batches that fell back, beside those of the same plan on the same device that did not.
fn fallbacks(profile: &Profile, list: &mut List) {
    let fell: Vec<&BatchRecord> = profile.batches.iter().filter(|batch| batch.decision.fallbacks > 0).collect();
    if fell.is_empty() {
        return;
    }
    let took = |batch: &BatchRecord| batch.end_ns - batch.begin_ns;
    let key = |batch: &BatchRecord| (batch.plan, batch.tasks, batch.decision.device.clone());
    let mut others: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for batch in profile.batches.iter().filter(|batch| batch.decision.fallbacks == 0) {
        others.entry(key(batch)).or_default().push(took(batch));
    }
    let medians: BTreeMap<_, u64> =
        others.into_iter().filter_map(|(key, mut ns)| Some((key, median(&mut ns)?))).collect();
    let more: Vec<u64> =
        fell.iter().filter_map(|batch| Some(took(batch).saturating_sub(*medians.get(&key(batch))?))).collect();
    let total: u64 = fell.iter().map(|batch| took(batch)).fold(0, u64::saturating_add);
    let count = |number: usize| if number == 1 { "1 batch".to_owned() } else { format!("{number} batches") };
    let cost = match more.len() {
        0 => "what they would have taken otherwise was not measured".to_owned(),
        compared => {
            let ns = more.iter().copied().fold(0, u64::saturating_add);
            let more = if ns == 0 { "no more".to_owned() } else { format!("{} more", duration(ns)) };
            let all = if compared == fell.len() { String::new() } else { format!(", for {} of them", count(compared)) };
            format!("{more} than others of the same plan on the same device{all}")
        }
    };
    let why = fell.iter().find_map(|batch| batch.decision.faults.first());
    let why = why.map_or(String::new(), |why| format!("; the first fault was: {why}"));
    let text =
        format!("{} fell back from a device that failed, and took {}: {cost}{why}", count(fell.len()), duration(total));
    list.say("fallbacks", Basis::Measured, text);
}

fn regret(profile: &Profile, list: &mut List) {
    let known = profile.batches.iter().filter_map(|batch| batch.decision.regret_ns);
    let (count, more, sum) = known.fold((0u64, 0u64, 0u64), |(count, more, sum), ns| {
        (count + 1, more + u64::from(ns > 0), sum.saturating_add(ns))
    });
    if sum > 0 {
        let text = format!(
            "{more} of {count} batches with a comparison took longer than their plan did lately on another device: {} \
             together",
            duration(sum)
        );
        list.say("regret", Basis::Measured, text);
    }
}

fn small_batches(plan: &PlanRow, list: &mut List) {
    let mean = plan.total_ns / plan.batches.max(1);
    if plan.tasks == 1 && plan.batches >= MANY && mean < SMALL_NS {
        let text = format!(
            "`{}` ran as {} batches of one task, {} each: `Program::run_many` takes many at once",
            plan.title,
            plan.batches,
            duration(mean)
        );
        list.say("batching", Basis::Measured, text);
    }
}

/// Who was faster, where more than one device was measured; who may be, where that is only predicted.
fn plans(plans: &[PlanRow], list: &mut List) {
    let name = |plan: &PlanRow| match plan.tasks {
        1 => format!("`{}` in `{}`", plan.title, plan.stage),
        tasks => format!("`{}` in `{}` ({tasks} tasks)", plan.title, plan.stage),
    };
    let of = |plan: &PlanRow, basis: Basis| -> Vec<Figure> {
        let mut list: Vec<Figure> =
            plan.figures.iter().filter(|f| f.basis == basis && f.median_ns.is_some()).cloned().collect();
        list.sort_by_key(|figure| figure.median_ns);
        list
    };
    for plan in plans.iter().filter(|plan| plan.gpu_eligible).take(PLANS) {
        for basis in [Basis::Rerun, Basis::Measured] {
            let mut figures = of(plan, basis);
            // Times of two machines are not compared: those of the machine that the first figure is from count.
            let note =
                plan.figures.iter().find(|f| f.basis == basis && f.median_ns.is_some()).and_then(|f| f.note.clone());
            figures.retain(|figure| figure.note == note);
            let Some((best, others)) = figures.split_first() else { continue };
            // The best of the other kind of device: what the worst GPU of several takes decides nothing.
            let is_other = |figure: &&Figure| kind(&figure.device) != kind(&best.device);
            let Some(other) = others.iter().find(is_other).or_else(|| others.first()) else { continue };
            let (Some(best_ns), Some(other_ns)) = (best.median_ns, other.median_ns) else { continue };
            let how = if basis == Basis::Rerun { " (rerun)" } else { "" };
            let note = note.map_or(String::new(), |note| format!(" ({note})"));
            let text = format!(
                "{} is fastest on {}: {} measured on {}{how}, {} measured on {}{how}: {:.1}x{note}",
                name(plan),
                best.device,
                duration(best_ns),
                best.device,
                duration(other_ns),
                other.device,
                other_ns as f64 / best_ns.max(1) as f64
            );
            list.say("devices", basis, text);
            break;
        }
        let Some(only) = &plan.only_on else { continue };
        let predicted = of(plan, Basis::Predicted);
        let predicted: Vec<String> = predicted
            .iter()
            .filter_map(|figure| Some(format!("{} predicted on {}", duration(figure.median_ns?), figure.device)))
            .collect();
        let also = if predicted.is_empty() { String::new() } else { format!(" ({})", predicted.join(", ")) };
        let basis = if predicted.is_empty() { Basis::Measured } else { Basis::Predicted };
        let text = format!(
            "{} was measured on {only} alone{also}: `breakeven profile FILE --measure-baseline` runs it again on every device",
            name(plan)
        );
        list.say("baseline", basis, text);
    }
}

/// What a device is, without its number: `cpu`, `gpu`, or several of them.
fn kind(device: &str) -> &str {
    device.split_once(':').map_or(device, |(kind, _)| kind)
}

fn not_kept(analysis: &Analysis, list: &mut List) {
    let kinds = [("spans", analysis.spans_not_kept), ("batches", analysis.batches_not_kept)];
    let some: Vec<String> = kinds.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
    if !some.is_empty() {
        let text =
            format!("of {} only the sums were kept: timelines and lists of batches leave them out", some.join(" and "));
        list.say("not_kept", Basis::Measured, text);
    }
}
