//! The page as a whole.

use super::*;
use crate::bench::fixture_tests::{bench, later};

#[test]
fn the_page_of_a_run() {
    insta::assert_snapshot!(markdown(&bench(), None));
}

#[test]
fn the_page_of_a_run_beside_a_baseline() {
    let page = markdown(&later(), Some(&Gate::of(&bench(), &later(), 0.10)));
    let until = page.find("## Measurements").unwrap();
    insta::assert_snapshot!(&page[..until]);
}

#[test]
fn an_order_that_was_given_was_not_made_from_a_seed() {
    let mut bench = bench();
    bench.how.order_given = true;
    let page = markdown(&bench, None);
    assert!(page.contains("in this order, as given: ") && !page.contains("seed"), "{page}");
}

#[test]
fn a_copy_in_memory_is_no_transfer() {
    let mut bench = bench();
    let mut copy = bench.groups[4].rows[0].clone();
    (copy.case, copy.memcpy_ns, copy.passes) = ("memcpy".into(), None, vec![vec![9]]);
    copy.settle();
    bench.groups[4].rows.push(copy);
    assert!(markdown(&bench, None).contains("Bytes go fastest in upload"));
}

#[test]
fn names_are_text() {
    let mut bench = bench();
    bench.missing[0].why = "<b> a|b\n# c".into();
    assert!(markdown(&bench, None).contains(r"&lt;b&gt; a\|b \# c"));
}
