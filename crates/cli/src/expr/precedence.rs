//! Python's precedence table: a symbol enters, its operator and binding power leave.

use super::BinaryOp;

// Loosest first.
const COMPARISON: u8 = 1;
const OR: u8 = 2;
const XOR: u8 = 3;
const AND: u8 = 4;
const SHIFT: u8 = 5;
const SUM: u8 = 6;
const PRODUCT: u8 = 7;
/// Looser than `**` on its right and tighter than all else: `-x ** 2` is `-(x ** 2)`.
pub(super) const UNARY: u8 = 8;
const POWER: u8 = 9;

/// The operator that a symbol stands for between two operands, and how tightly it binds.
pub(super) fn binary(symbol: &str) -> Option<(BinaryOp, u8)> {
    Some(match symbol {
        "<" => (BinaryOp::Lt, COMPARISON),
        "<=" => (BinaryOp::Le, COMPARISON),
        ">" => (BinaryOp::Gt, COMPARISON),
        ">=" => (BinaryOp::Ge, COMPARISON),
        "==" => (BinaryOp::Eq, COMPARISON),
        "!=" => (BinaryOp::Ne, COMPARISON),
        "|" => (BinaryOp::Or, OR),
        "^" => (BinaryOp::Xor, XOR),
        "&" => (BinaryOp::And, AND),
        "<<" => (BinaryOp::Shl, SHIFT),
        ">>" => (BinaryOp::Shr, SHIFT),
        "+" => (BinaryOp::Add, SUM),
        "-" => (BinaryOp::Sub, SUM),
        "*" => (BinaryOp::Mul, PRODUCT),
        "/" => (BinaryOp::Div, PRODUCT),
        "//" => (BinaryOp::FloorDiv, PRODUCT),
        "%" => (BinaryOp::Rem, PRODUCT),
        "@" => (BinaryOp::MatMul, PRODUCT),
        "**" => (BinaryOp::Pow, POWER),
        _ => return None,
    })
}
