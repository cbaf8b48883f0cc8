use super::*;

#[test]
fn speed_is_assumed_then_measured() {
    let mut speed = Speed::default();
    assert_eq!(speed.predict_ns(1000), 25_000.0);
    // So little work says nothing.
    speed.learn(256, 100_000.0);
    assert!(!speed.is_known());
    speed.learn(100_000, 200_000.0);
    assert_eq!(speed.predict_ns(1_000_000), 2_000_000.0);
    speed.learn(100_000, 600_000.0);
    assert_eq!(speed.predict_ns(100), 300.0);
    // Much more work says much more.
    speed.learn(10_000_000, 10_000_000.0);
    assert_eq!(speed.predict_ns(100), 100.0);
    // And much less, nothing any more.
    speed.learn(20_000, 2_000_000.0);
    assert_eq!(speed.predict_ns(100), 100.0);
}
