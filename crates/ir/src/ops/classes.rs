//! The reductions and scans: the ops that combine elements along axes.

use crate::dtype::{DType, Scalar};

/// How a reduction combines elements.
///
/// ```
/// use breakeven_ir::{DType, ReduceOp, Scalar};
/// assert_eq!(ReduceOp::Sum.identity(DType::F32), Some(Scalar::from(0.0f32)));
/// assert_eq!(ReduceOp::Max.identity(DType::F32), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// The sum; f32 sums are compensated in f64 blocks.
    Sum,
    /// The product.
    Prod,
    /// The largest element; NaN if there is one.
    Max,
    /// The smallest element; NaN if there is one.
    Min,
    /// The index of the first largest element (of the first NaN if there is one).
    ArgMax,
    /// The index of the first smallest element (of the first NaN if there is one).
    ArgMin,
    /// Is any element true?
    Any,
    /// Are all elements true?
    All,
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: [ReduceOp; 8] = {
        use ReduceOp::*;
        [Sum, Prod, Max, Min, ArgMax, ArgMin, Any, All]
    };

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::ArgMin => "argmin",
            ReduceOp::Any => "any",
            ReduceOp::All => "all",
        }
    }

    /// The dtype that the argument is cast to, for an argument of `dtype`: sums and products count bools as i32, any
    /// and all look at truth.
    pub const fn arg_dtype(self, dtype: DType) -> DType {
        match (self, dtype) {
            (ReduceOp::Any | ReduceOp::All, _) => DType::Bool,
            (ReduceOp::Sum | ReduceOp::Prod, DType::Bool) => DType::I32,
            _ => dtype,
        }
    }

    /// The result's dtype for an argument of `arg_dtype`.
    pub const fn result_dtype(self, arg: DType) -> DType {
        match self {
            ReduceOp::ArgMax | ReduceOp::ArgMin => DType::I32,
            _ => arg,
        }
    }

    /// The value over no elements, where there is one.
    pub fn identity(self, dtype: DType) -> Option<Scalar> {
        match self {
            ReduceOp::Sum => Some(Scalar::zero(dtype)),
            ReduceOp::Prod => Some(Scalar::from(1i32).cast(dtype)),
            ReduceOp::Any => Some(Scalar::from(false)),
            ReduceOp::All => Some(Scalar::from(true)),
            _ => None,
        }
    }
}

/// How a scan carries its running value.
///
/// ```
/// assert_eq!(breakeven_ir::ScanOp::Sum.name(), "cumsum");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanOp {
    /// The running sum, carried in f64 for f32.
    Sum,
    /// The running product, carried in f64 for f32.
    Prod,
    /// The running maximum; NaN from the first NaN on.
    Max,
}

impl ScanOp {
    /// Every scan.
    pub const ALL: [ScanOp; 3] = [ScanOp::Sum, ScanOp::Prod, ScanOp::Max];

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            ScanOp::Sum => "cumsum",
            ScanOp::Prod => "cumprod",
            ScanOp::Max => "cummax",
        }
    }

    /// The dtype that the argument is cast to: bools are counted as i32.
    pub const fn arg_dtype(self, dtype: DType) -> DType {
        match (self, dtype) {
            (ScanOp::Sum | ScanOp::Prod, DType::Bool) => DType::I32,
            _ => dtype,
        }
    }
}
