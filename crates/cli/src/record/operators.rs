//! Operators: two values and a symbol enter, the recorded operation leaves. Numbers among themselves are folded in
//! Python's way; beside a tensor they take its dtype.

use breakeven::{DType, Op, RecordError, Tensor};

use super::{Number, Value, number};
use crate::expr::{BinaryOp, UnaryOp};

/// The operator that an op is written with, if it has one, and whether it stands before a single operand.
pub fn symbol(op: Op) -> Option<(&'static str, bool)> {
    let binary = |found: BinaryOp| (found.symbol(), false);
    Some(match op {
        Op::Neg => (UnaryOp::Neg.symbol(), true),
        Op::Not => (UnaryOp::Invert.symbol(), true),
        _ => binary(*OPERATORS.iter().find(|(_, row)| *row == op).map(|(symbol, _)| symbol)?),
    })
}

/// The operators that are rows of the op table; `@` is the only other one.
const OPERATORS: [(BinaryOp, Op); 18] = [
    (BinaryOp::Add, Op::Add),
    (BinaryOp::Sub, Op::Sub),
    (BinaryOp::Mul, Op::Mul),
    (BinaryOp::Div, Op::Div),
    (BinaryOp::FloorDiv, Op::FloorDiv),
    (BinaryOp::Rem, Op::Rem),
    (BinaryOp::Pow, Op::Pow),
    (BinaryOp::And, Op::And),
    (BinaryOp::Or, Op::Or),
    (BinaryOp::Xor, Op::Xor),
    (BinaryOp::Shl, Op::Shl),
    (BinaryOp::Shr, Op::Shr),
    (BinaryOp::Lt, Op::Lt),
    (BinaryOp::Le, Op::Le),
    (BinaryOp::Gt, Op::Gt),
    (BinaryOp::Ge, Op::Ge),
    (BinaryOp::Eq, Op::Eq),
    (BinaryOp::Ne, Op::Ne),
];

/// `-x`, `+x`, `~x`.
pub fn unary(op: UnaryOp, operand: &Value) -> Result<Value, String> {
    if let Value::Number(number) = operand {
        return number::unary(op, *number).map(Value::Number);
    }
    let x = operand.tensor()?;
    match op {
        UnaryOp::Pos => Ok(Value::Tensor(x)),
        UnaryOp::Neg => apply(Op::Neg, &[Value::Tensor(x)]),
        UnaryOp::Invert => apply(Op::Not, &[Value::Tensor(x)]),
    }
}

/// `a op b`.
pub fn binary(op: BinaryOp, left: &Value, right: &Value) -> Result<Value, String> {
    if let (Value::Number(left), Value::Number(right)) = (left, right) {
        return number::binary(op, *left, *right).map(Value::Number);
    }
    match OPERATORS.iter().find(|(symbol, _)| *symbol == op) {
        Some((_, op)) => apply(*op, &[left.clone(), right.clone()]),
        None => left.tensor()?.matmul(&right.tensor()?).map(Value::Tensor).map_err(said),
    }
}

/// A row of the op table on values, which are turned into tensors.
pub fn apply(op: Op, args: &[Value]) -> Result<Value, String> {
    let tensors = operands(op, args)?;
    let refs: Vec<&Tensor> = tensors.iter().collect();
    if let (Op::Pow, [base, _], [_, Value::Number(Number::Int(exponent))]) = (op, &refs[..], args) {
        let is_integer = matches!(base.dtype(), DType::I32 | DType::U32);
        match exponent {
            2 if base.dtype() != DType::Bool => return base.square().map(Value::Tensor).map_err(said),
            ..0 if is_integer => {
                return Err(format!(
                    "{base} to the power of {exponent} has no integer result; cast it first: cast(x, f32) ** {exponent}",
                    base = base.dtype()
                ));
            }
            _ => {}
        }
    }
    // numpy takes the root for this exponent, too: it is exact where a general power is not.
    if let (Op::Pow, [base, _], [Value::Tensor(_), Value::Number(Number::Float(0.5))]) = (op, &refs[..], args) {
        return base.sqrt().map(Value::Tensor).map_err(said);
    }
    Tensor::apply(op, &refs).map(Value::Tensor).map_err(said)
}

/// The arguments as tensors, numbers in the dtype of the tensors beside them.
pub fn operands(op: Op, args: &[Value]) -> Result<Vec<Tensor>, String> {
    // The condition of `where` says nothing about the dtype of the two values.
    let first = usize::from(op == Op::Where).min(args.len());
    let mut tensors: Vec<Option<Tensor>> = Vec::with_capacity(args.len());
    for arg in args {
        tensors.push(if matches!(arg, Value::Number(_)) { None } else { Some(arg.tensor()?) });
    }
    let array = tensors[first..].iter().flatten().map(Tensor::dtype).reduce(|a, b| a.promote(b).unwrap_or(a));
    let numbers =
        args[first..].iter().filter_map(|arg| if let Value::Number(n) = arg { Some(n.dtype()) } else { None });
    // Without a tensor the numbers decide among themselves, in the order bool, i32, f32.
    let beside = array.or_else(|| numbers.max()).unwrap_or(DType::Bool);
    let tensor = |(arg, tensor): (&Value, Option<Tensor>)| match (arg, tensor) {
        (Value::Number(number), None) => number.tensor(beside),
        (_, Some(tensor)) => Ok(tensor),
        (other, None) => other.tensor(),
    };
    args.iter().zip(tensors).map(tensor).collect()
}

/// What the library said.
pub fn said(error: RecordError) -> String {
    error.to_string()
}
