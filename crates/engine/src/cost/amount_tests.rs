//! What is paid for each operation and what for its weight are told apart.

use super::*;

/// A kernel that takes 3 ns for each operation and 2 for each unit of weight.
fn ns(count: f64, weight: f64, mean: f64) -> f64 {
    let (light, heavy) = ((3.0 + 2.0) * weight, (3.0 / mean + 2.0) * weight);
    Amount { count, weight }.ns(light, Some(heavy), || mean)
}

#[test]
fn operations_and_weight_are_both_paid_for() {
    for mean in [2.0, 5.0, 20.0] {
        for (count, weight) in [(1.0, 1.0), (10.0, 10.0), (10.0, 37.0), (4.0, 400.0)] {
            let expected = 3.0 * count + 2.0 * weight;
            assert!((ns(count, weight, mean) - expected).abs() < 1e-9 * expected, "{count} {weight} {mean}");
        }
    }
}

#[test]
fn what_is_unknown_is_in_proportion_to_weight() {
    let amount = Amount { count: 2.0, weight: 10.0 };
    assert_eq!(amount.ns(50.0, None, || 5.0), 50.0);
    assert_eq!(amount.ns(50.0, Some(60.0), || 1.0), 50.0);
}

#[test]
fn noise_makes_nothing_negative() {
    for (light, heavy) in [(1.0, 100.0), (100.0, 1.0), (0.0, 0.0), (5.0, 0.0), (0.0, 5.0)] {
        for (count, weight) in [(0.0, 0.0), (5.0, 0.5), (1.0, 100.0)] {
            let ns = Amount { count, weight }.ns(light, Some(heavy), || 4.0);
            assert!(ns.is_finite() && ns >= 0.0, "{ns}");
        }
    }
}
