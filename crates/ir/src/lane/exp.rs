//! exp and exp_m1: x enters, `2^n * e^r` leaves, with `x = n ln 2 + r` and a polynomial for `e^r`.
//!
//! The pieces ([`reduce`], [`exp_m1_reduced`], [`exp_neg_parts`]) are shared by tanh, erf and the
//! activations, each of which has its own best way to put them together.

use super::{ROUNDER, mad};

/// Bound of [`exp`]; measured 1.03.
pub const EXP_ULP: f32 = 1.5;
/// Bound of [`exp_m1`]; measured 1.66.
pub const EXP_M1_ULP: f32 = 2.0;

/// ln 2 in two parts. The high part has 10 significant bits, so `n * LN2_HI` is exact for every `|n| < 2^14`
/// even without fused arithmetic (the split is Cody and Waite's, as in Cephes).
pub(super) const LN2_HI: f32 = 355.0 / 512.0;
/// `ln 2 - LN2_HI`.
pub(super) const LN2_LO: f32 = -2.121_944_4e-4;

/// `e^x` rounds to zero in f32 below -104; the margin down to -120 lets a caller multiply by something up to
/// 2^23 before the result is rounded, and keeps `n + 64` a normal exponent.
pub(super) const EXP_FLOOR: f32 = -120.0;

/// 2^64 as an exponent offset in the bits of an f32.
const BIAS_64: u32 = 64 << 23;
/// 1.0 in the bits of an f32.
const ONE: u32 = 0x3F80_0000;
const TWO_POW_64: f32 = 18_446_744_073_709_551_616.0;
/// 2^-64: what [`exp_neg_parts`] leaves to be multiplied in.
pub(super) const TWO_POW_M64: f32 = 1.0 / TWO_POW_64;

/// `(r, bits)` with `hi + lo = n ln 2 + r`, `|r| <= ln 2 / 2`, and n in the low bits of `bits`, so that
/// `bits << 23` is n as an exponent. `lo` is a correction to `hi` below its last place; 0.0 costs nothing.
#[inline(always)]
pub(super) fn reduce<const FMA: bool>(hi: f32, lo: f32) -> (f32, u32) {
    let rounded = mad::<FMA>(hi, std::f32::consts::LOG2_E, ROUNDER);
    let n = rounded - ROUNDER;
    let r = mad::<FMA>(n, -LN2_LO, mad::<FMA>(n, -LN2_HI, hi) + lo);
    (r, rounded.to_bits())
}

/// `2^n` from the bits of [`reduce`]; `-126 <= n <= 127`.
#[inline(always)]
pub(super) fn pow2(bits: u32) -> f32 {
    f32::from_bits((bits << 23).wrapping_add(ONE))
}

/// `e^r - 1` for `|r| <= 0.3468`, of degree 6: minimax error 2^-26 relative to `e^r - 1`.
#[inline(always)]
pub(super) fn exp_m1_reduced<const FMA: bool>(r: f32) -> f32 {
    let p = 1.383_645_8e-3;
    let p = mad::<FMA>(p, r, 8.367_134e-3);
    let p = mad::<FMA>(p, r, 4.166_775e-2);
    let p = mad::<FMA>(p, r, 1.666_653_9e-1);
    let p = mad::<FMA>(p, r, 4.999_999_7e-1);
    mad::<FMA>(p, r * r, r)
}

/// `(m, scale)` with `e^(hi + lo) = (1 + m) scale 2^-64`, for `-127 <= hi <= 0`: normal numbers even where the
/// exponential is subnormal, so that a caller can multiply and divide first and round once, in the final
/// multiplication by [`TWO_POW_M64`]; and without the rounding of `1 + m`, if it forms `c + c m` instead.
#[inline(always)]
pub(super) fn exp_neg_parts<const FMA: bool>(hi: f32, lo: f32) -> (f32, f32) {
    let (r, bits) = reduce::<FMA>(hi, lo);
    let scale = f32::from_bits((bits << 23).wrapping_add(ONE + BIAS_64));
    (exp_m1_reduced::<FMA>(r), scale)
}

/// `e^-x` for `0 <= x <= 120`.
#[inline(always)]
pub(super) fn exp_neg<const FMA: bool>(x: f32) -> f32 {
    let (m, scale) = exp_neg_parts::<FMA>(-x, 0.0);
    (m + 1.0) * scale * TWO_POW_M64
}

/// `e^x`. Overflows to infinity, underflows through the subnormals to zero.
#[inline(always)]
pub fn exp<const FMA: bool>(x: f32) -> f32 {
    // Selects rather than `min` and `max`: a NaN fails both comparisons and stays.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < EXP_FLOOR { EXP_FLOOR } else { x };
    let (r, bits) = reduce::<FMA>(x, 0.0);
    // n lies in -173..=128, beyond an f32's exponents at both ends: scale by 2^(n -+ 64), then by 2^+-64. The
    // first product is exact, so a subnormal result is rounded once.
    let (first, second) = if x < 0.0 { (ONE + BIAS_64, TWO_POW_M64) } else { (ONE - BIAS_64, TWO_POW_64) };
    let scale = f32::from_bits((bits << 23).wrapping_add(first));
    (exp_m1_reduced::<FMA>(r) + 1.0) * scale * second
}

/// `e^x - 1`, accurate near zero, where `exp(x) - 1` would cancel.
#[inline(always)]
pub fn exp_m1<const FMA: bool>(x: f32) -> f32 {
    let c = if x > 89.0 { 89.0 } else { x };
    // e^-20 is below half an ulp of 1.
    let c = if c < -20.0 { -20.0 } else { c };
    let (r, bits) = reduce::<FMA>(c, 0.0);
    // Half the result, because 2^128 is no f32: (2^n (e^r - 1) + 2^n - 1) / 2.
    let half_scale = pow2(bits.wrapping_sub(1));
    let y = 2.0 * mad::<FMA>(half_scale, exp_m1_reduced::<FMA>(r), half_scale - 0.5);
    // Here e^x - 1 rounds to x. The sum above would make 0.0 of -0.0 and, halved, drop a subnormal's last bit.
    if x.abs() < 1.0 / 33_554_432.0 { x } else { y }
}
