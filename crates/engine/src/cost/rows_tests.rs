//! Whole rows and others: each as they were measured, and as the others where they were not.

use super::*;

fn each(ns: f64) -> Curve {
    Curve::new(vec![(1.0, ns)])
}

#[test]
fn nothing_measured_is_nothing_known() {
    assert_eq!(Rows::default().at(8.0, 100.0), None);
}

#[test]
fn rows_that_are_whole_vectors_are_a_matter_of_their_own() {
    let mut rows = Rows::new(4);
    for (row, ns) in [(8, 1.0), (64, 3.0), (9, 10.0), (65, 30.0)] {
        *rows.curve(row) = each(ns);
    }
    let at = |row: f64| rows.at(row, 1.0).unwrap();
    assert!((1.0..3.0).contains(&at(20.0)) && (10.0..30.0).contains(&at(21.0)));
    assert_eq!((at(4.0), at(3.0), at(400.0), at(401.0)), (1.0, 10.0, 3.0, 30.0));
}

#[test]
fn what_was_not_measured_is_as_the_others() {
    let mut rows = Rows::new(16);
    *rows.curve(64) = each(2.0);
    assert_eq!((rows.at(64.0, 1.0), rows.at(67.0, 1.0)), (Some(2.0), Some(2.0)));
    let mut rows = Rows::new(16);
    *rows.curve(67) = each(2.0);
    assert_eq!(rows.at(64.0, 1.0), Some(2.0));
}

#[test]
fn nonsense_from_a_file_is_not_sound() {
    let read = |text: &str| serde_json::from_str::<Rows>(text).unwrap();
    assert!(read(r#"{"lanes":4,"whole":[[8.0,[[5.0,1.0]]]],"others":[]}"#).is_sound());
    assert!(!read(r#"{"lanes":0,"whole":[],"others":[]}"#).is_sound());
    assert!(!read(r#"{"lanes":4,"whole":[],"others":[[8.0,[[5.0,-1.0]]]]}"#).is_sound());
}
