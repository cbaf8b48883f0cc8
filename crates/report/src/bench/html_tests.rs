//! The page of a run in which a lot happened, and of one in which nothing was measured.

use super::*;
use crate::bench::{Group, How, Missing, Null, Row, Surroundings, Trouble, TroubleKind};
use crate::fixture_tests::{assert_self_contained, devices};
use crate::stats::Stats;

fn row(case: &str, size: u64, device: &str, ns: u64) -> Row {
    let samples = [ns - ns / 50, ns, ns, ns + ns / 40];
    Row {
        case: case.into(),
        size,
        unit: if size > 0 { "elements".into() } else { String::new() },
        device: device.into(),
        passes: vec![samples.to_vec()],
        stats: Stats::of(&samples).unwrap(),
        interval: (ns - ns / 50, ns + ns / 40),
        ..Row::default()
    }
}

fn bench() -> Bench {
    let sizes = [1_000u64, 100_000, 10_000_000];
    let lines = |case: &str, cpu: u64, gpu: u64| {
        let both = sizes.iter().flat_map(move |&size| {
            [("cpu", 400 + size * cpu / 10), ("gpu:0", 90_000 + size * gpu / 10)].map(|(d, ns)| (size, d, ns))
        });
        both.map(|(size, device, ns)| row(case, size, device, ns)).collect::<Vec<_>>()
    };
    let mut noisy = row("submit", 0, "gpu:0", 90_000);
    (noisy.interval, noisy.loaded) = ((70_000, 120_000), true);
    let mut copy = row("copy", 1 << 20, "cpu", 100_000);
    (copy.bytes, copy.memcpy_ns) = (Some(1 << 21), Some(80_000));
    let mut many = row("1000 tasks, one by one", 0, "cpu", 5_000_000);
    many.beside = Some("1000 tasks in one call".into());
    let lost =
        Trouble { kind: TroubleKind::DeviceLost, pass: 1, device: Some("gpu:0".into()), why: "driver reset".into() };
    let calm =
        Surroundings { busy: Some(0.031), free_bytes: Some(3 << 30), waited_seconds: 1.5, ..Surroundings::default() };
    let loaded = Surroundings {
        busy: Some(0.62),
        stolen: Some(0.2),
        celsius: Some(71.0),
        loaded: true,
        ..Surroundings::default()
    };
    let groups = vec![
        Group {
            name: "unary".into(),
            seconds: 12.0,
            rows: [lines("exp", 5, 9), lines("tanh", 20, 9)].concat(),
            surroundings: vec![calm.clone(), calm],
            ..Group::default()
        },
        Group { name: "transfers".into(), rows: vec![copy], ..Group::default() },
        Group {
            name: "overheads".into(),
            rows: vec![row("submit", 0, "cpu", 400), noisy, many, row("1000 tasks in one call", 0, "cpu", 1_000_000)],
            surroundings: vec![loaded],
            ..Group::default()
        },
        Group { name: "matmul".into(), troubles: vec![lost], ..Group::default() },
    ];
    Bench {
        machine: crate::Machine {
            cpu: "Intel Xeon 2.8 GHz".into(),
            threads: 2,
            simd: "AVX-512".into(),
            os: "Linux 6.1".into(),
            breakeven: "0.1.0".into(),
        },
        devices: devices()[..2].to_vec(),
        missing: vec![Missing { device: "gpu:1".into(), why: "no driver for it".into() }],
        null: Some(Null { floor: 0.031, ..Null::default() }),
        groups,
        how: How {
            samples: 15,
            passes: 2,
            seed: 42,
            order: vec!["matmul".into(), "unary".into()],
            seconds: 61.0,
            date: "2026-01-31 10:20 UTC".into(),
            ..How::default()
        },
        ..Bench::default()
    }
}

#[test]
fn the_page_is_complete_and_loads_nothing() {
    let page = html(&bench(), None);
    assert_self_contained(&page);
    assert_eq!(page, html(&bench(), None), "the same measurements give the same bytes");
    assert_eq!(page.matches("<figure>").count(), 2, "exp and tanh have sizes");
    assert_eq!(page.matches("<div class=\"times\">").count(), 5, "what has none, or one, is a bar");
    assert_self_contained(&html(&Bench::default(), None));
    assert!(html(&Bench::default(), None).contains("Nothing was measured."));
}

#[test]
fn tiles_have_the_numbers_that_matter() {
    let page = html(&bench(), None);
    for value in [">3 of 4<", ">3.1 %<", ">CPU in 2 of 2<", ">1 of 17<"] {
        assert!(page.contains(value), "{value}");
    }
    assert!(page.contains("matmul lost the device") && page.contains("1 under load"));
    let bare = Bench { null: None, ..bench() };
    assert!(html(&bare, None).contains("the same code was not measured against itself"));
}

#[test]
fn troubles_and_missing_devices_are_shown() {
    let page = html(&bench(), None);
    assert!(page.contains("matmul lost the device</span> pass 2 on gpu:0 software: driver reset"));
    assert!(page.contains("gpu:1 missing</strong> no driver for it"), "on top");
    assert!(page.contains("<strong class=\"missing\">missing</strong> no driver for it"), "among the devices");
    assert!(page.contains("nothing measured"), "a group without rows is there, too");
}

#[test]
fn tables_have_rates_shares_and_marks() {
    let page = html(&bench(), None);
    assert!(page.contains(">21 GB/s<") && page.contains(">80 %<"), "2 MiB in 100 us, where a copy takes 80 us");
    assert!(page.contains(">5.0x the time of 1000 tasks in one call<"));
    assert!(page.contains(">noisy, under load<") && page.contains(">~90 us<"));
    assert_eq!(page.matches("Share of memcpy").count(), 1, "only where there are bytes");
    assert!(page.contains(">62 %<") && page.contains(">71 C<") && page.contains(">under load<"));
    assert!(page.contains(">Min<") && page.contains(">Max<"), "the fastest and the slowest sample");
}

#[test]
fn text_never_becomes_markup() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--";
    let mut bench = bench();
    bench.missing[0].why = evil.into();
    bench.devices[1].name = evil.into();
    bench.how.notes = vec![evil.into()];
    for group in &mut bench.groups {
        group.name = evil.into();
        group.rows.iter_mut().for_each(|row| (row.case, row.unit) = (format!("{evil}{}", row.case), evil.into()));
        group.troubles.iter_mut().for_each(|trouble| trouble.why = evil.into());
    }
    let page = html(&bench, None);
    assert_self_contained(&page);
    assert!(!page.contains("<img") && !page.contains("<script>alert") && !page.contains("<!--"));
}

#[test]
fn what_changed_is_on_the_page() {
    let (run, later) = (super::super::fixture_tests::bench(), super::super::fixture_tests::later());
    let gate = Gate::of(&run, &later, 0.1);
    let page = html(&later, Some(&gate));
    assert_self_contained(&page);
    assert!(page.contains("Since the baseline") && page.contains(&crate::bench::lists::verdict(&gate)));
    assert!(!html(&later, None).contains("Since the baseline"));
}
