//! Intervals of samples whose answers are known, and that the same samples give the same ones.

use super::*;

/// Samples of passes that differ by `between` and spread by `within`, thousandths both.
fn passes(ns: u64, between: u64, within: u64) -> Vec<Vec<u64>> {
    let pass = |pass: u64| {
        let level = ns + ns * between * (pass * 2 % 5) / 5000;
        (0..12).map(|i| level + level * within * (i * 5 % 12) / 12_000).collect()
    };
    (0..5).map(pass).collect()
}

fn settled(passes: Vec<Vec<u64>>) -> Row {
    let mut row = Row { passes, ..Row::default() };
    row.settle();
    row
}

/// The width of a row's interval.
fn width(row: &Row) -> u64 {
    row.interval.1 - row.interval.0
}

#[test]
fn the_median_is_inside_and_more_spread_is_wider() {
    let [narrow, wide] = [10, 200].map(|within| settled(passes(100_000, 0, within)));
    for row in [&narrow, &wide] {
        let (low, high) = row.interval;
        assert!(low <= row.stats.median_ns && row.stats.median_ns <= high && low < high, "{row:?}");
    }
    assert!(width(&wide) > 5 * width(&narrow), "{:?} {:?}", wide.interval, narrow.interval);
}

#[test]
fn passes_that_differ_are_wider_than_the_same_samples_of_one_process() {
    let differing = passes(100_000, 300, 10);
    let (apart, together) = (settled(differing.clone()), settled(vec![differing.concat()]));
    assert_eq!(apart.stats, together.stats);
    assert!(width(&apart) > 2 * width(&together), "{:?} {:?}", apart.interval, together.interval);
}

#[test]
fn the_same_samples_give_the_same_interval() {
    let (a, b) = (passes(100_000, 50, 30), passes(110_000, 50, 30));
    assert_eq!(settled(a.clone()), settled(a.clone()));
    assert_eq!(Ratio::of(Level::Typical, &a, &b), Ratio::of(Level::Typical, &a, &b));
    // A change of the seed or of the order of draws would show here, and change every report of old samples.
    let found = Ratio::of(Level::Typical, &a, &b).unwrap();
    assert_eq!(
        format!("{:.4} {:.4} {:.4} {:.3}", found.ratio, found.low, found.high, found.sure),
        "1.1000 1.0782 1.1237 1.000"
    );
    assert_eq!(Ratio::of(Level::Fastest, &a, &b), Ratio::of(Level::Fastest, &a, &b));
}

#[test]
fn few_samples_are_no_trouble() {
    assert_eq!(settled(vec![]), Row::default());
    assert_eq!(settled(vec![vec![], vec![]]).interval, (0, 0));
    assert_eq!(settled(vec![vec![7]]).interval, (7, 7));
    assert_eq!(settled(vec![vec![], vec![5, 9]]).interval, (5, 9));
    assert_eq!(settled(vec![vec![u64::MAX; 3]]).interval, (u64::MAX, u64::MAX));
    assert_eq!(
        (Ratio::of(Level::Typical, &[], &[vec![1]]), Ratio::of_pairs(Level::Typical, &[vec![1]], &[vec![]])),
        (None, None)
    );
    let zero = Ratio::of(Level::Typical, &[vec![0, 0]], &[vec![0, 2]]).unwrap();
    assert!(zero.ratio.is_finite() && zero.high.is_finite());
}

#[test]
fn the_fast_side_is_what_counts() {
    let of = |level: Level, medians: &[u64]| level.of(&medians.iter().map(|&ns| vec![ns]).collect::<Vec<_>>());
    assert_eq!(of(Level::Typical, &[]), None);
    assert_eq!(of(Level::Typical, &[300, 100, 200]), Some(150.0));
    assert_eq!(of(Level::Typical, &[900, 100, 800, 200]), Some(150.0));
    assert_eq!(of(Level::Typical, &[70]), Some(70.0));
    assert_eq!(of(Level::Fastest, &[900, 100, 800, 500, 200]), Some(150.0));
    assert_eq!(Level::Fastest.of(&[vec![100, 100], vec![900, 950]]), Some(500.0), "one lucky pass is not enough");
}

#[test]
fn how_sure_says_on_which_side() {
    let (a, slower) = (passes(100_000, 20, 30), passes(130_000, 20, 30));
    assert_eq!(
        (Ratio::of(Level::Typical, &a, &slower).unwrap().sure, Ratio::of(Level::Typical, &slower, &a).unwrap().sure),
        (1.0, 1.0)
    );
    let close = Ratio::of(Level::Typical, &a, &passes(100_500, 20, 30)).unwrap();
    assert!(close.sure > 0.5 && close.sure < 0.95 && close.low < 1.0 && close.high > 1.0, "{close:?}");
}

#[test]
fn pairs_do_not_mind_passes_that_differ() {
    // Every pass is slower than the one before, but both sides of it are.
    let first: Vec<Vec<u64>> = (1..6).map(|pass| (0..9).map(|i| 10_000 * pass + i).collect()).collect();
    let found = Ratio::of_pairs(Level::Typical, &first, &first).unwrap();
    assert!(found.low > 0.999 && found.high < 1.001, "{found:?}");
}

#[test]
fn medians_by_rank() {
    assert_eq!(middle(&[1, 1, 1], 3), [1, 1]);
    assert_eq!(middle(&[2, 0, 2], 4), [0, 2]);
    assert_eq!(middle(&[0, 0, 4], 4), [2, 2]);
}
