//! Row ops and activations: the textbook formula of each, step by step, so that each step's error is known.

use super::{RefArray, Result, apply, cast};
use breakeven::{DType, Op, ReduceOp};

impl RefArray {
    /// `self - other`.
    pub fn minus(&self, other: &RefArray) -> Result<RefArray> {
        apply(Op::Sub, &[self, other])
    }

    /// `self * other`.
    pub fn times(&self, other: &RefArray) -> Result<RefArray> {
        apply(Op::Mul, &[self, other])
    }

    /// `self / number`.
    pub fn over(&self, number: f64) -> Result<RefArray> {
        apply(Op::Div, &[self, &RefArray::scalar(DType::F32, number)])
    }

    /// `self` and a plain number, which takes the dtype beside it (an i32 beside bools).
    fn beside(&self, number: f64) -> RefArray {
        RefArray::scalar(if self.dtype == DType::Bool { DType::I32 } else { self.dtype }, number)
    }

    /// The standard deviation.
    pub fn std(&self, axes: &[isize], ddof: u32, keepdims: bool) -> Result<RefArray> {
        apply(Op::Sqrt, &[&self.var(axes, ddof, keepdims)?])
    }

    /// The Euclidean norm.
    pub fn norm(&self, axes: &[isize], keepdims: bool) -> Result<RefArray> {
        let x = cast(self, DType::F32);
        apply(Op::Sqrt, &[&x.times(&x)?.reduce(ReduceOp::Sum, axes, keepdims)?])
    }

    /// `x - max(x)` along an axis that has elements.
    fn shifted(&self, axis: isize) -> Result<RefArray> {
        let x = cast(self, DType::F32);
        if x.shape[x.axis(axis)?] == 0 {
            return Ok(x);
        }
        x.minus(&x.reduce(ReduceOp::Max, &[axis], true)?)
    }

    /// `exp(x) / sum(exp(x))`.
    pub fn softmax(&self, axis: isize) -> Result<RefArray> {
        let exp = apply(Op::Exp, &[&self.shifted(axis)?])?;
        apply(Op::Div, &[&exp, &exp.reduce(ReduceOp::Sum, &[axis], true)?])
    }

    /// `log(softmax(x))`.
    pub fn log_softmax(&self, axis: isize) -> Result<RefArray> {
        let shifted = self.shifted(axis)?;
        let sum = apply(Op::Exp, &[&shifted])?.reduce(ReduceOp::Sum, &[axis], true)?;
        shifted.minus(&apply(Op::Log, &[&sum])?)
    }

    /// `(x - mean) / sqrt(var + eps)`.
    pub fn layer_norm(&self, axis: isize, eps: f64) -> Result<RefArray> {
        let var = self.var(&[axis], 0, true)?;
        let shifted = apply(Op::Add, &[&var, &RefArray::scalar(DType::F32, eps)])?;
        let centred = cast(self, DType::F32).minus(&self.mean(&[axis], true)?)?;
        centred.times(&apply(Op::Rsqrt, &[&shifted])?)
    }

    /// `max(x, 0)`.
    pub fn relu(&self) -> Result<RefArray> {
        apply(Op::Maximum, &[self, &self.beside(0.0)])
    }

    /// `x` above 0, else `slope * x`.
    pub fn leaky_relu(&self, slope: f64) -> Result<RefArray> {
        let positive = apply(Op::Gt, &[self, &self.beside(0.0)])?;
        let below = self.times(&RefArray::scalar(DType::F32, slope))?;
        apply(Op::Where, &[&positive, self, &below])
    }

    /// `x` above 0, else `alpha * (exp(x) - 1)`.
    pub fn elu(&self, alpha: f64) -> Result<RefArray> {
        let positive = apply(Op::Gt, &[self, &self.beside(0.0)])?;
        let below = apply(Op::ExpM1, &[self])?.times(&RefArray::scalar(DType::F32, alpha))?;
        apply(Op::Where, &[&positive, self, &below])
    }

    /// `x` limited to `low..=high`.
    pub fn clip(&self, low: &RefArray, high: &RefArray) -> Result<RefArray> {
        apply(Op::Minimum, &[&apply(Op::Maximum, &[self, low])?, high])
    }
}
