//! What is known about an op: the form of a row. The declaration of the table enters; the name, the ways to call it,
//! its cost and its error leave.

use crate::dtype::DType;

/// What an op may be done with. Properties are a set, asked for where they matter.
pub mod property {
    /// `op(x, y) == op(y, x)`.
    pub const COMMUTES: u8 = 1;
    /// Defined on f32 only; integers and bools are cast to it.
    pub const FLOAT: u8 = 2;
    /// A comparison: the result is bool.
    pub const COMPARES: u8 = 4;
    /// A cast.
    pub const CASTS: u8 = 8;
}

/// One way to call an op: the dtypes that it takes and gives.
///
/// ```
/// use breakeven_ir::{DType, Op};
/// let signature = &Op::Where.row().signatures[0];
/// assert_eq!((signature.args[0], signature.result), (DType::Bool, DType::F32));
/// ```
#[derive(Debug)]
pub struct Signature {
    /// The arguments' dtypes.
    pub args: &'static [DType],
    /// The result's dtype.
    pub result: DType,
    /// The WGSL expression, with `{0}` for the first argument.
    pub wgsl: &'static str,
}

/// A row of the op table.
///
/// ```
/// let row = breakeven_ir::Op::Exp.row();
/// assert_eq!((row.name, row.arity), ("exp", 1));
/// assert!(row.ulp <= 4.0);
/// ```
#[derive(Debug)]
pub struct OpRow {
    /// The name everywhere: methods, command line, documentation.
    pub name: &'static str,
    /// How many arguments.
    pub arity: usize,
    /// A set of [`property`] bits.
    pub properties: u8,
    /// The ways to call it.
    pub signatures: &'static [Signature],
    /// Relative cost of one element; an addition is 1.
    pub cost: u32,
    /// Largest error in units in the last place, over the whole domain.
    pub ulp: f32,
    /// Arguments and the result they must give.
    pub golden: &'static [(&'static [f64], f64)],
    /// What it computes.
    pub doc: &'static str,
}
