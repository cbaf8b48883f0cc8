//! The same code twice, on machines that see it and on one that does not.

use super::*;

/// Three passes of samples around `ns`.
fn passes(ns: u64, spread: u64) -> Vec<Vec<u64>> {
    (0..3).map(|pass| (0..9).map(|i| ns + (i * 7 + pass * 3) % 9 * spread).collect()).collect()
}

fn case(second: u64, spread: u64) -> NullCase {
    NullCase { first: passes(100_000, spread), second: passes(second, spread), ..NullCase::default() }
}

#[test]
fn a_quiet_machine_sees_nothing() {
    let null = Null::of(vec![case(100_000, 10), case(100_010, 10)]);
    assert!(!null.differs && null.floor <= 0.002, "{null:?}");
    assert_eq!(null.words(), "The same code run twice looked the same, to within 0.1 %.");
}

#[test]
fn a_noisy_machine_sees_nothing_but_can_not_tell_much() {
    let null = Null::of(vec![case(100_000, 3_000)]);
    assert!(!null.differs && null.floor > 0.02, "{null:?}");
}

#[test]
fn a_difference_in_one_case_is_one() {
    for second in [95_000, 105_000] {
        let null = Null::of(vec![case(100_000, 10), case(second, 10)]);
        assert!(null.differs && null.floor >= 0.05 && null.floor < 0.06, "{null:?}");
        assert!(null.words().ends_with(&format!("this machine can't tell differences below {}.", percent(null.floor))));
    }
    assert!(!Null::of(vec![case(100_900, 10)]).differs, "a percent is not seen");
}

#[test]
fn without_samples_there_is_no_verdict() {
    let null = Null::of(vec![]);
    assert_eq!((null.differs, null.floor, null.words().as_str()), (false, 0.0, "The null test was not run."));
    assert_eq!(Null::of(vec![NullCase::default()]).floor, 0.0);
}

#[test]
fn each_device_has_its_own_floor() {
    let on = |device: &str, second| NullCase { device: device.into(), ..case(second, 0) };
    let null = Null::of(vec![on("cpu", 101_000), on("gpu:0", 130_000)]);
    assert_eq!(
        (null.floor, null.floor_of("cpu", Level::Typical), null.floor_of("gpu:0", Level::Typical)),
        (0.3, 0.01, 0.3)
    );
    assert_eq!(null.floor_of("gpu:1", Level::Typical), 0.3, "nobody asked it");
}

#[test]
fn a_null_test_under_load_says_so() {
    let cases = vec![NullCase { first: vec![vec![100; 9]], second: vec![vec![100; 9]], ..NullCase::default() }];
    let words = Null { loaded: true, ..Null::of(cases) }.words();
    assert!(words.ends_with("It ran while the machine was busy with something else."), "{words}");
}
