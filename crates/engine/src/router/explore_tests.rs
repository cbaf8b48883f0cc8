//! Devices that become slow, recover, disappoint or fail: when they are left, looked at and returned to.

use super::*;

/// How many batches until a device that has become ten times slower is left, and until it is used again after it has
/// recovered: the worst of many lengths of the slow phase.
fn left_and_returned(cpu: u64) -> (usize, usize) {
    let mut worst = (0, 0);
    for phase in (20..1500).step_by(37) {
        let router = router(0.01, &[cpu * MS, MS]);
        let mut run = Run::new(&router);
        let normal = [cpu * MS, MS];
        run.batches(500, &normal);
        assert_eq!(run.current, Some(1));
        let slow = [cpu * MS, 10 * MS];
        let left = run.until(0, 1000, &slow);
        run.batches(phase, &slow);
        assert_eq!(run.current, Some(0), "it stays left while it is slow");
        worst = (worst.0.max(left), worst.1.max(run.until(1, 5000, &normal)));
        run.batches(300, &normal);
        assert_eq!(run.moves, 2, "there and back");
    }
    worst
}

#[test]
fn a_slow_device_is_left_and_returned_to() {
    for cpu in [4, 6, 8] {
        let (left, returned) = left_and_returned(cpu);
        assert!(left <= 20, "the CPU takes {cpu} times as long: left after {left} batches");
        assert!(returned <= 200, "the CPU takes {cpu} times as long: returned to after {returned} batches");
    }
}

/// Closer to the CPU a look costs more and is worth less: at three times, one costs 7 of the 3 that a batch takes, which
/// a budget of a hundredth has after 234 batches.
#[test]
fn the_budget_decides_how_soon_a_device_is_returned_to() {
    let (left, returned) = left_and_returned(3);
    assert!(left <= 20, "{left}");
    assert!((150..=250).contains(&returned), "{returned}");
}

/// One that is too dear for a look hides no other.
#[test]
fn a_hopeless_device_does_not_keep_others_from_being_explored() {
    let router = router(0.01, &[4 * MS, MS, 1_000_000 * MS]);
    let mut run = Run::new(&router);
    run.batches(100, &[4 * MS, MS, 1_000_000 * MS]);
    assert!(run.until(0, 20, &[4 * MS, 10 * MS, 1_000_000 * MS]) <= 20);
    run.batches(300, &[4 * MS, 10 * MS, 1_000_000 * MS]);
    assert!(run.until(1, 300, &[4 * MS, MS, 1_000_000 * MS]) <= 200);
}

#[test]
fn exploring_stays_within_its_budget() {
    // Of devices that are what they seem, that are far worse, and that are hardly worse.
    for (expected, took) in [
        ([4 * MS, MS, 9 * MS], [4 * MS, MS, 9 * MS]),
        ([MS, 2 * MS, 3 * MS], [MS, 50 * MS, 3 * MS]),
        ([MS, 100 * MS, 100 * MS], [MS, 100 * MS, 100 * MS]),
        ([MS, 1020 * US, 1050 * US], [MS, 1020 * US, 1050 * US]),
    ] {
        let router = router(0.01, &expected);
        let mut run = Run::new(&router);
        run.batches(10_000, &took);
        let share = run.explored_ns as f64 / run.total_ns as f64;
        assert!(share <= 0.01, "{share} for {took:?}");
        assert!(run.explorations > 0, "{took:?}");
        assert_eq!(run.moves, 0, "{took:?}");
        let best = 10_000 * took.into_iter().min().unwrap();
        assert!((run.total_ns as f64) < 1.0102 * best as f64, "{} of {best} for {took:?}", run.total_ns);
    }
}

#[test]
fn more_budget_looks_more_often_and_none_never() {
    let explorations = [0.0, 0.001, 0.01, 0.1].map(|explore| {
        let router = router(explore, &[4 * MS, MS]);
        let mut run = Run::new(&router);
        run.batches(10_000, &[4 * MS, MS]);
        run.explorations
    });
    assert_eq!(explorations[0], 0);
    assert!(explorations.is_sorted_by(|a, b| a < b), "{explorations:?}");
}

/// A device that was thought to be the best and is not: found out once, and not over and over after each look.
#[test]
fn a_device_that_disappoints_stays_left() {
    let router = router(0.01, &[2 * MS, MS]);
    let mut run = Run::new(&router);
    run.batches(10_000, &[2 * MS, 5 * MS]);
    assert_eq!((run.moves, run.current), (1, Some(0)));
    let share = run.explored_ns as f64 / run.total_ns as f64;
    assert!(share <= 0.01 && run.explorations > 10, "{share}, {} looks", run.explorations);
    assert!((run.total_ns as f64) < 1.012 * (10_000 * 2 * MS) as f64, "{}", run.total_ns);
}

/// A device that fails for this plan, each time: tried less and less often, and not before every batch.
#[test]
fn a_device_that_fails_is_tried_ever_more_rarely() {
    for explore in [0.0, 0.01] {
        let router = router(explore, &[4 * MS, MS]);
        let routed = router.routed(&plan(), 1);
        let mut attempts = Vec::new();
        for number in 0..1000 {
            let choice = choose(&router, &routed);
            if choice.device == 1 {
                attempts.push(number);
            } else {
                assert_eq!(choice.device, 0);
            }
            // The CPU had to do it.
            router.learn(&routed, &choice, 0, 4 * MS, false);
        }
        assert_eq!(attempts[0], 0);
        assert!((5..=40).contains(&attempts.len()), "{attempts:?}");
        assert!(attempts[1] <= 3 && attempts[attempts.len() - 1] > 900, "{attempts:?}");
        // Once it works it is used again as if nothing had been.
        let mut last = 0;
        for number in 0..300 {
            let choice = choose(&router, &routed);
            router.learn(&routed, &choice, choice.device, [4 * MS, MS][choice.device], false);
            last = if choice.device == 1 || choice.why == Why::Explores { last } else { number };
        }
        assert!(last <= 100, "the CPU was used until batch {last}");
    }
}
