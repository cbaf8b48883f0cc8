//! Predictions: parts that add up, and numbers for everything, measured or not.

use super::*;
use breakeven_ir::{DType, Plan, Tensor};
use proptest::prelude::*;

fn work(output: &Tensor) -> Work {
    Work::of(&Plan::new(&[output]).unwrap())
}

fn input(dims: &[usize]) -> Tensor {
    Tensor::input("x", DType::F32, dims).unwrap()
}

/// Expressions of every class.
fn every_class() -> Vec<Work> {
    let x = input(&[60, 70]);
    let positions = Tensor::input("p", DType::I32, [30]).unwrap();
    let outputs = [
        (&x + 1.0).unwrap(),
        x.transpose().unwrap().gelu().unwrap(),
        x.sum(&[1], false).unwrap(),
        x.sum(&[0], false).unwrap(),
        x.sum(&[], false).unwrap(),
        x.softmax(1).unwrap(),
        x.layer_norm(1, 1e-5).unwrap(),
        x.cumsum(1).unwrap(),
        x.exp().unwrap().cumsum(0).unwrap(),
        x.matmul(&x.transpose().unwrap()).unwrap(),
        x.matmul(&x.transpose().unwrap()).unwrap().softmax(1).unwrap(),
        x.take(&positions, 0).unwrap(),
        (&input(&[0]) + 1.0).unwrap(),
    ];
    outputs.iter().map(work).collect()
}

/// A device with figures that are easy to add up: a nanosecond for each byte up, two for each back, and so on.
fn plain() -> Costs {
    let each = |ns: f64| Curve::new(vec![(1.0, ns)]);
    Costs {
        fixed_ns: 1000.0,
        kernel_ns: 10.0,
        task_ns: 5.0,
        upload: each(1.0),
        readback: each(2.0),
        memory: each(0.5),
        strided: each(4.0),
        compute: each(3.0),
        overlap: 1.0,
        ..Costs::default()
    }
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} instead of {expected}");
}

#[test]
fn parts_add_up() {
    let predicted = plain().predict(&work(&(&input(&[100]) + 1.0).unwrap()), 0);
    assert_eq!((predicted.fixed_ns, predicted.upload_ns, predicted.readback_ns), (1000.0, 400.0, 800.0));
    assert_close(predicted.kernels_ns, 800.0 * 0.5 + 100.0 * 3.0);
    assert_eq!(predicted.total_ns(), 1000 + 400 + 700 + 800);
    let waits = Prediction { wait_ns: 55.0, ..predicted };
    assert_eq!(waits.total_ns(), predicted.total_ns() + 55);
    // While one batch is on its way back, the next one's kernels run.
    assert_eq!((predicted.busy_ns(), waits.busy_ns()), (1800, 1800));
}

#[test]
fn what_lies_there_is_not_sent() {
    let work = work(&(&input(&[100]) + 1.0).unwrap());
    let all = plain().predict(&work, 0);
    for (resident, upload_ns) in [(100, 300.0), (400, 0.0), (1000, 0.0)] {
        assert_eq!(plain().predict(&work, resident), Prediction { upload_ns, ..all });
    }
}

#[test]
fn every_further_kernel_costs() {
    let x = input(&[64, 64]);
    let two = work(&x.sum(&[1], true).unwrap().sum(&[0], true).unwrap());
    assert_eq!(two.kernels.len(), 2);
    assert_eq!(plain().predict(&two, 0).fixed_ns, 1010.0);
}

#[test]
fn strided_memory_and_dear_ops_cost_what_was_measured() {
    let strided = work(&(&input(&[30, 40]).transpose().unwrap() + 1.0).unwrap());
    assert_close(plain().predict(&strided, 0).kernels_ns, 4800.0 * (0.5 + 4.0) + 3.0 * 1200.0);
    let mut costs = plain();
    costs.weights.insert("exp".into(), 6.5);
    let exp = work(&input(&[100]).exp().unwrap());
    assert_close(costs.predict(&exp, 0).kernels_ns, 400.0 + 3.0 * 650.0);
}

#[test]
fn one_task_of_many_is_a_batch_and_its_task() {
    for work in every_class() {
        let (one, many) = (plain().predict(&work, 0), plain().predict_many(&work, 1));
        assert_close(many.fixed_ns, one.fixed_ns + 5.0);
        assert_eq!(many, Prediction { fixed_ns: many.fixed_ns, ..one });
    }
    let work = work(&(&input(&[100]) + 1.0).unwrap());
    let many = plain().predict_many(&work, 50);
    assert_eq!((many.fixed_ns, many.upload_ns, many.readback_ns), (1250.0, 20_000.0, 40_000.0));
    assert_close(many.kernels_ns, 50.0 * 700.0);
}

#[test]
fn nothing_measured_is_still_a_prediction() {
    for work in every_class() {
        for predicted in [Costs::default().predict(&work, 0), Costs::default().predict_many(&work, 100)] {
            let has_work = work.readback_bytes > 0;
            assert!(predicted.kernels_ns.is_finite(), "{work:?}");
            assert_eq!(predicted.kernels_ns > 0.0, has_work, "{work:?}");
        }
    }
    assert!(Costs::default().is_sound());
}

#[test]
fn more_work_takes_longer_where_nothing_was_measured_too() {
    let works = |side: usize| {
        let x = input(&[side, side]);
        [x.gelu().unwrap(), x.softmax(1).unwrap(), x.cumsum(1).unwrap(), x.matmul(&x).unwrap()]
            .map(|output| Costs::default().predict(&work(&output), 0).kernels_ns)
    };
    for (small, large) in works(50).into_iter().zip(works(500)) {
        assert!(large > 50.0 * small, "{small} {large}");
    }
}

#[test]
fn overlap_lies_between_one_after_the_other_and_at_once() {
    let with = |overlap: f64| Costs { overlap, ..Costs::default() };
    for (a, b) in [(3.0, 4.0), (100.0, 1.0), (7.0, 7.0), (0.0, 5.0)] {
        assert_close(with(1.0).both(a, b), a + b);
        assert!((with(64.0).both(a, b) / a.max(b) - 1.0).abs() < 0.02);
        assert_close(with(2.0).both(a, b), a.hypot(b));
        assert_eq!(with(2.0).both(a, b), with(2.0).both(b, a));
    }
    assert_eq!(with(2.0).both(0.0, 0.0), 0.0);
}

#[test]
fn a_product_that_was_measured_takes_what_it_took() {
    let products = [([1.0, 64.0, 64.0, 64.0], 5e3), ([1.0, 256.0, 256.0, 256.0], 2e5), ([8.0, 30.0, 20.0, 40.0], 9e3)];
    let products: Vec<ProductCost> = products.into_iter().map(|(shape, ns)| ProductCost { shape, ns }).collect();
    let costs = Costs { products: products.clone(), ..plain() };
    for product in &products {
        let [batch, m, n, k] = product.shape.map(|extent| extent as usize);
        let pure = work(&input(&[batch, m, k]).matmul(&input(&[batch, k, n])).unwrap());
        let found = costs.predict(&pure, 0).kernels_ns;
        assert!((found / product.ns - 1.0).abs() < 1e-3, "{found} instead of {}", product.ns);
    }
    // Between two that were measured its speed is between theirs.
    let speed = |n: usize| {
        let x = input(&[n, n]);
        2.0 * (n as f64).powi(3) / costs.predict(&work(&x.matmul(&x).unwrap()), 0).kernels_ns
    };
    assert!(speed(64) < speed(128) && speed(128) < speed(256), "{} {} {}", speed(64), speed(128), speed(256));
}

/// Most of what was measured is small and slow; far beyond all of it only the nearest says something.
#[test]
fn a_product_beyond_all_that_was_measured_has_the_speed_of_the_largest() {
    let mut products: Vec<ProductCost> = (3..60)
        .map(|n| ProductCost { shape: [1.0, f64::from(n), f64::from(n), f64::from(n)], ns: 2.0 * f64::from(n).powi(3) })
        .collect();
    let mut put = |shape: [f64; 4], speed: f64| {
        products.push(ProductCost { shape, ns: 2.0 * shape.iter().product::<f64>() / speed });
    };
    put([1.0, 512.0, 512.0, 512.0], 500.0);
    put([1.0, 512.0, 512.0, 8.0], 60.0);
    put([1.0, 1.0, 512.0, 512.0], 9.0);
    // Columns that are no whole vectors: a matter of small products.
    put([1.0, 300.0, 410.0, 350.0], 200.0);
    let costs = Costs { products, ..plain() };
    let speed = |m: usize, n: usize, k: usize| {
        let pure = work(&input(&[m, k]).matmul(&input(&[k, n])).unwrap());
        2.0 * (m * n * k) as f64 / costs.predict(&pure, 0).kernels_ns
    };
    let far = [((4000, 4000, 4000), 500.0), ((4000, 4000, 8), 60.0), ((1, 4000, 4000), 9.0), ((999, 999, 999), 500.0)];
    for (shape, expected) in far {
        let found = speed(shape.0, shape.1, shape.2);
        assert!((found / expected - 1.0).abs() < 0.05, "{found} instead of {expected} for {shape:?}");
    }
}

#[test]
fn what_comes_after_a_product_is_on_top() {
    let product = ProductCost { shape: [1.0, 30.0, 20.0, 40.0], ns: 5e3 };
    let costs = Costs { products: vec![product], ..plain() };
    let y = input(&[30, 40]).matmul(&input(&[40, 20])).unwrap();
    let pure = costs.predict(&work(&y), 0).kernels_ns;
    assert_close(costs.predict(&work(&(y + 1.0).unwrap()), 0).kernels_ns, pure + 3.0 * 600.0);
}

#[test]
fn reductions_take_the_curve_of_their_rows() {
    let each = |ns: f64| Curve::new(vec![(1.0, ns)]);
    let mut costs = Costs { total: each(2.0), columns: each(9.0), ..plain() };
    *costs.reduce.curve(40) = each(5.0);
    let x = input(&[30, 40]);
    let ns = |output: Tensor| costs.predict(&work(&output), 0).kernels_ns;
    // The results that it writes are beyond what a pure sum of all its points moves.
    assert_close(ns(x.sum(&[1], false).unwrap()), 5.0 * 1200.0 + 0.5 * 4.0 * 30.0);
    assert_close(ns(x.sum(&[0], false).unwrap()), 9.0 * 1200.0 + 0.5 * 4.0 * 40.0);
    assert_close(ns(x.sum(&[], false).unwrap()), 2.0 * 1200.0 + 0.5 * 4.0);
}

/// Noise makes measured curves fall here and there.
#[test]
fn a_curve_that_falls_makes_no_nonsense() {
    let memory = Curve::new(vec![(1000.0, 10_000.0), (100_000.0, 100.0)]);
    for overlap in [1.0, 1.25, 1.5, 2.0, 3.0] {
        let mut costs = Costs { memory: memory.clone(), overlap, ..plain() };
        *costs.reduce.curve(70) = Curve::new(vec![(4200.0, 1.0)]);
        *costs.scan.curve(70) = Curve::new(vec![(4200.0, 1.0)]);
        for work in every_class() {
            for kernel in &work.kernels {
                let ns = costs.kernel_ns(kernel);
                assert!(ns.is_finite() && ns >= 0.0, "{ns} with an overlap of {overlap} for {kernel:?}");
            }
        }
    }
}

#[test]
fn what_was_learned_is_multiplied() {
    let mut costs = plain();
    let work = work(&(&input(&[100]) + 1.0).unwrap());
    let before = costs.predict(&work, 0);
    let seen = super::super::adjust::Seen {
        kernel: &work.kernels[0],
        predicted_ns: before.kernels_ns,
        measured_ns: 2.0 * before.kernels_ns,
        weight: 1e6,
    };
    costs.adjust = Adjust::learn(&[seen]);
    let after = costs.predict(&work, 0);
    assert!((after.kernels_ns / before.kernels_ns - 2.0).abs() < 1e-3);
    assert_eq!(after, Prediction { kernels_ns: after.kernels_ns, ..before });
}

#[test]
fn costs_that_make_no_sense_are_not_sound() {
    let curve = |text: &str| serde_json::from_str::<Curve>(text).unwrap();
    let broken: [fn(&mut Costs); 10] = [
        |costs| costs.fixed_ns = -1.0,
        |costs| costs.kernel_ns = f64::NAN,
        |costs| costs.task_ns = f64::INFINITY,
        |costs| costs.again = Curve::new(vec![(8.0, 0.5)]),
        |costs| costs.overlap = 0.5,
        |costs| costs.overlap = f64::NAN,
        |costs| costs.row_overlap = 0.5,
        |costs| costs.weights.extend([("exp".into(), -1.0)]),
        |costs| costs.products.push(ProductCost { shape: [1.0, 0.0, 1.0, 1.0], ns: 5.0 }),
        |costs| costs.products.push(ProductCost { shape: [1.0; 4], ns: 0.0 }),
    ];
    for (number, break_it) in broken.iter().enumerate() {
        let mut costs = plain();
        assert!(costs.is_sound());
        break_it(&mut costs);
        assert!(!costs.is_sound(), "number {number}");
    }
    let curves: [fn(&mut Costs) -> &mut Curve; 11] = [
        |costs| &mut costs.upload,
        |costs| &mut costs.readback,
        |costs| &mut costs.memory,
        |costs| &mut costs.strided,
        |costs| &mut costs.compute,
        |costs| &mut costs.total,
        |costs| &mut costs.columns,
        |costs| &mut costs.again,
        |costs| costs.scan.curve(8),
        |costs| costs.passes.curve(8),
        |costs| costs.row_compute.curve(8),
    ];
    for (number, part) in curves.iter().enumerate() {
        let mut costs = plain();
        *part(&mut costs) = curve("[[5, -1]]");
        assert!(!costs.is_sound(), "curve {number}");
    }
}

proptest! {
    /// Whatever was measured, as long as it is a number: predictions are numbers, too.
    #[test]
    fn predictions_are_finite(
        curves in prop::collection::vec(prop::collection::vec((1.0f64..1e9, 1e-2f64..1e12), 0..4), 11),
        (fixed_ns, again, overlap) in (0.0f64..1e9, 0.0f64..1.0, 1.0f64..64.0),
        products in prop::collection::vec(((1.0f64..9.0, 1.0f64..999.0, 1.0f64..999.0, 1.0f64..999.0), 1e-2f64..1e12), 0..4),
    ) {
        let mut curves = curves.into_iter().map(Curve::new);
        let mut next = || curves.next().unwrap_or_default();
        let products =
            products.into_iter().map(|((a, b, c, d), ns)| ProductCost { shape: [a, b, c, d], ns }).collect();
        let mut costs = Costs {
            fixed_ns, overlap, products,
            row_overlap: overlap,
            again: Curve::new(vec![(60.0, 1.0 + again)]),
            upload: next(), readback: next(), memory: next(), strided: next(), compute: next(),
            total: next(), columns: next(),
            ..Costs::default()
        };
        *costs.reduce.curve(8) = next();
        *costs.scan.curve(64) = next();
        *costs.passes.curve(64) = next();
        *costs.row_compute.curve(64) = next();
        prop_assert!(costs.is_sound());
        for work in every_class() {
            let p = costs.predict_many(&work, 3);
            let parts = [p.fixed_ns, p.upload_ns, p.kernels_ns, p.readback_ns];
            prop_assert!(parts.iter().all(|ns| ns.is_finite() && *ns >= 0.0), "{p:?}");
        }
    }
}

#[test]
fn what_was_interrupted_too_early_says_nothing() {
    let curve = || Curve::new(vec![(1e4, 1e4)]);
    let cpu = Costs { memory: curve(), compute: curve(), ..Costs::default() };
    assert!(cpu.is_telling(false) && !cpu.is_telling(true));
    let device = Costs { upload: curve(), readback: curve(), ..cpu.clone() };
    assert!(device.is_telling(true));
    assert!(!Costs { compute: Curve::default(), ..device.clone() }.is_telling(true));
    assert!(!Costs { submit_ns: 466_640.0, ..Costs::default() }.is_telling(true));
}

#[test]
fn a_processor_that_did_not_get_to_run_was_not_measured() {
    // As it was found on a machine whose cores were stopped meanwhile: 67 ns for an operation.
    let stopped = Costs {
        memory: Curve::new(vec![(32_768.0, 33_352.0), (2_097_152.0, 14_547_877.0)]),
        compute: Curve::new(vec![(262_144.0, 17_542_235.0)]),
        ..Costs::default()
    };
    assert!(!stopped.is_processor(1));
    assert!(stopped.is_processor(16), "one that is made to be slow may be");
}
