//! Scalar lane functions: one element enters, one leaves, and LLVM makes vectors of them.
//!
//! A backend loops over a chunk of lanes inside a function that enables its instruction set; everything
//! here is `#[inline(always)]`, free of branches, tables, loops and library calls, so that loop compiles to
//! vector code for AVX2, AVX-512, NEON and SSE2 from this one source (within 0-8 % of intrinsics).
//! Chunks of 64 lanes serve every function: with 16 or 32, LLVM unrolls the loop of a short one before it makes
//! vectors, and `a + b` under AVX-512 takes 1.3-1.9 cycles an element instead of 0.13. (Under AVX2 the long ones
//! are as fast or, as sin, tan and gelu_tanh, 15-25 % faster in chunks of 32.)
//!
//! `const FMA: bool` says whether the caller's instruction set has fused multiply-add. With it, `mul_add` is
//! one instruction; without it, `mul_add` would be a library call of 75-150 cycles, so the lane multiplies
//! and adds. Both forms hold the same error bounds.
//!
//! Bounds are the public `*_ULP` constants beside the functions: the largest distance from the exact value
//! (taken in f64), in units of the last place of the f32 result, over the whole domain, subnormal results
//! included. The tests measure them. NaN enters as NaN and leaves as NaN unless a function says otherwise.
//!
//! The exceptions to "no library calls" say so: [`rem`], [`floor_div`] and the `*_slow` trigonometry.

mod activation;
mod erf;
mod exp;
mod int;
mod log;
mod pow;
mod real;
mod round;
mod tanh;
mod trig;

pub use activation::{
    ELU_ULP, GELU_ERF_ULP, GELU_TANH_ULP, SIGMOID_ULP, SILU_ULP, SOFTPLUS_ULP, elu, gelu_erf, gelu_tanh, sigmoid, silu,
    softplus,
};
pub use erf::{ERF_ULP, erf};
pub use exp::{EXP_M1_ULP, EXP_ULP, exp, exp_m1};
pub use int::{
    div_rem_by_i32, div_rem_by_u32, floor_div_i32, floor_div_u32, pow_i32, pow_u32, rem_i32, rem_u32, sign_i32, to_i32,
    to_u32,
};
pub use log::{LN_1P_ULP, LOG_ULP, LOG2_ULP, is_positive_normal, ln_1p, log, log_normal, log2, log2_normal};
pub use pow::{POW_ULP, pow, pow_normal};
pub use real::{RSQRT_ULP, floor_div, maximum, minimum, rem, rsqrt, sign};
pub use round::{ceil, floor, round, trunc};
pub use tanh::{TANH_ULP, tanh};
pub use trig::{COS_ULP, SIN_ULP, TAN_ULP, TRIG_FAST_BOUND, cos, cos_slow, sin, sin_slow, tan, tan_slow};

#[cfg(test)]
mod exact_tests;
#[cfg(test)]
mod special_tests;
#[cfg(test)]
mod ulp_tests;

/// `a * b + c`, fused where the caller's instruction set fuses.
#[inline(always)]
fn mad<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `a * b + c` in f64, fused where the caller's instruction set fuses.
#[inline(always)]
fn mad64<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// 1.5 * 2^23: adding it to `|v| < 2^22` rounds `v` to the nearest integer (ties to even) and leaves that
/// integer in the low bits. A cast would saturate, which costs compares and blends in every lane.
const ROUNDER: f32 = 12_582_912.0;

/// 1.5 * 2^52: [`ROUNDER`] for f64, for `|v| < 2^51`.
const ROUNDER64: f64 = 6_755_399_441_055_744.0;
