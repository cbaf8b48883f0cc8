//! Statistics of samples whose answers are known.

use super::*;

#[test]
fn no_samples_have_no_statistics() {
    assert_eq!(Stats::of(&[]), None);
}

#[test]
fn one_sample_is_all_of_them() {
    let one = Stats::of(&[7]).unwrap();
    assert_eq!([one.median_ns, one.p10_ns, one.p90_ns, one.min_ns, one.max_ns, one.mad_ns], [7, 7, 7, 7, 7, 0]);
    assert_eq!((one.samples, one.wide), (1, false));
}

#[test]
fn percentiles_are_samples_in_any_order() {
    let ten: Vec<u64> = (1..=10).rev().map(|i| i * 10).collect();
    let ten = Stats::of(&ten).unwrap();
    assert_eq!((ten.median_ns, ten.p10_ns, ten.p90_ns, ten.min_ns, ten.max_ns), (55, 10, 90, 10, 100));
    assert_eq!(ten.mad_ns, 25);
}

#[test]
fn spread_is_judged_against_the_median() {
    assert!(!Stats::of(&[90, 100, 110]).unwrap().wide, "10 % is the last that is not wide");
    assert!(Stats::of(&[89, 100, 111]).unwrap().wide);
    assert!(!Stats::of(&[0, 0, 0]).unwrap().wide);
}

#[test]
fn the_largest_times_do_not_overflow() {
    let far = Stats::of(&[u64::MAX, u64::MAX - 2, 0, u64::MAX]).unwrap();
    assert_eq!((far.median_ns, far.min_ns, far.max_ns), (u64::MAX - 1, 0, u64::MAX));
}

#[test]
fn what_is_clearly_faster_depends_on_what_is_known() {
    let [fast, close, slow] = [[80, 90, 100], [95, 105, 115], [101, 110, 120]].map(|s| Stats::of(&s).unwrap());
    assert!(fast.clearly_faster_than(&slow) && !slow.clearly_faster_than(&fast));
    assert!(!fast.clearly_faster_than(&close), "bands overlap");
    assert!(!fast.clearly_faster_than(&fast));
    // Medians alone count with a twentieth on each side.
    let [a, b, c] = [100, 109, 120].map(Stats::partial);
    assert!(a.clearly_faster_than(&c) && !a.clearly_faster_than(&b));
    // The interval of the median says more than the median alone, and the band more than the interval.
    let narrow = |ns: u64| Stats { interval_ns: Some((ns - 1, ns + 1)), ..Stats::partial(ns) };
    assert!(narrow(100).clearly_faster_than(&narrow(109)));
    let banded = Stats { p10_ns: 90, p90_ns: 110, ..narrow(100) };
    assert!(!banded.clearly_faster_than(&narrow(109)));
}
