//! The page: nothing of a file becomes markup, nothing is loaded, what is missing is said.

use super::*;
use crate::compare::tests::compared;
use crate::fixture_tests::{assert_self_contained, scan};

#[test]
fn the_page_is_complete_and_loads_nothing() {
    let page = html(&compared());
    assert_self_contained(&page);
    // Three ops: one chart each with all sides, and one in each panel that has it: vk 3, gl 2, alone 3, old 1.
    assert_eq!(page.matches("<figure>").count(), 3 + 9);
    assert_eq!(page.matches("<article").count(), 4, "one panel a side");
    assert_eq!(page.matches("not measured on ").count(), 3, "what a side does not have is said in its place");
}

#[test]
fn a_side_without_a_gpu_shows_it_as_missing() {
    let page = html(&compared());
    assert!(page.contains("GPU missing</strong> no GPU was found"), "in its panel");
    assert!(page.contains("data-device=\"alone\" class=\"quiet\">missing<"), "in the table");
}

#[test]
fn contradictions_and_unknown_spreads_are_shown() {
    let page = html(&compared());
    assert!(page.contains("<span class=\"flag\">claim against rows</span>"));
    assert!(page.contains("spread unknown") && page.contains(">unknown<"));
    let sound = Comparison::of(vec![("a".into(), scan()), ("b".into(), scan())]).unwrap();
    assert!(html(&sound).contains("None was found"));
}

#[test]
fn labels_and_names_never_become_markup() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--";
    let mut other = scan();
    for device in &mut other.devices {
        device.name = evil.into();
    }
    (other.machine.cpu, other.how.date, other.how.notes) = (evil.into(), evil.into(), vec![evil.into()]);
    other.claims.push(crate::Claim { op: "exp".into(), device: "*".into(), source: evil.into(), ..Default::default() });
    other.rows.iter_mut().for_each(|row| row.unit = format!("{evil} {}", row.unit));
    let page = html(&Comparison::of(vec![(evil.into(), other), ("b".into(), scan())]).unwrap());
    assert_self_contained(&page);
    assert!(!page.contains("<img") && !page.contains("<script>alert") && !page.contains("<!--"));
}

#[test]
fn stand_ins_are_told_wherever_they_are() {
    let page = html(&compared());
    for bare in [">vk gpu:0<", ">vk gpu:1<", ">gl gpu:0<"] {
        assert!(!page.contains(bare), "{bare}");
    }
}
