//! The summary as a whole, and names that look like Markdown.

use super::*;
use crate::fixture_tests::scan;

#[test]
fn the_summary_of_a_scan() {
    insta::assert_snapshot!(markdown(&scan()));
}

#[test]
fn names_are_text() {
    let mut scan = scan();
    scan.devices[1].name = "<script>x</script> a|b [c](d)\n# e".into();
    let page = markdown(&scan);
    assert!(page.contains(r"&lt;script&gt;x&lt;/script&gt; a\|b \[c\](d) \# e"), "{page}");
    assert!(!page.contains("<script>"));
}

#[test]
fn a_scan_of_the_cpu_alone_says_so() {
    let mut scan = scan();
    scan.devices.truncate(1);
    scan.rows.retain(|row| row.device == "cpu");
    assert!(markdown(&scan).contains("| exp |  | no other device was measured | 10 M elements | 5.0 ms |"));
}
