//! Movement: reshape, permute, broadcast, slice, flip, pad and windows.
//!
//! A [`Movement`] is what the user asked for; `resolve` checks it against a shape and gives the new shape and the
//! [`View`], which `fuse` folds into the index arithmetic of whatever reads the tensor. Movement costs no kernel.

use super::{Kind, Slice, Tensor, s};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::shape::{IntoShape, MAX_RANK, Shape};
use std::sync::Arc;

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
}
