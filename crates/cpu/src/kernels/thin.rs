//! A matrix by a vector, or a vector by a matrix: every element of the matrix is used once, so that packing it, as GEMM does,
//! costs more than the product. Rows that lie along the sums are dot products; rows that lie along the results are added up, a
//! few at a time.

use super::contract::{Gemm, Matrix};
use super::reduce::{Acc, row_dot_at};
use crate::level::{Level, leveled};
use breakeven_ir::backend::Stop;

/// Fewer results or steps than this are left to GEMM: calling a kernel for each would cost more.
const LEAST: usize = 64;
/// Rows that are added at once. They end at the same places whatever part of the product is computed.
const ROWS: usize = 8;
/// Results that stay in L1 while all rows are added to them.
const STRETCH: usize = 4096;
/// Multiply-adds between two looks at a stop: less than a millisecond.
const LOOK: usize = 1 << 20;

/// How a thin product is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thin {
    /// Has the whole product one column, rather than one row?
    column: bool,
    by: By,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// Each result is the dot product of two contiguous vectors.
    Dots,
    /// Contiguous rows of the matrix, times an element of the vector each, are added up.
    Rows,
}

/// The vector and the matrix of a thin product, with strides in elements.
pub(crate) struct Parts {
    vector: *const f32,
    /// From one element of the vector to the next, along the sums.
    step: isize,
    matrix: *const f32,
    /// From one element of the matrix to the next along the sums, and along the results.
    along: isize,
    across: isize,
    count: usize,
    steps: usize,
    dst: *mut f32,
}

impl Thin {
    /// The way for a whole product of `m` x `k` by `k` x `n` with these strides, if it is a thin one. (Whoever computes a part has
    /// to ask for the whole, or its bits would depend on how it is shared.)
    pub(crate) fn of(m: usize, n: usize, k: usize, left: &Matrix, right: &Matrix) -> Option<Thin> {
        let (step, along, across, count) = match (m, n) {
            (_, 1) => (right.row, left.column, left.row, m),
            (1, _) => (left.column, right.row, right.column, n),
            _ => return None,
        };
        let column = n == 1;
        if step == 1 && along == 1 && k >= LEAST {
            Some(Thin { column, by: By::Dots })
        } else if across == 1 && count >= LEAST && k > 0 {
            Some(Thin { column, by: By::Rows })
        } else {
            None
        }
    }
}

impl Parts {
    /// Of a product, or a part of one, with one column, or else one row.
    fn new(g: &Gemm, column: bool) -> Parts {
        let (l, r) = (g.left, g.right);
        let (vector, step, matrix, along, across, count) = if column {
            (r.base, r.row, l.base, l.column, l.row, g.m)
        } else {
            (l.base, l.column, r.base, r.row, r.column, g.n)
        };
        Parts { vector, step, matrix, along, across, count, steps: g.k, dst: g.dst }
    }
}

/// A thin product, or as much of it as is done when somebody tells it to stop.
///
/// # Safety
/// As for [`gemm`](super::contract::gemm), for a product that [`Thin::of`] has said this of.
pub(crate) unsafe fn thin(level: Level, way: Thin, g: &Gemm, stop: Option<&Stop>) {
    let parts = Parts::new(g, way.column);
    let is_told = || stop.is_some_and(Stop::is_told);
    // SAFETY: passed on.
    unsafe {
        match way.by {
            By::Dots => {
                let dot = row_dot_at(level, false);
                let each = (LOOK / parts.steps).max(1);
                for at in 0..parts.count {
                    if at % each == 0 && is_told() {
                        return;
                    }
                    let mut acc = Acc::NOTHING;
                    let row = parts.matrix.offset(at as isize * parts.across);
                    dot(row.cast(), parts.vector.cast(), parts.steps, &mut acc);
                    parts.dst.add(at).write(acc.wide as f32);
                }
            }
            By::Rows => {
                let add = add_rows_at(level);
                let each = (LOOK / STRETCH).next_multiple_of(ROWS);
                for first in (0..parts.count).step_by(STRETCH) {
                    let dst = std::slice::from_raw_parts_mut(parts.dst.add(first), STRETCH.min(parts.count - first));
                    dst.fill(0.0);
                    for from in (0..parts.steps).step_by(each) {
                        if is_told() {
                            return;
                        }
                        add(&parts, first, from..(from + each).min(parts.steps));
                    }
                }
            }
        }
    }
}

/// Adds rows of the matrix, each times its element of the vector, to a stretch of the results.
///
/// # Safety
/// As for [`thin`]; the results from `first` on were begun.
#[inline(always)]
unsafe fn add_rows<const FMA: bool>(parts: &Parts, first: usize, steps: std::ops::Range<usize>) {
    #[inline(always)]
    fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
        if FMA { a.mul_add(b, c) } else { a * b + c }
    }
    let n = STRETCH.min(parts.count - first);
    let row = |step: usize| {
        // SAFETY: the step is inside the product.
        unsafe {
            let from = parts.matrix.offset(step as isize * parts.along).add(first);
            (std::slice::from_raw_parts(from, n), *parts.vector.offset(step as isize * parts.step))
        }
    };
    // SAFETY: the results are nobody else's.
    let dst = unsafe { std::slice::from_raw_parts_mut(parts.dst.add(first), n) };
    let mut step = steps.start;
    while step + ROWS <= steps.end {
        let rows: [(&[f32], f32); ROWS] = std::array::from_fn(|r| row(step + r));
        let [a, b, c, d, e, f, g, h] = rows;
        for at in 0..n {
            let even = fma::<FMA>(a.0[at], a.1, fma::<FMA>(c.0[at], c.1, fma::<FMA>(e.0[at], e.1, g.0[at] * g.1)));
            let odd = fma::<FMA>(b.0[at], b.1, fma::<FMA>(d.0[at], d.1, fma::<FMA>(f.0[at], f.1, h.0[at] * h.1)));
            dst[at] += even + odd;
        }
        step += ROWS;
    }
    while step < steps.end {
        let (from, by) = row(step);
        dst.iter_mut().zip(from).for_each(|(dst, x)| *dst = fma::<FMA>(*x, by, *dst));
        step += 1;
    }
}

leveled! { fn add_rows_at<;>(parts: &Parts, first: usize, steps: std::ops::Range<usize>) => add_rows }
