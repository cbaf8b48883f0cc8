//! How one cell is measured, with devices that are lists of times.

use super::*;

fn rules(samples: usize, stop: &dyn Fn() -> bool) -> Rules<'_> {
    Rules { samples, until: Instant::now() + Duration::from_secs(60), stop, care: Care::SCAN }
}

#[test]
fn devices_take_turns_after_they_are_warm() {
    let mut order = Vec::new();
    // Ten times as long at first, then steady; above the time that has runs before each sample.
    let mut run = |device: usize| {
        order.push(device);
        let first = order.iter().filter(|d| **d == device).count() == 1;
        Ok(if first { 20_000_000 } else { 2_000_000 + device as u64 })
    };
    let sides = measure(&[false, false], &rules(4, &|| false), &mut run);
    let medians: Vec<u64> = sides.iter().map(|side| side.stats.unwrap().median_ns).collect();
    assert_eq!(medians, [2_000_000, 2_000_001]);
    assert_eq!(sides[0].stats.unwrap().max_ns, 2_000_000, "the first run is dropped");
    assert_eq!(order, [0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn a_run_that_is_shorter_than_the_clock_is_repeated() {
    let mut runs = 0;
    let mut run = |_: usize| {
        runs += 1;
        Ok(1000)
    };
    let sides = measure(&[false], &rules(3, &|| false), &mut run);
    assert_eq!(sides[0].stats.unwrap().samples, 3);
    assert_eq!(runs, 2 + 3 * (1 + 10));
}

#[test]
fn a_model_is_asked_once() {
    let mut runs = 0;
    let mut run = |_: usize| {
        runs += 1;
        Ok(5_980_000)
    };
    let sides = measure(&[true], &rules(15, &|| false), &mut run);
    let stats = sides[0].stats.unwrap();
    assert_eq!((runs, stats.samples, stats.median_ns, stats.mad_ns), (1, 1, 5_980_000, 0));
}

#[test]
fn what_is_wide_is_measured_again_and_marked_if_it_stays_so() {
    for (calm_after, wide) in [(11, false), (usize::MAX, true)] {
        let mut runs = 0;
        let mut run = |_: usize| {
            runs += 1;
            let swings = runs > 2 && runs < calm_after && runs % 2 == 0;
            Ok(if swings { 4_000_000 } else { 2_000_000 })
        };
        let sides = measure(&[false], &rules(8, &|| false), &mut run);
        assert_eq!(sides[0].stats.unwrap().wide, wide, "calm after {calm_after}");
        assert_eq!(runs, 2 + 8 + 8);
    }
}

#[test]
fn a_device_that_fails_leaves_the_others() {
    let mut run = |device: usize| if device == 1 { Err("gpu:0 is lost".to_owned()) } else { Ok(2_000_000) };
    let sides = measure(&[false, false], &rules(3, &|| false), &mut run);
    assert!(sides[0].stats.is_some() && sides[0].fault.is_none());
    assert_eq!((sides[1].stats, sides[1].fault.as_deref()), (None, Some("gpu:0 is lost")));
}

#[test]
fn an_interruption_or_the_end_of_the_time_leaves_what_is_enough() {
    let count = std::cell::Cell::new(0);
    let mut run = |_: usize| {
        count.set(count.get() + 1);
        Ok(2_000_000)
    };
    let sides = measure(&[false], &rules(15, &|| count.get() >= 4), &mut run);
    assert_eq!(sides[0].stats, None, "two samples have no spread");
    count.set(0);
    let sides = measure(&[false], &rules(15, &|| count.get() >= 7), &mut run);
    assert_eq!(sides[0].stats.unwrap().samples, 5);
    let over = Rules { until: Instant::now(), ..rules(15, &|| false) };
    assert_eq!(measure(&[false], &over, &mut run)[0].stats.unwrap().samples, LEAST as u32);
}

#[test]
fn who_has_spent_its_part_of_the_time_leaves_the_rest_to_the_others() {
    let mut runs = [0; 2];
    let mut run = |device: usize| {
        runs[device] += 1;
        if device == 1 {
            std::thread::sleep(Duration::from_millis(40));
        }
        Ok(if device == 1 { 40_000_000 } else { 2_000_000 })
    };
    let until = Instant::now() + Duration::from_millis(400);
    let sides = measure(&[false, false], &Rules { until, ..rules(50, &|| false) }, &mut run);
    let samples = [0, 1].map(|device: usize| sides[device].samples.len());
    assert!(samples[0] == 50 && (LEAST..20).contains(&samples[1]), "{samples:?}");
}

#[test]
fn a_careful_measurement_warms_up_for_a_while_and_keeps_all_samples() {
    let begun = Instant::now();
    let mut runs = 0;
    let mut run = |_: usize| {
        runs += 1;
        std::thread::sleep(Duration::from_millis(1));
        Ok(if runs % 2 == 0 { 4_000_000 } else { 1_000_000 })
    };
    let care = Care { warm_up: Duration::from_millis(50), ..Care::BENCH };
    let sides = measure(&[false], &Rules { care, ..rules(8, &|| false) }, &mut run);
    assert!(begun.elapsed() > care.warm_up + Duration::from_millis(8));
    assert_eq!(sides[0].samples.len(), 8);
    assert!(sides[0].stats.unwrap().wide && runs > 10, "nothing is measured again: {runs}");
}
