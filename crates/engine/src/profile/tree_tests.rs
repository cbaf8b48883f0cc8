//! The call tree against a plain reference, under random openings and closings; leaks, orders and limits.

use super::*;
use crate::route::OnCpu;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn entry(begin_ns: u64, end_ns: u64) -> BatchEntry {
    let told = super::super::told::Told::Cpu(OnCpu::Asked, None);
    BatchEntry { plan: 0, tasks: 1, frame: 0, begin_ns, end_ns, phases: Default::default(), told, is_plain: true }
}

fn part(phase: Phase, begin_ns: u64, end_ns: u64) -> Part {
    Part { phase, kind: FrameKind::Phase, begin_ns, end_ns }
}

/// Frames by their paths: how often, total, self.
fn paths(record: &ThreadRecord) -> BTreeMap<String, (u64, u64, u64)> {
    let path = |mut at: usize| {
        let mut names = vec![record.frames[at].name.clone()];
        while let Some(parent) = record.frames[at].parent {
            at = parent as usize;
            names.insert(0, record.frames[at].name.clone());
        }
        names.join("/")
    };
    let row = |(at, frame): (usize, &Frame)| (path(at), (frame.count, frame.total_ns, frame.self_ns));
    record.frames.iter().enumerate().map(row).collect()
}

fn self_sum(record: &ThreadRecord) -> u64 {
    record.frames.iter().map(|frame| frame.self_ns).sum()
}

#[test]
fn self_time_is_total_time_without_what_is_below() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 100);
    tree.open(1, FrameKind::Stage, Text::Fixed("outer"), 110, &budget);
    tree.open(2, FrameKind::Stage, Text::Fixed("inner"), 130, &budget);
    tree.close(2, 150, &budget);
    tree.open(3, FrameKind::Stage, Text::Made("inner"), 150, &budget);
    tree.close(3, 155, &budget);
    tree.close(1, 160, &budget);
    tree.end(200, &budget);
    let record = tree.take_record(&[]);
    assert_eq!((record.begin_ns, record.end_ns, self_sum(&record)), (100, 200, 100));
    let expected = [("main", (1, 100, 50)), ("main/outer", (1, 50, 25)), ("main/outer/inner", (2, 25, 25))];
    assert_eq!(paths(&record), expected.map(|(path, row)| (path.to_owned(), row)).into());
    assert_eq!(record.spans.len(), 3, "the thread itself is no span");
}

#[test]
fn a_batch_lies_below_its_stage_with_its_phases() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    tree.open(1, FrameKind::Stage, Text::Fixed("stage"), 10, &budget);
    let parts = [part(Phase::Record, 20, 25), part(Phase::Kernels, 25, 45)];
    tree.add_batch(0, &parts, entry(20, 50), &budget);
    tree.add_batch(0, &parts, entry(50, 60), &budget);
    tree.end(70, &budget);
    assert_eq!(tree.batches.iter().map(|b| (b.begin_ns, b.end_ns)).collect::<Vec<_>>(), [(20, 50), (50, 60)]);
    let record = tree.take_record(&["exp".into()]);
    let rows = paths(&record);
    assert_eq!(rows["main/stage/exp"], (2, 40, 15));
    assert_eq!(rows["main/stage/exp/kernels"], (2, 20, 20), "parts that lie before the last event take no time");
    assert_eq!((rows["main/stage"].2, self_sum(&record)), (20, 70));
    let batches: Vec<_> = record.spans.iter().filter_map(|span| span.batch).collect();
    assert_eq!(batches, [0, 1]);
}

#[test]
fn spans_of_small_batches_are_made_of_their_parts() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    let parts = [part(Phase::Record, 20, 25), part(Phase::Plan, 25, 28), part(Phase::Kernels, 28, 50)];
    let mut batch = entry(20, 50);
    parts.iter().for_each(|part| batch.phases.set(part.phase, part.end_ns - part.begin_ns));
    tree.open(1, FrameKind::Stage, Text::Fixed("stage"), 10, &budget);
    tree.add_batch(0, &parts, batch, &budget);
    tree.end(70, &budget);
    let record = tree.take_record(&["exp".into()]);
    let row = |span: &Span| (&*record.frames[span.frame as usize].name, span.begin_ns, span.end_ns, span.batch);
    let expected = [
        ("record", 20, 25, None),
        ("plan", 25, 28, None),
        ("kernels", 28, 50, None),
        ("exp", 20, 50, Some(0)),
        ("stage", 10, 70, None),
    ];
    assert_eq!(record.spans.iter().map(row).collect::<Vec<_>>(), expected);
}

#[test]
fn whoever_leaks_a_span_ends_it_with_its_caller() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    tree.open(1, FrameKind::Stage, Text::Fixed("a"), 0, &budget);
    tree.open(2, FrameKind::Stage, Text::Fixed("leaked"), 10, &budget);
    tree.close(1, 30, &budget);
    tree.close(2, 40, &budget);
    tree.close(77, 50, &budget);
    tree.open(3, FrameKind::Stage, Text::Fixed("open"), 60, &budget);
    tree.end(100, &budget);
    tree.close(3, 120, &budget);
    let record = tree.take_record(&[]);
    let rows = paths(&record);
    assert_eq!((rows["main/a"], rows["main/a/leaked"], rows["main/open"]), ((1, 30, 10), (1, 20, 20), (1, 40, 40)));
    assert_eq!((rows["main"].2, self_sum(&record)), (30, 100));
}

#[test]
fn a_span_that_ends_alone_leaves_the_others_open() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    tree.open(1, FrameKind::Stage, Text::Fixed("a"), 0, &budget);
    tree.open(2, FrameKind::Stage, Text::Fixed("b"), 10, &budget);
    tree.close_alone(1, 30, &budget);
    tree.close_alone(2, 40, &budget);
    tree.end(50, &budget);
    let record = tree.take_record(&[]);
    let rows = paths(&record);
    assert_eq!((rows["main/a"], rows["main/a/b"], rows["main/b"]), ((1, 30, 10), (1, 20, 20), (0, 10, 10)));
    assert_eq!(self_sum(&record), 50);
}

#[test]
fn what_is_not_kept_is_counted_and_sums_stay_exact() {
    let budget = Budget::of(10, 3);
    let mut tree = Tree::new("main".into(), 0);
    for number in 0..1000 {
        tree.add_batch(
            0,
            &[part(Phase::Kernels, number * 10, number * 10 + 4)],
            entry(number * 10, number * 10 + 5),
            &budget,
        );
    }
    tree.end(10_000, &budget);
    assert_eq!((tree.batches.len(), tree.batches_not_kept, tree.spans_not_kept), (3, 997, 1994));
    let record = tree.take_record(&["exp".into()]);
    let rows = paths(&record);
    assert_eq!(
        (record.spans.len(), rows["main/exp"], rows["main/exp/kernels"]),
        (3, (1000, 5000, 1000), (1000, 4000, 4000))
    );
    assert_eq!(self_sum(&record), 10_000);
}

#[test]
fn endless_names_take_no_endless_memory() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    for number in 0..30_000u64 {
        tree.open(number + 1, FrameKind::Stage, Text::Made(&format!("task {number}")), number * 2, &budget);
        if number % 2 == 0 {
            // The other half is leaked.
            tree.close(number + 1, number * 2 + 1, &budget);
        }
    }
    tree.end(60_000, &budget);
    assert!(tree.spans_not_kept > 0);
    let record = tree.take_record(&[]);
    assert!(record.frames.len() <= budget::FRAMES);
    assert_eq!(self_sum(&record), 60_000);
}

/// What happens to a tree.
#[derive(Clone, Debug)]
enum Step {
    Open(u8),
    Close(usize),
    Alone(usize),
    Batch,
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64)>> {
    let step = prop_oneof![
        4 => (0u8..4).prop_map(Step::Open),
        3 => (0usize..6).prop_map(Step::Close),
        1 => (0usize..6).prop_map(Step::Alone),
        1 => Just(Step::Batch),
    ];
    proptest::collection::vec((step, 0u64..50), 0..80)
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The reference: paths as text, and every nanosecond given to the path that is open at that time.
#[derive(Default)]
struct Naive {
    open: Vec<(u64, String)>,
    self_ns: BTreeMap<String, u64>,
}

impl Naive {
    fn pass(&mut self, ns: u64) {
        let names: Vec<&str> = std::iter::once("main").chain(self.open.iter().map(|(_, name)| name.as_str())).collect();
        *self.self_ns.entry(names.join("/")).or_default() += ns;
    }
}

proptest! {
    #[test]
    fn every_nanosecond_belongs_to_one_frame(steps in steps(), tail in 0u64..50) {
        let budget = Budget::default();
        let (mut tree, mut naive) = (Tree::new("main".into(), 0), Naive::default());
        let (mut now, mut serial) = (0, 0);
        for (step, ns) in steps {
            naive.pass(ns);
            now += ns;
            match step {
                Step::Open(name) => {
                    serial += 1;
                    let text = NAMES[usize::from(name)];
                    tree.open(serial, FrameKind::Stage, Text::Fixed(text), now, &budget);
                    naive.open.push((serial, text.to_owned()));
                }
                Step::Close(at) => {
                    // Any of them, in any order; some were closed long ago.
                    let closed = naive.open.get(at).map_or(at as u64, |(serial, _)| *serial);
                    tree.close(closed, now, &budget);
                    if let Some(at) = naive.open.iter().position(|(serial, _)| *serial == closed) {
                        naive.open.truncate(at);
                    }
                }
                Step::Alone(at) => {
                    let closed = naive.open.get(at).map_or(at as u64, |(serial, _)| *serial);
                    tree.close_alone(closed, now, &budget);
                    naive.open.retain(|(serial, _)| *serial != closed);
                }
                Step::Batch => {
                    tree.add_batch(0, &[part(Phase::Kernels, now + 1, now + 3)], entry(now, now + 4), &budget);
                    now += 4;
                    naive.open.push((u64::MAX, "batch".into()));
                    naive.pass(2);
                    naive.open.push((u64::MAX, "kernels".into()));
                    naive.pass(2);
                    naive.open.truncate(naive.open.len() - 2);
                }
            }
        }
        naive.pass(tail);
        tree.end(now + tail, &budget);
        let record = tree.take_record(&["batch".into()]);
        prop_assert_eq!(self_sum(&record), record.end_ns - record.begin_ns);
        let own: BTreeMap<String, u64> = paths(&record).into_iter().map(|(path, row)| (path, row.2)).filter(|row| row.1 > 0).collect();
        naive.self_ns.retain(|_, ns| *ns > 0);
        prop_assert_eq!(own, naive.self_ns);
        // Totals: a frame's own and those below it; callers come first.
        for (at, frame) in record.frames.iter().enumerate() {
            prop_assert!(frame.parent.is_none_or(|parent| (parent as usize) < at));
            let below: u64 = record.frames.iter().filter(|f| f.parent == Some(at as u32)).map(|f| f.total_ns).sum();
            prop_assert_eq!(frame.total_ns, frame.self_ns + below, "{}", frame.name);
        }
    }
}

/// A batch that was begun, with what happens inside of it before it ends at 50.
fn routed(inside: impl FnOnce(&mut Tree, &Budget)) -> ThreadRecord {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    tree.begin_batch(1, 0, part(Phase::Record, 10, 15), &budget);
    inside(&mut tree, &budget);
    let parts = [part(Phase::Plan, 15, 20), part(Phase::Kernels, 20, 40), part(Phase::Convert, 40, 50)];
    let mut entry = entry(10, 50);
    [(Phase::Record, 5), (Phase::Plan, 5), (Phase::Kernels, 20), (Phase::Convert, 10)]
        .into_iter()
        .for_each(|(phase, ns)| entry.phases.set(phase, ns));
    tree.end_batch(1, &parts, entry, &budget);
    tree.end(60, &budget);
    assert_eq!(tree.batches.iter().map(|batch| (batch.begin_ns, batch.end_ns)).collect::<Vec<_>>(), [(10, 50)]);
    tree.take_record(&["plan".to_owned()])
}

#[test]
fn a_batch_that_was_begun_is_the_same_whether_it_goes_in_at_once_or_not() {
    let at_once = routed(|_, _| ());
    let opened = routed(|tree, budget| tree.close(99, 15, budget));
    assert_eq!(paths(&at_once), paths(&opened));
    let times = |record: &ThreadRecord| {
        let mut times: Vec<_> = record.spans.iter().map(|span| (span.begin_ns, span.end_ns, span.batch)).collect();
        times.sort_unstable();
        times
    };
    assert_eq!(times(&at_once), times(&opened));
    assert_eq!(times(&at_once), [(10, 15, None), (10, 50, Some(0)), (15, 20, None), (20, 40, None), (40, 50, None)]);
}

#[test]
fn what_happens_inside_of_a_batch_lies_below_it() {
    let record = routed(|tree, budget| {
        tree.open(2, FrameKind::Stage, Text::Fixed("inside"), 22, budget);
        tree.close(2, 30, budget);
    });
    let found = paths(&record);
    assert_eq!((found["main/plan"], found["main/plan/inside"], found["main"]), ((1, 40, 7), (1, 8, 8), (1, 60, 20)));
    assert_eq!(self_sum(&record), 60);
}

#[test]
fn a_batch_that_was_begun_and_not_done_ends_with_its_thread() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    tree.begin_batch(1, 0, part(Phase::Record, 10, 15), &budget);
    tree.end(60, &budget);
    let record = tree.take_record(&["plan".to_owned()]);
    assert_eq!(paths(&record)["main/plan"], (1, 50, 45));
}

#[test]
fn parts_are_cut_with_a_batch_that_began_before_the_last_event() {
    let budget = Budget::default();
    let mut tree = Tree::new("main".into(), 0);
    tree.open(1, FrameKind::Stage, Text::Fixed("late"), 0, &budget);
    tree.close(1, 30, &budget);
    let mut entry = entry(20, 40);
    entry.phases.set(Phase::Record, 5);
    entry.phases.set(Phase::Kernels, 15);
    tree.add_batch(0, &[part(Phase::Record, 20, 25), part(Phase::Kernels, 25, 40)], entry, &budget);
    let batch = &tree.batches[0];
    let phases = [batch.phases.get(Phase::Record), batch.phases.get(Phase::Kernels)];
    assert_eq!((batch.begin_ns, batch.end_ns, phases), (30, 40, [Some(5), Some(5)]));
}
