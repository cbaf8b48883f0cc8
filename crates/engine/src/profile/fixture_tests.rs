//! Made-up profiles for the tests of this folder.

use super::{
    BatchRecord, DecisionRecord, Frame, FrameKind, MachineRecord, PROFILE_VERSION, Phase, PlanRecord, Profile, Rerun,
    Span, ThreadRecord,
};

/// A frame of a thread: name, kind, caller, self time.
pub(super) type Row<'a> = (&'a str, FrameKind, Option<u32>, u64);

/// A thread whose totals follow from its self times.
pub(super) fn thread(name: &str, begin_ns: u64, rows: &[Row<'_>]) -> ThreadRecord {
    let mut frames: Vec<Frame> = rows
        .iter()
        .map(|(name, kind, parent, self_ns)| Frame {
            name: (*name).to_owned(),
            kind: *kind,
            parent: *parent,
            count: 1,
            total_ns: *self_ns,
            self_ns: *self_ns,
        })
        .collect();
    for at in (1..frames.len()).rev() {
        let (total_ns, parent) = (frames[at].total_ns, frames[at].parent.unwrap());
        frames[parent as usize].total_ns += total_ns;
    }
    let end_ns = begin_ns + frames[0].total_ns;
    ThreadRecord { name: name.to_owned(), begin_ns, end_ns, frames, spans: Vec::new() }
}

/// A profile of these threads.
pub(super) fn profile(threads: Vec<ThreadRecord>) -> Profile {
    Profile {
        version: PROFILE_VERSION,
        title: "fixture".to_owned(),
        machine: MachineRecord::default(),
        wall_ns: threads.iter().map(|thread| thread.end_ns).max().unwrap_or(0),
        threads,
        plans: [true, false]
            .map(|gpu_eligible| PlanRecord { title: "plan".to_owned(), kernels: 1, gpu_eligible, recipe: None })
            .into(),
        batches: Vec::new(),
        spans_not_kept: 0,
        batches_not_kept: 0,
        reruns: Vec::new(),
    }
}

/// A batch of the frame, from its beginning to its end; plan 0 is eligible, plan 1 is not.
pub(super) fn batch(plan: u32, thread: u32, frame: u32, begin_ns: u64, end_ns: u64) -> BatchRecord {
    let decision =
        DecisionRecord { device: "cpu".to_owned(), actual_ns: end_ns - begin_ns, ..DecisionRecord::default() };
    BatchRecord { plan, tasks: 1, thread, frame, begin_ns, end_ns, phases: Default::default(), decision }
}

/// Two threads with work in the queue: `main` waits for its ticket while `worker` runs a batch that had to wait, and names
/// have in them what formats must escape.
pub(super) fn queued() -> Profile {
    use FrameKind::{Batch, DeviceWait, Idle, Stage, Thread};
    let main =
        [("main", Thread, None, 1_000), ("a;b \"c\"\n", Stage, Some(0), 2_500), ("ticket", Idle, Some(1), 6_500)];
    let worker = [
        ("worker", Thread, None, 500),
        ("idle", Idle, Some(0), 2_000),
        ("sum", Batch, Some(0), 1_000),
        ("device", DeviceWait, Some(2), 4_000),
    ];
    let mut profile = profile(vec![thread("main", 0, &main), thread("worker", 1_000, &worker)]);
    let span = |frame, begin_ns, end_ns, batch| Span { frame, begin_ns, end_ns, batch };
    profile.threads[0].spans = vec![span(2, 3_000, 9_500, None), span(1, 500, 9_500, None)];
    profile.threads[1].spans =
        vec![span(1, 1_000, 3_000, None), span(3, 3_500, 7_500, None), span(2, 3_250, 8_250, Some(0))];
    let mut queued = batch(0, 1, 2, 3_250, 8_250);
    queued.phases = [(Phase::Queue, 1_250), (Phase::Upload, 1_500), (Phase::Kernels, 2_000)].into();
    queued.decision.device = "gpu:0".to_owned();
    profile.batches = vec![queued];
    profile
}

/// The example with reruns on both devices, one of which failed.
pub(super) fn rerun() -> Profile {
    let mut profile = Profile::example();
    let rerun = |device: &str, samples, median_ns, missing: Option<&str>, elsewhere: Option<&str>| Rerun {
        plan: 0,
        tasks: 20,
        device: device.to_owned(),
        samples,
        median_ns,
        mad_ns: median_ns / 50,
        missing: missing.map(str::to_owned),
        elsewhere: elsewhere.map(str::to_owned),
    };
    profile.reruns = vec![
        rerun("cpu", 15, 1_500_000, None, None),
        rerun("gpu:0", 15, 600_000, None, None),
        rerun("gpu:1", 0, 0, Some("the device was lost"), None),
        rerun("gpu:2", 15, 300_000, None, Some("Another CPU, 8 threads")),
    ];
    profile
}
