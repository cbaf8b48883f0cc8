//! THE op table: each operation is declared once, here.
//!
//! [`op_table!`] hands the rows to a macro of the caller's choice. This file turns them into [`Op`], its properties,
//! its scalar evaluation (constant folding) and the doc lines; `tensor` into methods; the cpu crate into vector
//! kernels; the command line into its list of functions. Adding an elementwise op is adding one row.
//!
//! A row reads
//! `Variant method (properties) { (argument lanes) -> result { lane expression } "WGSL"; .. } cost, ulp, [golden], "doc"`.
//! Lanes are 32 bits: a bool lane is a u32 of 0 or 1. `FMA` is true where fused multiply-add is a machine instruction.
//! `slow condition => expression` patches the lanes that the fast expression does not cover.

mod classes;
#[macro_use]
mod lanes;
mod row;

pub use classes::{ReduceOp, ScanOp};
pub use lanes::LaneBits;
pub use row::{OpRow, Signature, property};

use crate::dtype::{DType, Scalar};

/// Calls `$callback!` with every row of the elementwise op table.
#[macro_export]
macro_rules! op_table {
    ($callback:ident) => {
        $callback! {
            Add add (COMMUTES) {
                (f32 x, f32 y) -> f32 { x + y } "({0} + {1})";
                (i32 x, i32 y) -> i32 { x.wrapping_add(y) } "({0} + {1})";
                (u32 x, u32 y) -> u32 { x.wrapping_add(y) } "({0} + {1})";
                (bool x, bool y) -> bool { x | y } "({0} | {1})";
            } 1, 0.5, [[1.5, 2.0] 3.5, [-1.0, 1.0] 0.0], "x + y";
            Sub sub () {
                (f32 x, f32 y) -> f32 { x - y } "({0} - {1})";
                (i32 x, i32 y) -> i32 { x.wrapping_sub(y) } "({0} - {1})";
                (u32 x, u32 y) -> u32 { x.wrapping_sub(y) } "({0} - {1})";
            } 1, 0.5, [[5.0, 2.0] 3.0], "x - y";
            Mul mul (COMMUTES) {
                (f32 x, f32 y) -> f32 { x * y } "({0} * {1})";
                (i32 x, i32 y) -> i32 { x.wrapping_mul(y) } "({0} * {1})";
                (u32 x, u32 y) -> u32 { x.wrapping_mul(y) } "({0} * {1})";
                (bool x, bool y) -> bool { x & y } "({0} & {1})";
            } 1, 0.5, [[3.0, 2.0] 6.0], "x * y";
            Div div (FLOAT) {
                (f32 x, f32 y) -> f32 { x / y } "({0} / {1})";
            } 3, 0.5, [[3.0, 2.0] 1.5], "x / y, true division: integers are divided as f32";
            FloorDiv floor_div () {
                (f32 x, f32 y) -> f32 { $crate::lane::floor_div(x, y) } "floor_div({0}, {1})";
                (i32 x, i32 y) -> i32 { $crate::lane::floor_div_i32(x, y) } "floor_div_i({0}, {1})";
                (u32 x, u32 y) -> u32 { $crate::lane::floor_div_u32(x, y) } "floor_div_u({0}, {1})";
            } 12, 2.0, [[7.0, 2.0] 3.0, [8.0, 4.0] 2.0], "x // y, rounded down; an integer divided by 0 is 0";
            Rem rem () {
                (f32 x, f32 y) -> f32 { $crate::lane::rem(x, y) } "rem({0}, {1})";
                (i32 x, i32 y) -> i32 { $crate::lane::rem_i32(x, y) } "rem_i({0}, {1})";
                (u32 x, u32 y) -> u32 { $crate::lane::rem_u32(x, y) } "rem_u({0}, {1})";
            } 20, 0.5, [[7.0, 4.0] 3.0, [7.5, 0.5] 0.0], "x % y with the sign of y; an integer remainder by 0 is 0";
            Pow pow () {
                (f32 x, f32 y) -> f32 { $crate::lane::pow::<FMA>(x, y) } "pow_({0}, {1})";
                (i32 x, i32 y) -> i32 { $crate::lane::pow_i32(x, y) } "pow_i({0}, {1})";
                (u32 x, u32 y) -> u32 { $crate::lane::pow_u32(x, y) } "pow_u({0}, {1})";
            } 24, $crate::lane::POW_ULP, [[3.0, 2.0] 9.0, [2.0, 0.0] 1.0], "x to the power of y";
            Maximum maximum (COMMUTES) {
                (f32 x, f32 y) -> f32 { $crate::lane::maximum(x, y) } "max_({0}, {1})";
                (i32 x, i32 y) -> i32 { x.max(y) } "max({0}, {1})";
                (u32 x, u32 y) -> u32 { x.max(y) } "max({0}, {1})";
                (bool x, bool y) -> bool { x | y } "({0} | {1})";
            } 1, 0.0, [[1.0, 2.0] 2.0], "the larger of x and y; NaN if either is NaN";
            Minimum minimum (COMMUTES) {
                (f32 x, f32 y) -> f32 { $crate::lane::minimum(x, y) } "min_({0}, {1})";
                (i32 x, i32 y) -> i32 { x.min(y) } "min({0}, {1})";
                (u32 x, u32 y) -> u32 { x.min(y) } "min({0}, {1})";
                (bool x, bool y) -> bool { x & y } "({0} & {1})";
            } 1, 0.0, [[1.0, 2.0] 1.0], "the smaller of x and y; NaN if either is NaN";
            Neg neg () {
                (f32 x) -> f32 { -x } "(-{0})";
                (i32 x) -> i32 { x.wrapping_neg() } "(-{0})";
                (u32 x) -> u32 { x.wrapping_neg() } "(0u - {0})";
            } 1, 0.0, [[2.0] -2.0], "-x";
            Abs abs () {
                (f32 x) -> f32 { x.abs() } "abs({0})";
                (i32 x) -> i32 { x.wrapping_abs() } "abs({0})";
                (u32 x) -> u32 { x } "{0}";
                (bool x) -> bool { x } "{0}";
            } 1, 0.0, [[2.0] 2.0, [0.0] 0.0], "the absolute value";
            Sign sign () {
                (f32 x) -> f32 { $crate::lane::sign(x) } "sign_({0})";
                (i32 x) -> i32 { $crate::lane::sign_i32(x) } "sign({0})";
                (u32 x) -> u32 { x.min(1) } "min({0}, 1u)";
            } 1, 0.0, [[2.5] 1.0, [0.0] 0.0], "-1, 0 or 1; NaN stays NaN";
            Square square () {
                (f32 x) -> f32 { x * x } "({0} * {0})";
                (i32 x) -> i32 { x.wrapping_mul(x) } "({0} * {0})";
                (u32 x) -> u32 { x.wrapping_mul(x) } "({0} * {0})";
            } 1, 0.5, [[3.0] 9.0], "x * x";
            Sqrt sqrt (FLOAT) {
                (f32 x) -> f32 { x.sqrt() } "sqrt({0})";
            } 5, 0.5, [[9.0] 3.0], "the square root; NaN below 0";
            Rsqrt rsqrt (FLOAT) {
                (f32 x) -> f32 { $crate::lane::rsqrt(x) } "(1.0 / sqrt({0}))";
            } 8, 1.5, [[4.0] 0.5], "1 / sqrt(x)";
            Reciprocal reciprocal (FLOAT) {
                (f32 x) -> f32 { 1.0 / x } "(1.0 / {0})";
            } 3, 0.5, [[4.0] 0.25], "1 / x";
            Exp exp (FLOAT) {
                (f32 x) -> f32 { $crate::lane::exp::<FMA>(x) } "exp_({0})";
            } 10, $crate::lane::EXP_ULP, [[0.0] 1.0, [1.0] std::f64::consts::E], "e to the power of x";
            ExpM1 expm1 (FLOAT) {
                (f32 x) -> f32 { $crate::lane::exp_m1::<FMA>(x) } "expm1({0})";
            } 12, $crate::lane::EXP_M1_ULP, [[0.0] 0.0], "exp(x) - 1, exact near 0";
            Log log (FLOAT) {
                (f32 x) -> f32 { $crate::lane::log::<FMA>(x) } "log_({0})";
            } 14, $crate::lane::LOG_ULP, [[1.0] 0.0], "the natural logarithm; -inf at 0, NaN below";
            Log2 log2 (FLOAT) {
                (f32 x) -> f32 { $crate::lane::log2::<FMA>(x) } "log2_({0})";
            } 14, $crate::lane::LOG2_ULP, [[8.0] 3.0], "the logarithm to base 2";
            Log1p log1p (FLOAT) {
                (f32 x) -> f32 { $crate::lane::ln_1p::<FMA>(x) } "log1p({0})";
            } 16, $crate::lane::LN_1P_ULP, [[0.0] 0.0], "log(1 + x), exact near 0";
            Sin sin (FLOAT) {
                (f32 x) -> f32 { $crate::lane::sin::<FMA>(x) } slow x.abs() > $crate::lane::TRIG_FAST_BOUND => $crate::lane::sin_slow(x); "sin_({0})";
            } 20, $crate::lane::SIN_ULP, [[0.0] 0.0], "the sine of x in radians";
            Cos cos (FLOAT) {
                (f32 x) -> f32 { $crate::lane::cos::<FMA>(x) } slow x.abs() > $crate::lane::TRIG_FAST_BOUND => $crate::lane::cos_slow(x); "cos_({0})";
            } 20, $crate::lane::COS_ULP, [[0.0] 1.0], "the cosine of x in radians";
            Tan tan (FLOAT) {
                (f32 x) -> f32 { $crate::lane::tan::<FMA>(x) } slow x.abs() > $crate::lane::TRIG_FAST_BOUND => $crate::lane::tan_slow(x); "tan_({0})";
            } 28, $crate::lane::TAN_ULP, [[0.0] 0.0], "the tangent of x in radians";
            Tanh tanh (FLOAT) {
                (f32 x) -> f32 { $crate::lane::tanh::<FMA>(x) } "tanh_({0})";
            } 14, $crate::lane::TANH_ULP, [[0.0] 0.0], "the hyperbolic tangent";
            Erf erf (FLOAT) {
                (f32 x) -> f32 { $crate::lane::erf::<FMA>(x) } "erf({0})";
            } 20, $crate::lane::ERF_ULP, [[0.0] 0.0], "the error function";
            Floor floor () {
                (f32 x) -> f32 { $crate::lane::floor::<FMA>(x) } "floor({0})";
                (i32 x) -> i32 { x } "{0}";
                (u32 x) -> u32 { x } "{0}";
            } 1, 0.0, [[2.0] 2.0], "rounded down";
            Ceil ceil () {
                (f32 x) -> f32 { $crate::lane::ceil::<FMA>(x) } "ceil({0})";
                (i32 x) -> i32 { x } "{0}";
                (u32 x) -> u32 { x } "{0}";
            } 1, 0.0, [[2.0] 2.0], "rounded up";
            Round round () {
                (f32 x) -> f32 { $crate::lane::round::<FMA>(x) } "round({0})";
                (i32 x) -> i32 { x } "{0}";
                (u32 x) -> u32 { x } "{0}";
            } 1, 0.0, [[2.0] 2.0], "rounded to the nearest integer, halves to even";
            Trunc trunc () {
                (f32 x) -> f32 { $crate::lane::trunc::<FMA>(x) } "trunc({0})";
                (i32 x) -> i32 { x } "{0}";
                (u32 x) -> u32 { x } "{0}";
            } 1, 0.0, [[2.0] 2.0], "rounded towards 0";
            Sigmoid sigmoid (FLOAT) {
                (f32 x) -> f32 { $crate::lane::sigmoid::<FMA>(x) } "sigmoid({0})";
            } 13, $crate::lane::SIGMOID_ULP, [[0.0] 0.5], "1 / (1 + exp(-x))";
            Silu silu (FLOAT) {
                (f32 x) -> f32 { $crate::lane::silu::<FMA>(x) } "silu({0})";
            } 14, $crate::lane::SILU_ULP, [[0.0] 0.0], "x * sigmoid(x)";
            Gelu gelu (FLOAT) {
                (f32 x) -> f32 { $crate::lane::gelu_tanh::<FMA>(x) } "gelu({0})";
            } 18, $crate::lane::GELU_TANH_ULP, [[0.0] 0.0], "0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))";
            GeluErf gelu_erf (FLOAT) {
                (f32 x) -> f32 { $crate::lane::gelu_erf::<FMA>(x) } "gelu_erf({0})";
            } 22, $crate::lane::GELU_ERF_ULP, [[0.0] 0.0], "0.5 x (1 + erf(x / sqrt(2)))";
            Softplus softplus (FLOAT) {
                (f32 x) -> f32 { $crate::lane::softplus::<FMA>(x) } "softplus({0})";
            } 22, $crate::lane::SOFTPLUS_ULP, [[0.0] std::f64::consts::LN_2], "log(1 + exp(x))";
            Eq eq (COMMUTES COMPARES) {
                (f32 x, f32 y) -> bool { u32::from(x == y) } "eq_({0}, {1})";
                (i32 x, i32 y) -> bool { u32::from(x == y) } "u32({0} == {1})";
                (u32 x, u32 y) -> bool { u32::from(x == y) } "u32({0} == {1})";
                (bool x, bool y) -> bool { u32::from(x == y) } "u32({0} == {1})";
            } 1, 0.0, [[1.0, 1.0] 1.0], "x == y";
            Ne ne (COMMUTES COMPARES) {
                (f32 x, f32 y) -> bool { u32::from(x != y) } "ne_({0}, {1})";
                (i32 x, i32 y) -> bool { u32::from(x != y) } "u32({0} != {1})";
                (u32 x, u32 y) -> bool { u32::from(x != y) } "u32({0} != {1})";
                (bool x, bool y) -> bool { u32::from(x != y) } "u32({0} != {1})";
            } 1, 0.0, [[1.0, 1.0] 0.0], "x != y";
            Lt lt (COMPARES) {
                (f32 x, f32 y) -> bool { u32::from(x < y) } "lt_({0}, {1})";
                (i32 x, i32 y) -> bool { u32::from(x < y) } "u32({0} < {1})";
                (u32 x, u32 y) -> bool { u32::from(x < y) } "u32({0} < {1})";
                (bool x, bool y) -> bool { u32::from(x < y) } "u32({0} < {1})";
            } 1, 0.0, [[0.0, 1.0] 1.0], "x < y";
            Le le (COMPARES) {
                (f32 x, f32 y) -> bool { u32::from(x <= y) } "le_({0}, {1})";
                (i32 x, i32 y) -> bool { u32::from(x <= y) } "u32({0} <= {1})";
                (u32 x, u32 y) -> bool { u32::from(x <= y) } "u32({0} <= {1})";
                (bool x, bool y) -> bool { u32::from(x <= y) } "u32({0} <= {1})";
            } 1, 0.0, [[1.0, 1.0] 1.0], "x <= y";
            Gt gt (COMPARES) {
                (f32 x, f32 y) -> bool { u32::from(x > y) } "gt_({0}, {1})";
                (i32 x, i32 y) -> bool { u32::from(x > y) } "u32({0} > {1})";
                (u32 x, u32 y) -> bool { u32::from(x > y) } "u32({0} > {1})";
                (bool x, bool y) -> bool { u32::from(x > y) } "u32({0} > {1})";
            } 1, 0.0, [[0.0, 1.0] 0.0], "x > y";
            Ge ge (COMPARES) {
                (f32 x, f32 y) -> bool { u32::from(x >= y) } "ge_({0}, {1})";
                (i32 x, i32 y) -> bool { u32::from(x >= y) } "u32({0} >= {1})";
                (u32 x, u32 y) -> bool { u32::from(x >= y) } "u32({0} >= {1})";
                (bool x, bool y) -> bool { u32::from(x >= y) } "u32({0} >= {1})";
            } 1, 0.0, [[1.0, 1.0] 1.0], "x >= y";
            And and (COMMUTES) {
                (bool x, bool y) -> bool { x & y } "({0} & {1})";
                (i32 x, i32 y) -> i32 { x & y } "({0} & {1})";
                (u32 x, u32 y) -> u32 { x & y } "({0} & {1})";
            } 1, 0.0, [[1.0, 0.0] 0.0], "x & y, bitwise on integers";
            Or or (COMMUTES) {
                (bool x, bool y) -> bool { x | y } "({0} | {1})";
                (i32 x, i32 y) -> i32 { x | y } "({0} | {1})";
                (u32 x, u32 y) -> u32 { x | y } "({0} | {1})";
            } 1, 0.0, [[1.0, 0.0] 1.0], "x | y, bitwise on integers";
            Xor xor (COMMUTES) {
                (bool x, bool y) -> bool { x ^ y } "({0} ^ {1})";
                (i32 x, i32 y) -> i32 { x ^ y } "({0} ^ {1})";
                (u32 x, u32 y) -> u32 { x ^ y } "({0} ^ {1})";
            } 1, 0.0, [[1.0, 0.0] 1.0], "x ^ y, bitwise on integers";
            Not not () {
                (bool x) -> bool { x ^ 1 } "({0} ^ 1u)";
                (i32 x) -> i32 { !x } "(~{0})";
                (u32 x) -> u32 { !x } "(~{0})";
            } 1, 0.0, [], "not x: logical on bool, bitwise on integers";
            Shl shl () {
                (i32 x, i32 y) -> i32 { x.unbounded_shl(y as u32) } "shl_i({0}, {1})";
                (u32 x, u32 y) -> u32 { x.unbounded_shl(y) } "shl_u({0}, {1})";
            } 1, 0.0, [[3.0, 2.0] 12.0, [1.0, 32.0] 0.0], "x << y; no bit is left where y is not 0 to 31";
            Shr shr () {
                (i32 x, i32 y) -> i32 { x.unbounded_shr(y as u32) } "shr_i({0}, {1})";
                (u32 x, u32 y) -> u32 { x.unbounded_shr(y) } "shr_u({0}, {1})";
            } 1, 0.0, [[13.0, 2.0] 3.0, [7.0, 32.0] 0.0], "x >> y, with the sign; nothing else is left where y is not 0 to 31";
            CountOnes count_ones () {
                (i32 x) -> i32 { x.wrapping_abs().count_ones() as i32 } "countOneBits(abs({0}))";
                (u32 x) -> u32 { x.count_ones() } "countOneBits({0})";
            } 3, 0.0, [[7.0] 3.0, [0.0] 0.0], "how many bits of the absolute value are 1";
            ReverseBits reverse_bits () {
                (i32 x) -> i32 { x.reverse_bits() } "reverseBits({0})";
                (u32 x) -> u32 { x.reverse_bits() } "reverseBits({0})";
            } 4, 0.0, [[0.0] 0.0], "the 32 bits in reverse order";
            Where where_ = "where" () {
                (bool c, f32 x, f32 y) -> f32 { if c != 0 { x } else { y } } "select({2}, {1}, {0} != 0u)";
                (bool c, i32 x, i32 y) -> i32 { if c != 0 { x } else { y } } "select({2}, {1}, {0} != 0u)";
                (bool c, u32 x, u32 y) -> u32 { if c != 0 { x } else { y } } "select({2}, {1}, {0} != 0u)";
                (bool c, bool x, bool y) -> bool { if c != 0 { x } else { y } } "select({2}, {1}, {0} != 0u)";
            } 1, 0.0, [[1.0, 2.0, 3.0] 2.0, [0.0, 2.0, 3.0] 3.0], "x where the condition holds, else y";
            ToF32 f32 (CASTS) {
                (f32 x) -> f32 { x } "{0}";
                (i32 x) -> f32 { x as f32 } "f32({0})";
                (u32 x) -> f32 { x as f32 } "f32({0})";
                (bool x) -> f32 { x as i32 as f32 } "f32({0})";
            } 1, 0.5, [[1.0] 1.0], "cast to f32";
            ToI32 i32 (CASTS) {
                (f32 x) -> i32 { $crate::lane::to_i32(x) } "i32_({0})";
                (i32 x) -> i32 { x } "{0}";
                (u32 x) -> i32 { x as i32 } "i32({0})";
                (bool x) -> i32 { x as i32 } "i32({0})";
            } 1, 0.0, [[1.0] 1.0], "cast to i32: floats truncate and saturate, NaN is 0";
            ToU32 u32 (CASTS) {
                (f32 x) -> u32 { $crate::lane::to_u32(x) } "u32_({0})";
                (i32 x) -> u32 { x as u32 } "u32({0})";
                (u32 x) -> u32 { x } "{0}";
                (bool x) -> u32 { x } "{0}";
            } 1, 0.0, [[1.0] 1.0], "cast to u32: floats truncate and saturate, NaN is 0";
            ToBool bool (CASTS) {
                (f32 x) -> bool { u32::from(x != 0.0) } "bool_({0})";
                (i32 x) -> bool { u32::from(x != 0) } "u32({0} != 0)";
                (u32 x) -> bool { u32::from(x != 0) } "u32({0} != 0u)";
                (bool x) -> bool { x } "{0}";
            } 1, 0.0, [[1.0] 1.0], "cast to bool: anything but 0 is true";
        }
    };
}

macro_rules! op_name {
    ($method:ident) => {
        stringify!($method)
    };
    ($method:ident = $name:literal) => {
        $name
    };
}

macro_rules! declare_ops {
    ($($variant:ident $method:ident $(= $name:literal)? ($($property:ident)*) {
        $(($($ty:ident $arg:ident),+) -> $out:ident { $lane:expr } $(slow $when:expr => $slow:expr;)? $wgsl:literal;)+
    } $cost:expr, $ulp:expr, [$([$($g:expr),*] $r:expr),*], $doc:literal;)*) => {
        /// An elementwise operation: a row of the op table.
        ///
        /// ```
        /// use breakeven_ir::{Op, DType};
        /// assert_eq!(Op::Exp.row().name, "exp");
        /// assert_eq!(Op::named("maximum"), Some(Op::Maximum));
        /// assert_eq!(Op::Lt.signature(&[DType::I32, DType::I32]).unwrap().1.result, DType::Bool);
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = $doc] $variant,)*
        }

        impl Op {
            /// Every op, in table order.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];
        }

        /// The rows, in the order of [`Op::ALL`].
        static ROWS: &[OpRow] = &[$(OpRow {
            name: op_name!($method $(= $name)?),
            arity: { const SIGNATURES: &[Signature] = &[$(Signature {
                args: &[$(lane_type!(dtype $ty)),+], result: lane_type!(dtype $out), wgsl: $wgsl,
            }),+]; SIGNATURES[0].args.len() },
            properties: 0 $(| property::$property)*,
            signatures: &[$(Signature {
                args: &[$(lane_type!(dtype $ty)),+], result: lane_type!(dtype $out), wgsl: $wgsl,
            }),+],
            cost: $cost,
            ulp: $ulp,
            golden: &[$((&[$($g),*], $r)),*],
            doc: $doc,
        }),*];

        /// One lane of `op` on the host, for constant folding. `signature` is an index into the row's signatures.
        fn evaluate(op: Op, signature: usize, bits: [u32; 3]) -> u32 {
            const FMA: bool = false;
            match op {
                $(Op::$variant => {
                    let lanes: &[fn([u32; 3]) -> u32] = &[$(|bits| {
                        let mut bits = bits.into_iter();
                        $(let $arg = <lane_type!($ty) as LaneBits>::from_lane_bits(bits.next().unwrap_or(0));)+
                        $(if $when { return LaneBits::lane_bits($slow); })?
                        let result: lane_type!($out) = $lane;
                        LaneBits::lane_bits(result)
                    }),+];
                    lanes[signature](bits)
                })*
            }
        }
    };
}
op_table!(declare_ops);

impl Op {
    /// This op's row.
    pub fn row(self) -> &'static OpRow {
        &ROWS[self as usize]
    }

    /// The op of that name.
    pub fn named(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.row().name == name)
    }

    /// Does the op have this property?
    pub fn has(self, property: u8) -> bool {
        self.row().properties & property != 0
    }

    /// The signature with exactly these argument dtypes, and its index in the row.
    pub fn signature(self, args: &[DType]) -> Option<(usize, &'static Signature)> {
        self.row().signatures.iter().enumerate().find(|(_, s)| s.args == args)
    }

    /// The cast to `dtype`.
    pub const fn cast_to(dtype: DType) -> Op {
        match dtype {
            DType::Bool => Op::ToBool,
            DType::I32 => Op::ToI32,
            DType::U32 => Op::ToU32,
            DType::F32 => Op::ToF32,
        }
    }

    /// The op on constants; `None` where the dtypes have no signature.
    pub fn fold(self, args: &[Scalar]) -> Option<Scalar> {
        let mut dtypes = [DType::F32; 3];
        let mut bits = [0; 3];
        for (i, arg) in args.iter().enumerate().take(3) {
            (dtypes[i], bits[i]) = (arg.dtype(), arg.bits());
        }
        let (index, signature) = self.signature(&dtypes[..args.len().min(3)])?;
        Some(Scalar::from_bits(signature.result, evaluate(self, index, bits)))
    }
}
