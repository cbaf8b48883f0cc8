//! Everything adds up to the whole, waiting is no work, and what is said is said with where it comes from.

use super::super::Basis;
use super::super::fixture_tests::{Row, batch, profile, queued, rerun, thread};
use super::*;
use proptest::prelude::*;

#[test]
fn self_times_add_up_to_the_threads() {
    for profile in [Profile::example(), queued(), rerun()] {
        let analysis = profile.analysis().unwrap();
        let sums = [
            analysis.tree.iter().map(|node| node.self_ns).sum::<u64>(),
            analysis.top.iter().map(|row| row.self_ns).sum(),
            analysis.stages.iter().map(|row| row.own_ns).sum(),
            analysis.threads.iter().map(|row| row.work_ns + row.device_wait_ns + row.idle_ns + row.wait_ns).sum(),
        ];
        assert_eq!(sums, [analysis.thread_ns; 4]);
        let shares = [
            analysis.tree.iter().map(|node| node.self_thousandths).sum::<u64>(),
            analysis.top.iter().map(|row| row.thousandths).sum(),
            analysis.stages.iter().map(|row| row.thousandths).sum(),
        ];
        assert_eq!(shares, [1000; 3]);
    }
}

#[test]
fn the_known_stages_of_the_example() {
    let analysis = Profile::example().analysis().unwrap();
    let stages: Vec<(&str, u64, u64, u64, u64)> = analysis
        .stages
        .iter()
        .map(|s| (&*s.path, s.own_ns / 1000, s.device_wait_ns / 1000, s.other_wait_ns / 1000, s.thousandths))
        .collect();
    assert_eq!(
        stages,
        [
            ("inline_variables", 69_000, 0, 0, 690),
            ("score", 20_000, 4_500, 0, 200),
            ("parse", 8_000, 0, 0, 80),
            ("parse > read", 2_000, 0, 2_000, 20),
            ("main", 1_000, 0, 0, 10),
        ]
    );
    assert_eq!(analysis.stages[1].eligible_ns, 9_000_000);
    let thread = &analysis.threads[0];
    assert_eq!((thread.work_ns, thread.device_wait_ns, thread.wait_ns), (93_500_000, 4_500_000, 2_000_000));
}

#[test]
fn threads_are_merged_by_path_and_shown_alone() {
    use FrameKind::{Stage, Thread};
    let rows = |ns| [("w", Thread, None, 10), ("score", Stage, Some(0), ns), ("inner", Stage, Some(1), 5)];
    let profile = profile(vec![thread("a", 0, &rows(20)), thread("b", 0, &rows(30)), thread("b", 0, &rows(40))]);
    let all = profile.analysis().unwrap();
    let nodes: Vec<(&str, u64, u64, u64)> =
        all.tree.iter().map(|n| (&*n.name, n.count, n.total_ns, n.self_ns)).collect();
    assert_eq!(nodes, [("all threads", 3, 135, 30), ("score", 3, 105, 90), ("inner", 3, 15, 15)]);
    assert_eq!(all.top[0].path, "score");
    let b = profile.analysis_of_thread("b").unwrap();
    assert_eq!((b.threads.len(), b.thread_ns, &*b.tree[0].name), (2, 100, "b"));
    assert_eq!((&b.headline, b.amdahl.clone()), (&all.headline, all.amdahl));
    assert!(profile.analysis_of_thread("nobody").unwrap().threads.is_empty());
}

#[test]
fn a_prediction_is_never_a_measurement() {
    let analysis = Profile::example().analysis().unwrap();
    let figures = |analysis: &Analysis| -> Vec<(String, Basis, Option<u64>)> {
        analysis.plans[0].figures.iter().map(|f| (f.device.clone(), f.basis, f.median_ns)).collect()
    };
    // Both were measured, so that predictions are of no interest.
    let measured =
        [("cpu".to_owned(), Basis::Measured, Some(1_900_000)), ("gpu:0".to_owned(), Basis::Measured, Some(4_800_000))];
    assert_eq!(figures(&analysis), measured);
    assert_eq!(analysis.plans[0].only_on, None);

    let mut alone = Profile::example();
    alone.batches.truncate(2);
    alone.threads[0].spans.iter_mut().for_each(|span| span.batch = span.batch.filter(|batch| *batch < 2));
    let analysis = alone.analysis().unwrap();
    assert_eq!(figures(&analysis)[1], ("gpu:0".to_owned(), Basis::Predicted, Some(2_500_000)));
    assert_eq!(analysis.plans[0].only_on.as_deref(), Some("cpu"));
    let advice = analysis.advice.iter().find(|advice| advice.about == "baseline").unwrap();
    assert_eq!(
        (advice.basis, &*advice.text),
        (
            Basis::Predicted,
            "`softmax` in `score` (20 tasks) was measured on cpu alone (2.50 ms predicted on gpu:0): `breakeven profile FILE \
             --measure-baseline` runs it again on every device"
        )
    );
    assert!(analysis.advice.iter().all(|advice| advice.about != "devices"));
}

#[test]
fn reruns_stand_beside_what_the_run_measured() {
    let analysis = rerun().analysis().unwrap();
    let bases: Vec<Basis> = analysis.plans[0].figures.iter().map(|figure| figure.basis).collect();
    assert_eq!(bases, [Basis::Measured, Basis::Measured, Basis::Rerun, Basis::Rerun, Basis::Rerun, Basis::Rerun]);
    assert_eq!(analysis.plans[0].figures[4].note.as_deref(), Some("the device was lost"));
    let advice = analysis.advice.iter().find(|advice| advice.about == "devices").unwrap();
    assert_eq!(
        advice.text,
        "`softmax` in `score` (20 tasks) is fastest on gpu:0: 600.0 us measured on gpu:0 (rerun), 1.50 ms measured on cpu \
         (rerun): 2.5x"
    );
}

#[test]
fn the_best_is_compared_with_the_best_of_the_other_kind() {
    let mut profile = rerun();
    profile.reruns.truncate(2);
    // A slow second GPU: that the first one is better says nothing about whether a GPU pays.
    let slow = super::super::Rerun { device: "gpu:1".to_owned(), median_ns: 9_000_000, ..profile.reruns[1].clone() };
    profile.reruns.push(slow);
    let said = |profile: &Profile| {
        let advice = profile.analysis().unwrap().advice;
        advice.into_iter().find(|advice| advice.about == "devices").unwrap().text
    };
    let text = said(&profile);
    assert!(text.ends_with("1.50 ms measured on cpu (rerun): 2.5x"), "{text}");
    // With nothing of another kind it is the next best.
    profile.reruns.remove(0);
    let text = said(&profile);
    assert!(text.ends_with("9.00 ms measured on gpu:1 (rerun): 15.0x"), "{text}");
}

#[test]
fn the_advice_of_the_example() {
    let advice = Profile::example().analysis().unwrap().advice;
    let text: String = advice.iter().map(|a| format!("{} ({}): {}\n", a.about, a.basis.name(), a.text)).collect();
    insta::assert_snapshot!(text);
}

#[test]
fn the_document_of_the_example() {
    let text = rerun().analysis().unwrap().to_json();
    assert_eq!(text, rerun().analysis().unwrap().to_json());
    insta::assert_snapshot!(text);
}

#[test]
fn percentages_do_not_flatter() {
    let words = [(0, 100), (1, 1000), (9, 100), (995, 1000), (999, 1000), (100, 100), (0, 0)];
    let words = words.map(|(part, whole)| percent(part, whole));
    assert_eq!(words, ["0 %", "less than 1 %", "9 %", "more than 99 %", "more than 99 %", "100 %", "0 %"]);
}

#[test]
fn a_run_without_stages_or_batches_has_an_analysis() {
    let analysis = profile(vec![thread("main", 0, &[("main", FrameKind::Thread, None, 5)])]).analysis().unwrap();
    assert_eq!(
        analysis.headline,
        "GPU-eligible work is 0 % of this run: an infinitely fast GPU would make it 1.00x faster; no stage is named (`span!`)"
    );
    let empty = profile(vec![]).analysis().unwrap();
    assert_eq!((empty.tree.len(), empty.thread_ns), (0, 0));
}

#[test]
fn a_tree_of_any_depth_is_read() {
    let mut rows: Vec<Row<'_>> = vec![("main", FrameKind::Thread, None, 1)];
    rows.extend((0..5_000).map(|at| ("deeper", FrameKind::Stage, Some(at), 1)));
    let deep = profile(vec![thread("main", 0, &rows)]);
    assert_eq!(deep.analysis().unwrap().tree.last().map(|node| node.depth), Some(5_000));
}

proptest! {
    /// Threads of any shape: sums are kept, and the bound is never below what is certain to be possible.
    #[test]
    fn whatever_the_threads_everything_adds_up(
        threads in prop::collection::vec(prop::collection::vec((0usize..7, any::<prop::sample::Index>(), 0u64..10_000), 0..12), 1..4),
    ) {
        use FrameKind::{Batch, DeviceWait, Idle, Phase, Stage, Thread, Wait};
        let kinds = [Stage, Batch, Phase, DeviceWait, Idle, Wait, Stage];
        let mut profile = profile(Vec::new());
        for (number, rows) in threads.iter().enumerate() {
            let mut frames: Vec<Row<'_>> = vec![("thread", Thread, None, 7)];
            for (kind, parent, ns) in rows {
                let parent = parent.index(frames.len()) as u32;
                frames.push((["a", "b", "c"][frames.len() % 3], kinds[*kind], Some(parent), *ns));
            }
            let record = thread("thread", number as u64, &frames);
            for (at, frame) in record.frames.iter().enumerate().filter(|(_, frame)| frame.kind == Batch) {
                profile.batches.push(batch((at % 2) as u32, number as u32, at as u32, record.begin_ns, record.begin_ns + frame.total_ns));
            }
            profile.wall_ns = profile.wall_ns.max(record.end_ns);
            profile.threads.push(record);
        }
        let analysis = profile.analysis().unwrap();
        prop_assert_eq!(analysis.tree.iter().map(|node| node.self_ns).sum::<u64>(), analysis.thread_ns);
        prop_assert_eq!(analysis.stages.iter().map(|row| row.own_ns).sum::<u64>(), analysis.thread_ns);
        prop_assert_eq!(analysis.stages.iter().map(|row| row.eligible_ns).sum::<u64>(), analysis.amdahl.eligible_ns);
        prop_assert_eq!(analysis.tree.iter().map(|node| node.self_thousandths).sum::<u64>(), 1000);
        prop_assert!(analysis.amdahl.bound.is_none_or(|bound| bound >= 1.0));
        prop_assert!(analysis.amdahl.eligible_ns <= analysis.thread_ns);
        for (at, node) in analysis.tree.iter().enumerate() {
            let below: u64 = analysis.tree.iter().filter(|other| other.parent == Some(at)).map(|other| other.total_ns).sum();
            prop_assert_eq!(node.total_ns, node.self_ns + below);
            prop_assert!(node.parent.is_none_or(|parent| parent < at) && node.waiting_ns <= node.total_ns);
        }
        profile.chrome().unwrap();
        profile.folded().unwrap();
        profile.prometheus().unwrap();
    }
}
