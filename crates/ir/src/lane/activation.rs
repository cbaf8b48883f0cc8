//! The activations of neural networks: x enters, each leaves as one formula of `e^-|..|`, which cannot overflow.
//!
//! All keep their relative accuracy into the tails: where a result is subnormal, the factors are multiplied
//! 2^64 too large and rounded once.

use super::exp::{EXP_FLOOR, TWO_POW_M64, exp_m1, exp_neg, exp_neg_parts};
use super::log::ln_1p_unit;
use super::mad;

/// Bound of [`sigmoid`]; measured 2.31.
pub const SIGMOID_ULP: f32 = 2.5;
/// Bound of [`silu`]; measured 2.64.
pub const SILU_ULP: f32 = 3.0;
/// Bound of [`softplus`]; measured 1.75.
pub const SOFTPLUS_ULP: f32 = 2.5;
/// Bound of [`gelu_tanh`]; measured 2.74.
pub const GELU_TANH_ULP: f32 = 3.5;
/// Bound of [`gelu_erf`]; measured 3.45.
pub const GELU_ERF_ULP: f32 = 4.0;
/// Bound of [`elu`]; measured 1.65.
pub const ELU_ULP: f32 = 2.5;

/// The smaller of a magnitude and a bound; NaN stays.
#[inline(always)]
fn at_most(magnitude: f32, bound: f32) -> f32 {
    if magnitude > bound { bound } else { magnitude }
}

/// `1 / (1 + e^-x)`; exactly 0 and 1 at the infinities.
#[inline(always)]
pub fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let e = exp_neg::<FMA>(at_most(x.abs(), -EXP_FLOOR));
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

/// `x / (1 + e^-magnitude)` for x >= 0, `x e^-magnitude / (1 + e^-magnitude)` below; `magnitude = hi + lo`, and
/// `bounded` is |x| without what lies beyond the tail.
#[inline(always)]
fn gate<const FMA: bool>(x: f32, bounded: f32, hi: f32, lo: f32) -> f32 {
    let (e_m1, scale) = exp_neg_parts::<FMA>(-hi, -lo);
    let below = mad::<FMA>(-bounded, e_m1, -bounded) * scale;
    let numerator = if x < 0.0 { below } else { x };
    let unscale = if x < 0.0 { TWO_POW_M64 } else { 1.0 };
    let small = scale * TWO_POW_M64;
    numerator / (1.0 + mad::<FMA>(small, e_m1, small)) * unscale
}

/// `x sigmoid(x)`. At -inf this is its limit, -0.0, where the formula would give NaN.
#[inline(always)]
pub fn silu<const FMA: bool>(x: f32) -> f32 {
    let a = at_most(x.abs(), -EXP_FLOOR);
    gate::<FMA>(x, a, a, 0.0)
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus<const FMA: bool>(x: f32) -> f32 {
    let e = exp_neg::<FMA>(at_most(x.abs(), -EXP_FLOOR));
    let ramp = if x < 0.0 { 0.0 } else { x };
    ramp + ln_1p_unit::<FMA>(e)
}

/// An f64 as the sum of two f32.
#[inline(always)]
fn two_parts(v: f64) -> (f32, f32) {
    let hi = v as f32;
    (hi, (v - f64::from(hi)) as f32)
}

/// `2 sqrt(2 / pi) (a + 0.044715 a^3)` as a sum of two f32: its relative error becomes an absolute one in
/// the exponent, where a single f32 would cost up to 60 ulp in the tail.
#[inline(always)]
fn gelu_exponent<const FMA: bool>(a: f32) -> (f32, f32) {
    /// 2 sqrt(2 / pi).
    const C0: f64 = 1.595_769_121_605_730_7;
    /// 0.044715 * C0.
    const C1: f64 = 0.071_354_816_272_600_25;
    if !FMA {
        let a = f64::from(a);
        return two_parts(a * (C0 + C1 * (a * a)));
    }
    // A multiple of 2^-20, so that `sum - C0_HI` is exact for every sum up to 16.
    const C0_HI: f32 = f32::from_bits((C0 as f32).to_bits() & !7);
    const C0_LO: f32 = (C0 - C0_HI as f64) as f32;
    const C1_HI: f32 = C1 as f32;
    const C1_LO: f32 = (C1 - C1_HI as f64) as f32;
    // A fused multiply-add gives what its own product lost: cheaper than f64 by half the lanes.
    let square = a * a;
    let square_lo = a.mul_add(a, -square);
    let sum = C1_HI.mul_add(square, C0_HI);
    let sum_lo = C1_HI.mul_add(square, C0_HI - sum) + C1_HI.mul_add(square_lo, C1_LO.mul_add(square, C0_LO));
    let hi = a * sum;
    (hi, a.mul_add(sum, -hi) + a * sum_lo)
}

/// `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, as the equal `x sigmoid(2 ...)`; -0.0 at -inf.
#[inline(always)]
pub fn gelu_tanh<const FMA: bool>(x: f32) -> f32 {
    // The exponent is 127 at 11.5, and the result zero from 10.9 on.
    let a = at_most(x.abs(), 11.5);
    let (hi, lo) = gelu_exponent::<FMA>(a);
    gate::<FMA>(x, a, hi, lo)
}

/// `x / 2 (1 + erf(x / sqrt(2)))`, as `max(x, 0) - |x| Q(|x|)` with the normal distribution's tail Q, which
/// does not cancel for a negative x; -0.0 at -inf.
#[inline(always)]
pub fn gelu_erf<const FMA: bool>(x: f32) -> f32 {
    // The result is zero below -14.2.
    let a = at_most(x.abs(), 15.0);
    let (square, square_lo) = if FMA {
        let square = a * a;
        (square, a.mul_add(a, -square))
    } else {
        two_parts(f64::from(a) * f64::from(a))
    };
    let (e_m1, scale) = exp_neg_parts::<FMA>(-0.5 * square, -0.5 * square_lo);
    // Q(a) e^(a^2 / 2) (a + 1.5), a smooth function of q = 1 - 2 u with u = a / (a + 1.5): minimax error 2^-26.
    // A larger constant needs fewer terms (3.5 needs 10), but multiplies the error of u.
    let u = a / (a + 1.5);
    let q = mad::<FMA>(u, -2.0, 1.0);
    let p = -1.666_284_4e-4;
    let p = mad::<FMA>(p, q, 4.741_996_5e-4);
    let p = mad::<FMA>(p, q, -2.178_599_1e-4);
    let p = mad::<FMA>(p, q, -1.056_654_8e-3);
    let p = mad::<FMA>(p, q, 2.684_137e-3);
    let p = mad::<FMA>(p, q, -2.425_157_5e-3);
    let p = mad::<FMA>(p, q, -3.978_357_7e-3);
    let p = mad::<FMA>(p, q, 1.763_811_5e-2);
    let p = mad::<FMA>(p, q, -1.789_811_4e-2);
    let p = mad::<FMA>(p, q, -5.749_524_8e-2);
    let p = mad::<FMA>(p, q, 1.950_995_6e-1);
    let p = mad::<FMA>(p, q, 6.173_42e-1);
    let front = u * p;
    let tail = mad::<FMA>(front, e_m1, front) * scale;
    // -0.0, not 0.0: then -0.0 stays -0.0.
    let ramp = if x < 0.0 { -0.0 } else { x };
    mad::<FMA>(-tail, TWO_POW_M64, ramp)
}

/// x above 0, `alpha (e^x - 1)` below.
#[inline(always)]
pub fn elu<const FMA: bool>(x: f32, alpha: f32) -> f32 {
    let below = alpha * exp_m1::<FMA>(x);
    if x > 0.0 { x } else { below }
}
