//! Movement: reshape, permute, broadcast, slice, flip, pad, windows, and the joins concat, stack and take.
//!
//! A [`Movement`] is what the user asked for; `resolve` checks it against a shape and gives the new shape and the
//! [`View`], which `fuse` folds into the index arithmetic of whatever reads the tensor. Movement costs no kernel.

use super::{Kind, Operand, Tensor};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::{IntoShape, MAX_RANK, Shape};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

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
    fn resolve(self, dim: usize) -> (i64, usize) {
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

/// What the user asked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Movement {
    Reshape(Vec<isize>),
    Permute(Vec<u8>),
    Squeeze(Vec<isize>),
    ExpandDims(Vec<isize>),
    BroadcastTo(Shape),
    Slice(Vec<Slice>),
    Flip(Vec<isize>),
    Pad(Vec<(usize, usize)>, Scalar),
    Windows { axes: Vec<u8>, sizes: Vec<usize>, strides: Vec<usize> },
}

/// How an element of the result is found in the argument.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum View {
    /// The same element in row-major order.
    Reshape,
    /// Result axis `i` is argument axis `order[i]`.
    Permute { order: [u8; MAX_RANK] },
    /// Aligned at the last axis; extents of 1 repeat.
    Expand,
    /// `argument index = start + step * index` on each axis.
    Strided { start: [i64; MAX_RANK], step: [i64; MAX_RANK] },
    /// `argument index = index - before`; outside it is `value`.
    Pad { before: [i64; MAX_RANK], value: Scalar },
    /// The windowed axes are walked in strides, and the offset within each window is an axis of its own at the end.
    Windows { axes: Vec<u8>, strides: Vec<usize> },
}

impl Movement {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Movement::Reshape(_) => "reshape",
            Movement::Permute(_) => "permute",
            Movement::Squeeze(_) => "squeeze",
            Movement::ExpandDims(_) => "expand_dims",
            Movement::BroadcastTo(_) => "broadcast_to",
            Movement::Slice(_) => "slice",
            Movement::Flip(_) => "flip",
            Movement::Pad(..) => "pad",
            Movement::Windows { .. } => "windows",
        }
    }

    /// The result's shape and how to find its elements, or what is wrong.
    pub(crate) fn resolve(&self, from: Shape) -> Result<(Shape, View)> {
        let refuse = |why: String| Error::Movement { op: self.name(), shape: from, why };
        match self {
            Movement::Reshape(to) => Ok((reshaped(from, to)?, View::Reshape)),
            Movement::Squeeze(axes) => {
                let ones: Vec<isize> = (0..from.rank()).filter(|&a| from[a] == 1).map(|a| a as isize).collect();
                let axes = if axes.is_empty() { &ones } else { axes };
                if axes.is_empty() {
                    return Ok((from, View::Reshape));
                }
                let set = from.axes(axes)?;
                match set.iter().find(|&axis| from[axis] != 1) {
                    Some(axis) => {
                        Err(refuse(format!("axis {axis} has extent {}, only extents of 1 can go", from[axis])))
                    }
                    None => Ok((from.reduced(set, false), View::Reshape)),
                }
            }
            Movement::ExpandDims(axes) => {
                let rank = from.rank() + axes.len();
                let wide = Shape::new(&vec![1; rank])?;
                let set = if axes.is_empty() { return Ok((from, View::Reshape)) } else { wide.axes(axes)? };
                let mut rest = from.iter();
                let dims: Vec<usize> =
                    (0..rank).map(|a| if set.contains(a) { 1 } else { *rest.next().unwrap_or(&1) }).collect();
                Ok((Shape::new(&dims)?, View::Reshape))
            }
            Movement::Permute(axes) => {
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                if !sorted.iter().copied().eq(0..from.rank() as u8) {
                    return Err(refuse(format!("{axes:?} is no order of its {} axes", from.rank())));
                }
                let mut order = [0; MAX_RANK];
                order[..axes.len()].copy_from_slice(axes);
                let dims: Vec<usize> = axes.iter().map(|&a| from[usize::from(a)]).collect();
                Ok((Shape::new(&dims)?, View::Permute { order }))
            }
            Movement::BroadcastTo(to) => match from.broadcast(to) {
                Ok(shape) if shape == *to => Ok((*to, View::Expand)),
                _ => Err(Error::BroadcastTo { from, to: *to }),
            },
            Movement::Slice(slices) => {
                if slices.len() > from.rank() {
                    return Err(refuse(format!("{} slices were given for {} axes", slices.len(), from.rank())));
                }
                let (mut start, mut step, mut shape) = ([0; MAX_RANK], [1; MAX_RANK], from);
                for (axis, slice) in slices.iter().enumerate() {
                    if slice.step == 0 {
                        return Err(refuse(format!("the step of axis {axis} is 0; use a positive or negative one")));
                    }
                    let (first, len) = slice.resolve(from[axis]);
                    (start[axis], step[axis]) = (first, slice.step as i64);
                    shape = shape.with(axis, len);
                }
                Ok((shape, View::Strided { start, step }))
            }
            Movement::Flip(axes) => {
                let (mut start, mut step) = ([0; MAX_RANK], [1; MAX_RANK]);
                for axis in from.axes(axes)?.iter() {
                    (start[axis], step[axis]) = (from[axis] as i64 - 1, -1);
                }
                Ok((from, View::Strided { start, step }))
            }
            Movement::Pad(widths, value) => {
                if widths.len() != from.rank() {
                    return Err(refuse(format!("{} pairs were given for {} axes", widths.len(), from.rank())));
                }
                let mut before = [0; MAX_RANK];
                let mut dims = from.to_vec();
                for (axis, &(low, high)) in widths.iter().enumerate() {
                    let sum = dims[axis].checked_add(low).and_then(|n| n.checked_add(high));
                    dims[axis] = sum.ok_or_else(|| Error::TooLarge { dims: from.to_vec() })?;
                    before[axis] = i64::try_from(low).map_err(|_| Error::TooLarge { dims: from.to_vec() })?;
                }
                Ok((Shape::new(&dims)?, View::Pad { before, value: *value }))
            }
            Movement::Windows { axes, sizes, strides } => {
                let mut dims = from.to_vec();
                for ((&axis, &size), &stride) in axes.iter().zip(sizes).zip(strides) {
                    let dim = dims[usize::from(axis)];
                    if size == 0 || stride == 0 || size > dim {
                        return Err(refuse(format!(
                            "a window of {size} in strides of {stride} does not fit axis {axis} of extent {dim}"
                        )));
                    }
                    dims[usize::from(axis)] = (dim - size) / stride + 1;
                }
                dims.extend(sizes);
                Ok((Shape::new(&dims)?, View::Windows { axes: axes.clone(), strides: strides.clone() }))
            }
        }
    }
}

/// `to` with its -1 filled in.
fn reshaped(from: Shape, to: &[isize]) -> Result<Shape> {
    let refuse = || Error::Reshape { from, to: to.to_vec() };
    let unknown = to.iter().filter(|&&d| d == -1).count();
    if unknown > 1 || to.iter().any(|&d| d < -1) {
        return Err(refuse());
    }
    let known = Shape::new(&to.iter().filter(|&&d| d >= 0).map(|&d| d as usize).collect::<Vec<_>>())?.elems();
    let fill = match (unknown, known) {
        (0, _) => 0,
        (_, 0) => return Err(refuse()),
        _ => from.elems() / known,
    };
    let dims: Vec<usize> = to.iter().map(|&d| if d == -1 { fill } else { d as usize }).collect();
    let shape = Shape::new(&dims)?;
    if shape.elems() == from.elems() { Ok(shape) } else { Err(refuse()) }
}

impl Tensor {
    pub(crate) fn moved(&self, by: Movement) -> Result<Tensor> {
        let (shape, view) = by.resolve(self.shape())?;
        if matches!(view, View::Reshape | View::Expand) && shape == self.shape() {
            return Ok(self.clone());
        }
        Ok(Tensor::node(Kind::Move { arg: self.clone(), by: Arc::new(by) }, shape, self.dtype()))
    }

    /// The same elements in row-major order under another shape; one extent may be -1.
    pub fn reshape(&self, shape: &[isize]) -> Result<Tensor> {
        self.moved(Movement::Reshape(shape.to_vec()))
    }

    pub(crate) fn reshape_to(&self, shape: &[usize]) -> Result<Tensor> {
        self.reshape(&shape.iter().map(|&d| d as isize).collect::<Vec<_>>())
    }

    /// Axis `i` of the result is axis `order[i]` of this tensor.
    pub fn permute(&self, order: &[isize]) -> Result<Tensor> {
        let axes: Result<Vec<u8>> = order.iter().map(|&a| Ok(self.shape().axis(a)? as u8)).collect();
        self.moved(Movement::Permute(axes?))
    }

    /// All axes in reverse order; of a matrix, its transpose.
    pub fn transpose(&self) -> Result<Tensor> {
        self.moved(Movement::Permute((0..self.shape().rank() as u8).rev().collect()))
    }

    /// Two axes exchanged.
    pub fn swap_axes(&self, a: isize, b: isize) -> Result<Tensor> {
        let mut order: Vec<u8> = (0..self.shape().rank() as u8).collect();
        order.swap(self.shape().axis(a)?, self.shape().axis(b)?);
        self.moved(Movement::Permute(order))
    }

    /// New axes of extent 1 at these places of the result.
    pub fn expand_dims(&self, axes: &[isize]) -> Result<Tensor> {
        self.moved(Movement::ExpandDims(axes.to_vec()))
    }

    /// Without these axes of extent 1 (none named: without all of them).
    pub fn squeeze(&self, axes: &[isize]) -> Result<Tensor> {
        self.moved(Movement::Squeeze(axes.to_vec()))
    }

    /// Repeated to a larger shape by the broadcasting rule.
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Result<Tensor> {
        self.moved(Movement::BroadcastTo(shape.into_shape()?))
    }

    /// A part of each axis; axes that are not named stay whole.
    pub fn slice(&self, slices: &[Slice]) -> Result<Tensor> {
        self.moved(Movement::Slice(slices.to_vec()))
    }

    /// The sub-tensor at `index` of `axis`, without that axis. Negative indices count from the end.
    pub fn select(&self, axis: isize, index: isize) -> Result<Tensor> {
        let shape = self.shape();
        let axis = shape.axis(axis)?;
        let dim = shape[axis] as isize;
        if index < -dim || index >= dim {
            let why = format!("index {index} is out of range for axis {axis} of extent {dim}");
            return Err(Error::Movement { op: "select", shape, why });
        }
        let mut slices = vec![s(..); axis + 1];
        slices[axis] = Slice { start: Some(index), stop: (index != -1).then_some(index.wrapping_add(1)), step: 1 };
        self.slice(&slices)?.squeeze(&[axis as isize])
    }

    /// Reversed along these axes (none named: along all).
    pub fn flip(&self, axes: &[isize]) -> Result<Tensor> {
        self.moved(Movement::Flip(axes.to_vec()))
    }

    /// A matrix turned by `times` quarter turns from the first axis towards the second, as numpy's `rot90`; with more
    /// axes, the first two are turned.
    pub fn rot90(&self, times: i32) -> Result<Tensor> {
        let shape = self.shape();
        if shape.rank() < 2 {
            return Err(Error::Movement { op: "rot90", shape, why: "it needs at least two axes".into() });
        }
        match times.rem_euclid(4) {
            0 => Ok(self.clone()),
            1 => self.flip(&[1])?.swap_axes(0, 1),
            2 => self.flip(&[0, 1]),
            _ => self.swap_axes(0, 1)?.flip(&[1]),
        }
    }

    /// `value` added around: a pair (before, after) for each axis.
    pub fn pad(&self, widths: &[(usize, usize)], value: impl Into<Scalar>) -> Result<Tensor> {
        self.moved(Movement::Pad(widths.to_vec(), value.into().cast(self.dtype())))
    }

    /// Sliding windows: each named axis is walked in `strides`, and a new last axis for each holds the `sizes`
    /// elements of the window, as numpy's `sliding_window_view` with a stride.
    pub fn windows(&self, axes: &[isize], sizes: &[usize], strides: &[usize]) -> Result<Tensor> {
        let shape = self.shape();
        if axes.is_empty() || axes.len() != sizes.len() || axes.len() != strides.len() {
            let why = "give one size and one stride for each of at least one axis".into();
            return Err(Error::Movement { op: "windows", shape, why });
        }
        let set = shape.axes(axes)?;
        let axes: Result<Vec<u8>> = axes.iter().map(|&a| Ok(shape.axis(a)? as u8)).collect();
        debug_assert_eq!(set.iter().count(), sizes.len());
        self.moved(Movement::Windows { axes: axes?, sizes: sizes.to_vec(), strides: strides.to_vec() })
    }

    /// Joined along an axis that they have already.
    pub fn concat(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let [first, rest @ ..] = tensors else { return Err(Error::Nothing { op: "concat" }) };
        let axis = first.shape().axis(axis)?;
        let mut dtype = first.dtype();
        let mut along = first.shape()[axis];
        for other in rest {
            let (left, right) = (first.shape(), other.shape());
            if left.rank() != right.rank() || left.with(axis, 0) != right.with(axis, 0) {
                return Err(Error::Join { op: "concat", left, right });
            }
            along = along.saturating_add(right[axis]);
            dtype = dtype.promote(other.dtype()).ok_or(Error::DType {
                op: "concat",
                dtypes: vec![dtype, other.dtype()],
                help: "cast them to one dtype first",
            })?;
        }
        if rest.is_empty() {
            return Ok((*first).clone());
        }
        let shape = Shape::new(&first.shape().with(axis, along))?;
        let args: Result<Arc<[Tensor]>> = tensors.iter().map(|t| t.cast(dtype)).collect();
        Ok(Tensor::node(Kind::Concat { args: args?, axis: axis as u8 }, shape, dtype))
    }

    /// Joined along a new axis.
    pub fn stack(tensors: &[&Tensor], axis: isize) -> Result<Tensor> {
        let [first, rest @ ..] = tensors else { return Err(Error::Nothing { op: "stack" }) };
        if let Some(other) = rest.iter().find(|t| t.shape() != first.shape()) {
            return Err(Error::Join { op: "stack", left: first.shape(), right: other.shape() });
        }
        let expanded: Result<Vec<Tensor>> = tensors.iter().map(|t| t.expand_dims(&[axis])).collect();
        let expanded = expanded?;
        // `axis` counts in the result, which has one axis more.
        Tensor::concat(&expanded.iter().collect::<Vec<_>>(), axis)
    }

    /// Repeated `times[i]` times along axis `i`, as numpy's `tile`; fewer times than axes apply to the last ones.
    pub fn tile(&self, times: &[usize]) -> Result<Tensor> {
        let rank = self.shape().rank().max(times.len());
        let mut dims = vec![1; rank - self.shape().rank()];
        dims.extend(self.shape().iter());
        let mut repeat = vec![1; rank - times.len()];
        repeat.extend(times);
        let result: Result<Vec<usize>> = dims
            .iter()
            .zip(&repeat)
            .map(|(&d, &t)| d.checked_mul(t).ok_or_else(|| Error::TooLarge { dims: dims.clone() }))
            .collect();
        let result = Shape::new(&result?)?;
        // Each repeated axis is split in two for a moment; where that would be too many axes, one after the other.
        let mut tiled = self.reshape_to(&dims)?;
        for axis in (0..rank).filter(|&axis| repeat[axis] != 1) {
            let shape = tiled.shape();
            let (before, after): (usize, usize) = (shape[..axis].iter().product(), shape[axis..].iter().product());
            tiled = tiled.reshape_to(&[before, 1, after])?.broadcast_to([before, repeat[axis], after])?;
            let dim = shape[axis] * repeat[axis];
            tiled = tiled.reshape_to(&shape.with(axis, dim))?;
        }
        tiled.reshape_to(&result)
    }

    /// The elements at `indices` (i32 or u32, any shape) along `axis`, which is replaced by the axes of `indices`.
    /// Negative indices count from the end; one outside is an error when the batch runs.
    pub fn take(&self, indices: &Tensor, axis: isize) -> Result<Tensor> {
        let (shape, axis) = (self.shape(), self.shape().axis(axis)?);
        if !matches!(indices.dtype(), DType::I32 | DType::U32) {
            let dtypes = vec![indices.dtype()];
            return Err(Error::DType { op: "take", dtypes, help: "indices must be i32 or u32" });
        }
        let dims = [&shape[..axis], indices.shape().dims(), &shape[axis + 1..]].concat();
        let result = Shape::new(&dims)?;
        if shape[axis] == 0 && result.elems() > 0 {
            return Err(Error::Movement { op: "take", shape, why: format!("axis {axis} has no elements to take") });
        }
        // A large u32 must stay outside rather than wrap to an index from the end.
        let indices = if indices.dtype() == DType::U32 { indices.minimum(i32::MAX)? } else { indices.clone() };
        let kind = Kind::Take { arg: self.clone(), indices: indices.cast(DType::I32)?, axis: axis as u8 };
        Ok(Tensor::node(kind, result, self.dtype()))
    }

    /// `other` as a tensor beside this one, for callers that take either.
    pub fn beside(&self, other: impl Operand) -> Result<Tensor> {
        other.operand(self.dtype())
    }
}
