//! What a profile says: a profile enters, an [`Analysis`] leaves, a plain value in which everything adds up.

use super::advice::{Advice, advice};
use super::amdahl::{Amdahl, amdahl};
use super::compared::{PlanRow, compared};
use super::merged::{Node, merged, path};
use super::shares::thousandths;
use super::stages::{StageRow, stages};
use super::{Fault, FrameKind, MachineRecord, Phase, Profile, ThreadRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of an analysis as JSON; one more whenever a reader of the old form would misread it.
pub const ANALYSIS_VERSION: u32 = 1;

/// What a profile says.
///
/// ```
/// use breakeven::profile::Profile;
/// let analysis = Profile::example().analysis()?;
/// assert_eq!(
///     analysis.headline,
///     "GPU-eligible work is 9 % of this run: an infinitely fast GPU would make it 1.10x faster; \
///      the largest stage is `inline_variables` with 69 %"
/// );
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// [`ANALYSIS_VERSION`].
    pub version: u32,
    /// What was profiled.
    pub title: String,
    /// Where.
    pub machine: MachineRecord,
    /// From the beginning to the end.
    pub wall_ns: u64,
    /// The time of all threads together, which parts are taken of unless something else is said.
    pub thread_ns: u64,
    /// What matters most, in a sentence.
    pub headline: String,
    /// How much a GPU could gain at most.
    pub amdahl: Amdahl,
    /// What follows from the figures.
    pub advice: Vec<Advice>,
    /// What each thread did.
    pub threads: Vec<ThreadRow>,
    /// The call trees of all threads, merged by path.
    pub tree: Vec<Node>,
    /// The nodes of the tree, by self time.
    pub top: Vec<TopRow>,
    /// The user's stages, and what is in none of them, by their own time.
    pub stages: Vec<StageRow>,
    /// What plans took where.
    pub plans: Vec<PlanRow>,
    /// What ran on each device.
    pub devices: Vec<DeviceRow>,
    /// What the parts of all batches took together.
    pub phases_ns: BTreeMap<Phase, u64>,
    /// Spans of which only the sums are known.
    pub spans_not_kept: u64,
    /// Batches of which only the sums are known.
    pub batches_not_kept: u64,
}

/// How a thread spent its time.
///
/// ```
/// use breakeven::profile::Profile;
/// let thread = &Profile::example().analysis()?.threads[0];
/// assert_eq!(thread.work_ns + thread.device_wait_ns + thread.idle_ns + thread.wait_ns, thread.total_ns);
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadRow {
    /// Its name.
    pub name: String,
    /// From joining to leaving.
    pub total_ns: u64,
    /// In which it worked, or in which no span says that it waited.
    pub work_ns: u64,
    /// In which it waited for a device or the queue.
    pub device_wait_ns: u64,
    /// In which it had nothing to do.
    pub idle_ns: u64,
    /// In which it waited for something else.
    pub wait_ns: u64,
}

/// A node of the tree in the list by self time.
///
/// ```
/// use breakeven::profile::Profile;
/// assert_eq!(Profile::example().analysis()?.top[0].path, "inline_variables");
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TopRow {
    /// The names from the thread down to it.
    pub path: String,
    /// What it is.
    pub kind: FrameKind,
    /// How many spans.
    pub count: u64,
    /// Their time, with that of nodes below.
    pub total_ns: u64,
    /// Their time without that of nodes below.
    pub self_ns: u64,
    /// The part of all threads' time that this is, in thousandths, which add up to 1000 over the list.
    pub thousandths: u64,
}

/// What ran on a device.
///
/// ```
/// use breakeven::profile::Profile;
/// let analysis = Profile::example().analysis()?;
/// assert_eq!(analysis.devices.iter().map(|device| device.batches).sum::<u64>(), 4);
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct DeviceRow {
    /// The device's id; several at once where they shared the work.
    pub device: String,
    /// How many batches.
    pub batches: u64,
    /// How many tasks they had.
    pub tasks: u64,
    /// Their time, from their beginning to their end.
    pub total_ns: u64,
    /// What their parts took.
    pub phases_ns: BTreeMap<Phase, u64>,
    /// Submissions.
    pub submits: u64,
    /// Bytes that went to it.
    pub upload_bytes: u64,
    /// Bytes that came back.
    pub readback_bytes: u64,
    /// Devices that were tried in vain before.
    pub fallbacks: u64,
}

impl Profile {
    /// What the profile says; an error if it does not add up.
    pub fn analysis(&self) -> Result<Analysis, Fault> {
        self.analysis_of(|_| true)
    }

    /// The same for the threads of that name alone; none has it if there are no threads in what comes back. The bound and
    /// the advice are those of the whole run.
    pub fn analysis_of_thread(&self, name: &str) -> Result<Analysis, Fault> {
        self.analysis_of(|thread| thread.name == name)
    }

    fn analysis_of(&self, wanted: impl Fn(&ThreadRecord) -> bool) -> Result<Analysis, Fault> {
        self.check()?;
        let (amdahl, eligible) = amdahl(self);
        let whole = merged(self, |_| true);
        let (all_stages, stage_of) = stages(&whole, &eligible);
        let plans = compared(self, &whole, &all_stages, &stage_of);
        let devices = devices(self);
        let mut phases_ns = BTreeMap::new();
        devices.iter().for_each(|device| add_phases(&mut phases_ns, &device.phases_ns));
        let threads: Vec<ThreadRow> = self.threads.iter().filter(|thread| wanted(thread)).map(thread_row).collect();
        let some = merged(self, &wanted);
        let stages = stages(&some, &eligible).0;
        let headline = headline(&amdahl, &all_stages, self.threads.len());
        let mut analysis = Analysis {
            version: ANALYSIS_VERSION,
            title: self.title.clone(),
            machine: self.machine.clone(),
            wall_ns: self.wall_ns,
            thread_ns: threads.iter().map(|thread| thread.total_ns).sum(),
            headline,
            amdahl,
            advice: Vec::new(),
            threads,
            top: top(&some.nodes),
            tree: some.nodes,
            stages,
            plans,
            devices,
            phases_ns,
            spans_not_kept: self.spans_not_kept,
            batches_not_kept: self.batches_not_kept,
        };
        let everybody: Vec<ThreadRow> = self.threads.iter().map(thread_row).collect();
        analysis.advice = advice(self, &analysis, &everybody, &all_stages);
        Ok(analysis)
    }
}

impl Analysis {
    /// The analysis as JSON, two blanks a level, the same bytes for the same profile; docs/formats.md has its fields.
    pub fn to_json(&self) -> String {
        // Numbers, strings and maps whose keys are names: nothing that JSON could not say.
        serde_json::to_string_pretty(self).map_or(String::new(), |text| text + "\n")
    }
}

fn thread_row(thread: &ThreadRecord) -> ThreadRow {
    let of = |kind: FrameKind| thread.frames.iter().filter(|f| f.kind == kind).map(|f| f.self_ns).sum::<u64>();
    let total_ns = thread.end_ns - thread.begin_ns;
    let (device_wait_ns, idle_ns, wait_ns) = (of(FrameKind::DeviceWait), of(FrameKind::Idle), of(FrameKind::Wait));
    let work_ns = total_ns - device_wait_ns - idle_ns - wait_ns;
    ThreadRow { name: thread.name.clone(), total_ns, work_ns, device_wait_ns, idle_ns, wait_ns }
}

fn top(nodes: &[Node]) -> Vec<TopRow> {
    let mut rows: Vec<TopRow> = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.self_ns > 0)
        .map(|(at, node)| TopRow {
            path: path(nodes, at),
            kind: node.kind,
            count: node.count,
            total_ns: node.total_ns,
            self_ns: node.self_ns,
            thousandths: 0,
        })
        .collect();
    rows.sort_by(|a, b| (b.self_ns, &a.path).cmp(&(a.self_ns, &b.path)));
    let shares = thousandths(&rows.iter().map(|row| row.self_ns).collect::<Vec<_>>());
    rows.iter_mut().zip(shares).for_each(|(row, share)| row.thousandths = share);
    rows
}

fn devices(profile: &Profile) -> Vec<DeviceRow> {
    let mut rows: BTreeMap<&str, DeviceRow> = BTreeMap::new();
    for batch in &profile.batches {
        let decision = &batch.decision;
        let row = rows.entry(&decision.device).or_default();
        row.device.clone_from(&decision.device);
        row.batches += 1;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut row.tasks, batch.tasks);
        add(&mut row.total_ns, batch.end_ns - batch.begin_ns);
        add(&mut row.submits, decision.submits.into());
        add(&mut row.upload_bytes, decision.upload_bytes);
        add(&mut row.readback_bytes, decision.readback_bytes);
        add(&mut row.fallbacks, decision.fallbacks.into());
        add_phases(&mut row.phases_ns, &batch.phases);
    }
    rows.into_values().collect()
}

fn add_phases(to: &mut BTreeMap<Phase, u64>, more: &BTreeMap<Phase, u64>) {
    for (phase, ns) in more {
        let sum = to.entry(*phase).or_default();
        *sum = sum.saturating_add(*ns);
    }
}

/// What matters most, in a sentence.
fn headline(amdahl: &Amdahl, stages: &[StageRow], threads: usize) -> String {
    // Of several threads it is a bound; of one it is what would happen.
    let most = if threads > 1 { "at most " } else { "" };
    let gain = match amdahl.bound {
        Some(bound) => format!("{most}{bound:.2}x faster"),
        None => "as fast as anyone likes".to_owned(),
    };
    let largest = stages.iter().filter(|stage| stage.is_stage).max_by_key(|stage| stage.busy_ns());
    let largest = largest.filter(|stage| stage.busy_ns() > 0).map_or_else(
        || "no stage is named (`span!`)".to_owned(),
        |stage| format!("the largest stage is `{}` with {}", stage.name, percent(stage.busy_ns(), amdahl.run_ns)),
    );
    let share = percent(amdahl.eligible_ns, amdahl.run_ns);
    format!("GPU-eligible work is {share} of this run: an infinitely fast GPU would make it {gain}; {largest}")
}

/// A part in words: `9 %`. What is not all of it does not look like it, and neither does what is not nothing.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / (whole.max(1)) as f64;
    match share {
        _ if part == 0 => "0 %".to_owned(),
        s if s < 0.5 => "less than 1 %".to_owned(),
        s if s >= 99.5 && part < whole => "more than 99 %".to_owned(),
        s => format!("{s:.0} %"),
    }
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
