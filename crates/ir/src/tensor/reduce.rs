//! Reductions, scans and row ops.
//!
//! Only [`ReduceOp`] and [`ScanOp`] are primitives. mean, var, std, norm, softmax, log_softmax and layer_norm are
//! written down as what they are, and the planner makes one kernel of each.

use super::{Kind, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{ReduceOp, ScanOp};
use crate::shape::{AxisSet, Shape};

impl Tensor {
    /// Reduces along `axes` (negative ones count from the end; none means all). With `keepdims` the reduced axes
    /// stay with extent 1.
    pub fn reduce(&self, op: ReduceOp, axes: &[isize], keepdims: bool) -> Result<Tensor> {
        let set = self.shape().axes(axes)?;
        let kept = self.reduce_kept(op, set, false)?;
        if keepdims { Ok(kept) } else { kept.drop_axes(set) }
    }

    /// Reduces along `axes`, which stay with extent 1. Over no elements, an op without identity is an error, unless
    /// `blank` says that nothing will look at its result.
    pub(super) fn reduce_kept(&self, op: ReduceOp, axes: AxisSet, blank: bool) -> Result<Tensor> {
        let arg = self.cast(op.arg_dtype(self.dtype()))?;
        let shape = arg.shape();
        if let Some(axis) = axes.iter().find(|&axis| axis >= shape.rank()) {
            return Err(Error::Axis { axis: axis as isize, shape });
        }
        let empty = axes.iter().any(|axis| shape[axis] == 0);
        if empty && !blank && op.identity(arg.dtype()).is_none() {
            return Err(Error::EmptyReduction { op: op.name(), shape });
        }
        let dtype = op.result_dtype(arg.dtype());
        Ok(Tensor::node(Kind::Reduce { op, arg, axes, blank }, shape.reduced(axes, true), dtype))
    }

    /// Takes away axes of extent 1, by a rule that holds for every size of the others.
    fn drop_axes(&self, axes: AxisSet) -> Result<Tensor> {
        let axes: Vec<isize> = axes.iter().map(|a| a as isize).collect();
        if axes.is_empty() { Ok(self.clone()) } else { self.squeeze(&axes) }
    }

    /// How many elements lie along `axes`, as an f32 constant.
    fn count(&self, axes: AxisSet) -> Tensor {
        Tensor::node(Kind::Count { arg: self.clone(), axes }, Shape::SCALAR, DType::F32)
    }

    /// The arithmetic mean; integers are averaged as f32. Over no elements it is NaN, as in numpy.
    pub fn mean(&self, axes: &[isize], keepdims: bool) -> Result<Tensor> {
        let x = self.cast(DType::F32)?;
        let set = x.shape().axes(axes)?;
        x.reduce(ReduceOp::Sum, axes, keepdims)?.div(x.count(set))
    }

    /// The variance, in two passes over the data: sum of `(x - mean)^2` divided by the count less `ddof`.
    pub fn var(&self, axes: &[isize], ddof: u32, keepdims: bool) -> Result<Tensor> {
        let x = self.cast(DType::F32)?;
        let set = x.shape().axes(axes)?;
        let centred = x.sub(x.mean(axes, true)?)?;
        let divisor = match ddof {
            0 => x.count(set),
            // numpy divides by max(n - ddof, 0), so that too few elements give inf or NaN.
            _ => x.count(set).sub(ddof as f32)?.maximum(0.0)?,
        };
        centred.square()?.reduce(ReduceOp::Sum, axes, keepdims)?.div(divisor)
    }

    /// The standard deviation: the square root of [`Tensor::var`].
    pub fn std(&self, axes: &[isize], ddof: u32, keepdims: bool) -> Result<Tensor> {
        self.var(axes, ddof, keepdims)?.sqrt()
    }

    /// The Euclidean norm: the square root of the sum of squares.
    pub fn norm(&self, axes: &[isize], keepdims: bool) -> Result<Tensor> {
        self.cast(DType::F32)?.square()?.reduce(ReduceOp::Sum, axes, keepdims)?.sqrt()
    }

    /// The index of the first largest element along `axis`, or of the flattened tensor. A NaN counts as largest.
    pub fn argmax(&self, axis: Option<isize>, keepdims: bool) -> Result<Tensor> {
        self.arg_reduce(ReduceOp::ArgMax, axis, keepdims)
    }

    /// The index of the first smallest element along `axis`, or of the flattened tensor. A NaN counts as smallest.
    pub fn argmin(&self, axis: Option<isize>, keepdims: bool) -> Result<Tensor> {
        self.arg_reduce(ReduceOp::ArgMin, axis, keepdims)
    }

    fn arg_reduce(&self, op: ReduceOp, axis: Option<isize>, keepdims: bool) -> Result<Tensor> {
        match axis {
            Some(axis) => self.reduce(op, &[axis], keepdims),
            None => self.reduce(op, &[], keepdims),
        }
    }

    /// A running reduction along `axis`; the shape stays.
    pub fn scan(&self, op: ScanOp, axis: isize) -> Result<Tensor> {
        let axis = self.shape().axis(axis)?;
        let arg = self.cast(op.arg_dtype(self.dtype()))?;
        let (shape, dtype) = (arg.shape(), arg.dtype());
        Ok(Tensor::node(Kind::Scan { op, arg, axis: axis as u8 }, shape, dtype))
    }

    /// `exp(x) / sum(exp(x))` along `axis`, without overflow. One division a row: the elements are multiplied by it.
    pub fn softmax(&self, axis: isize) -> Result<Tensor> {
        let exp = self.shifted(axis)?.exp()?;
        exp.mul(exp.reduce(ReduceOp::Sum, &[axis], true)?.reciprocal()?)
    }

    /// `log(softmax(x))` along `axis`, without overflow or lost digits.
    pub fn log_softmax(&self, axis: isize) -> Result<Tensor> {
        let shifted = self.shifted(axis)?;
        let sum = shifted.exp()?.reduce(ReduceOp::Sum, &[axis], true)?;
        shifted.sub(sum.log()?)
    }

    /// `x` less its maximum along `axis`; along an empty axis there is no maximum, and nothing to take it from.
    fn shifted(&self, axis: isize) -> Result<Tensor> {
        let x = self.cast(DType::F32)?;
        let set = x.shape().axes(&[axis])?;
        x.sub(x.reduce_kept(ReduceOp::Max, set, true)?)
    }

    /// `(x - mean) / sqrt(var + eps)` along `axis`; scale and shift it with `*` and `+`.
    pub fn layer_norm(&self, axis: isize, eps: f32) -> Result<Tensor> {
        let x = self.cast(DType::F32)?;
        let set = x.shape().axes(&[axis])?;
        let centred = x.sub(x.mean(&[axis], true)?)?;
        let var = centred.square()?.reduce(ReduceOp::Sum, &[axis], true)?.div(x.count(set))?;
        centred.mul(var.add(eps)?.rsqrt()?)
    }
}

/// The plain reductions and scans under their names.
macro_rules! named {
    ($($name:ident $op:ident $doc:literal;)*) => {
        impl Tensor {$(
            #[doc = $doc]
            /// `axes` may be negative, none means all; with `keepdims` the reduced axes stay with extent 1.
            pub fn $name(&self, axes: &[isize], keepdims: bool) -> Result<Tensor> {
                self.reduce(ReduceOp::$op, axes, keepdims)
            }
        )*}
    };
}
named! {
    sum Sum "The sum along `axes`; f32 is summed in blocks carried in f64, bools are counted.";
    prod Prod "The product along `axes`.";
    max Max "The largest element along `axes`; NaN if there is one.";
    min Min "The smallest element along `axes`; NaN if there is one.";
    any Any "Is any element along `axes` other than 0?";
    all All "Are all elements along `axes` other than 0?";
}

impl Tensor {
    /// The running sum along `axis`.
    pub fn cumsum(&self, axis: isize) -> Result<Tensor> {
        self.scan(ScanOp::Sum, axis)
    }
    /// The running product along `axis`.
    pub fn cumprod(&self, axis: isize) -> Result<Tensor> {
        self.scan(ScanOp::Prod, axis)
    }
    /// The running maximum along `axis`; NaN from the first NaN on.
    pub fn cummax(&self, axis: isize) -> Result<Tensor> {
        self.scan(ScanOp::Max, axis)
    }
}
