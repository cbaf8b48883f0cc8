//! Shares of rows, and how they are chosen with made-up costs.

use super::super::{BOTH, Objective, Router};
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

#[test]
fn shares_leave_both_sides_enough_rows() {
    assert!(ByRows::of(&plan(2 * LEAST - 1)).is_none());
    for rows in [2 * LEAST, 200, 1000, 5000, 100_003] {
        let plan = plan(rows);
        let by_rows = ByRows::of(&plan).unwrap();
        assert_eq!(by_rows.whole_bytes, 4000);
        for share in [0.0, 0.01, 0.3, 0.5, 0.77, 1.0, f64::NAN] {
            let parts = by_rows.parts(&plan, share).expect("both sides have some");
            assert!(parts.count >= LEAST && rows - parts.count >= LEAST, "{} of {rows}", parts.count);
            let dims = |plan: &Plan| plan.buffer(plan.outputs[0]).shape[0];
            assert_eq!((dims(&parts.there), dims(&parts.here)), (parts.count, rows - parts.count));
            // As it is told, to within a row.
            let told = by_rows.rounded(share) * rows as f64;
            assert!((told - parts.count as f64).abs() <= 1.0, "{told} and {}", parts.count);
            // The same share is the same plan: devices know it by its address.
            assert!(Arc::ptr_eq(&parts, &by_rows.parts(&plan, share).unwrap()));
        }
    }
    let by_rows = ByRows::of(&plan(100_000)).unwrap();
    assert!((by_rows.rounded(0.3) - 0.3).abs() <= 0.5 / STEPS as f64);
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

const USABLE: u32 = 0b10 | 1 << BOTH;

#[test]
fn rows_are_shared_so_that_both_are_done_at_once() {
    for (each, fixed) in [([1.0, 1.0], 0.0), ([1.0, 1.0], 20.0), ([1.0, 3.0], 0.0), ([2.0, 1.0], 0.0)] {
        let router = router(each, fixed, 1e-9);
        let plan = plan(10_000);
        let routed = router.routed(&plan, 1);
        let choice = router.choose(&routed, USABLE, Objective::Latency, |_| 0, |_| 0);
        let (cpu, device) = (choice.expected_ns[0] as f64, choice.expected_ns[1] as f64);
        assert!(choice.share.0 == 1 && choice.expected_ns[BOTH] > 0, "{each:?} {fixed} {choice:?}");
        let share = choice.share.1;
        let (here, there) = ((1.0 - share) * cpu, fixed * 1e6 + share * (device - fixed * 1e6));
        let step = cpu.max(device) / STEPS as f64;
        assert!((here - there).abs() <= step, "{here} and {there} for {each:?} {fixed}");
        assert_eq!(choice.device, BOTH, "{choice:?}");
        // Only where that was asked for.
        let alone = router.choose(&routed, 0b10, Objective::Latency, |_| 0, |_| 0);
        assert!(alone.device != BOTH && alone.expected_ns[BOTH] == 0);
    }
}

#[test]
fn rows_are_not_shared_where_that_does_not_pay() {
    // The device is much slower; or all that it would save goes into getting there.
    for (each, fixed) in [([1.0, 100.0], 0.0), ([1.0, 1.0], 70.0)] {
        let router = router(each, fixed, 1e-9);
        let choice = router.choose(&router.routed(&plan(10_000), 1), USABLE, Objective::Latency, |_| 0, |_| 0);
        assert_eq!((choice.device, choice.expected_ns[BOTH]), (0, 0), "{choice:?}");
    }
    let router = router([1.0, 1.0], 0.0, 1e-9);
    let choice = router.choose(&router.routed(&plan(100), 1), USABLE, Objective::Latency, |_| 0, |_| 0);
    assert_eq!(choice.share, (0, 0.0), "too few rows");
}

/// What the first batches take moves the share.
#[test]
fn what_batches_take_moves_the_share() {
    let router = router([1.0, 1.0], 0.0, 1e-9);
    let routed = router.routed(&plan(10_000), 1);
    let choose = || router.choose(&routed, USABLE, Objective::Latency, |_| 0, |_| 0);
    let before = choose();
    assert_eq!(before.share, (1, 0.5));
    // The device alone takes three times what was thought.
    for _ in 0..20 {
        router.hear(&routed, 1, 3 * before.expected_ns[1]);
    }
    assert_eq!(choose().share, (1, 0.25));
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
        assert_eq!(choice.share.0, 1, "{choice:?}");
        let fixed = choice.predicted[1].upload_ns * if resident == 0 { 0.5 } else { 0.0 };
        let (cpu, whole, share) = (choice.expected_ns[0] as f64, choice.expected_ns[1] as f64, choice.share.1);
        let (here, there) = ((1.0 - share) * cpu, fixed + share * (whole - fixed));
        assert!((here - there).abs() <= cpu.max(whole) / STEPS as f64, "{here} and {there}: {choice:?}");
        share
    };
    // What lies there already is not sent: the device gets more.
    assert!(share(4_000_000) > share(0));
}
