//! The reference: arrays of f64 and plain index loops, written apart from the library.
//!
//! Beside each value stands a bound of how far the library's value may lie from it. Exact inputs have the bound 0;
//! each operation adds what its rounding may cost and carries on what its arguments may be off by. Where a jump (a
//! floor, a comparison, a pole) lies within the bound, nothing can be said any more: the bound is infinite, and the
//! element is not compared. So the comparison is as sharp as the operations allow, and never a matter of luck.

mod contract;
mod elementwise;
mod movement;
mod propagate;
mod reduce;
mod rows;
mod scalar;

pub use contract::{conv2d, dot, matmul};
pub use elementwise::{apply, broadcast_shape, cast, promote};
pub use movement::{concat, stack};

use breakeven::DType;

/// What the reference computes, or why it is not defined.
pub type Result<T> = std::result::Result<T, String>;

/// An array in row-major order: values, and for each the bound of the library's deviation from it.
#[derive(Clone, Debug)]
pub struct RefArray {
    /// The dtype that the library must give.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<usize>,
    /// The values; integers and bools are exact in f64.
    pub data: Vec<f64>,
    /// How far off the library may be; infinite where nothing can be said.
    pub err: Vec<f64>,
}

/// A value and its bound.
pub type Bounded = (f64, f64);

impl RefArray {
    /// Values without error. f32 values are rounded to what an f32 holds.
    pub fn exact(dtype: DType, shape: &[usize], data: Vec<f64>) -> RefArray {
        assert_eq!(elems(shape), data.len(), "{shape:?}");
        let data = if dtype == DType::F32 { data.into_iter().map(|v| f64::from(v as f32)).collect() } else { data };
        RefArray { dtype, shape: shape.to_vec(), err: vec![0.0; data.len()], data }
    }

    /// A 0-d array.
    pub fn scalar(dtype: DType, value: f64) -> RefArray {
        RefArray::exact(dtype, &[], vec![value])
    }

    /// `value` everywhere.
    pub fn full(dtype: DType, shape: &[usize], value: f64) -> RefArray {
        RefArray::exact(dtype, shape, vec![value; elems(shape)])
    }

    /// numpy's `arange`, in `dtype`: `start + step * i`, rounded for f32 in each operation.
    pub fn arange(dtype: DType, start: f64, stop: f64, step: f64) -> RefArray {
        let n = ((stop - start) / step).ceil().max(0.0) as usize;
        let at = |i: usize| match dtype {
            DType::F32 => {
                let product = f64::from((step * i as f64) as f32);
                bounded(start + step * i as f64, 0.5 * ulp(product))
            }
            _ => (start + step * i as f64, 0.0),
        };
        RefArray::collect(dtype, &[n], (0..n).map(at))
    }

    /// An array from its elements.
    pub fn collect(dtype: DType, shape: &[usize], values: impl Iterator<Item = Bounded>) -> RefArray {
        let (data, err): (Vec<f64>, Vec<f64>) = values.unzip();
        assert_eq!(elems(shape), data.len(), "{shape:?}");
        RefArray { dtype, shape: shape.to_vec(), data, err }
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// How many elements.
    pub fn elems(&self) -> usize {
        self.data.len()
    }

    /// One element.
    pub fn at(&self, flat: usize) -> Bounded {
        (self.data[flat], self.err[flat])
    }

    /// `axis`, counted from the end when it is negative.
    pub fn axis(&self, axis: isize) -> Result<usize> {
        axis_of(axis, self.rank())
    }

    /// A set of axes in ascending order; none named means all.
    pub fn axes(&self, axes: &[isize]) -> Result<Vec<usize>> {
        if axes.is_empty() {
            return Ok((0..self.rank()).collect());
        }
        let mut found = axes.iter().map(|&a| self.axis(a)).collect::<Result<Vec<_>>>()?;
        found.sort_unstable();
        let n = found.len();
        found.dedup();
        if found.len() == n { Ok(found) } else { Err(format!("an axis of {axes:?} is named twice")) }
    }
}

/// `axis` of `rank` axes, counted from the end when it is negative.
pub fn axis_of(axis: isize, rank: usize) -> Result<usize> {
    let index = if axis < 0 { axis + rank as isize } else { axis };
    if (0..rank as isize).contains(&index) { Ok(index as usize) } else { Err(format!("axis {axis} of {rank}")) }
}

/// How many elements a shape has.
pub fn elems(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// The place of `index` in row-major order.
pub fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |flat, (&i, &n)| flat * n + i)
}

/// Calls `visit` with every index of `shape` in row-major order.
pub fn for_each_index(shape: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; shape.len()];
    for _ in 0..elems(shape) {
        visit(&index);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// The last place of the f32 nearest to `value`, 2^-149 in the subnormals.
pub fn ulp(value: f64) -> f64 {
    let exponent = (((value as f32).abs().to_bits() >> 23) as i32).clamp(1, 254);
    2f64.powi(exponent - 150)
}

/// From here on the nearest f32 is infinite: halfway between the largest one and 2^128.
pub const OVERFLOW: f64 = 340_282_356_779_733_661_637_539_395_458_142_568_448.0;

/// An f32 result `truth` that may be off by `err`, unless it may also have overflowed.
pub fn bounded(truth: f64, err: f64) -> Bounded {
    if truth.is_nan() || err.is_nan() || err == f64::INFINITY {
        return (truth, if truth.is_nan() && err == 0.0 { 0.0 } else { f64::INFINITY });
    }
    if truth.is_infinite() {
        return (truth, 0.0);
    }
    match truth.abs() {
        // Certainly infinite, certainly finite, or who knows.
        a if a - err >= OVERFLOW => (f64::INFINITY.copysign(truth), 0.0),
        a if a + err < OVERFLOW => (truth, err),
        _ => (truth, f64::INFINITY),
    }
}

/// An f32 result with exact value `truth`, computed to within `ulps` of the last place by an operation whose
/// arguments may move it by `err`. A correctly rounded result of exact arguments is known to the bit.
pub fn rounded(truth: f64, ulps: f64, err: f64) -> Bounded {
    if err == 0.0 && ulps == 0.5 {
        return (f64::from(truth as f32), 0.0);
    }
    if !truth.is_finite() {
        return bounded(truth, err);
    }
    // A little more for the f64 arithmetic of the reference itself.
    let own = if ulps == 0.0 { 0.0 } else { (ulps + 1e-6) * ulp(truth.abs() + err) };
    bounded(truth, err + own)
}

/// A zero that came from one of `candidates`. If they are zeros of both signs, the library is free to choose: the
/// result is then not quite exact, so that nothing is said of what a pole makes of it.
pub fn free_zero(candidates: impl Iterator<Item = f64>) -> Bounded {
    let (mut positive, mut negative) = (false, false);
    candidates.filter(|&c| c == 0.0).for_each(|c| if c.is_sign_negative() { negative = true } else { positive = true });
    match (positive, negative) {
        (true, true) => (0.0, f64::MIN_POSITIVE),
        (_, true) => (-0.0, 0.0),
        _ => (0.0, 0.0),
    }
}
