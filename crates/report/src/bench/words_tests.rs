//! Parts and changes in words.

use super::*;

#[test]
fn parts_and_changes() {
    assert_eq!([percent(0.0), percent(0.0341), percent(0.9996), percent(2.5)], ["0.0 %", "3.4 %", "100 %", "250 %"]);
    assert_eq!([change(1.0), change(1.123), change(0.96), change(3.0)], ["+0.0 %", "+12.3 %", "-4.0 %", "+200 %"]);
    assert_eq!([sure(1.0), sure(0.9999), sure(0.5)], ["100.0 %", "99.9 %", "50.0 %"]);
    assert_eq!([count(1, "row"), count(0, "row")], ["1 row", "0 rows"]);
}
