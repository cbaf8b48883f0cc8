//! A profile as plain values. Times are nanoseconds since the profile began.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the JSON form; one more whenever a reader of the old form would misread it.
pub const PROFILE_VERSION: u32 = 1;

/// What was recorded between the beginning and the end of a profile.
///
/// ```
/// # use breakeven::profile::Profile;
/// let profile = Profile::example();
/// assert_eq!((profile.wall_ns, profile.threads.len(), profile.batches.len()), (100_000_000, 1, 4));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_VERSION`] of whoever wrote it.
    pub version: u32,
    /// What was profiled, in words.
    pub title: String,
    /// Where.
    pub machine: MachineRecord,
    /// From the beginning to the end.
    pub wall_ns: u64,
    /// The threads that took part, in the order in which they joined.
    pub threads: Vec<ThreadRecord>,
    /// The different plans of the batches.
    pub plans: Vec<PlanRecord>,
    /// Batches, in the order in which they began.
    pub batches: Vec<BatchRecord>,
    /// How many spans are in the sums of their frames, but not in [`ThreadRecord::spans`], because there were too many.
    pub spans_not_kept: u64,
    /// The same for [`Profile::batches`].
    pub batches_not_kept: u64,
    /// What plans took when they were run again on every device, to compare.
    pub reruns: Vec<Rerun>,
}

/// The machine of a profile.
///
/// ```
/// # use breakeven::profile::Profile;
/// assert_eq!(Profile::example().machine.devices["gpu:0"], "Example GPU");
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MachineRecord {
    /// The processor.
    pub cpu: String,
    /// Threads of the engine.
    pub threads: usize,
    /// The devices that were in use beside the CPU, by id, in words.
    pub devices: BTreeMap<String, String>,
}

/// What one thread did.
///
/// ```
/// # use breakeven::profile::Profile;
/// let thread = &Profile::example().threads[0];
/// let self_ns: u64 = thread.frames.iter().map(|frame| frame.self_ns).sum();
/// assert_eq!(self_ns, thread.end_ns - thread.begin_ns);
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Its name.
    pub name: String,
    /// When it joined.
    pub begin_ns: u64,
    /// When it left, or the profile ended.
    pub end_ns: u64,
    /// Its call tree: the first frame is the thread itself, callers come before what they call.
    /// The self times of all frames add up to `end_ns - begin_ns`.
    pub frames: Vec<Frame>,
    /// Single spans, in the order in which they ended.
    pub spans: Vec<Span>,
}

/// A place in a thread's call tree: all spans of one name below the same caller.
///
/// ```
/// # use breakeven::profile::Profile;
/// let frame = &Profile::example().threads[0].frames[1];
/// assert_eq!((&*frame.name, frame.total_ns, frame.self_ns), ("parse", 10_000_000, 8_000_000));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// What it is called; a batch is called as its plan ([`PlanRecord::title`]).
    pub name: String,
    /// What it is.
    pub kind: FrameKind,
    /// The frame it is called from; none for the thread itself.
    pub parent: Option<u32>,
    /// How many spans.
    pub count: u64,
    /// Their time, with that of frames below.
    pub total_ns: u64,
    /// Their time without that of frames below.
    pub self_ns: u64,
}

/// What a [`Frame`] is.
///
/// ```
/// use breakeven::profile::FrameKind;
/// assert!(FrameKind::Idle.is_waiting() && !FrameKind::Stage.is_waiting());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// A thread: its self time is what no span covers.
    Thread,
    /// One of the user's stages.
    Stage,
    /// A batch of the engine.
    Batch,
    /// A part of a batch, worked on by this thread.
    Phase,
    /// A part of a batch that this thread waited for: a device was at work, or the queue.
    DeviceWait,
    /// The thread had nothing to do but wait: for work, or for a ticket.
    Idle,
    /// One of the user's stages in which the thread waited for something else: a file, a socket, a lock.
    Wait,
}

/// One span.
///
/// ```
/// # use breakeven::profile::Profile;
/// let span = Profile::example().threads[0].spans[0];
/// assert_eq!(span.end_ns - span.begin_ns, 2_000_000);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Span {
    /// Its frame in [`ThreadRecord::frames`].
    pub frame: u32,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The batch that it is, in [`Profile::batches`].
    pub batch: Option<u32>,
}

/// The parts of a batch, in their order.
///
/// ```
/// use breakeven::profile::Phase;
/// assert_eq!(Phase::ALL.map(Phase::name)[3], "upload");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading what was recorded: the graph's structure and its leaves, or a program's values.
    Record,
    /// Finding the plan, or making it, and choosing the device.
    Plan,
    /// Waiting for a worker.
    Queue,
    /// Bytes on their way to the device.
    Upload,
    /// The kernels.
    Kernels,
    /// Bytes on their way back.
    Readback,
    /// Results put where the caller wants them.
    Convert,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 7] =
        [Phase::Record, Phase::Plan, Phase::Queue, Phase::Upload, Phase::Kernels, Phase::Readback, Phase::Convert];

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Record => "record",
            Phase::Plan => "plan",
            Phase::Queue => "queue",
            Phase::Upload => "upload",
            Phase::Kernels => "kernels",
            Phase::Readback => "readback",
            Phase::Convert => "convert",
        }
    }
}

/// A plan that batches ran.
///
/// ```
/// # use breakeven::profile::Profile;
/// assert!(Profile::example().plans[0].gpu_eligible);
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlanRecord {
    /// What it computes, in a few words; no two plans of a profile have the same.
    pub title: String,
    /// How many kernels it has.
    pub kernels: usize,
    /// Could a GPU run it?
    pub gpu_eligible: bool,
    /// The graph that was recorded, from which it can be run again on other data of the same shapes; `None` where that is
    /// not known.
    pub recipe: Option<String>,
}

/// One batch.
///
/// ```
/// # use breakeven::profile::Profile;
/// let batch = &Profile::example().batches[2];
/// assert!(batch.phases.values().sum::<u64>() <= batch.end_ns - batch.begin_ns);
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BatchRecord {
    /// Its plan in [`Profile::plans`]; the first one, where tasks are of different sizes.
    pub plan: u32,
    /// How many tasks it had.
    pub tasks: u64,
    /// The thread that ran it, in [`Profile::threads`].
    pub thread: u32,
    /// Its frame there.
    pub frame: u32,
    /// When it began; a job's waiting in the queue comes before that.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What its parts took; parts that it did not have are missing. They are parts of the time that passed: what a batch took
    /// on a simulated device is divided in the proportion that the device tells. Kernels are by the device's own clock, where
    /// that was read.
    pub phases: BTreeMap<Phase, u64>,
    /// Where it ran and why.
    pub decision: DecisionRecord,
}

/// A [`Decision`](crate::Decision) as a profile keeps it.
///
/// ```
/// # use breakeven::profile::Profile;
/// assert_eq!(Profile::example().batches[2].decision.device, "gpu:0");
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The device that the results come from; empty if there are none.
    pub device: String,
    /// Why there.
    pub reason: String,
    /// What each device was expected to take.
    pub predicted: Vec<Expected>,
    /// What it took, from choosing the device to the results; what a simulated device tells, where it ran on one.
    pub actual_ns: u64,
    /// What it took longer than on the best other device, where that was measured.
    pub regret_ns: Option<u64>,
    /// Submissions to a device.
    pub submits: u32,
    /// Bytes that went to it.
    pub upload_bytes: u64,
    /// Bytes that came back.
    pub readback_bytes: u64,
    /// How many devices were tried in vain before.
    pub fallbacks: u32,
    /// What went wrong on them.
    pub faults: Vec<String>,
    /// Is its time what a simulated device tells, rather than what passed?
    #[serde(default)]
    pub simulated: bool,
}

/// A prediction.
///
/// ```
/// # use breakeven::profile::Profile;
/// let expected = &Profile::example().batches[0].decision.predicted[1];
/// assert_eq!((&*expected.device, expected.measured), ("gpu:0", false));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expected {
    /// The device's id.
    pub device: String,
    /// What it was expected to take.
    pub expected_ns: u64,
    /// Does the expectation come from batches of this very plan?
    pub measured: bool,
}

/// What a plan took on a device when it was run again to compare.
///
/// ```
/// use breakeven::profile::{Profile, Rerun};
/// let mut profile = Profile::example();
/// let (device, missing) = ("gpu:1".to_owned(), Some("the device was lost".to_owned()));
/// profile.reruns = vec![Rerun { plan: 0, tasks: 20, device, samples: 0, median_ns: 0, mad_ns: 0, missing, elsewhere: None }];
/// assert_eq!(profile.check(), Ok(()));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rerun {
    /// The plan in [`Profile::plans`].
    pub plan: u32,
    /// How many tasks at once.
    pub tasks: u64,
    /// The device's id.
    pub device: String,
    /// How often it ran.
    pub samples: usize,
    /// The median.
    pub median_ns: u64,
    /// The median of the distances from it.
    pub mad_ns: u64,
    /// Why there are no samples, if so: the device failed, or can't run it.
    pub missing: Option<String>,
    /// The other machine on which it ran again, if it was not the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
}
