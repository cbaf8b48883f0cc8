//! Rows on every adapter of this machine, against loops in f64.

use crate::lower::device_tests::{DEVICES, noise};
use crate::lower::lower;
use crate::lower::tests::{input, lowered};
use crate::stage::{RowsVariant, Variants};
use breakeven_ir::plan::Kernel;
use breakeven_ir::{DType, Plan, ReduceOp, ScanOp, Tensor};
use std::sync::PoisonError;

/// Runs on every adapter, with rows that are shared and with rows that are not; `check` gets where and the results.
pub(crate) fn everywhere(outputs: &[&Tensor], inputs: &[Vec<u8>], mut check: impl FnMut(&str, &[Vec<u8>])) {
    let plan = Plan::new(outputs).unwrap();
    for device in DEVICES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        for rows in &RowsVariant::ALL[..2] {
            let variants = Variants { rows: *rows, ..Variants::default() };
            let lowered = lower(&plan, &device.limits, &variants).unwrap();
            let name = format!("{} with {} threads a row,", device.name, rows.threads);
            check(&name, &device.run(&plan, &lowered, inputs));
        }
    }
}

pub(crate) fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|c| f32::from_ne_bytes(c.try_into().unwrap())).collect()
}

pub(crate) fn i32s(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|c| i32::from_ne_bytes(c.try_into().unwrap())).collect()
}

pub(crate) fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

/// Rows of a tensor along one axis: for each row, the elements' places.
pub(crate) fn along(dims: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let (before, n): (usize, usize) = (dims[..axis].iter().product(), dims[axis]);
    let after: usize = dims[axis + 1..].iter().product();
    let row = |b: usize, a: usize| (0..n).map(|i| (b * n + i) * after + a).collect();
    (0..before).flat_map(|b| (0..after).map(move |a| (b, a))).map(|(b, a)| row(b, a)).collect()
}

pub(crate) fn close(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
        let fine = (f64::from(g) - w).abs() <= tolerance * w.abs().max(1.0) || (g.is_nan() && w.is_nan());
        assert!(fine, "{what}: element {at} is {g}, should be {w}");
    }
}

const SHAPES: &[(&[usize], usize)] = &[
    (&[1], 0),
    (&[40, 7], 1),
    (&[7, 40], 0),
    (&[300, 31], 1),
    (&[5, 31, 9], 1),
    (&[64], 0),
    (&[9, 100], 1),
    (&[9, 102], 1),
    (&[100, 9], 0),
    (&[3, 70, 40], 1),
    (&[4, 3, 1000], 2),
    (&[1000, 50], 0),
    (&[2, 5000], 1),
    (&[1, 70000], 1),
    (&[70000, 2], 0),
];

#[test]
fn reductions_of_every_shape() {
    for &(dims, axis) in SHAPES {
        let x = input("x", DType::F32, dims);
        let axes = [axis as isize];
        let data = noise(dims.iter().product(), 7);
        let outs = [
            x.sum(&axes, false).unwrap(),
            x.max(&axes, false).unwrap(),
            x.min(&axes, false).unwrap(),
            x.argmax(Some(axes[0]), false).unwrap(),
            x.argmin(Some(axes[0]), false).unwrap(),
            x.gt(0.99f32).unwrap().any(&axes, false).unwrap(),
            x.gt(-0.99f32).unwrap().all(&axes, false).unwrap(),
        ];
        let outs: Vec<&Tensor> = outs.iter().collect();
        let rows = along(dims, axis);
        let each = |f: &dyn Fn(&[f32]) -> f64| -> Vec<f64> {
            rows.iter().map(|row| f(&row.iter().map(|&i| data[i]).collect::<Vec<_>>())).collect()
        };
        everywhere(&outs, &[bytes(&data)], |device, got| {
            let what = format!("{device} {dims:?} {axis}");
            let (sums, sizes) =
                (each(&|r| r.iter().map(|&v| f64::from(v)).sum()), each(&|r| r.iter().map(|v| v.abs() as f64).sum()));
            for ((&got, want), size) in f32s(&got[0]).iter().zip(sums).zip(sizes) {
                assert!((f64::from(got) - want).abs() <= 2e-7 * size, "{what} sum: {got} should be {want}");
            }
            close(
                &f32s(&got[1]),
                &each(&|r| r.iter().copied().fold(f32::MIN, f32::max).into()),
                0.0,
                &format!("{what} max"),
            );
            close(
                &f32s(&got[2]),
                &each(&|r| r.iter().copied().fold(f32::MAX, f32::min).into()),
                0.0,
                &format!("{what} min"),
            );
            let arg = |better: fn(f32, f32) -> bool| {
                each(&|r| (1..r.len()).fold(0, |best, i| if better(r[i], r[best]) { i } else { best }) as f64)
            };
            let ints = |b: &[u8]| i32s(b).iter().map(|&v| v as f32).collect::<Vec<_>>();
            close(&ints(&got[3]), &arg(|a, b| a > b), 0.0, &format!("{what} argmax"));
            close(&ints(&got[4]), &arg(|a, b| a < b), 0.0, &format!("{what} argmin"));
            let bools = |b: &[u8]| b.iter().map(|&v| f32::from(v)).collect::<Vec<_>>();
            close(&bools(&got[5]), &each(&|r| r.iter().any(|&v| v > 0.99).into()), 0.0, &format!("{what} any"));
            close(&bools(&got[6]), &each(&|r| r.iter().all(|&v| v > -0.99).into()), 0.0, &format!("{what} all"));
        });
    }
}

/// A composite of f32 rows, and what it should be.
type Case = (&'static str, fn(&Tensor, isize) -> Tensor, fn(&[f64]) -> Vec<f64>);

pub(crate) const CASES: &[Case] = &[
    (
        "softmax",
        |x, a| x.softmax(a).unwrap(),
        |r| {
            let sum: f64 = r.iter().map(|v| v.exp()).sum();
            r.iter().map(|v| v.exp() / sum).collect()
        },
    ),
    (
        "log_softmax",
        |x, a| x.log_softmax(a).unwrap(),
        |r| {
            let sum: f64 = r.iter().map(|v| v.exp()).sum();
            r.iter().map(|v| v - sum.ln()).collect()
        },
    ),
    (
        "layer_norm",
        |x, a| x.layer_norm(a, 1e-5).unwrap(),
        |r| {
            let (mean, var) = moments(r);
            r.iter().map(|v| (v - mean) / (var + 1e-5).sqrt()).collect()
        },
    ),
    ("var", |x, a| x.var(&[a], 0, false).unwrap(), |r| vec![moments(r).1]),
    ("std", |x, a| x.std(&[a], 0, true).unwrap(), |r| vec![moments(r).1.sqrt()]),
    ("norm", |x, a| x.norm(&[a], false).unwrap(), |r| vec![r.iter().map(|v| v * v).sum::<f64>().sqrt()]),
    ("cumsum", |x, a| x.cumsum(a).unwrap(), |r| running(r, |a, b| a + b)),
    ("cummax", |x, a| x.cummax(a).unwrap(), |r| running(r, f64::max)),
    (
        "cumprod",
        |x, a| (&(x * 1e-3f32).unwrap() + 1.0f32).unwrap().cumprod(a).unwrap(),
        |r| running(&r.iter().map(|v| 1.0 + v * 1e-3).collect::<Vec<_>>(), |a, b| a * b),
    ),
    (
        "cumsum of softmax",
        |x, a| x.softmax(a).unwrap().cumsum(a).unwrap(),
        |r| {
            let sum: f64 = r.iter().map(|v| v.exp()).sum();
            running(&r.iter().map(|v| v.exp() / sum).collect::<Vec<_>>(), |a, b| a + b)
        },
    ),
    (
        "max of cumsum",
        |x, a| x.cumsum(a).unwrap().max(&[a], false).unwrap(),
        |r| vec![running(r, |a, b| a + b).into_iter().fold(f64::MIN, f64::max)],
    ),
    (
        "less its cumsum's max",
        |x, a| (&x.cumsum(a).unwrap() - &x.cumsum(a).unwrap().max(&[a], true).unwrap()).unwrap(),
        |r| {
            let sums = running(r, |a, b| a + b);
            let most = sums.iter().copied().fold(f64::MIN, f64::max);
            sums.iter().map(|v| v - most).collect()
        },
    ),
    (
        "cummax of cumsum",
        |x, a| x.cumsum(a).unwrap().cummax(a).unwrap(),
        |r| running(&running(r, |a, b| a + b), f64::max),
    ),
];

fn moments(r: &[f64]) -> (f64, f64) {
    let mean = r.iter().sum::<f64>() / r.len() as f64;
    (mean, r.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / r.len() as f64)
}

fn running(r: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    r.iter()
        .enumerate()
        .scan(0.0, |carry, (at, &v)| {
            *carry = if at == 0 { v } else { f(*carry, v) };
            Some(*carry)
        })
        .collect()
}

/// Checks a composite along an axis.
pub(crate) fn check(&(name, build, row): &Case, dims: &[usize], axis: usize) {
    let x = input("x", DType::F32, dims);
    let data = noise(dims.iter().product(), 3);
    let y = build(&x, axis as isize);
    let rows = along(dims, axis);
    let mut want = vec![0.0; y.shape().elems()];
    for (number, places) in rows.iter().enumerate() {
        let values = row(&places.iter().map(|&i| f64::from(data[i])).collect::<Vec<_>>());
        if values.len() == 1 && places.len() != 1 {
            want[number] = values[0];
        } else {
            values.iter().zip(places).for_each(|(&v, &i)| want[i] = v);
        }
    }
    everywhere(&[&y], &[bytes(&data)], |device, got| {
        close(&f32s(&got[0]), &want, 2e-5, &format!("{device} {name} {dims:?} {axis}"));
    });
}

#[test]
fn composites_along_every_axis() {
    for case in CASES {
        for (dims, axis) in [
            (&[6, 7][..], 1),
            (&[7, 6], 0),
            (&[3, 100], 1),
            (&[3, 102], 1),
            (&[90, 5], 0),
            (&[2, 40, 33], 1),
            (&[3, 1000], 1),
            (&[2, 5000], 1),
            (&[600, 40], 0),
            (&[20, 5], 1),
        ] {
            check(case, dims, axis);
        }
    }
}

#[test]
fn nan_counts_as_largest_and_smallest() {
    for n in [7usize, 100, 2000, 20000] {
        let x = input("x", DType::F32, &[3, n]);
        let mut data = noise(3 * n, 5);
        (data[4], data[6]) = (f32::NAN, f32::NAN);
        data[n..2 * n].fill(2.5);
        data[2 * n..].fill(f32::NEG_INFINITY);
        let outs = [
            x.max(&[1], false).unwrap(),
            x.min(&[1], false).unwrap(),
            x.argmax(Some(1), false).unwrap(),
            x.argmin(Some(1), false).unwrap(),
            x.cummax(1).unwrap(),
        ];
        everywhere(&outs.iter().collect::<Vec<_>>(), &[bytes(&data)], |device, got| {
            for out in &got[..2] {
                let out = f32s(out);
                assert!(out[0].is_nan() && out[1..] == [2.5, f32::NEG_INFINITY], "{device} {n} {out:?}");
            }
            assert_eq!(i32s(&got[2]), [4, 0, 0], "{device} {n}");
            assert_eq!(i32s(&got[3]), [4, 0, 0], "{device} {n}");
            let running = f32s(&got[4]);
            assert!(
                running[..4].iter().all(|v| !v.is_nan()) && running[4..n].iter().all(|v| v.is_nan()),
                "{device} {n}"
            );
            assert!(running[n..2 * n].iter().all(|&v| v == 2.5));
            assert!(running[2 * n..].iter().all(|&v| v == f32::NEG_INFINITY));
        });
    }
}

#[test]
fn nothing_gives_the_identity() {
    // The planner folds reductions over nothing to constants, so a kernel over something is emptied by hand.
    let (x, n) = (input("x", DType::F32, &[3, 5]), input("n", DType::I32, &[3, 5]));
    let outs = [
        x.sum(&[1], false).unwrap(),
        x.prod(&[1], false).unwrap(),
        n.prod(&[1], false).unwrap(),
        n.any(&[1], false).unwrap(),
        n.all(&[1], false).unwrap(),
    ];
    let mut plan = Plan::new(&outs.iter().collect::<Vec<_>>()).unwrap();
    let mut emptied = 0;
    for kernel in &mut plan.kernels {
        let Kernel::Loops(loops) = kernel else { continue };
        for var in loops.vars.iter_mut().filter(|v| v.inner) {
            var.extent = 0;
            emptied += 1;
        }
    }
    assert!(emptied > 0, "no kernel reduces anything");
    for device in DEVICES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let lowered = lower(&plan, &device.limits, &Variants::default()).unwrap();
        let got = device.run(&plan, &lowered, &[vec![7; 60], vec![7; 60]]);
        let device = &device.name;
        assert_eq!(f32s(&got[0]), [0.0; 3], "{device}");
        assert_eq!(f32s(&got[1]), [1.0; 3], "{device}");
        assert_eq!(i32s(&got[2]), [1; 3], "{device}");
        assert_eq!((&got[3][..], &got[4][..]), (&[0u8; 3][..], &[1u8; 3][..]), "{device}");
    }
}

#[test]
fn loops_stay_below_the_cap() {
    // One invocation a column would need more steps than Mesa 22 allows.
    let (rows, columns) = (70000, 100);
    let x = input("x", DType::F32, &[rows, columns]);
    everywhere(&[&x.sum(&[0], false).unwrap()], &[bytes(&vec![1.0f32; rows * columns])], |device, got| {
        assert_eq!(f32s(&got[0]), vec![rows as f32; columns], "{device}");
    });
}

#[test]
fn integers_wrap_and_bools_are_counted() {
    for dims in [[5usize, 9], [3, 200], [2, 17000]] {
        let count = dims[0] * dims[1];
        let (i, u, b) = (input("i", DType::I32, &dims), input("u", DType::U32, &dims), input("b", DType::Bool, &dims));
        let ints: Vec<i32> = noise(count, 1).iter().map(|v| (v * 2e9) as i32).collect();
        let words: Vec<u32> = ints.iter().map(|&v| v as u32 | 1).collect();
        let bools: Vec<u8> = ints.iter().map(|&v| u8::from(v > 0)).collect();
        let outs = [
            i.sum(&[1], false).unwrap(),
            i.max(&[1], false).unwrap(),
            i.argmin(Some(1), false).unwrap(),
            i.cumsum(1).unwrap(),
            u.prod(&[1], false).unwrap(),
            u.min(&[1], false).unwrap(),
            u.argmax(Some(1), false).unwrap(),
            u.cumprod(1).unwrap(),
            b.sum(&[1], false).unwrap(),
            b.max(&[1], false).unwrap(),
            b.all(&[1], false).unwrap(),
            b.argmax(Some(1), false).unwrap(),
            b.cumsum(1).unwrap(),
            b.cummax(1).unwrap(),
        ];
        let inputs = [bytes(&ints), bytes(&words), bools.clone()];
        everywhere(&outs.iter().collect::<Vec<_>>(), &inputs, |device, got| {
            for row in 0..dims[0] {
                let what = format!("{device} {dims:?} {row}");
                let range = row * dims[1]..(row + 1) * dims[1];
                let (ints, words, bools) = (&ints[range.clone()], &words[range.clone()], &bools[range.clone()]);
                let at = |out: usize| i32s(&got[out])[row];
                assert_eq!(at(0), ints.iter().fold(0i32, |a, b| a.wrapping_add(*b)), "{what}");
                assert_eq!(at(1), *ints.iter().max().unwrap(), "{what}");
                assert_eq!(at(2) as usize, (0..ints.len()).min_by_key(|&k| ints[k]).unwrap(), "{what}");
                assert_eq!(at(4) as u32, words.iter().fold(1u32, |a, b| a.wrapping_mul(*b)), "{what}");
                assert_eq!(at(5) as u32, *words.iter().min().unwrap(), "{what}");
                let first = |k: &usize| (words[*k], std::cmp::Reverse(*k));
                assert_eq!(at(6) as usize, (0..words.len()).max_by_key(first).unwrap(), "{what}");
                assert_eq!(at(8), bools.iter().map(|&v| i32::from(v)).sum::<i32>(), "{what}");
                assert_eq!(got[9][row], *bools.iter().max().unwrap(), "{what}");
                assert_eq!(got[10][row], *bools.iter().min().unwrap(), "{what}");
                assert_eq!(at(11) as usize, bools.iter().position(|&v| v == 1).unwrap_or(0), "{what}");
                let (mut sum, mut product, mut count, mut most) = (0i32, 1u32, 0, 0);
                for k in 0..dims[1] {
                    let place = range.start + k;
                    (sum, product) = (sum.wrapping_add(ints[k]), product.wrapping_mul(words[k]));
                    (count, most) = (count + i32::from(bools[k]), most.max(bools[k]));
                    let word = |out: usize| i32::from_ne_bytes(got[out][place * 4..][..4].try_into().unwrap());
                    assert_eq!((word(3), word(7), word(12)), (sum, product as i32, count), "{what} {k}");
                    assert_eq!(got[13][place], most, "{what} {k}");
                }
            }
        });
    }
}

#[test]
fn every_variant_is_valid_and_sizes_are_no_text() {
    let text = |case: &Case, dims: &[usize], axis: isize| -> Vec<String> {
        let y = (case.1)(&input("x", DType::F32, dims), axis);
        lowered(&[&y]).stages.iter().map(|s| s.source.to_string()).collect()
    };
    for case in CASES {
        assert_eq!(text(case, &[64, 2048], 1), text(case, &[300, 2040], 1), "{}", case.0);
        assert_eq!(text(case, &[90, 7], 1), text(case, &[10, 9], 1), "{}", case.0);
        assert_eq!(text(case, &[999, 30000], 0), text(case, &[990, 30001], 0), "{}", case.0);
        assert_eq!(text(case, &[3, 60000], 1), text(case, &[5, 50000], 1), "{}", case.0);
    }
    let dtypes = [DType::F32, DType::I32, DType::U32, DType::Bool];
    for dims in [[64, 5], [9, 77], [9, 76], [3, 40000]] {
        for dtype in dtypes {
            for axis in [0, 1] {
                let x = input("x", dtype, &dims);
                ReduceOp::ALL.iter().for_each(|&op| drop(lowered(&[&x.reduce(op, &[axis], false).unwrap()])));
                ScanOp::ALL.iter().for_each(|&op| drop(lowered(&[&x.scan(op, axis).unwrap()])));
            }
        }
    }
}

#[test]
fn two_passes_may_run_the_same_scan() {
    let x = input("x", DType::F32, &[3, 40]);
    let running = x.cumsum(1).unwrap();
    let most = running.max(&[1], true).unwrap();
    let total = running.sum(&[1], true).unwrap();
    let both = (&(&running - &most).unwrap() * &total).unwrap();
    lowered(&[&both, &(&both * &running).unwrap().sum(&[1], false).unwrap()]);
}
