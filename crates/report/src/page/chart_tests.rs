//! Labels that keep their distance.

use super::*;

#[test]
fn names_keep_their_distance_and_stay_in_the_plot() {
    assert_eq!(apart(&[100.0, 150.0]), [100.0, 150.0]);
    assert_eq!(apart(&[100.0, 101.0]), [100.0, 114.0]);
    assert_eq!(apart(&[BOTTOM, BOTTOM]), [BOTTOM - LEADING, BOTTOM]);
    assert_eq!(apart(&[0.0]), [TOP]);
    assert!(apart(&[]).is_empty());
}

#[test]
fn round_numbers_lose_their_zero() {
    assert_eq!((brief("1.0 M"), brief("10 k"), brief("2.5 ms")), ("1 M".into(), "10 k".into(), "2.5 ms".into()));
}

#[test]
fn long_names_keep_their_end() {
    assert_eq!(short("gpu:10 simulated"), "gpu:10 simulated");
    assert_eq!(short("rtx4090 gpu:0 simulated"), "\u{2026}4090 gpu:0 sim.");
    assert_eq!(short("card gpu:0 software"), "card gpu:0 soft.");
    assert_eq!(short(&"x".repeat(99)).chars().count(), LONGEST_NAME);
}
