//! Places and ticks.

use super::*;

#[test]
fn ends_lie_at_the_ends() {
    let scale = Scale::over([10, 1_000].into_iter(), 0.0).placed(50.0, 250.0);
    assert_eq!([10, 100, 1_000].map(|v| scale.px(v).round()), [50.0, 150.0, 250.0]);
}

#[test]
fn no_value_and_one_value_have_an_axis_too() {
    for values in [vec![], vec![7], vec![0, 0], vec![u64::MAX]] {
        let scale = Scale::over(values.into_iter(), 0.05).placed(0.0, 100.0);
        assert!(scale.px(7).is_finite() && scale.px(0).is_finite());
        let _ = scale.ticks(5);
    }
}

#[test]
fn ticks_are_round_and_few() {
    assert_eq!(Scale::over([1, 100_000_000].into_iter(), 0.0).ticks(5), [1, 100, 10_000, 1_000_000, 100_000_000]);
    assert_eq!(Scale::over([64, 2_048].into_iter(), 0.0).ticks(6), [100, 200, 500, 1_000, 2_000]);
    assert_eq!(
        Scale::over([500, 20_000_000].into_iter(), 0.0).ticks(5),
        [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    );
}
