//! Plain numbers in Python's way: literals and constant arithmetic enter, one [`Number`] leaves, before any tensor is
//! met.
//!
//! Integers stay integers (`2**10`, `-1`, `7 // 2`), so that axes and shapes can be computed; division gives floats. A
//! number is weak: beside a tensor it takes the tensor's dtype, as numpy's rules have it since version 2.

use std::fmt;

use breakeven::{DType, Tensor};

use crate::expr::{BinaryOp, UnaryOp};

/// A Python number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// `True` or `False`, which count as 1 and 0.
    Bool(bool),
    /// An integer. Wider than any tensor's, so that a result that does not fit is noticed where it is used.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Number {
    /// Its value as a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Bool(value) => f64::from(u8::from(value)),
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// Its value as an integer, if it is one.
    pub fn to_int(self) -> Option<i128> {
        match self {
            Number::Bool(value) => Some(i128::from(value)),
            Number::Int(value) => Some(value),
            Number::Float(_) => None,
        }
    }

    /// The dtype it has where no tensor says otherwise.
    pub fn dtype(self) -> DType {
        match self {
            Number::Bool(_) => DType::Bool,
            Number::Int(_) => DType::I32,
            Number::Float(_) => DType::F32,
        }
    }

    /// The number as a 0-d tensor beside one of dtype `beside`: an integer takes that dtype, a float is f32.
    pub fn tensor(self, beside: DType) -> Result<Tensor, String> {
        match self {
            Number::Bool(value) => Ok(Tensor::scalar(value)),
            Number::Float(value) => Ok(Tensor::scalar(value as f32)),
            Number::Int(value) => match beside {
                DType::F32 => Ok(Tensor::scalar(value as f32)),
                DType::U32 => u32::try_from(value).map(Tensor::scalar).map_err(|_| out_of_range(value, beside)),
                DType::I32 | DType::Bool => {
                    i32::try_from(value).map(Tensor::scalar).map_err(|_| out_of_range(value, DType::I32))
                }
            },
        }
    }
}

fn out_of_range(value: i128, dtype: DType) -> String {
    format!("the integer {value} does not fit in {dtype}; write it as a float, such as `{:e}`", value as f64)
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(true) => f.write_str("True"),
            Number::Bool(false) => f.write_str("False"),
            Number::Int(value) => write!(f, "{value}"),
            Number::Float(value) => write!(f, "{value:?}"),
        }
    }
}

/// `-x`, `+x`, `~x`.
pub fn unary(op: UnaryOp, operand: Number) -> Result<Number, String> {
    match (op, operand, operand.to_int()) {
        (UnaryOp::Neg, _, Some(value)) => value.checked_neg().map(Number::Int).ok_or_else(too_large),
        (UnaryOp::Pos, _, Some(value)) => Ok(Number::Int(value)),
        // numpy's `~` on a bool, which is what an array of them would do. Python's own gives -2 for True.
        (UnaryOp::Invert, Number::Bool(value), _) => Ok(Number::Bool(!value)),
        (UnaryOp::Invert, _, Some(value)) => Ok(Number::Int(!value)),
        (UnaryOp::Neg, ..) => Ok(Number::Float(-operand.to_f64())),
        (UnaryOp::Pos, ..) => Ok(operand),
        (UnaryOp::Invert, ..) => Err(format!("`~` is defined for integers and bools, found {operand}")),
    }
}

/// `a op b`.
pub fn binary(op: BinaryOp, left: Number, right: Number) -> Result<Number, String> {
    use BinaryOp as B;
    match op {
        B::MatMul => return Err("`@` multiplies matrices, found two numbers; use `*`".to_owned()),
        B::And | B::Or | B::Xor => return bitwise(op, left, right),
        B::Shl | B::Shr => return shift(op, left, right),
        _ => {}
    }
    if op.is_comparison() {
        return Ok(Number::Bool(compare(op, left, right)));
    }
    match (left.to_int(), right.to_int()) {
        (Some(a), Some(b)) => int(op, a, b),
        _ => float(op, left.to_f64(), right.to_f64()),
    }
}

fn compare(op: BinaryOp, left: Number, right: Number) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (left.to_int(), right.to_int()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => left.to_f64().partial_cmp(&right.to_f64()),
    };
    match op {
        BinaryOp::Lt => order == Some(Less),
        BinaryOp::Le => matches!(order, Some(Less | Equal)),
        BinaryOp::Gt => order == Some(Greater),
        BinaryOp::Ge => matches!(order, Some(Greater | Equal)),
        BinaryOp::Eq => order == Some(Equal),
        _ => order != Some(Equal),
    }
}

fn bitwise(op: BinaryOp, left: Number, right: Number) -> Result<Number, String> {
    let pick = |a: i128, b: i128| match op {
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        _ => a ^ b,
    };
    match (left, right, left.to_int(), right.to_int()) {
        (Number::Bool(a), Number::Bool(b), ..) => Ok(Number::Bool(pick(i128::from(a), i128::from(b)) != 0)),
        (.., Some(a), Some(b)) => Ok(Number::Int(pick(a, b))),
        _ => Err(format!("`{}` is defined for integers and bools, found {left} and {right}", op.symbol())),
    }
}

/// Python's shifts: a negative count is a mistake, and bits that go to the left are kept.
fn shift(op: BinaryOp, left: Number, right: Number) -> Result<Number, String> {
    let (Some(a), Some(b)) = (left.to_int(), right.to_int()) else {
        return Err(format!("`{}` is defined for integers, found {left} and {right}", op.symbol()));
    };
    if b < 0 {
        return Err(format!("a number is shifted by 0 bits or more, found {b}"));
    }
    let by = u32::try_from(b).unwrap_or(u32::MAX);
    match op {
        BinaryOp::Shr => Ok(Number::Int(a >> by.min(127))),
        _ => {
            let factor = 1i128.checked_shl(by).filter(|factor| *factor > 0);
            let value = if a == 0 { Some(0) } else { factor.and_then(|factor| a.checked_mul(factor)) };
            value.map(Number::Int).ok_or_else(too_large)
        }
    }
}

fn int(op: BinaryOp, a: i128, b: i128) -> Result<Number, String> {
    use BinaryOp as B;
    if b == 0 && matches!(op, B::Div | B::FloorDiv | B::Rem) || a == 0 && b < 0 && op == B::Pow {
        return Err("division by zero".to_owned());
    }
    let value = match op {
        B::Div => return Ok(Number::Float(a as f64 / b as f64)),
        B::Pow if b < 0 => return Ok(Number::Float((a as f64).powf(b as f64))),
        B::Pow => match u32::try_from(b) {
            Ok(b) => a.checked_pow(b),
            // Only these bases stay small however often they are multiplied.
            Err(_) if a == 0 || a == 1 => Some(a),
            Err(_) if a == -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
            Err(_) => None,
        },
        B::Add => a.checked_add(b),
        B::Sub => a.checked_sub(b),
        B::Mul => a.checked_mul(b),
        // Rounded down, where Rust rounds towards zero.
        B::FloorDiv => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
        _ => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
    };
    value.map(Number::Int).ok_or_else(too_large)
}

fn too_large() -> String {
    "the integer grows beyond 127 bits; write it as a float, such as `1e40`".to_owned()
}

fn float(op: BinaryOp, a: f64, b: f64) -> Result<Number, String> {
    use BinaryOp as B;
    if b == 0.0 && matches!(op, B::Div | B::FloorDiv | B::Rem) || a == 0.0 && b < 0.0 && op == B::Pow {
        return Err("division by zero".to_owned());
    }
    if op == B::Pow && a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return Err("a negative number to a fractional power is complex, which is not supported".to_owned());
    }
    let remainder = || {
        let r = a % b;
        if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
    };
    Ok(Number::Float(match op {
        B::Add => a + b,
        B::Sub => a - b,
        B::Mul => a * b,
        B::Div => a / b,
        B::FloorDiv => ((a - remainder()) / b).round(),
        B::Rem => remainder(),
        _ => a.powf(b),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: impl Into<Number>, op: BinaryOp, right: impl Into<Number>, expected: Option<Number>) {
        assert_eq!(binary(op, left.into(), right.into()).ok(), expected);
    }

    impl From<i128> for Number {
        fn from(value: i128) -> Number {
            Number::Int(value)
        }
    }
    impl From<f64> for Number {
        fn from(value: f64) -> Number {
            Number::Float(value)
        }
    }
    impl From<bool> for Number {
        fn from(value: bool) -> Number {
            Number::Bool(value)
        }
    }

    #[test]
    fn arithmetic_is_pythons() {
        use BinaryOp::*;
        let (int, float, bool) = (|v| Some(Number::Int(v)), |v| Some(Number::Float(v)), |v| Some(Number::Bool(v)));
        check(2, Pow, 10, int(1024));
        check(2, Pow, -1, float(0.5));
        check(1, Div, 4, float(0.25));
        check(4, Div, 2, float(2.0));
        check(-7, FloorDiv, 2, int(-4));
        check(-7, Rem, 2, int(1));
        check(7, Rem, -2, int(-1));
        check(-7.5, FloorDiv, 2, float(-4.0));
        check(-7.5, Rem, 2, float(0.5));
        check(true, Add, true, int(2));
        check(true, And, false, bool(false));
        check(6, Xor, 3, int(5));
        check(3, Shl, 40, int(3 << 40));
        check(-5, Shr, 1, int(-3));
        check(-5, Shr, 500, int(-1));
        check(0, Shl, 500, int(0));
        check(1, Shl, 126, int(1 << 126));
        check(1, Shl, 127, None);
        check(1, Shl, -1, None);
        check(1.5, Shr, 1, None);
        check(1, Lt, 1.5, bool(true));
        check(f64::NAN, Ne, f64::NAN, bool(true));
        check(f64::NAN, Eq, f64::NAN, bool(false));
        check(1, Div, 0, None);
        check(1.0, Rem, 0, None);
        check(0, Pow, -1, None);
        check(-8.0, Pow, 0.5, None);
        check(10, Pow, 100, None);
        check(10, Pow, i128::MAX, None);
        check(-1, Pow, i128::MAX, int(-1));
        check(i128::MAX, Add, 1, None);
        check(i128::MIN, FloorDiv, -1, None);
        check(i128::MIN, Rem, -1, None);
        check(1, MatMul, 1, None);
        check(1.5, Or, 1, None);
    }
}
