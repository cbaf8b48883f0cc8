//! The terminal's text as a whole.

use super::*;
use crate::bench::Null;
use crate::bench::fixture_tests::{bench, later};

#[test]
fn the_table_of_a_run() {
    insta::assert_snapshot!(table(&bench()));
}

#[test]
fn the_table_of_the_cpu_alone() {
    let mut bench = bench();
    bench.devices.truncate(1);
    bench.groups.iter_mut().for_each(|group| group.rows.retain(|row| row.device == "cpu"));
    bench.null = None;
    bench.how.interrupted = true;
    insta::assert_snapshot!(table(&bench));
}

#[test]
fn the_table_of_a_gate() {
    insta::assert_snapshot!(gate_table(&Gate::of(&bench(), &later(), 0.10)));
}

#[test]
fn a_gate_that_is_passed_says_so_in_a_line() {
    assert_eq!(
        gate_table(&Gate::of(&bench(), &bench(), 0.10)),
        "Nothing is slower by more than 10.0 %. Other rows: 11 the same. Compared by the faster half of the passes' medians.\n"
    );
}

#[test]
fn lines_fit_a_terminal_and_can_not_steer_it() {
    let mut bench = bench();
    bench.groups[1].troubles[0].why = "\u{1b}[2J\nboo".into();
    bench.groups[1].rows[0].case = "mat\u{7}mul".into();
    let gate = Gate::of(&bench, &later(), 0.10);
    for text in [table(&bench), gate_table(&gate)] {
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 150, "{longest} columns");
        assert!(text.lines().all(|line| line.trim_end() == line));
        assert!(!text.contains(['\u{1b}', '\u{7}']));
    }
}

#[test]
fn what_can_only_be_told_from_more_than_the_limit_on_is_said() {
    let blind = Null { floor: 0.25, ..Null::default() };
    let restless = Bench { null: Some(blind), ..bench() };
    let text = gate_table(&Gate::of(&restless, &bench(), 0.10));
    assert!(text.starts_with("Nothing is slower by more than 10.0 %."), "{text}");
    assert!(text.replace("\n  ", " ").contains("Of 11 rows only changes from 25.0 % on can be told."), "{text}");
}
