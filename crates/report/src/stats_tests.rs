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
