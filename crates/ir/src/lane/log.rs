//! log, log2 and ln_1p: x enters, `e ln 2 + ln(1 + f)` leaves, with `x = 2^e (1 + f)` and 1 + f around 1.

use super::exp::{LN2_HI, LN2_LO};
use super::mad;

/// Bound of [`log`]; measured 0.93.
pub const LOG_ULP: f32 = 1.5;
/// Bound of [`log2`]; measured 1.64.
pub const LOG2_ULP: f32 = 2.0;
/// Bound of [`ln_1p`]; measured 1.53.
pub const LN_1P_ULP: f32 = 2.0;

/// The bits of sqrt(1/2): subtracting them makes the exponent change at sqrt(1/2) and sqrt(2), so that 1 + f
/// lies between these and f is exact.
const SQRT_HALF: u32 = 0x3F35_04F3;

/// `(f, e)` with `x = 2^e (1 + f)` and `sqrt(1/2) <= 1 + f < sqrt(2)`, for a positive normal x.
#[inline(always)]
pub(super) fn split(x: f32) -> (f32, i32) {
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF);
    let one_plus_f = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(SQRT_HALF));
    (one_plus_f - 1.0, (shifted as i32) >> 23)
}

/// [`split`] for every positive x: a subnormal is scaled to a normal first.
#[inline(always)]
pub(super) fn split_any(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let (f, e) = split(if tiny { x * 8_388_608.0 } else { x });
    (f, e as f32 - if tiny { 23.0 } else { 0.0 })
}

/// `ln(1 + f) - f`, minimax error 2^-27 relative to `ln(1 + f)`.
#[inline(always)]
fn ln_1p_tail<const FMA: bool>(f: f32) -> f32 {
    let p = -7.631_891e-2;
    let p = mad::<FMA>(p, f, 1.276_140_7e-1);
    let p = mad::<FMA>(p, f, -1.316_059_5e-1);
    let p = mad::<FMA>(p, f, 1.420_163_2e-1);
    let p = mad::<FMA>(p, f, -1.662_332_1e-1);
    let p = mad::<FMA>(p, f, 2.000_124_3e-1);
    let p = mad::<FMA>(p, f, -2.500_082_3e-1);
    let p = mad::<FMA>(p, f, 3.333_333e-1);
    // p f - 1/2 first: f^2 then multiplies one rounded value, and the tail's error stays below f's last place.
    mad::<FMA>(p, f, -0.5) * (f * f)
}

/// `e ln 2 + ln(1 + f)`.
#[inline(always)]
fn compose<const FMA: bool>(f: f32, e: f32) -> f32 {
    let tail = mad::<FMA>(e, LN2_LO, ln_1p_tail::<FMA>(f));
    // Smallest first; e * LN2_HI is exact.
    mad::<FMA>(e, LN2_HI, f + tail)
}

/// `finite` for `0 < x < inf`; otherwise the logarithm's limit: -inf at 0, NaN below, x itself at inf and NaN.
#[inline(always)]
fn limits(x: f32, finite: f32) -> f32 {
    let beyond = if x == 0.0 { f32::NEG_INFINITY } else { x };
    let beyond = if x < 0.0 { f32::NAN } else { beyond };
    // One range check, `&` because `&&` may become a branch.
    if (x > 0.0) & (x < f32::INFINITY) { finite } else { beyond }
}

/// Is it neither zero nor subnormal, negative, infinite or NaN? These are what most functions are called with.
#[inline(always)]
pub fn is_positive_normal(x: f32) -> bool {
    const LEAST: u32 = f32::MIN_POSITIVE.to_bits();
    x.to_bits().wrapping_sub(LEAST) < f32::INFINITY.to_bits() - LEAST
}

/// [`log`] of positive normal numbers, to the bit.
#[inline(always)]
pub fn log_normal<const FMA: bool>(x: f32) -> f32 {
    let (f, e) = split(x);
    compose::<FMA>(f, e as f32)
}

/// The natural logarithm: -inf at +-0, NaN below.
#[inline(always)]
pub fn log<const FMA: bool>(x: f32) -> f32 {
    let (f, e) = split_any(x);
    limits(x, compose::<FMA>(f, e))
}

/// `e + log2(1 + f)`.
#[inline(always)]
fn compose2<const FMA: bool>(f: f32, e: f32) -> f32 {
    /// log2(e) - 1: with it, f enters the sum unrounded (Cephes' form).
    const LOG2_E_M1: f32 = 0.442_695_04;
    let tail = ln_1p_tail::<FMA>(f);
    let small = mad::<FMA>(tail, LOG2_E_M1, f * LOG2_E_M1) + tail;
    (small + f) + e
}

/// [`log2`] of positive normal numbers, to the bit.
#[inline(always)]
pub fn log2_normal<const FMA: bool>(x: f32) -> f32 {
    let (f, e) = split(x);
    compose2::<FMA>(f, e as f32)
}

/// The logarithm to base 2; exact at powers of two.
#[inline(always)]
pub fn log2<const FMA: bool>(x: f32) -> f32 {
    let (f, e) = split_any(x);
    limits(x, compose2::<FMA>(f, e))
}

/// `ln(1 + x)`, accurate near zero, where `log(1 + x)` would lose x's digits: -inf at -1, NaN below.
#[inline(always)]
pub fn ln_1p<const FMA: bool>(x: f32) -> f32 {
    let u = 1.0 + x;
    let (rounded_f, e) = split(u);
    // u lost digits of x, but its exponent is all that is needed of it: f = (1 + x) / 2^e - 1 is formed from x
    // itself, exactly but for the last sum. Beyond 2^24 the 1 is below x's last place and u serves.
    let scale = f32::from_bits((127i32.wrapping_sub(e) as u32) << 23);
    let exact_f = mad::<FMA>(x, scale, scale - 1.0);
    let f = if e > 24 { rounded_f } else { exact_f };
    // -0.0 is the one place where the signs would differ.
    limits(u, compose::<FMA>(f, e as f32)).copysign(x)
}

/// `ln(1 + x)` for `0 <= x <= 1` or NaN: [`ln_1p`] without its limits.
#[inline(always)]
pub(super) fn ln_1p_unit<const FMA: bool>(x: f32) -> f32 {
    // 1 + x is at most 2: halve it where it exceeds sqrt(2).
    let upper = x > std::f32::consts::SQRT_2 - 1.0;
    let f = if upper { mad::<FMA>(x, 0.5, -0.5) } else { x };
    compose::<FMA>(f, if upper { 1.0 } else { 0.0 })
}
