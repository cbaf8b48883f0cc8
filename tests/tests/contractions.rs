//! matmul, dot and conv2d: every small size, awkward ones, batches, transposed and otherwise moved operands.

use breakeven::{DType, s};
use breakeven_tests::compare::Zeros;
use breakeven_tests::data::Rng;
use breakeven_tests::device::{engine, takes_part};
use breakeven_tests::pair::Pair;
use breakeven_tests::run::check;
use breakeven_tests::views::{edgy, smooth, views};

const F32: DType = DType::F32;

fn product(a: &Pair, b: &Pair) -> Pair {
    a.matmul(b).unwrap_or_else(|| panic!("{:?} @ {:?} is refused", a.tensor, b.tensor))
}

#[test]
fn sizes_from_1_to_70() {
    let engine = engine();
    let mut rng = Rng::new(1);
    for size in 1..=70 {
        // The diagonal, a thin one in each direction, and a random one.
        let random = [1 + rng.below(70), 1 + rng.below(70), 1 + rng.below(70)];
        for [m, k, n] in [[size, 8, size], [1, size, 9], [9, size, 1], [size, 1, 3], random] {
            let seed = (m * 10_000 + k * 100 + n) as u64;
            let (a, b) = (smooth(F32, &[m, k], seed), smooth(F32, &[k, n], seed + 1));
            check(&engine, &format!("{m} x {k} x {n}"), &[&product(&a, &b)], Zeros::Same);
        }
    }
}

#[test]
fn awkward_sizes_and_transposed_operands() {
    let engine = engine();
    for [m, k, n] in [
        [0, 3, 4],
        [3, 0, 4],
        [3, 4, 0],
        [1, 1, 1],
        [7, 9, 8],
        [31, 33, 63],
        [1, 1025, 1],
        [1023, 1, 2],
        [2, 3, 1025],
        [65, 129, 67],
        // A vector on one side.
        [1, 300, 70],
        [1, 67, 4200],
        [130, 67, 1],
        [70, 1500, 1],
    ] {
        let what = format!("{m} x {k} x {n}");
        let (a, b) = (smooth(F32, &[m, k], 1), smooth(F32, &[k, n], 2));
        let (at, bt) = (smooth(F32, &[k, m], 3).transpose().unwrap(), smooth(F32, &[n, k], 4).transpose().unwrap());
        let flipped = smooth(F32, &[m, k], 5).flip(&[1]).unwrap();
        let sliced = smooth(F32, &[k + 2, 2 * n + 1], 6).slice(&[s(1..k as isize + 1), s(1..).step(2)]).unwrap();
        let row = smooth(F32, &[1, k], 7).broadcast_to(&[m, k]).unwrap();
        for (x, y) in [(&a, &b), (&at, &b), (&a, &bt), (&at, &bt), (&flipped, &sliced), (&row, &bt), (&at, &sliced)] {
            check(&engine, &what, &[&product(x, y)], Zeros::Same);
            check(&engine, &what, &[&product(x, y).transpose().unwrap()], Zeros::Same);
        }
    }
}

#[test]
fn vectors_batches_and_other_dtypes() {
    let engine = engine();
    let shapes: [[&[usize]; 2]; 14] = [
        [&[5], &[5]],
        [&[5], &[5, 3]],
        [&[4, 5], &[5]],
        [&[0], &[0]],
        [&[2, 4, 5], &[5, 3]],
        [&[4, 5], &[2, 5, 3]],
        [&[2, 4, 5], &[2, 5, 3]],
        [&[2, 1, 4, 5], &[3, 5, 2]],
        [&[7, 3, 5], &[5]],
        [&[5], &[2, 5, 3]],
        [&[0, 3, 2], &[2, 2]],
        [&[2, 2, 2, 3, 4], &[2, 1, 4, 5]],
        [&[3, 1, 1], &[1, 1, 4]],
        [&[1, 6, 7], &[4, 7, 1]],
    ];
    for (seed, [left, right]) in shapes.into_iter().enumerate() {
        for (dtype, other) in [(F32, F32), (DType::I32, F32), (DType::Bool, DType::U32)] {
            let (a, b) = (smooth(dtype, left, seed as u64), smooth(other, right, seed as u64 + 50));
            let what = format!("{dtype}{left:?} @ {other}{right:?}");
            check(&engine, &what, &[&product(&a, &b)], Zeros::Same);
            if let Some(dot) = a.dot(&b) {
                check(&engine, &format!("dot of {what}"), &[&dot], Zeros::Same);
            }
        }
    }
}

/// NaN and infinities reach the rows and columns they belong to, and no others.
#[test]
fn edges_stay_in_their_rows() {
    let engine = engine();
    for [m, k, n] in [[5, 6, 7], [17, 33, 19], [64, 64, 64]] {
        let (a, b) = (edgy(F32, &[m, k], 8), smooth(F32, &[k, n], 9));
        let what = format!("{m} x {k} x {n}");
        let compared = check(&engine, &what, &[&product(&a, &b)], Zeros::Same);
        assert!(compared > 0 || !takes_part(&what));
    }
    let views = views(F32, 4);
    for (i, (name, x)) in views.iter().enumerate() {
        let (other, y) = &views[(i + 3) % views.len()];
        let y = y.swap_axes(1, 2).unwrap();
        check(&engine, &format!("{name} @ {other}"), &[&product(x, &y)], Zeros::Same);
    }
}

/// What surrounds a product and is fused with it: bias, activation, a product as the operand of another.
#[test]
fn products_with_their_surroundings() {
    let engine = engine();
    let add = |a: &Pair, b: &Pair| Pair::apply(breakeven::Op::Add, &[a, b]).unwrap();
    for [m, k, n] in [[1, 1, 1], [3, 5, 9], [33, 17, 65]] {
        let (x, w, bias) = (smooth(F32, &[m, k], 1), smooth(F32, &[k, n], 2), smooth(F32, &[n], 3));
        let h = add(&product(&x, &w), &bias).relu().unwrap();
        let again = product(&h, &w.transpose().unwrap());
        let before = product(&x.relu().unwrap(), &Pair::apply(breakeven::Op::Tanh, &[&w]).unwrap());
        let rows = product(&x, &w).softmax(1).unwrap();
        check(&engine, &format!("layers {m} x {k} x {n}"), &[&h, &again, &before, &rows], Zeros::Same);
    }
}

/// Parts of a product, moved and computed with: what is fused with the product must not take its size for the product's.
#[test]
fn parts_of_a_product() {
    let engine = engine();
    let negate = |x: Option<Pair>| Pair::apply(breakeven::Op::Neg, &[&x.unwrap()]).unwrap();
    for [m, k, n] in [[2, 1, 1], [4, 3, 5], [1, 4, 6], [33, 9, 17]] {
        let p = product(&smooth(F32, &[m, k], 1), &smooth(F32, &[k, n], 2));
        let columns = s(..).step(-1);
        let parts = [
            p.slice(&[s(..1)]),
            p.slice(&[s(1..)]),
            p.slice(&[s(..), s(..1)]),
            p.slice(&[s(..).step(2), columns]),
            p.flip(&[0]),
            p.transpose(),
            p.select(0, 0),
            p.select(1, -1),
            p.pad(&[(0, 1), (1, 0)], 1.0),
            p.tile(&[2]),
            p.expand_dims(&[1]),
            p.reshape(&[-1]),
            p.pad(&[(0, 0), (0, 0)], 1.0),
            p.slice(&[s(..), s(..)]),
            p.windows(&[0], &[1], &[1]),
            Pair::concat(&[&p, &p], 0),
            p.broadcast_to(&[2, m, n]),
        ];
        for (at, part) in parts.into_iter().enumerate() {
            let what = format!("part {at} of {m} x {k} x {n}");
            check(&engine, &what, &[&negate(part.clone())], Zeros::Same);
            check(&engine, &what, &[part.as_ref().unwrap()], Zeros::Same);
            check(&engine, &what, &[&part.unwrap(), &p], Zeros::Same);
        }
    }
}

/// Input, weight, stride and padding.
type Convolution = ([usize; 4], [usize; 4], [usize; 2], [usize; 2]);

#[test]
fn convolutions() {
    let engine = engine();
    let cases: [Convolution; 11] = [
        ([1, 1, 3, 3], [1, 1, 1, 1], [1, 1], [0, 0]),
        ([1, 3, 8, 8], [4, 3, 3, 3], [1, 1], [1, 1]),
        ([2, 3, 9, 7], [5, 3, 3, 2], [2, 3], [0, 1]),
        ([2, 1, 5, 5], [1, 1, 5, 5], [1, 1], [0, 0]),
        ([1, 2, 4, 4], [3, 2, 3, 3], [1, 1], [3, 2]),
        ([1, 2, 1, 17], [3, 2, 1, 5], [1, 4], [0, 2]),
        ([0, 2, 4, 4], [3, 2, 3, 3], [1, 1], [0, 0]),
        ([2, 0, 4, 4], [3, 0, 3, 3], [1, 1], [0, 0]),
        ([1, 1, 33, 31], [2, 1, 7, 7], [3, 1], [3, 3]),
        ([3, 4, 6, 6], [8, 4, 2, 2], [2, 2], [0, 0]),
        ([1, 1, 1, 1], [1, 1, 3, 3], [1, 1], [1, 1]),
    ];
    for (input, weight, stride, padding) in cases {
        let (x, w) = (smooth(F32, &input, 1), smooth(F32, &weight, 2));
        let what = format!("conv2d of {input:?} with {weight:?}, stride {stride:?}, padding {padding:?}");
        let y = x.conv2d(&w, stride, padding).unwrap_or_else(|| panic!("{what} is refused"));
        let moved = x.flip(&[3]).and_then(|x| x.conv2d(&w.flip(&[]).unwrap(), stride, padding)).unwrap();
        check(&engine, &what, &[&y, &moved.relu().unwrap()], Zeros::Same);
        let ints = smooth(DType::I32, &input, 3).conv2d(&w, stride, padding).unwrap();
        check(&engine, &what, &[&ints], Zeros::Same);
    }
}
