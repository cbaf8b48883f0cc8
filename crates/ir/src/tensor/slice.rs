//! Parts of an axis: a Rust range or Python's `start:stop:step` enters, the first index and the length on an axis of a
//! known extent leave.

use std::ops::{Bound, RangeBounds};

/// A part of one axis, as Python's `start:stop:step`: negative bounds count from the end, bounds outside are cut off,
/// a negative step walks backwards. Made by [`s`].
///
/// ```
/// use breakeven_ir::{DType, Slice, Tensor, s};
/// let x = Tensor::input("x", DType::F32, [10, 4])?;
/// assert_eq!(x.slice(&[s(1..9).step(2), s(..).step(-1)])?.shape().dims(), [4, 4]);
/// assert_eq!(x.slice(&[Slice::between(1, -1)])?.shape().dims(), [8, 4]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// The first index; by default the end that the step starts from.
    pub start: Option<isize>,
    /// The index before which to stop; by default the other end.
    pub stop: Option<isize>,
    /// How far to go each time; not 0.
    pub step: isize,
}

/// A slice of one axis from a Rust range: `s(..)`, `s(1..)`, `s(..-1)`, `s(2..8).step(3)`. For `1:-1` there is
/// [`Slice::between`]: Rust's lints take the range `1..-1` for a mistake.
pub fn s(range: impl RangeBounds<isize>) -> Slice {
    let start = match range.start_bound() {
        Bound::Included(&i) => Some(i),
        Bound::Excluded(&i) => Some(i.saturating_add(1)),
        Bound::Unbounded => None,
    };
    let stop = match range.end_bound() {
        Bound::Included(&-1) | Bound::Unbounded => None,
        Bound::Included(&i) => Some(i.saturating_add(1)),
        Bound::Excluded(&i) => Some(i),
    };
    Slice { start, stop, step: 1 }
}

impl Slice {
    /// `start:stop`, either of which may be negative.
    pub fn between(start: isize, stop: isize) -> Slice {
        Slice { start: Some(start), stop: Some(stop), step: 1 }
    }

    /// The same bounds with another step.
    pub fn step(self, step: isize) -> Slice {
        Slice { step, ..self }
    }

    /// First index and length on an axis of `dim` elements.
    pub(super) fn resolve(self, dim: usize) -> (i64, usize) {
        let dim = dim as i64;
        let (low, high) = if self.step > 0 { (0, dim) } else { (-1, dim - 1) };
        let clamp =
            |index: isize| (if index < 0 { (index as i64).saturating_add(dim) } else { index as i64 }).clamp(low, high);
        let (first, last) = if self.step > 0 { (low, high) } else { (high, low) };
        let (start, stop) = (self.start.map_or(first, clamp), self.stop.map_or(last, clamp));
        let step = self.step as i64;
        let span = if step > 0 { stop - start } else { start - stop };
        let len = if span <= 0 { 0 } else { (span - 1) / step.unsigned_abs().min(i64::MAX as u64) as i64 + 1 };
        (start, len as usize)
    }
}
