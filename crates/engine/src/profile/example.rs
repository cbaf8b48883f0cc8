//! A made-up profile with known stages, for documentation and tests: nothing enters, and every figure that leaves can be
//! checked by hand.

use super::{
    BatchRecord, DecisionRecord, Expected, Frame, FrameKind, MachineRecord, PROFILE_VERSION, Phase, PlanRecord,
    Profile, Span, ThreadRecord,
};

/// What `softmax` of 64 rows of 100 elements is recorded as.
const SOFTMAX: &str = "recipe 1
f32[64,100] input x
f32[64,1] max 0 axes 1 blank
f32[64,100] sub 0 1
f32[64,100] exp 2
f32[64,1] sum 3 axes 1
f32[64,1] reciprocal 4
f32[64,100] mul 3 5
outputs 6
";

/// Frames of the example, by name.
const PARSE: u32 = 1;
const READ: u32 = 2;
const INLINE: u32 = 3;
const SCORE: u32 = 4;
const SOFTMAX_BATCH: u32 = 5;
const RECORD: u32 = 6;
const PLAN: u32 = 7;
const KERNELS: u32 = 8;
const DEVICE: u32 = 9;
const CONVERT: u32 = 10;
const SORT_BATCH: u32 = 11;

/// Tenths of a millisecond.
const fn ns(tenths: u64) -> u64 {
    tenths * 100_000
}

impl Profile {
    /// A run of 100 ms on one thread: 10 ms of `parse` (2 ms of it waiting for a file), 69 ms of `inline_variables`, 20 ms of
    /// `score` with 9 ms of batches that a GPU can run and 7 ms of one that it can't, and 1 ms outside of all stages.
    ///
    /// ```
    /// use breakeven::profile::Profile;
    /// assert_eq!(Profile::example().check(), Ok(()));
    /// ```
    pub fn example() -> Profile {
        Profile {
            version: PROFILE_VERSION,
            title: "example".to_owned(),
            machine: MachineRecord {
                cpu: "Example CPU".to_owned(),
                threads: 2,
                devices: [("gpu:0".to_owned(), "Example GPU".to_owned())].into(),
            },
            wall_ns: ns(1000),
            threads: vec![ThreadRecord {
                name: "main".to_owned(),
                begin_ns: 0,
                end_ns: ns(1000),
                frames: frames(),
                spans: spans(),
            }],
            plans: vec![
                PlanRecord {
                    title: "softmax".to_owned(),
                    kernels: 1,
                    gpu_eligible: true,
                    recipe: Some(SOFTMAX.to_owned()),
                },
                PlanRecord { title: "sort".to_owned(), kernels: 3, gpu_eligible: false, recipe: None },
            ],
            batches: batches(),
            spans_not_kept: 0,
            batches_not_kept: 0,
            reruns: Vec::new(),
        }
    }
}

fn frames() -> Vec<Frame> {
    use FrameKind::{Batch, DeviceWait, Phase, Stage, Thread, Wait};
    let frame = |name: &str, kind, parent, count, total, own| Frame {
        name: name.to_owned(),
        kind,
        parent,
        count,
        total_ns: ns(total),
        self_ns: ns(own),
    };
    vec![
        frame("main", Thread, None, 1, 1000, 10),
        frame("parse", Stage, Some(0), 1, 100, 80),
        frame("read", Wait, Some(PARSE), 1, 20, 20),
        frame("inline_variables", Stage, Some(0), 6, 690, 690),
        frame("score", Stage, Some(0), 1, 200, 40),
        frame("softmax", Batch, Some(SCORE), 3, 90, 3),
        frame("record", Phase, Some(SOFTMAX_BATCH), 3, 3, 3),
        frame("plan", Phase, Some(SOFTMAX_BATCH), 3, 3, 3),
        frame("kernels", Phase, Some(SOFTMAX_BATCH), 2, 34, 34),
        frame("device", DeviceWait, Some(SOFTMAX_BATCH), 1, 45, 45),
        frame("convert", Phase, Some(SOFTMAX_BATCH), 1, 2, 2),
        frame("sort", Batch, Some(SCORE), 1, 70, 70),
    ]
}

/// In the order in which they end.
fn spans() -> Vec<Span> {
    let mut spans = Vec::new();
    let mut span = |frame: u32, begin: u64, end: u64, batch: Option<u32>| {
        spans.push(Span { frame, begin_ns: ns(begin), end_ns: ns(end), batch });
    };
    span(READ, 10, 30, None);
    span(PARSE, 5, 105, None);
    (0..6).for_each(|n| span(INLINE, 105 + 115 * n, 220 + 115 * n, None));
    for (number, at) in [(0, 800), (1, 825)] {
        span(RECORD, at, at + 1, None);
        span(PLAN, at + 1, at + 2, None);
        span(KERNELS, at + 2, at + 19, None);
        span(SOFTMAX_BATCH, at, at + 20, Some(number));
    }
    span(RECORD, 850, 851, None);
    span(PLAN, 851, 852, None);
    span(DEVICE, 852, 897, None);
    span(CONVERT, 897, 899, None);
    span(SOFTMAX_BATCH, 850, 900, Some(2));
    span(SORT_BATCH, 910, 980, Some(3));
    span(SCORE, 795, 995, None);
    spans
}

fn batches() -> Vec<BatchRecord> {
    use Phase::{Convert, Kernels, Plan, Readback, Record, Upload};
    let batch = |plan, tasks, frame, begin, end, phases: &[(Phase, u64)], decision| BatchRecord {
        plan,
        tasks,
        thread: 0,
        frame,
        begin_ns: ns(begin),
        end_ns: ns(end),
        phases: phases.iter().map(|(phase, tenths)| (*phase, ns(*tenths))).collect(),
        decision,
    };
    let expected =
        |device: &str, tenths, measured| Expected { device: device.to_owned(), expected_ns: ns(tenths), measured };
    let decision = |device: &str, reason: &str, tenths| DecisionRecord {
        device: device.to_owned(),
        reason: reason.to_owned(),
        actual_ns: ns(tenths),
        ..DecisionRecord::default()
    };
    let on_cpu = [(Record, 1), (Plan, 1), (Kernels, 17)];
    let on_gpu = [(Record, 1), (Plan, 1), (Upload, 15), (Kernels, 10), (Readback, 20), (Convert, 2)];
    vec![
        batch(
            0,
            20,
            SOFTMAX_BATCH,
            800,
            820,
            &on_cpu,
            DecisionRecord {
                predicted: vec![expected("cpu", 19, true), expected("gpu:0", 25, false)],
                ..decision("cpu", "the CPU is expected to be done first", 19)
            },
        ),
        batch(
            0,
            20,
            SOFTMAX_BATCH,
            825,
            845,
            &on_cpu,
            DecisionRecord {
                fallbacks: 1,
                faults: vec!["gpu:0 was lost".to_owned()],
                ..decision("cpu", "gpu:0 failed", 19)
            },
        ),
        batch(
            0,
            20,
            SOFTMAX_BATCH,
            850,
            900,
            &on_gpu,
            DecisionRecord {
                predicted: vec![expected("cpu", 19, true), expected("gpu:0", 15, false)],
                regret_ns: Some(ns(29)),
                submits: 1,
                upload_bytes: 512_000,
                readback_bytes: 512_000,
                ..decision("gpu:0", "gpu:0 is expected to be done first", 48)
            },
        ),
        batch(1, 1, SORT_BATCH, 910, 980, &[(Kernels, 68)], decision("cpu", "no GPU can run it", 70)),
    ]
}
