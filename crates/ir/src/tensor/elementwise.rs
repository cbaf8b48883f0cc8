//! Elementwise recording: operators, the methods of the op table, and the activations composed from them.

use super::{Args, Kind, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{Op, property};

/// What may stand on the right of an operator: a tensor, or a plain number that takes the tensor's dtype (a float
/// makes an integer tensor f32, as in Python).
///
/// ```
/// use breakeven_ir::{DType, Tensor};
/// let counts = Tensor::from_slice(&[1i32, 2], [2])?;
/// assert_eq!((&counts + 1)?.dtype(), DType::I32);
/// assert_eq!((&counts + 0.5)?.dtype(), DType::F32);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
pub trait Operand {
    /// The operand as a tensor, for a partner of dtype `beside`.
    fn operand(self, beside: DType) -> Result<Tensor>;
}
impl Operand for &Tensor {
    fn operand(self, _: DType) -> Result<Tensor> {
        Ok(self.clone())
    }
}
impl Operand for Tensor {
    fn operand(self, _: DType) -> Result<Tensor> {
        Ok(self)
    }
}
impl Operand for Result<Tensor> {
    fn operand(self, _: DType) -> Result<Tensor> {
        self
    }
}
impl Operand for f32 {
    fn operand(self, _: DType) -> Result<Tensor> {
        Ok(Tensor::scalar(self))
    }
}
impl Operand for bool {
    fn operand(self, _: DType) -> Result<Tensor> {
        Ok(Tensor::scalar(self))
    }
}
impl Operand for i32 {
    fn operand(self, beside: DType) -> Result<Tensor> {
        i64::from(self).operand(beside)
    }
}
impl Operand for u32 {
    fn operand(self, beside: DType) -> Result<Tensor> {
        i64::from(self).operand(beside)
    }
}
/// An integer literal: it takes the partner's dtype if it fits there.
impl Operand for i64 {
    fn operand(self, beside: DType) -> Result<Tensor> {
        let out_of_range = || Error::ScalarRange { value: self as f64, dtype: beside };
        Ok(match beside {
            DType::F32 => Tensor::scalar(self as f32),
            DType::U32 => Tensor::scalar(u32::try_from(self).map_err(|_| out_of_range())?),
            DType::I32 | DType::Bool => Tensor::scalar(i32::try_from(self).map_err(|_| out_of_range())?),
        })
    }
}

/// Records `op`, with its arguments cast to a common dtype that the op is defined for.
pub(crate) fn map(op: Op, args: &[&Tensor]) -> Result<Tensor> {
    let mut dtypes = [DType::F32; 3];
    for (dtype, arg) in dtypes.iter_mut().zip(args) {
        *dtype = arg.dtype();
    }
    let dtypes = &dtypes[..args.len()];
    let (index, signature) = match op.signature(dtypes) {
        Some(found) => found,
        None => return map(op, &promoted(op, args, dtypes)?.iter().collect::<Vec<_>>()),
    };
    let mut shape = args[0].shape();
    for arg in &args[1..] {
        if arg.shape() != shape {
            shape = shape.broadcast(&arg.shape())?;
        }
    }
    let args = match *args {
        [a] => Args::One(a.clone()),
        [a, b] => Args::Two(a.clone(), b.clone()),
        [a, b, c] => Args::Three(a.clone(), b.clone(), c.clone()),
        _ => return Err(Error::Nothing { op: op.row().name }),
    };
    Ok(Tensor::node(Kind::Map { op, signature: index as u8, args }, shape, signature.result))
}

/// The arguments cast to the first dtypes on the way up for which `op` is defined.
fn promoted(op: Op, args: &[&Tensor], dtypes: &[DType]) -> Result<Vec<Tensor>> {
    let refuse = |help| Error::DType { op: op.row().name, dtypes: dtypes.to_vec(), help };
    // `where` promotes its two values only; its condition is a truth value.
    let first = usize::from(op == Op::Where);
    let common = dtypes[first..]
        .iter()
        .try_fold(DType::Bool, |a, &b| a.promote(b))
        .ok_or_else(|| refuse("i32 and u32 have no common type here; cast one of them"))?;
    let target = if op.has(property::FLOAT) { DType::F32 } else { common };
    let mut wanted = vec![target; dtypes.len()];
    wanted[..first].fill(DType::Bool);
    if op.signature(&wanted).is_none() {
        return Err(refuse(match common {
            DType::Bool => "cast to i32 or f32 first",
            DType::F32 => "compare, or cast to bool or an integer first",
            _ => "cast to f32 first",
        }));
    }
    args.iter().zip(wanted).map(|(arg, dtype)| arg.cast(dtype)).collect()
}

impl Tensor {
    /// The same values in another dtype (see [`crate::Scalar::cast`] for what becomes of values that do not fit).
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        if dtype == self.dtype() { Ok(self.clone()) } else { map(Op::cast_to(dtype), &[self]) }
    }

    /// `op` of the table on `self` and `others`: what the methods and operators are made of.
    pub fn apply(op: Op, args: &[&Tensor]) -> Result<Tensor> {
        if args.len() != op.row().arity {
            let (value, expected) = (args.len() as f64, ["0", "1", "2", "3"][op.row().arity.min(3)]);
            return Err(Error::Parameter { op: op.row().name, what: "the number of arguments", value, expected });
        }
        map(op, args)
    }

    /// `other` as a tensor beside this one, for callers that take either.
    pub fn beside(&self, other: impl Operand) -> Result<Tensor> {
        other.operand(self.dtype())
    }

    /// `self` where the elements of `condition` are true, else `other`; all three broadcast.
    pub fn where_(condition: &Tensor, x: impl Operand, y: impl Operand) -> Result<Tensor> {
        let x = x.operand(DType::Bool)?;
        let y = y.operand(x.dtype())?;
        map(Op::Where, &[condition, &x, &y])
    }

    /// `x` limited to `low..=high`; NaN stays NaN.
    pub fn clip(&self, low: impl Operand, high: impl Operand) -> Result<Tensor> {
        self.maximum(low)?.minimum(high)
    }

    /// `max(x, 0)`.
    pub fn relu(&self) -> Result<Tensor> {
        self.maximum(0)
    }

    /// `x` where it is positive, else `slope * x`.
    pub fn leaky_relu(&self, slope: f32) -> Result<Tensor> {
        Tensor::where_(&self.gt(0)?, self, self.mul(slope)?)
    }

    /// `x` where it is positive, else `alpha * (exp(x) - 1)`.
    pub fn elu(&self, alpha: f32) -> Result<Tensor> {
        Tensor::where_(&self.gt(0)?, self, self.expm1()?.mul(alpha)?)
    }
}

/// The methods that follow from the table: unary ops take nothing, binary ops take an [`Operand`].
macro_rules! methods {
    ($($variant:ident $method:ident $(= $name:literal)? ($($property:ident)*) {
        $(($($ty:ident $arg:ident),+) -> $out:ident { $lane:expr } $(slow $when:expr => $slow:expr;)? $wgsl:literal;)+
    } $cost:expr, $ulp:expr, [$([$($g:expr),*] $r:expr),*], $doc:literal;)*) => {
        impl Tensor {
            $(methods! { @ $variant $method $doc [$(($($arg)+))+] })*
        }
    };
    // Casts are `cast(dtype)`, and `where_` stands above: its condition comes first.
    (@ ToF32 $($rest:tt)*) => {};
    (@ ToI32 $($rest:tt)*) => {};
    (@ ToU32 $($rest:tt)*) => {};
    (@ ToBool $($rest:tt)*) => {};
    (@ Where $($rest:tt)*) => {};
    (@ $variant:ident $method:ident $doc:literal [($a:ident) $($more:tt)*]) => {
        #[doc = concat!("Elementwise: ", $doc, ".")]
        #[allow(clippy::should_implement_trait, reason = "`-x` and `!x` are implemented too, and call this")]
        pub fn $method(&self) -> Result<Tensor> {
            map(Op::$variant, &[self])
        }
    };
    (@ $variant:ident $method:ident $doc:literal [($a:ident $b:ident) $($more:tt)*]) => {
        #[doc = concat!("Elementwise: ", $doc, ".")]
        #[allow(clippy::should_implement_trait, reason = "the operators are implemented too, and call this")]
        pub fn $method(&self, other: impl Operand) -> Result<Tensor> {
            map(Op::$variant, &[self, &other.operand(self.dtype())?])
        }
    };
}
crate::op_table!(methods);

/// Operators. They return a `Result`, so a chain reads `((&x * 2.0)? + &y)?`; a `Result` may stand on the right.
macro_rules! operators {
    ($($trait:ident $operator:ident $method:ident;)*) => {$(
        impl<O: Operand> std::ops::$trait<O> for &Tensor {
            type Output = Result<Tensor>;
            fn $operator(self, other: O) -> Result<Tensor> {
                Tensor::$method(self, other)
            }
        }
        impl<O: Operand> std::ops::$trait<O> for Tensor {
            type Output = Result<Tensor>;
            fn $operator(self, other: O) -> Result<Tensor> {
                Tensor::$method(&self, other)
            }
        }
        operators! { @ f32 $trait $operator $method }
        operators! { @ i32 $trait $operator $method }
    )*};
    (@ $number:ident $trait:ident $operator:ident $method:ident) => {
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Result<Tensor>;
            fn $operator(self, other: &Tensor) -> Result<Tensor> {
                Tensor::$method(&Operand::operand(self, other.dtype())?, other)
            }
        }
    };
}
operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div div;
    Rem rem rem;
    BitAnd bitand and;
    BitOr bitor or;
    BitXor bitxor xor;
    Shl shl shl;
    Shr shr shr;
}
impl std::ops::Neg for &Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}
impl std::ops::Not for &Tensor {
    type Output = Result<Tensor>;
    fn not(self) -> Result<Tensor> {
        Tensor::not(self)
    }
}
