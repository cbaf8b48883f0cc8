//! Every row of the op table, for every signature: awkward sizes, every layout, every edge, against the reference.
//!
//! Rows are taken from the table itself, so a new one is tested as soon as it is there, and fails with a message
//! until the reference knows it.

use breakeven::{DType, Op};
use breakeven_tests::compare::Zeros;
use breakeven_tests::data::edges;
use breakeven_tests::device::engine;
use breakeven_tests::pair::Pair;
use breakeven_tests::reference::RefArray;
use breakeven_tests::run::check;
use breakeven_tests::views::{edgy, smooth, views};

/// Sizes around the width of a vector, a cache line, a tile, and one that takes threads.
const SIZES: [usize; 8] = [0, 1, 7, 8, 9, 31, 1023, 1025];
const LARGE: usize = (1 << 20) + 1;

fn zeros(op: Op) -> Zeros {
    // IEEE 754 leaves the sign of max(0.0, -0.0) open.
    if matches!(op, Op::Maximum | Op::Minimum) { Zeros::Same } else { Zeros::Signed }
}

/// Calls `visit` with every op and each of its signatures.
fn for_each_signature(mut visit: impl FnMut(&str, Op, &'static [DType])) {
    for &op in Op::ALL {
        for signature in op.row().signatures {
            visit(&format!("{} of {:?}", op.row().name, signature.args), op, signature.args);
        }
    }
}

fn apply(what: &str, op: Op, args: &[&Pair]) -> Pair {
    Pair::apply(op, args).unwrap_or_else(|| panic!("{what}: its own signature is refused"))
}

#[test]
fn awkward_sizes() {
    let engine = engine();
    for_each_signature(|what, op, dtypes| {
        let mut outputs = Vec::new();
        for n in SIZES {
            let args: Vec<Pair> = dtypes.iter().enumerate().map(|(i, &d)| edgy(d, &[n], (n + i) as u64)).collect();
            let output = apply(what, op, &args.iter().collect::<Vec<_>>());
            check(&engine, &format!("{what}, {n} elements"), &[&output], zeros(op));
            outputs.push(output);
        }
        check(&engine, &format!("{what}, every size in one batch"), &outputs.iter().collect::<Vec<_>>(), zeros(op));
    });
}

#[test]
fn large() {
    let engine = engine();
    let leaf = |dtype, seed| (dtype, [seed, seed + 1, seed + 2].map(|s| edgy(dtype, &[LARGE], s)));
    let leaves = DType::ALL.map(|dtype| leaf(dtype, 77));
    let of = |dtype: DType, i: usize| leaves.iter().find(|l| l.0 == dtype).map(|l| &l.1[i]).unwrap();
    for_each_signature(|what, op, dtypes| {
        let args: Vec<&Pair> = dtypes.iter().enumerate().map(|(i, &d)| of(d, i)).collect();
        check(&engine, &format!("{what}, {LARGE} elements"), &[&apply(what, op, &args)], zeros(op));
    });
}

#[test]
fn every_edge_with_every_edge() {
    let engine = engine();
    for_each_signature(|what, op, dtypes| {
        // One axis for each argument: broadcasting makes the combinations.
        let args: Vec<Pair> = dtypes
            .iter()
            .enumerate()
            .map(|(i, &dtype)| {
                let values = edges(dtype);
                let mut shape = vec![1; dtypes.len()];
                shape[i] = values.len();
                Pair::leaf(RefArray::exact(dtype, &shape, values))
            })
            .collect();
        check(&engine, what, &[&apply(what, op, &args.iter().collect::<Vec<_>>())], zeros(op));
    });
}

#[test]
fn every_layout() {
    let engine = engine();
    let all = DType::ALL.map(|dtype| (dtype, [1, 2, 3].map(|seed| views(dtype, seed))));
    let of = |dtype: DType| all.iter().find(|v| v.0 == dtype).map(|v| &v.1).unwrap();
    for_each_signature(|what, op, dtypes| {
        let n = of(dtypes[0])[0].len();
        for first in 0..n {
            // Each layout meets its neighbours, itself, and others further away.
            for step in if dtypes.len() == 1 { &[0][..] } else { &[0, 1, 4] } {
                let chosen: Vec<&(&str, Pair)> =
                    dtypes.iter().enumerate().map(|(i, &d)| &of(d)[i][(first + i * step) % n]).collect();
                let names: Vec<&str> = chosen.iter().map(|c| c.0).collect();
                let args: Vec<&Pair> = chosen.iter().map(|c| &c.1).collect();
                check(&engine, &format!("{what}, {names:?}"), &[&apply(what, op, &args)], zeros(op));
            }
        }
    });
}

#[test]
fn broadcasting() {
    let engine = engine();
    let shapes: [[&[usize]; 3]; 12] = [
        [&[], &[], &[]],
        [&[], &[3], &[1]],
        [&[7, 1], &[1, 9], &[]],
        [&[2, 1, 3], &[4, 1], &[3]],
        [&[0], &[1], &[]],
        [&[0, 3], &[3], &[1, 3]],
        [&[2, 3, 1, 5, 2], &[3, 4, 1, 1], &[2]],
        [&[1], &[1, 1, 1], &[1]],
        [&[1025], &[3, 1], &[3, 1025]],
        [&[1, 1, 33], &[65, 1], &[]],
        [&[5, 1, 1, 1, 2], &[2, 1, 3, 1], &[3, 1]],
        [&[3], &[2, 0, 3], &[1, 1]],
    ];
    for_each_signature(|what, op, dtypes| {
        for (seed, shapes) in shapes.iter().enumerate() {
            let args: Vec<Pair> = dtypes.iter().zip(shapes).map(|(&d, shape)| edgy(d, shape, seed as u64)).collect();
            let args: Vec<&Pair> = args.iter().collect();
            let output = apply(what, op, &args);
            check(&engine, &format!("{what}, {shapes:?}"), &[&output], zeros(op));
        }
    });
}

#[test]
fn mixed_dtypes_promote_as_the_reference_does() {
    let engine = engine();
    for &op in Op::ALL {
        for a in DType::ALL {
            for b in DType::ALL {
                let args = [smooth(a, &[2, 9], 1), smooth(b, &[9], 2), smooth(a, &[2, 1], 3)];
                let args: Vec<&Pair> = args.iter().take(op.row().arity).collect();
                if let Some(output) = Pair::apply(op, &args) {
                    check(&engine, &format!("{} of {a} and {b}", op.row().name), &[&output], Zeros::Same);
                }
            }
        }
    }
}

#[test]
fn examples_of_the_table() {
    let engine = engine();
    for_each_signature(|what, op, dtypes| {
        for (args, expected) in op.row().golden {
            let leaves: Vec<Pair> =
                args.iter().zip(dtypes).map(|(&v, &d)| Pair::leaf(RefArray::exact(d, &[], vec![v]))).collect();
            let pair = apply(what, op, &leaves.iter().collect::<Vec<_>>());
            // An example of fractions says nothing about integers.
            let fits = |v: f64, d: DType| {
                d == DType::F32
                    || (v.fract() == 0.0 && (d != DType::Bool || v == 0.0 || v == 1.0) && (d != DType::U32 || v >= 0.0))
            };
            if !args.iter().zip(dtypes).all(|(&v, &d)| fits(v, d)) || !fits(*expected, pair.expected.dtype) {
                continue;
            }
            let ran = engine.run(&[&pair.tensor]).unwrap();
            let bound = 2.0 * f64::from(op.row().ulp) * f64::from(f32::EPSILON) * expected.abs();
            let got = ran[0].to_f64()[0];
            assert!(
                (got - f64::from(*expected as f32)).abs() <= bound,
                "{what} at {args:?}: {got}, expected {expected}"
            );
        }
    });
}

#[test]
fn activations_and_clip() {
    let engine = engine();
    for dtype in DType::ALL {
        let x = Pair::leaf(RefArray::exact(dtype, &[edges(dtype).len()], edges(dtype)));
        let bounds = [smooth(dtype, &[], 5), smooth(dtype, &[], 6)];
        let made = [x.relu(), x.leaky_relu(0.1), x.elu(0.7), x.clip(&bounds[0], &bounds[1])];
        for (i, pair) in made.into_iter().enumerate() {
            let pair = pair.unwrap_or_else(|| panic!("activation {i} of {dtype}"));
            check(&engine, &format!("activation {i} of {dtype}"), &[&pair], Zeros::Same);
        }
    }
}
