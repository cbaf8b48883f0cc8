//! What becomes of the samples of several passes, and in which order groups run.

use super::*;
use crate::bench::groups;

fn row(device: &str, samples: &[u64], memcpy_ns: Option<u64>) -> Row {
    let passes = vec![samples.to_vec()];
    Row { case: "exp".into(), size: 10, device: device.into(), passes, memcpy_ns, ..Row::default() }
}

#[test]
fn the_samples_of_passes_are_kept_apart() {
    let mut rows = Vec::new();
    add_row(&mut rows, row("cpu", &[1, 2], Some(10)), false);
    add_row(&mut rows, row("gpu:0", &[9], None), false);
    add_row(&mut rows, row("cpu", &[5], Some(20)), true);
    assert_eq!((rows.len(), rows[0].passes.clone(), rows[0].memcpy_ns), (2, vec![vec![1, 2], vec![5]], Some(15)));
    assert_eq!((rows[0].loaded, rows[1].loaded), (true, false), "one pass under load is enough");
    rows[0].settle();
    assert_eq!((rows[0].stats.median_ns, rows[0].stats.samples), (2, 3));
}

#[test]
fn the_cases_of_passes_are_kept_apart() {
    let case = |name: &str, first: u64, second: u64| NullCase {
        case: name.into(),
        device: "cpu".into(),
        first: vec![vec![first]],
        second: vec![vec![second]],
    };
    let mut cases = Vec::new();
    add_case(&mut cases, case("a", 100, 100));
    add_case(&mut cases, case("b", 100, 106));
    add_case(&mut cases, case("a", 100, 100));
    let null = Null::of(cases);
    assert_eq!((null.cases.len(), null.cases[0].first.len()), (2, 2));
    assert_eq!((null.differs, null.floor), (true, 0.06));
}

#[test]
fn the_order_comes_from_the_seed() {
    let interrupt = Interrupt::default();
    let suite = |seed, shuffled| Suite {
        threads: None,
        wanted: groups::select(&[]).unwrap(),
        devices: Vec::new(),
        quick: true,
        samples: 3,
        passes: 2,
        seed,
        shuffled,
        in_process: true,
        calm: Duration::ZERO,
        timeout: Duration::ZERO,
        inject: Vec::new(),
        interrupt: &interrupt,
    };
    let given: Vec<usize> = (0..groups::GROUPS.len()).collect();
    assert_eq!(suite(1, false).order(0), given);
    assert_eq!(suite(1, true).order(0), suite(1, true).order(0));
    assert_ne!(suite(1, true).order(0), suite(1, true).order(1), "each pass has its own");
    let mut sorted = suite(1, true).order(0);
    sorted.sort_unstable();
    assert_eq!(sorted, given);
}
