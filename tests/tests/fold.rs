//! Constants: every row of the op table as the planner folds it, against the reference, and the row's own examples.
//!
//! What folding gives must be what a kernel would have given, so it is held to the same bound.

use breakeven::{DType, Op, Scalar};
use breakeven_tests::compare::{Zeros, values};
use breakeven_tests::data::{edges, rough};
use breakeven_tests::reference::{RefArray, apply};

fn scalar(value: f64, dtype: DType) -> Scalar {
    match dtype {
        DType::F32 => Scalar::from(value as f32),
        DType::I32 => Scalar::from(value as i32),
        DType::U32 => Scalar::from(value as u32),
        DType::Bool => Scalar::from(value != 0.0),
    }
}

/// Every combination of `lists`, one column for each.
fn product(lists: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n: usize = lists.iter().map(Vec::len).product();
    let mut repeat = n;
    lists
        .iter()
        .map(|list| {
            repeat /= list.len();
            (0..n).map(|i| list[i / repeat % list.len()]).collect()
        })
        .collect()
}

fn fold_all(op: Op, dtypes: &[DType], columns: &[Vec<f64>]) {
    let row = op.row();
    let n = columns[0].len();
    let args: Vec<RefArray> = columns.iter().zip(dtypes).map(|(c, &d)| RefArray::exact(d, &[n], c.clone())).collect();
    let expected = apply(op, &args.iter().collect::<Vec<_>>()).unwrap_or_else(|why| panic!("{why}"));
    let lane = |i: usize| {
        let args: Vec<Scalar> = args.iter().map(|a| scalar(a.data[i], a.dtype)).collect();
        let folded = op.fold(&args).unwrap_or_else(|| panic!("{} has no signature {dtypes:?}", row.name));
        assert_eq!(folded.dtype(), expected.dtype, "{} of {dtypes:?}", row.name);
        folded.to_f64()
    };
    let got: Vec<f64> = (0..n).map(lane).collect();
    let zeros = if matches!(op, Op::Maximum | Op::Minimum) { Zeros::Same } else { Zeros::Signed };
    // One at a time, so that a failure names its arguments.
    for i in 0..n {
        let one = RefArray {
            dtype: expected.dtype,
            shape: vec![1],
            data: vec![expected.data[i]],
            err: vec![expected.err[i]],
        };
        if let Err(why) = values(expected.dtype, &[1], &got[i..=i], &one, zeros) {
            let args: Vec<f64> = args.iter().map(|a| a.data[i]).collect();
            panic!("{} of {dtypes:?} at {args:?}: {why}", row.name);
        }
    }
}

#[test]
fn every_row_holds_its_bound_at_every_edge() {
    for &op in Op::ALL {
        for signature in op.row().signatures {
            let mut lists: Vec<Vec<f64>> = signature.args.iter().map(|&d| edges(d)).collect();
            // Three arguments make too many combinations of every edge; `where` only chooses between its values.
            lists.iter_mut().skip(2).for_each(|list| list.truncate(4));
            fold_all(op, signature.args, &product(&lists));
            let columns: Vec<Vec<f64>> =
                signature.args.iter().enumerate().map(|(i, &d)| rough(d, &[2_000], i as u64 + 1).data).collect();
            fold_all(op, signature.args, &columns);
        }
    }
}

#[test]
fn every_row_s_examples_hold() {
    for &op in Op::ALL {
        for signature in op.row().signatures {
            for (args, expected) in op.row().golden {
                let given: Vec<Scalar> = args.iter().zip(signature.args).map(|(&v, &d)| scalar(v, d)).collect();
                // An example of fractions says nothing about integers.
                if given.iter().zip(*args).any(|(s, &v)| s.to_f64() != v)
                    || scalar(*expected, signature.result).to_f64() != *expected && signature.result != DType::F32
                {
                    continue;
                }
                let got = op.fold(&given).map(Scalar::to_f64).unwrap_or(f64::NAN);
                let expected = if signature.result == DType::F32 { f64::from(*expected as f32) } else { *expected };
                let bound = 2.0 * f64::from(op.row().ulp) * f64::from(f32::EPSILON) * expected.abs();
                assert!(
                    (got - expected).abs() <= bound,
                    "{}{args:?} of {:?}: {got}, expected {expected}",
                    op.row().name,
                    signature.args
                );
            }
        }
    }
}
