//! Shares of rows, and how they are chosen with made-up costs.

use super::super::{DEVICES, Objective, Router, SEVERAL, Shares};
use super::{ByRows, LEAST, STEPS};
use crate::cost::{Costs, Curve};
use breakeven_ir::plan::Plan;
use breakeven_ir::{DType, Tensor};
use std::sync::Arc;

fn plan(rows: usize) -> Arc<Plan> {
    let x = Tensor::input("x", DType::F32, [rows, 1000]).unwrap();
    let w = Tensor::input("w", DType::F32, [1000]).unwrap();
    Arc::new(Plan::new(&[&(x + w).unwrap().softmax(-1).unwrap()]).unwrap())
}

/// The CPU's share and that of `gpu:0`.
fn two(share: f64) -> Shares {
    let mut shares = [0.0; DEVICES];
    (shares[0], shares[1]) = (1.0 - share, share);
    shares
}

#[test]
fn whoever_has_rows_has_enough_of_them() {
    assert!(ByRows::of(&plan(2 * LEAST - 1)).is_none());
    let mut random = 1u64;
    for rows in [2 * LEAST, 200, 1000, 5000, 100_003] {
        let plan = plan(rows);
        let by_rows = ByRows::of(&plan).unwrap();
        assert_eq!(by_rows.whole_bytes, 4000);
        let mut tried: Vec<Shares> = [0.0, 0.01, 0.3, 0.5, 0.77, 1.0].map(two).to_vec();
        for sides in 2..=DEVICES {
            let mut shares: Shares = std::array::from_fn(|device| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if device < sides { (random >> 33) as f64 } else { 0.0 }
            });
            let sum: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= sum);
            tried.push(shares);
        }
        for shares in tried {
            let rounded = by_rows.rounded(&shares);
            assert_eq!(rounded.iter().sum::<f64>(), 1.0, "{shares:?}");
            let some: Vec<f64> = rounded.into_iter().filter(|share| *share > 0.0).collect();
            let counts = by_rows.counts(some.iter().copied());
            assert_eq!(counts.iter().sum::<usize>(), rows, "{shares:?}");
            for (count, share) in counts.iter().zip(&some) {
                assert!(*count >= LEAST, "{count} of {rows}");
                // As it is told, to within a row.
                assert!((share * rows as f64 - *count as f64).abs() <= 1.0, "{share} and {count} of {rows}");
                let part = by_rows.plan(&plan, *count).expect("there are enough");
                assert_eq!(part.buffer(part.outputs[0]).shape[0], *count);
                // As many rows are the same plan: devices know it by its address.
                assert!(Arc::ptr_eq(&part, &by_rows.plan(&plan, *count).unwrap()));
            }
        }
    }
    let by_rows = ByRows::of(&plan(100_000)).unwrap();
    assert!((by_rows.rounded(&two(0.3))[1] - 0.3).abs() <= 0.5 / STEPS as f64);
    assert_eq!(by_rows.rounded(&[f64::NAN; DEVICES]), [0.0; DEVICES], "that is no share");
}

/// Devices that take so many nanoseconds for each byte, and the second one so many milliseconds at first, and so many
/// nanoseconds for each byte that is sent.
fn router(each: [f64; 2], fixed: f64, upload: f64) -> Router {
    let router = Router::new(100, 0.0);
    let curve = |ns: f64| Curve::new(vec![(1.0, ns)]);
    let costs = |ns: f64| Costs { memory: curve(ns), compute: curve(1e-9), ..Costs::default() };
    router.set_costs(0, costs(each[0]));
    let (fixed_ns, upload) = (fixed * 1e6, curve(upload));
    router.set_costs(1, Costs { fixed_ns, upload, readback: curve(1e-9), ..costs(each[1]) });
    router
}

const USABLE: u32 = 0b10 | 1 << SEVERAL;

#[test]
fn rows_are_shared_so_that_both_are_done_at_once() {
    for (each, fixed) in [([1.0, 1.0], 0.0), ([1.0, 1.0], 20.0), ([1.0, 3.0], 0.0), ([2.0, 1.0], 0.0)] {
        let router = router(each, fixed, 1e-9);
        let plan = plan(10_000);
        let routed = router.routed(&plan, 1);
        let choice = router.choose(&routed, USABLE, Objective::Latency, |_| 0, |_| 0);
        let (cpu, device) = (choice.expected_ns[0] as f64, choice.expected_ns[1] as f64);
        assert!(choice.expected_ns[SEVERAL] > 0, "{each:?} {fixed} {choice:?}");
        let share = choice.shares[1];
        assert_eq!(choice.shares, two(share));
        let (here, there) = ((1.0 - share) * cpu, fixed * 1e6 + share * (device - fixed * 1e6));
        let step = cpu.max(device) / STEPS as f64;
        assert!((here - there).abs() <= step, "{here} and {there} for {each:?} {fixed}");
        assert_eq!(choice.device, SEVERAL, "{choice:?}");
        // Only where that was asked for.
        let alone = router.choose(&routed, 0b10, Objective::Latency, |_| 0, |_| 0);
        assert!(alone.device != SEVERAL && alone.expected_ns[SEVERAL] == 0);
    }
}

#[test]
fn rows_are_not_shared_where_that_does_not_pay() {
    // The device is much slower; or all that it would save goes into getting there.
    for (each, fixed) in [([1.0, 100.0], 0.0), ([1.0, 1.0], 70.0)] {
        let router = router(each, fixed, 1e-9);
        let choice = router.choose(&router.routed(&plan(10_000), 1), USABLE, Objective::Latency, |_| 0, |_| 0);
        assert_eq!((choice.device, choice.expected_ns[SEVERAL]), (0, 0), "{choice:?}");
    }
    let router = router([1.0, 1.0], 0.0, 1e-9);
    let choice = router.choose(&router.routed(&plan(100), 1), USABLE, Objective::Latency, |_| 0, |_| 0);
    assert_eq!(choice.shares, [0.0; DEVICES], "too few rows");
}

/// What the first batches take moves the share.
#[test]
fn what_batches_take_moves_the_share() {
    let router = router([1.0, 1.0], 0.0, 1e-9);
    let routed = router.routed(&plan(10_000), 1);
    let choose = || router.choose(&routed, USABLE, Objective::Latency, |_| 0, |_| 0);
    let before = choose();
    assert_eq!(before.shares, two(0.5));
    // The device alone takes three times what was thought.
    for _ in 0..20 {
        router.hear(&routed, 1, 3 * before.expected_ns[1]);
    }
    assert_eq!(choose().shares, two(0.25));
}

#[test]
fn what_all_rows_need_is_sent_whole() {
    let x = Tensor::input("x", DType::F32, [2000, 1, 500]).unwrap();
    let w = Tensor::input("w", DType::F32, [2000, 500]).unwrap();
    let plan = Arc::new(Plan::new(&[&(x * w).unwrap().sum(&[2], false).unwrap()]).unwrap());
    // Half of what is sent is for all rows, and sending takes as long as computing there.
    let router = router([1.0, 0.5], 0.0, 500.0);
    let routed = router.routed(&plan, 1);
    let share = |resident: u64| {
        let choice = router.choose(&routed, USABLE, Objective::Latency, |d| resident * d as u64, |_| 0);
        assert!(choice.shares[1] > 0.0, "{choice:?}");
        let fixed = choice.predicted[1].upload_ns * if resident == 0 { 0.5 } else { 0.0 };
        let (cpu, whole, share) = (choice.expected_ns[0] as f64, choice.expected_ns[1] as f64, choice.shares[1]);
        let (here, there) = ((1.0 - share) * cpu, fixed + share * (whole - fixed));
        assert!((here - there).abs() <= cpu.max(whole) / STEPS as f64, "{here} and {there}: {choice:?}");
        share
    };
    // What lies there already is not sent: the device gets more.
    assert!(share(4_000_000) > share(0));
}

/// Of two equal cards beside a CPU each has as much as it can do in the time; one that is far behind has nothing.
#[test]
fn several_devices_are_done_at_once() {
    let costs = |ns: f64, fixed_ns: f64| {
        let curve = |ns: f64| Curve::new(vec![(1.0, ns)]);
        let transfers = (curve(1e-9), curve(1e-9));
        let (upload, readback) = transfers;
        Costs { memory: curve(ns), compute: curve(1e-9), fixed_ns, upload, readback, ..Costs::default() }
    };
    let usable = 0b1110 | 1 << SEVERAL;
    let choose = |all: [(f64, f64); 4]| {
        let router = Router::new(100, 0.0);
        for (device, (ns, fixed_ns)) in all.into_iter().enumerate() {
            router.set_costs(device, costs(ns, fixed_ns));
        }
        router.choose(&router.routed(&plan(10_000), 1), usable, Objective::Latency, |_| 0, |_| 0)
    };
    let choice = choose([(2.0, 0.0), (1.0, 0.0), (1.0, 0.0), (100.0, 0.0)]);
    assert_eq!(choice.shares[..4], [0.1875, 0.375, 0.4375, 0.0], "{choice:?}");
    assert_eq!(choice.device, SEVERAL);
    // A CPU that has next to nothing to do with it is left out.
    let choice = choose([(100.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 0.0)]);
    assert_eq!((choice.shares[0], choice.device), (0.0, SEVERAL), "{choice:?}");
    assert!(choice.shares[1..4].iter().all(|share| *share > 0.3), "{choice:?}");
    // A third one whose fixed cost is longer than two take has nothing.
    let choice = choose([(1.0, 0.0), (1.0, 0.0), (1.0, 1e9), (1.0, 0.0)]);
    assert!(choice.shares[2] == 0.0 && choice.shares[3] > 0.3, "{choice:?}");
}
