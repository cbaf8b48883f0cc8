//! Joins: several tensors, or one and its indices, enter; one tensor leaves. Concat, stack, tile and take.

use super::{Kind, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use std::sync::Arc;

impl Tensor {
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
}
