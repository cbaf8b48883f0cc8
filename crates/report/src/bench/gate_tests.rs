//! What counts as a change, and how often a noisy machine makes one out of nothing.

use super::*;
use crate::bench::fixture_tests::{bench, later, row};
use crate::bench::{Group, LeftOut, Null, Trouble, TroubleKind};

fn kinds(gate: &Gate) -> Vec<(&str, &str, u64, ChangeKind)> {
    gate.changes.iter().map(|c| (c.case.as_str(), c.device.as_str(), c.size, c.kind)).collect()
}

/// One group of one row.
fn run(row: Row) -> Bench {
    Bench { groups: vec![Group { name: "unary".into(), rows: vec![row], ..Group::default() }], ..Bench::default() }
}

fn exp(ns: u64) -> Row {
    row("exp", 1_000, "elements", "cpu", ns, 5)
}

#[test]
fn every_row_of_both_runs_is_told() {
    let gate = Gate::of(&bench(), &later(), 0.10);
    assert_eq!(
        kinds(&gate),
        [
            ("exp", "cpu", 1_000_000, ChangeKind::Slower),
            ("exp", "gpu:0", 1_000_000, ChangeKind::Faster),
            ("exp", "gpu:1", 1_000_000, ChangeKind::Same),
            ("tanh", "cpu", 1_000_000, ChangeKind::Same),
            ("tanh", "gpu:0", 1_000_000, ChangeKind::Suspect),
            ("sqrt", "cpu", 1_000, ChangeKind::New),
            ("second run", "cpu", 0, ChangeKind::Same),
            ("second run", "gpu:0", 0, ChangeKind::Same),
            ("upload", "gpu:0", 64 << 20, ChangeKind::Same),
            ("readback", "gpu:0", 64 << 20, ChangeKind::Same),
            ("tanh", "cpu", 1_000, ChangeKind::Gone),
            ("matmul", "cpu", 512, ChangeKind::Unmeasured),
        ]
    );
    assert!(gate.failed());
    assert_eq!(gate.suspects(), ["unary"]);
    let lost = gate.changes.last().unwrap();
    assert_eq!(lost.why.as_deref(), Some("crashed: killed by signal 9"));
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let gate = Gate::of(&bench(), &bench(), 0.0);
    assert!(gate.changes.iter().all(|change| change.kind == ChangeKind::Same), "{:?}", kinds(&gate));
    assert!(!gate.failed() && gate.suspects().is_empty());
}

#[test]
fn the_limit_decides() {
    for (limit, kind) in [(0.10, ChangeKind::Slower), (0.20, ChangeKind::Same)] {
        assert_eq!(Gate::of(&run(exp(1_000)), &run(exp(1_150)), limit).changes[0].kind, kind, "{limit}");
        let faster = if kind == ChangeKind::Slower { ChangeKind::Faster } else { kind };
        assert_eq!(Gate::of(&run(exp(1_150)), &run(exp(1_000)), limit).changes[0].kind, faster, "{limit}");
    }
}

#[test]
fn what_the_null_test_can_not_tell_does_not_count() {
    for blind in [0, 1] {
        let mut runs = [run(exp(1_000)), run(exp(1_150))];
        runs[blind].null = Some(Null { floor: 0.2, ..Null::default() });
        let change = &Gate::of(&runs[0], &runs[1], 0.10).changes[0];
        assert_eq!((change.kind, change.needed), (ChangeKind::Suspect, 0.2));
    }
}

#[test]
fn one_slow_pass_is_not_a_slower_row() {
    let mut loaded = exp(1_000);
    loaded.passes[1] = vec![1_600; 5];
    assert_eq!(Gate::of(&run(exp(1_000)), &run(loaded), 0.10).changes[0].kind, ChangeKind::Same);
}

#[test]
fn passes_that_differ_among_themselves_need_more() {
    let mut restless = exp(1_000);
    for (pass, ns) in restless.passes.iter_mut().zip([900, 1_000, 1_300]) {
        *pass = vec![ns; 5];
    }
    let change = Gate::of(&run(exp(1_000)), &run(restless), 0.10).changes.remove(0);
    assert!(change.needed > 0.2, "{change:?}");
    let single = |ns: u64| run(Row { passes: vec![vec![ns; 5]], ..exp(ns) });
    let change = Gate::of(&single(1_000), &single(1_150), 0.10).changes.remove(0);
    assert!(
        change.needed > 0.15 && change.kind == ChangeKind::Suspect,
        "one pass says nothing about others: {change:?}"
    );
}

#[test]
fn trouble_elsewhere_does_not_excuse_a_row_that_is_gone() {
    let mut now = run(exp(1_000));
    now.groups[0].rows.clear();
    let gate = |now: &Bench| Gate::of(&run(exp(1_000)), now, 0.10);
    assert_eq!(gate(&now).changes[0].kind, ChangeKind::Gone);
    assert!(!gate(&now).failed());
    let trouble = |device: Option<&str>| Trouble {
        kind: TroubleKind::DeviceLost,
        pass: 0,
        device: device.map(Into::into),
        why: "gone".into(),
    };
    now.groups[0].troubles = vec![trouble(Some("gpu:0"))];
    assert_eq!(gate(&now).changes[0].kind, ChangeKind::Gone);
    now.groups[0].troubles = vec![trouble(None)];
    assert_eq!(gate(&now).changes[0].kind, ChangeKind::Unmeasured);
    assert!(gate(&now).failed());
}

#[test]
fn rows_without_samples_were_not_measured() {
    let mut bare = exp(1_000);
    bare.passes = vec![Vec::new(); 3];
    assert_eq!(Gate::of(&run(exp(1_000)), &run(bare.clone()), 0.10).changes[0].kind, ChangeKind::Gone);
    assert_eq!(Gate::of(&run(bare), &run(exp(1_000)), 0.10).changes[0].kind, ChangeKind::New);
}

#[test]
fn what_is_beyond_doubt_is_not_measured_again() {
    let gate = |ns| Gate::of(&run(exp(1_000)), &run(exp(ns)), 0.10);
    let (some, much) = (gate(1_300), gate(100_000));
    assert!(some.failed() && much.failed());
    assert_eq!((some.suspects().len(), much.suspects().len()), (1, 0));
}

#[test]
fn what_was_asked_for_and_is_not_there_is_missed() {
    let on = |device: &str| Row { device: device.into(), ..exp(1_000) };
    let device = |id: &str| crate::scan::Device { id: id.into(), ..crate::scan::Device::default() };
    let mut baseline = run(on("cpu"));
    baseline.groups[0].rows.extend([on("gpu:0"), on("gpu:1")]);
    let now = Bench { devices: vec![device("cpu")], ..run(on("cpu")) };
    let gate = Gate::of(&baseline, &now, 0.10);
    assert_eq!(gate.of_kind(ChangeKind::Unmeasured).len(), 2, "devices that vanished: {:?}", kinds(&gate));
    assert!(gate.failed() && gate.changes[1].why.as_deref() == Some("gpu:0 is missing"));
    // Only the CPU was asked for.
    let cpu = |_: &str, row: &Row| if row.device == "cpu" { Expected::Asked } else { Expected::NotAsked };
    let gate = Gate::expecting(&baseline, &now, 0.10, &cpu);
    assert!(!gate.failed() && gate.changes.len() == 1, "{:?}", kinds(&gate));

    let mut late = now.clone();
    late.groups[0].rows.clear();
    let gate = |late: &Bench| Gate::expecting(&run(on("cpu")), late, 0.10, &|_, _| Expected::Asked);
    assert_eq!(gate(&late).changes[0].why.as_deref(), Some("it has no row in this run"));
    let row = exp(1);
    late.groups[0].left_out =
        vec![LeftOut { case: row.case, size: row.size, unit: row.unit, device: None, why: "no time".into() }];
    assert_eq!(gate(&late).changes[0].why.as_deref(), Some("left out: no time"));
    assert!(gate(&late).failed());
    // What the baseline itself measured in one pass of three is not missed.
    let mut rare = run(on("cpu"));
    rare.groups[0].rows.push(Row { passes: vec![vec![9; 5]], case: "rare".into(), ..exp(1_000) });
    assert!(!Gate::expecting(&rare, &now, 0.10, &|_, _| Expected::Asked).failed());
}

#[test]
fn copies_in_memory_are_not_judged() {
    let copy = |ns: u64| {
        let mut bench = run(Row { case: "memcpy".into(), ..exp(ns) });
        bench.groups[0].rows.push(exp(1_000));
        bench
    };
    let gate = Gate::of(&copy(1_000), &copy(16_000), 0.10);
    assert_eq!(kinds(&gate), [("exp", "cpu", 1_000, ChangeKind::Same)]);
}

#[test]
fn one_pass_leaves_nothing_beyond_doubt() {
    let gate = |passes: usize| {
        let now = Row { passes: vec![vec![100_000; 5]; passes], ..exp(1_000) };
        Gate::of(&run(exp(1_000)), &run(now), 0.10)
    };
    assert_eq!((gate(1).suspects().len(), gate(2).suspects().len()), (1, 0));
}
