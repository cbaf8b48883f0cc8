//! Stretches of curves made by hand.

use super::*;
use crate::curves::curves;
use crate::fixture_tests::{devices, rows};
use crate::scan::Scan;

/// (first size, last size, device) of each stretch.
fn of(lines: &[(&str, &[(u64, u64)])]) -> Vec<(u64, u64, usize)> {
    let scan = Scan { devices: devices(), rows: rows("exp", "map", "elements", lines), ..Scan::default() };
    let round = |ln: f64| ln.exp().round() as u64;
    fastest(&curves(&scan)[0]).iter().map(|s| (round(s.from), round(s.to), s.device)).collect()
}

#[test]
fn borders_lie_where_curves_cross() {
    let stretches = of(&[("cpu", &[(100, 1_000), (10_000, 100_000)]), ("gpu:1", &[(100, 10_000), (10_000, 10_000)])]);
    assert_eq!(stretches, [(100, 1_000, 0), (1_000, 10_000, 2)]);
}

#[test]
fn nothing_is_said_where_only_one_device_was_measured() {
    let stretches = of(&[("cpu", &[(100, 10), (10_000, 10)]), ("gpu:0", &[(100, 20), (1_000, 20)])]);
    assert_eq!(stretches, [(100, 1_000, 0)]);
    assert_eq!(of(&[("cpu", &[(100, 10), (10_000, 10)])]), []);
}

#[test]
fn one_size_alone_has_a_fastest_device() {
    assert_eq!(of(&[("cpu", &[(100, 10)]), ("gpu:0", &[(100, 5)])]), [(100, 100, 1)]);
}
