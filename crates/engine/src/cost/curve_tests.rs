//! Curves: through their points, straight on logarithmic axes between them, in proportion outside.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn assert_close(found: Option<f64>, expected: f64) {
    let found = found.expect("something was measured");
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} instead of {expected}");
}

#[test]
fn a_curve_goes_through_its_points() {
    let points = vec![(100.0, 7.0), (1000.0, 9.0), (3000.0, 5000.0), (1e7, 6000.0)];
    let curve = Curve::new(points.clone());
    assert_eq!(curve.points(), points);
    points.iter().for_each(|(size, ns)| assert_close(curve.at(*size), *ns));
    // Halfway on a logarithmic axis.
    assert_close(curve.at(1e5f64.sqrt()), 63f64.sqrt());
}

#[test]
fn it_is_in_proportion_outside() {
    let curve = Curve::new(vec![(100.0, 7.0), (1000.0, 9.0)]);
    assert_close(curve.at(10.0), 0.7);
    assert_close(curve.at(1e6), 9000.0);
    assert_eq!(curve.at(0.0), Some(0.0));
    // Weights, unlike times, stay what they are at the ends.
    assert_eq!((curve.near(10.0), curve.near(1e6)), (Some(7.0), Some(9.0)));
    assert_close(curve.near(1e5f64.sqrt()), 63f64.sqrt());
    assert_close(Curve::new(vec![(50.0, 5.0)]).at(7.0), 0.7);
}

#[test]
fn nothing_measured_says_nothing() {
    assert_eq!((Curve::default().at(1.0), Curve::default().near(1.0)), (None, None));
    assert!(Curve::default().is_empty() && Curve::default().is_sound());
    assert_eq!(Family::default().at(1.0, 1.0), None);
    assert_eq!(Family::default().at(1.0, 0.0), None);
    assert_eq!(family(&[(8.0, 1.0), (64.0, 2.0)]).at(20.0, 0.0), Some(0.0));
}

#[test]
fn junk_is_left_out() {
    let junk = [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::NAN)];
    let infinite = [(f64::INFINITY, 1.0), (1.0, f64::INFINITY)];
    for point in junk.into_iter().chain(infinite) {
        let mut curve = Curve::new(vec![point]);
        assert!(curve.is_empty(), "{point:?}");
        curve.put(2.0, 3.0);
        curve.put(point.0, point.1);
        assert_eq!(curve.points(), [(2.0, 3.0)], "{point:?}");
    }
}

#[test]
fn points_come_in_any_order_and_the_last_of_a_size_counts() {
    let curve = Curve::new(vec![(5.0, 1.0), (2.0, 1.0), (9.0, 4.0), (5.0, 2.0)]);
    assert_eq!(curve.points(), [(2.0, 1.0), (5.0, 2.0), (9.0, 4.0)]);
    assert!(curve.is_sound());
}

#[test]
fn what_no_measurement_gives_is_not_sound() {
    let read = |text: &str| serde_json::from_str::<Curve>(text).unwrap();
    assert!(read("[[1, 2], [3, 4]]").is_sound());
    for text in ["[[1, -2]]", "[[0, 2]]", "[[3, 4], [1, 2]]", "[[1, 2], [1, 3]]", "[[1, 1e300]]", "[[1e300, 1]]"] {
        assert!(!read(text).is_sound(), "{text}");
    }
    let read = |text: &str| serde_json::from_str::<Family>(text).unwrap();
    assert!(read("[[8, [[1, 2]]], [64, [[1, 2]]]]").is_sound());
    for text in ["[[0, [[1, 2]]]]", "[[64, [[1, 2]]], [8, [[1, 2]]]]", "[[8, [[1, -2]]]]", "[[1e300, [[1, 2]]]]"] {
        assert!(!read(text).is_sound(), "{text}");
    }
}

fn family(curves: &[(f64, f64)]) -> Family {
    let mut family = Family::default();
    curves.iter().for_each(|(value, ns)| *family.curve(*value) = Curve::new(vec![(1000.0, *ns)]));
    family
}

#[test]
fn a_family_is_interpolated_between_its_values_and_ends_with_them() {
    let rows = family(&[(1000.0, 100.0), (10.0, 400.0)]);
    assert_close(rows.at(10.0, 1000.0), 400.0);
    assert_close(rows.at(1000.0, 1000.0), 100.0);
    assert_close(rows.at(100.0, 1000.0), 200.0);
    assert_close(rows.at(100.0, 5000.0), 1000.0);
    assert_close(rows.at(1.0, 1000.0), 400.0);
    assert_close(rows.at(1e6, 1000.0), 100.0);
}

/// A measurement that fails leaves a value without a curve.
#[test]
fn a_value_without_a_curve_hides_no_other() {
    let mut rows = family(&[(10.0, 400.0), (1000.0, 100.0)]);
    for value in [1.0, 100.0, 1e6] {
        assert!(rows.curve(value).is_empty());
    }
    assert_close(rows.at(10.0, 1000.0), 400.0);
    assert_close(rows.at(100.0, 1000.0), 200.0);
    assert_close(rows.at(0.5, 1000.0), 400.0);
    assert_close(rows.at(1e5, 1000.0), 100.0);
    assert_close(rows.at(1e7, 1000.0), 100.0);
}

/// Sizes and times that can be met: parts of a byte to exabytes, picoseconds to decades.
fn positive() -> impl Strategy<Value = f64> {
    (-3.0f64..18.0).prop_map(|log| 10f64.powf(log))
}

proptest! {
    #[test]
    fn times_are_finite_and_positive(
        points in prop::collection::vec((positive(), positive()), 1..12),
        size in positive(),
    ) {
        let curve = Curve::new(points);
        prop_assert!(curve.is_sound());
        for ns in [curve.at(size), curve.near(size)] {
            prop_assert!(ns.is_some_and(|ns| ns.is_finite() && ns > 0.0), "{ns:?} at {size}");
        }
    }

    #[test]
    fn between_two_points_it_is_between_their_times(
        points in prop::collection::vec((positive(), positive()), 2..12),
        place in 0usize..11,
        (a, b) in (0.0f64..1.0, 0.0f64..1.0),
    ) {
        let curve = Curve::new(points);
        let known = curve.points();
        prop_assume!(known.len() > 1);
        let (low, high) = (known[place % (known.len() - 1)], known[place % (known.len() - 1) + 1]);
        let size = |share: f64| low.0 * (high.0 / low.0).powf(share);
        let (a, b) = (a.min(b), a.max(b));
        let (first, second) = (curve.at(size(a)).unwrap(), curve.at(size(b)).unwrap());
        let slack = 1.0 + 1e-9;
        let (least, most) = (low.1.min(high.1) / slack, low.1.max(high.1) * slack);
        prop_assert!((least..=most).contains(&first) && (least..=most).contains(&second));
        // Monotone: it goes where the points go.
        let (first, second) = if low.1 <= high.1 { (first, second) } else { (second, first) };
        prop_assert!(first <= second * slack, "{first} {second}");
    }

    #[test]
    fn families_are_finite_and_positive(
        curves in prop::collection::vec((positive(), positive(), positive()), 1..8),
        (value, size) in (positive(), positive()),
    ) {
        let mut family = Family::default();
        curves.iter().for_each(|(value, size, ns)| family.curve(*value).put(*size, *ns));
        let ns = family.at(value, size);
        prop_assert!(ns.is_some_and(|ns| ns.is_finite() && ns > 0.0), "{ns:?} at {value}, {size}");
    }
}
