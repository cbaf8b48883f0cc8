//! The terminal's table as a whole.

use super::*;
use crate::fixture_tests::scan;

#[test]
fn the_table_of_a_scan() {
    insta::assert_snapshot!(table(&scan()));
}

#[test]
fn the_table_without_another_device() {
    let mut scan = scan();
    scan.devices.truncate(1);
    scan.rows.retain(|row| row.device == "cpu");
    scan.overheads.truncate(1);
    scan.fused.clear();
    scan.transfers.clear();
    scan.how.interrupted = true;
    insta::assert_snapshot!(table(&scan));
}

#[test]
fn names_can_not_steer_the_terminal() {
    let mut scan = scan();
    scan.devices[1].name = "\u{1b}[2J\nboo".into();
    scan.rows[0].op = "mat\u{7}mul".into();
    assert!(!table(&scan).contains(['\u{1b}', '\u{7}']));
}

#[test]
fn lines_fit_a_terminal() {
    let text = table(&scan());
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 120, "{longest} columns");
    assert!(text.lines().all(|line| line.trim_end() == line));
}
