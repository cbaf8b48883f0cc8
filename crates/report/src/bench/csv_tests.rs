//! One line for each row.

use super::*;
use crate::bench::fixture_tests::bench;

#[test]
fn the_csv_of_a_run() {
    insta::assert_snapshot!(csv(&bench()).replace("\r\n", "\n"));
}

#[test]
fn every_line_has_every_column() {
    let mut bench = bench();
    bench.devices[1].name = "llvmpipe".into();
    let text = csv(&bench);
    let rows = bench.groups.iter().map(|group| group.rows.len()).sum::<usize>();
    assert_eq!(text.lines().count(), rows + 1);
    assert!(text.lines().all(|line| line.split(',').count() == HEADER.split(',').count()));
    assert!(text.ends_with("\r\n"));
}
