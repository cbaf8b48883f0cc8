//! Contractions as sums of products over plain indices, with the bound that any order of f32 summation holds.

use super::{
    Bounded, RefArray, Result, apply, bounded, broadcast_shape, cast, elems, for_each_index, free_zero, ravel, ulp,
};
use breakeven::{DType, Op};

/// The rounding of one f32 operation.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// A sum of products in f32, in whatever order and with or without fused multiply-add.
#[derive(Default)]
struct Dot {
    sum: f64,
    magnitude: f64,
    err: f64,
    terms: usize,
    fractional: bool,
}

impl Dot {
    fn push(&mut self, (a, ea): Bounded, (b, eb): Bounded) {
        self.sum += a * b;
        self.magnitude += (a * b).abs();
        self.err += a.abs() * eb + b.abs() * ea + ea * eb;
        if ea == f64::INFINITY || eb == f64::INFINITY {
            self.err = f64::INFINITY;
        }
        self.terms += 1;
        self.fractional |= a.fract() != 0.0 || b.fract() != 0.0;
    }

    fn finish(self) -> Bounded {
        // NaN and infinities come out the same in every order, if no finite partial sum overflows.
        if !self.sum.is_finite() {
            return bounded(self.sum, if self.err == 0.0 { 0.0 } else { f64::INFINITY });
        }
        if self.err == 0.0 && !self.fractional && self.magnitude <= 1.0 / UNIT {
            return if self.magnitude == 0.0 { free_zero([0.0, -0.0].into_iter()) } else { (self.sum, 0.0) };
        }
        if self.magnitude + self.err > f64::from(f32::MAX) {
            return (self.sum, f64::INFINITY);
        }
        // Each term is rounded when it is multiplied and each time it is added; products may be subnormal.
        let rounding = (self.terms + 1) as f64 * UNIT * (self.magnitude + self.err) * 1.001;
        let subnormal = self.terms as f64 * ulp(0.0);
        bounded(self.sum, self.err + rounding + if self.magnitude == 0.0 { 0.0 } else { subnormal })
    }
}

/// The matrix product with numpy's rules for vectors and batches.
pub fn matmul(left: &RefArray, right: &RefArray) -> Result<RefArray> {
    if left.rank() == 0 || right.rank() == 0 {
        return Err("matmul of a 0-d array".into());
    }
    let (mut a, mut b) = (cast(left, DType::F32), cast(right, DType::F32));
    if left.rank() == 1 {
        a.shape.insert(0, 1);
    }
    if right.rank() == 1 {
        b.shape.push(1);
    }
    let (ra, rb) = (a.rank(), b.rank());
    let (m, k, n) = (a.shape[ra - 2], a.shape[ra - 1], b.shape[rb - 1]);
    if b.shape[rb - 2] != k {
        return Err(format!("matmul of {:?} and {:?}", left.shape, right.shape));
    }
    let batch = broadcast_shape(&[&a.shape[..ra - 2], &b.shape[..rb - 2]])?;
    let mut shape = batch.clone();
    let mut out = Vec::with_capacity(elems(&batch) * m * n);
    for_each_index(&batch, |index| {
        // The batch of an operand: aligned at its last batch axis, extents of 1 repeat.
        let of = |x: &RefArray, rank: usize| {
            let dims = &x.shape[..rank - 2];
            let own: Vec<usize> =
                index[index.len() - dims.len()..].iter().zip(dims).map(|(&i, &d)| if d == 1 { 0 } else { i }).collect();
            ravel(&own, dims)
        };
        let (base_a, base_b) = (of(&a, ra) * m * k, of(&b, rb) * k * n);
        for row in 0..m {
            for column in 0..n {
                let mut dot = Dot::default();
                for inner in 0..k {
                    dot.push(a.at(base_a + row * k + inner), b.at(base_b + inner * n + column));
                }
                out.push(dot.finish());
            }
        }
    });
    if left.rank() > 1 {
        shape.push(m);
    }
    if right.rank() > 1 {
        shape.push(n);
    }
    Ok(RefArray::collect(DType::F32, &shape, out.into_iter()))
}

/// numpy's `dot` with a vector or a matrix on the right.
pub fn dot(left: &RefArray, right: &RefArray) -> Result<RefArray> {
    match (left.rank(), right.rank()) {
        (0, _) | (_, 0) => apply(Op::Mul, &[left, right]),
        (_, 1 | 2) => matmul(left, right),
        _ => Err("dot of a batch".into()),
    }
}

/// The cross-correlation of `[n, c, h, w]` with `[o, c, kh, kw]`.
pub fn conv2d(input: &RefArray, weight: &RefArray, stride: [usize; 2], padding: [usize; 2]) -> Result<RefArray> {
    let refuse = || Err(format!("conv2d of {:?} and {:?}", input.shape, weight.shape));
    let (&[n, c, h, w], &[o, depth, kh, kw]) = (&input.shape[..], &weight.shape[..]) else { return refuse() };
    let padded = [h + 2 * padding[0], w + 2 * padding[1]];
    if c != depth || stride.contains(&0) || kh == 0 || kw == 0 || padded[0] < kh || padded[1] < kw {
        return refuse();
    }
    let (x, f) = (cast(input, DType::F32), cast(weight, DType::F32));
    let shape = [n, o, (padded[0] - kh) / stride[0] + 1, (padded[1] - kw) / stride[1] + 1];
    let mut out = Vec::with_capacity(elems(&shape));
    for_each_index(&shape, |at| {
        let mut dot = Dot::default();
        for_each_index(&[c, kh, kw], |inner| {
            let filter = f.at(ravel(&[at[1], inner[0], inner[1], inner[2]], &f.shape));
            let (y, z) = (at[2] * stride[0] + inner[1], at[3] * stride[1] + inner[2]);
            let inside = (padding[0]..padding[0] + h).contains(&y) && (padding[1]..padding[1] + w).contains(&z);
            let place = || ravel(&[at[0], inner[0], y - padding[0], z - padding[1]], &x.shape);
            dot.push(if inside { x.at(place()) } else { (0.0, 0.0) }, filter);
        });
        out.push(dot.finish());
    });
    Ok(RefArray::collect(DType::F32, &shape, out.into_iter()))
}
