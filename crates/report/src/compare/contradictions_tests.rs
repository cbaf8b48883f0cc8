//! Every kind of contradiction, and rows that are none.

use super::*;
use crate::claim::Claim;
use crate::compare::{Comparison, Outcome};
use crate::fixture_tests::{devices, rows};
use crate::scan::{Fused, Scan};

/// A scan of one op on the CPU and on the software adapter, with claims.
fn side(op: &str, cpu: &[(u64, u64)], gpu: &[(u64, u64)], claims: &[&str]) -> Scan {
    let rows = rows(op, "map", "elements", &[("cpu", cpu), ("gpu:0", gpu)]);
    let claims = claims.iter().map(|claim| Claim::parse(claim, "--claim").unwrap()).collect();
    Scan { devices: devices()[..2].to_vec(), rows, claims, ..Scan::default() }
}

/// A scan against itself without its claims, so that each contradiction is there once for each side.
fn found(scan: &Scan) -> Comparison {
    let other = Scan { claims: Vec::new(), fused: Vec::new(), ..scan.clone() };
    Comparison::of(vec![("a".into(), scan.clone()), ("b".into(), other)]).unwrap()
}

fn kinds(comparison: &Comparison) -> Vec<ContradictionKind> {
    comparison.contradictions.iter().map(|contradiction| contradiction.kind).collect()
}

/// The adapter pays from 3,000 or so on.
const CPU: [(u64, u64); 4] = [(100, 1_000), (1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
const GPU: [(u64, u64); 4] = [(100, 30_000), (1_000, 31_000), (10_000, 33_000), (100_000, 60_000)];

#[test]
fn claims_that_rows_show_hold() {
    for claim in ["add=3k", "add@gpu:0=5k", "*=10k", "add=1001", "*@gpu=2k"] {
        let found = found(&side("add", &CPU, &GPU, &[claim]));
        assert_eq!((kinds(&found), found.claims[0].outcome), (vec![], Outcome::Holds), "{claim}: {:?}", found.claims);
    }
}

#[test]
fn claims_that_rows_do_not_show_are_flagged_with_evidence() {
    for (claim, sizes) in
        [("add=1000", &[1_000][..]), ("add=50k", &[10_000]), ("add=never", &[10_000, 100_000]), ("*=10", &[100, 1_000])]
    {
        let found = found(&side("add", &CPU, &GPU, &[claim]));
        assert_eq!(kinds(&found), [ContradictionKind::Claim], "{claim}");
        assert_eq!(found.contradictions[0].sizes, sizes, "{claim}");
    }
    let late = found(&side("add", &CPU, &GPU, &["add=50k"]));
    assert_eq!(
        late.contradictions[0].words,
        "a: --claim says of add on gpu:0 software that it pays from 50 k elements on, but at 10 k elements the CPU takes \
         100 us and gpu:0 software 33 us: gpu:0 software is 3.0x as fast; the rows say: from 3200 elements on"
    );
}

#[test]
fn a_claim_that_stays_within_the_noise_is_not_shown() {
    let same: Vec<(u64, u64)> = CPU.iter().map(|&(size, ns)| (size, ns + ns / 100)).collect();
    let found = found(&side("add", &CPU, &same, &["add=10k"]));
    assert_eq!(found.claims[0].outcome, Outcome::Contradicted);
    assert!(found.contradictions[0].words.contains("no size shows it beyond the noise"), "{:?}", found.contradictions);
}

#[test]
fn claims_that_no_row_tests_say_why() {
    for (claim, why) in [
        ("mul=1k", "no row of this op"),
        ("add@gpu:7=1k", "no row of this op"),
        ("add=5 calls", "nobody knows how many calls are so many elements"),
    ] {
        let found = found(&side("add", &CPU, &GPU, &[claim]));
        let checked = &found.claims[0];
        assert!(checked.outcome == Outcome::Untested && checked.why.contains(why), "{claim}: {checked:?}");
        assert!(kinds(&found).is_empty(), "{claim}");
    }
    let late = found(&side("add", &CPU[..2], &GPU[..2], &["add=1M"]));
    assert_eq!(late.claims[0].why, "no size was measured there; no smaller one contradicts it");
    assert_eq!((late.claims[0].outcome, kinds(&late)), (Outcome::Untested, vec![]));
    let mut alone = side("add", &CPU, &[], &["add=1k"]);
    alone.devices.truncate(1);
    assert_eq!(found(&alone).claims[0].why, "no device but the CPU was measured");
}

#[test]
fn curves_that_cross_more_than_once() {
    let twice = [(100, 30_000), (1_000, 5_000), (10_000, 200_000), (100_000, 60_000)];
    let found = found(&side("add", &CPU, &twice, &[]));
    assert_eq!(kinds(&found), [ContradictionKind::CrossesOften; 2], "once for each side");
    let words = &found.contradictions[0].words;
    assert!(
        words
            .starts_with("a: add on gpu:0 software crosses the CPU's curve 3 times: faster is the CPU at 100 elements"),
        "{words}"
    );
    let wrong_way = [(100, 500), (100_000, 2_000_000)];
    let found = self::found(&side("add", &CPU, &wrong_way, &[]));
    assert!(found.contradictions[0].words.contains("once, but the wrong way"), "{:?}", found.contradictions);
}

#[test]
fn sides_that_disagree_beyond_their_spread() {
    let slow: Vec<(u64, u64)> = GPU.iter().map(|&(size, ns)| (size, ns * 40)).collect();
    let (fast, slow) = (side("add", &CPU, &GPU, &[]), side("add", &CPU, &slow, &[]));
    let sides = |a: &Scan, b: &Scan| Comparison::of(vec![("a".into(), a.clone()), ("b".into(), b.clone())]).unwrap();
    let found = sides(&fast, &slow);
    assert_eq!(kinds(&found), [ContradictionKind::Disagreement]);
    assert_eq!(
        (&*found.contradictions[0].device, &found.contradictions[0].sizes[..]),
        ("software", &[10_000, 100_000][..])
    );
    assert!(found.contradictions[0].words.contains("a and b disagree about add on software devices"));
    // A card and a software adapter may well disagree.
    let mut card = fast.clone();
    card.devices[1].kind = "discrete".into();
    assert!(kinds(&sides(&card, &slow)).is_empty());
    // Within the spread there is nothing to disagree about.
    let close: Vec<(u64, u64)> = CPU.iter().map(|&(size, ns)| (size, ns + ns / 100)).collect();
    let closer: Vec<(u64, u64)> = CPU.iter().map(|&(size, ns)| (size, ns - ns / 100)).collect();
    let found = sides(&side("add", &CPU, &close, &[]), &side("add", &CPU, &closer, &[]));
    assert!(!kinds(&found).contains(&ContradictionKind::Disagreement));
}

#[test]
fn crossovers_inside_the_noise() {
    let close = [(100, 30_000), (1_000, 10_100), (10_000, 99_000), (100_000, 60_000)];
    let found = found(&side("add", &CPU, &close, &[]));
    assert_eq!(kinds(&found), [ContradictionKind::Noise; 2]);
    let words = &found.contradictions[0].words;
    assert!(words.ends_with("it lies anywhere between 100 and 100 k elements"), "{words}");
    assert_eq!(found.contradictions[0].sizes, [1_000, 10_000]);
    // Without spreads there is no noise to lie in.
    let mut unknown = side("add", &CPU, &close, &[]);
    unknown.rows.iter_mut().for_each(|row| row.stats = Stats::partial(row.stats.median_ns));
    assert!(kinds(&self::found(&unknown)).is_empty());
}

#[test]
fn fused_crossovers_that_rows_contradict() {
    let fused = |what: &str, separate: Option<u64>, together: Option<u64>| Fused {
        what: what.into(),
        device: "gpu:0".into(),
        separate_crossover: separate,
        fused_crossover: together,
        unit: "elements".into(),
    };
    let with = |op: &str, fused: Fused| found(&Scan { fused: vec![fused], ..side(op, &CPU, &GPU, &[]) });
    assert!(kinds(&with("chain", fused("a chain of ten ops", None, Some(2_900)))).is_empty());
    let wrong = with("chain", fused("a chain of ten ops", Some(2_900), None));
    assert_eq!(kinds(&wrong), [ContradictionKind::Fused]);
    assert!(
        wrong.contradictions[0]
            .words
            .starts_with("a: the fused crossover says of chain on gpu:0 software that it never pays, but at")
    );
    assert_eq!(
        kinds(&with("chain as 10 calls", fused("a chain of ten ops", None, Some(5)))),
        [ContradictionKind::Fused]
    );
    // Rows of one of its operations say nothing about all of them.
    assert!(kinds(&with("exp", fused("exp, add, sqrt", None, None))).is_empty());
}
