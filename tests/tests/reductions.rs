//! Reductions over every set of axes, scans along every axis and the row ops, for every dtype, shape and layout.

use breakeven::{DType, Engine, ReduceOp, ScanOp, Tensor};
use breakeven_tests::compare::Zeros;
use breakeven_tests::data::Rng;
use breakeven_tests::device::engine;
use breakeven_tests::pair::Pair;
use breakeven_tests::reference::RefArray;
use breakeven_tests::run::check;
use breakeven_tests::views::{SHAPES, edgy, smooth, views};

/// Every set of axes of a rank; the empty set stands for all of them.
fn axis_sets(rank: usize) -> Vec<Vec<isize>> {
    (0..1usize << rank).map(|set| (0..rank as isize).filter(|a| set >> a & 1 == 1).collect()).collect()
}

/// All of what `make` records, as one batch.
fn check_all(engine: &Engine, what: &str, pairs: Vec<Option<Pair>>) {
    let pairs: Vec<Pair> = pairs.into_iter().flatten().collect();
    check(engine, what, &pairs.iter().collect::<Vec<_>>(), Zeros::Same);
}

#[test]
fn every_reduction_over_every_set_of_axes() {
    let engine = engine();
    for dtype in DType::ALL {
        for (seed, shape) in SHAPES.iter().enumerate() {
            for x in [smooth(dtype, shape, seed as u64), edgy(dtype, shape, seed as u64)] {
                for op in ReduceOp::ALL {
                    for axes in axis_sets(shape.len()) {
                        let what = format!("{} of {dtype}{shape:?} over {axes:?}", op.name());
                        check_all(&engine, &what, vec![x.reduce(op, &axes, false), x.reduce(op, &axes, true)]);
                    }
                }
            }
        }
    }
}

#[test]
fn reductions_of_every_layout() {
    let engine = engine();
    for dtype in DType::ALL {
        for (name, x) in views(dtype, 5) {
            for op in ReduceOp::ALL {
                for axes in [&[0][..], &[1], &[-1], &[0, 2], &[]] {
                    let what = format!("{} of {dtype} over {axes:?}, {name}", op.name());
                    check_all(&engine, &what, vec![x.reduce(op, axes, true)]);
                }
            }
            for op in ScanOp::ALL {
                let what = format!("{} of {dtype}, {name}", op.name());
                check_all(&engine, &what, (0..3).map(|axis| x.scan(op, axis)).collect());
            }
        }
    }
}

/// Rows too short for vectors of their own, many of them side by side: also backwards, of three axes, and with something around
/// them.
#[test]
fn many_short_rows() {
    let engine = engine();
    for dtype in DType::ALL {
        for shape in [&[700, 4][..], &[300, 33], &[530, 55], &[257, 100], &[161, 159], &[3, 300, 37], &[2, 40, 35]] {
            for x in [smooth(dtype, shape, 3), edgy(dtype, shape, 3)] {
                let last = shape.len() as isize - 1;
                let mut pairs: Vec<Option<Pair>> = vec![];
                for x in [Some(x.clone()), x.flip(&[last]), x.flip(&[0])].into_iter().flatten() {
                    pairs.extend(ReduceOp::ALL.iter().map(|op| x.reduce(*op, &[last], false)));
                }
                check_all(&engine, &format!("rows of {dtype}{shape:?}"), pairs);
            }
            let x = smooth(dtype, shape, 4);
            let around = [x.softmax(-1), x.layer_norm(-1, 1e-5), x.var(&[-1], 1, true), x.mean(&[-1], false)];
            check_all(&engine, &format!("row ops of {dtype}{shape:?}"), around.into());
        }
    }
}

#[test]
fn large_reductions_and_scans() {
    let engine = engine();
    let large = smooth(DType::F32, &[(1 << 20) + 1], 9);
    for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::ArgMin] {
        check_all(&engine, &format!("{} of 2^20 + 1", op.name()), vec![large.reduce(op, &[], false)]);
    }
    check_all(&engine, "cumsum of 2^20 + 1", vec![large.scan(ScanOp::Sum, 0)]);
    for dtype in [DType::F32, DType::I32] {
        for shape in [[3, 40_001], [30_001, 3]] {
            let x = smooth(dtype, &shape, 9);
            for op in ReduceOp::ALL {
                let what = format!("{} of {dtype}{shape:?}", op.name());
                check_all(
                    &engine,
                    &what,
                    vec![x.reduce(op, &[], false), x.reduce(op, &[0], false), x.reduce(op, &[-1], false)],
                );
            }
            let scans = [ScanOp::Sum, ScanOp::Prod].map(|op| x.scan(op, 0));
            check_all(&engine, &format!("scans of {dtype}{shape:?}"), scans.into());
        }
    }
}

/// `any` and `all` may end early: wherever what decides them is, of rows that are one tile, several, and shared between threads.
#[test]
fn any_and_all_wherever_they_are_decided() {
    let engine = engine();
    for columns in [100usize, 5_000, 20_000, 100_001] {
        for at in [0, 1, columns / 3, columns - 1] {
            let lone = |value: f64| {
                let of = |k: usize| if k == at { value } else { 1.0 - value };
                let row = RefArray::exact(DType::Bool, &[columns], (0..columns).map(of).collect());
                let rest = RefArray::exact(DType::Bool, &[columns], vec![1.0 - value; columns]);
                Pair::stack(&[&Pair::leaf(row), &Pair::leaf(rest)], 0).unwrap()
            };
            let (one, but_one) = (lone(1.0), lone(0.0));
            let all = [ReduceOp::Any, ReduceOp::All].into_iter().flat_map(|op| {
                [&one, &but_one].into_iter().flat_map(move |x| [x.reduce(op, &[-1], false), x.reduce(op, &[], false)])
            });
            check_all(&engine, &format!("element {at} of {columns}"), all.collect());
        }
    }
}

/// A position that does not exist is told of, also behind the element that decides.
#[test]
fn a_wrong_position_behind_what_decides_is_told_of() {
    let engine = Engine::new().unwrap();
    let x = Tensor::from_vec(vec![true, false], [2]).unwrap();
    for wrong in [1, 99_999] {
        let positions = (0..100_000).map(|k| if k == wrong { 2 } else { 0 }).collect::<Vec<i32>>();
        let taken = x.take(&Tensor::from_vec(positions, [100_000]).unwrap(), 0).unwrap();
        let outcome = engine.run(&[&taken.any(&[], false).unwrap()]);
        assert!(outcome.is_err(), "position {wrong} is wrong, and {outcome:?} came out");
    }
}

#[test]
fn every_scan_along_every_axis() {
    let engine = engine();
    for dtype in DType::ALL {
        for (seed, shape) in SHAPES.iter().enumerate() {
            for x in [smooth(dtype, shape, seed as u64), edgy(dtype, shape, seed as u64)] {
                for op in ScanOp::ALL {
                    for axis in 0..shape.len() as isize {
                        let what = format!("{} of {dtype}{shape:?} along {axis}", op.name());
                        check_all(&engine, &what, vec![x.scan(op, axis), x.scan(op, axis - shape.len() as isize)]);
                    }
                }
            }
        }
    }
}

#[test]
fn row_ops_along_every_axis() {
    let engine = engine();
    for dtype in DType::ALL {
        for (seed, shape) in SHAPES.iter().enumerate() {
            for x in [smooth(dtype, shape, seed as u64), edgy(dtype, shape, seed as u64)] {
                for axis in 0..shape.len() as isize {
                    let what = format!("row ops of {dtype}{shape:?} along {axis}");
                    check_all(&engine, &what, vec![x.softmax(axis), x.log_softmax(axis), x.layer_norm(axis, 1e-5)]);
                    check_all(&engine, &what, vec![x.softmax(axis)]);
                }
            }
        }
        for (name, x) in views(dtype, 6) {
            for axis in 0..3 {
                let what = format!("row ops of {dtype} along {axis}, {name}");
                check_all(&engine, &what, vec![x.softmax(axis), x.log_softmax(axis), x.layer_norm(axis, 1e-5)]);
            }
        }
    }
}

#[test]
fn statistics_over_every_set_of_axes() {
    let engine = engine();
    for dtype in DType::ALL {
        for (seed, shape) in SHAPES.iter().enumerate() {
            for x in [smooth(dtype, shape, seed as u64), edgy(dtype, shape, seed as u64)] {
                for axes in axis_sets(shape.len()).into_iter().take(8) {
                    let what = format!("statistics of {dtype}{shape:?} over {axes:?}");
                    let keepdims = axes.len() % 2 == 0;
                    check_all(
                        &engine,
                        &what,
                        vec![x.mean(&axes, keepdims), x.var(&axes, 0, keepdims), x.norm(&axes, keepdims)],
                    );
                    check_all(
                        &engine,
                        &what,
                        vec![x.std(&axes, 0, keepdims), x.std(&axes, 1, keepdims), x.var(&axes, 3, keepdims)],
                    );
                }
            }
        }
    }
}

/// The stated bound: an f32 sum of 10^7 random values is within 1e-6 of the exact one.
#[test]
fn a_sum_of_ten_million_values_keeps_six_digits() {
    let engine = engine();
    const N: usize = 10_000_000;
    let mut rng = Rng::new(3);
    let uniform: Vec<f32> = (0..N).map(|_| rng.unit() as f32).collect();
    let signed: Vec<f32> = uniform.iter().map(|&v| v * 8.0 - 3.9).collect();
    let wide: Vec<f32> = uniform.iter().map(|&v| (v * 20.0 - 10.0).exp2()).collect();
    for data in [uniform, signed, wide] {
        let exact: f64 = data.iter().map(|&v| f64::from(v)).sum();
        let x = Tensor::from_vec(data, [N]).unwrap();
        let rows = x.reshape(&[10, -1]).unwrap();
        let outputs = engine
            .run(&[
                &x.sum(&[], false).unwrap(),
                &rows.sum(&[0], false).unwrap().sum(&[], false).unwrap(),
                &x.mean(&[], false).unwrap(),
            ])
            .unwrap();
        for (output, scale) in outputs.iter().zip([1.0, 1.0, N as f64]) {
            let relative = (output.to_f64()[0] * scale - exact).abs() / exact.abs();
            assert!(relative <= 1e-6, "relative error {relative:e}");
        }
    }
}
