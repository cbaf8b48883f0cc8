//! Crossovers of curves made by hand.

use super::*;
use crate::fixture_tests::{devices, rows, scan};

/// The crossover of one op on gpu:1 from (size, time) of the CPU and of the device.
fn between(cpu: &[(u64, u64)], device: &[(u64, u64)]) -> Crossover {
    let rows = rows("exp", "map", "elements", &[("cpu", cpu), ("gpu:1", device)]);
    let scan = Scan { devices: devices(), rows, ..Scan::default() };
    let mut found = scan.crossovers();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn never() {
    let found = between(&[(10, 100), (1000, 1000)], &[(10, 200), (1000, 2000)]);
    assert_eq!((found.verdict, found.at, found.between), (Verdict::CpuAlways, None, None));
    assert_eq!(found.words(), "CPU at every size measured");
    let largest = found.largest.unwrap();
    assert_eq!((largest.size, largest.cpu_ns, largest.device_ns, largest.speedup()), (1000, 1000, 2000, 0.5));
}

#[test]
fn a_tie_is_not_faster() {
    let found = between(&[(10, 100), (1000, 1000)], &[(10, 100), (1000, 1000)]);
    assert_eq!((found.verdict, found.at), (Verdict::CpuAlways, None));
    // A tie is where the curves meet, so the device is faster from there on.
    let found = between(&[(10, 100), (1000, 1000)], &[(10, 100), (1000, 500)]);
    assert_eq!((found.verdict, found.at, found.at_ns), (Verdict::DeviceFrom, Some(10), Some(100)));
}

#[test]
fn always() {
    let found = between(&[(10, 100), (1000, 1000)], &[(10, 50), (1000, 60)]);
    assert_eq!((found.verdict, found.at, found.at_ns), (Verdict::DeviceAlways, Some(10), Some(50)));
    assert_eq!(found.words(), "device at every size measured");
}

#[test]
fn once_in_the_middle_of_a_decade() {
    // The ratio goes from 10 to 1/10 over two decades: they meet after one.
    let found = between(&[(100, 1_000), (10_000, 100_000)], &[(100, 10_000), (10_000, 10_000)]);
    assert_eq!((found.verdict, found.at, found.at_ns), (Verdict::DeviceFrom, Some(1_000), Some(10_000)));
    assert_eq!(found.between, Some((100, 10_000)));
    assert_eq!(found.words(), "from 1000 elements on");
}

#[test]
fn several_times_counts_the_last() {
    let cpu = [(1, 100), (10, 100), (100, 100), (1_000, 100)];
    let found = between(&cpu, &[(1, 200), (10, 50), (100, 200), (1_000, 50)]);
    assert_eq!((found.verdict, found.between), (Verdict::Mixed, Some((100, 1_000))));
    assert_eq!(found.at, Some(316), "the middle of the last decade");
    assert_eq!(found.words(), "mixed, from 320 elements on");
}

#[test]
fn faster_below_only_is_mixed_and_never_from_a_size_on() {
    let found = between(&[(1, 100), (10, 100)], &[(1, 50), (10, 200)]);
    assert_eq!((found.verdict, found.at), (Verdict::Mixed, None));
    assert_eq!(found.words(), "mixed, CPU at the largest size");
}

#[test]
fn sizes_that_one_side_lacks_do_not_count() {
    // The CPU alone has 100, the device alone 50 and 100000: what remains is 10 and 1000.
    let found = between(&[(10, 100), (100, 1), (1_000, 10_000)], &[(10, 1_000), (50, 1), (1_000, 1_000), (100_000, 9)]);
    assert_eq!((found.verdict, found.at, found.between), (Verdict::DeviceFrom, Some(100), Some((10, 1_000))));
    assert_eq!(found.largest.unwrap().size, 1_000);
    let apart = between(&[(10, 100)], &[(20, 50)]);
    assert_eq!((apart.verdict, apart.at, apart.largest), (Verdict::Unmeasured, None, None));
    assert_eq!(apart.words(), "no size measured on both");
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let mut shuffled = scan();
    shuffled.rows.reverse();
    let mut found = shuffled.crossovers();
    found.sort_by_key(|c| (c.class.clone(), c.op.clone(), c.device.clone()));
    let mut expected = scan().crossovers();
    expected.sort_by_key(|c| (c.class.clone(), c.op.clone(), c.device.clone()));
    assert_eq!(found, expected);
}

#[test]
fn one_entry_for_each_op_and_device_grouped_by_class() {
    let found: Vec<_> = scan().crossovers().into_iter().map(|c| (c.op, c.device, c.verdict)).collect();
    let expected = [
        ("exp", "gpu:0", Verdict::CpuAlways),
        ("exp", "gpu:1", Verdict::DeviceFrom),
        ("matmul", "gpu:0", Verdict::CpuAlways),
        ("matmul", "gpu:1", Verdict::DeviceFrom),
        ("softmax", "gpu:1", Verdict::DeviceAlways),
    ];
    assert_eq!(found, expected.map(|(op, device, verdict)| (op.to_owned(), device.to_owned(), verdict)));
}

#[test]
fn a_scan_without_a_cpu_has_no_verdicts() {
    let mut scan = scan();
    scan.rows.retain(|row| row.device != "cpu");
    assert!(scan.crossovers().iter().all(|c| c.verdict == Verdict::Unmeasured));
    scan.devices.clear();
    assert!(scan.crossovers().is_empty());
}

#[test]
fn zeros_and_extremes_do_not_panic() {
    let mut scan = scan();
    for (number, row) in scan.rows.iter_mut().enumerate() {
        row.size = if number % 2 == 0 { 0 } else { u64::MAX };
        row.stats.median_ns = if number % 3 == 0 { 0 } else { u64::MAX };
    }
    assert!(!scan.crossovers().is_empty());
}
