//! sin, cos and tan: x enters, is reduced by a multiple of pi in f64, and a polynomial of the rest leaves.
//!
//! f64 halves the lanes of a vector, but an f32 reduction needs three parts of pi, stops at about 10^5 and
//! loses the relative accuracy near multiples of pi; in f64 two parts are good to [`TRIG_FAST_BOUND`], and the
//! result is the rounded one in nearly every lane. A caller patches the lanes beyond with the `*_slow` form.

use super::{ROUNDER64, mad64};

/// Largest magnitude for which [`sin`], [`cos`] and [`tan`] hold their bounds: 2^24. Beyond it (infinities
/// and NaN excepted, which give NaN) call [`sin_slow`], [`cos_slow`] and [`tan_slow`].
pub const TRIG_FAST_BOUND: f32 = 16_777_216.0;

/// Bound of [`sin`]; measured 0.501.
pub const SIN_ULP: f32 = 1.0;
/// Bound of [`cos`]; measured 0.501.
pub const COS_ULP: f32 = 1.0;
/// Bound of [`tan`]; measured 1.96.
pub const TAN_ULP: f32 = 2.0;

/// The first 29 bits of pi: a multiple by a number of 24 bits is exact in f64, fused or not.
const PI_HI: f64 = 3.141_592_651_605_606;
/// `pi - PI_HI`; a multiple within the bound is off by less than 2^-58, and of all f32 within it none is nearer
/// than 2^-27.8 to a nonzero multiple of pi / 2.
const PI_LO: f64 = 1.984_187_159_361_081e-9;

/// `sin(r)` for `|r| <= pi / 2`: minimax error 2^-35.
#[inline(always)]
fn sin_half_turn<const FMA: bool>(r: f64) -> f64 {
    let s = r * r;
    let p = -2.388_868_655_044_288_4e-8;
    let p = mad64::<FMA>(p, s, 2.752_537_211_655_703_8e-6);
    let p = mad64::<FMA>(p, s, -1.984_086_797_659_625_3e-4);
    let p = mad64::<FMA>(p, s, 8.333_331_106_861_885e-3);
    let p = mad64::<FMA>(p, s, -1.666_666_662_610_852_6e-1);
    // r (1 + ...) rather than r + r (...): -0.0 stays -0.0.
    r * mad64::<FMA>(p, s, 1.0)
}

/// `v`, negated where the low bit of `parity` is set.
#[inline(always)]
fn negate_if_odd(v: f64, parity: u64) -> f64 {
    f64::from_bits(v.to_bits() ^ (parity << 63))
}

/// Sine, for `|x| <= TRIG_FAST_BOUND`.
#[inline(always)]
pub fn sin<const FMA: bool>(x: f32) -> f32 {
    let x = f64::from(x);
    let rounded = mad64::<FMA>(x, std::f64::consts::FRAC_1_PI, ROUNDER64);
    let n = rounded - ROUNDER64;
    let r = mad64::<FMA>(n, -PI_LO, mad64::<FMA>(n, -PI_HI, x));
    negate_if_odd(sin_half_turn::<FMA>(r), rounded.to_bits()) as f32
}

/// Cosine, for `|x| <= TRIG_FAST_BOUND`.
#[inline(always)]
pub fn cos<const FMA: bool>(x: f32) -> f32 {
    let x = f64::from(x);
    // cos x = (-1)^n sin((n + 1/2) pi - x): the zeros of cos are where the rest is zero, so that they keep
    // their relative accuracy.
    let rounded = mad64::<FMA>(x, std::f64::consts::FRAC_1_PI, -0.5) + ROUNDER64;
    let n = rounded - ROUNDER64 + 0.5;
    let r = mad64::<FMA>(n, PI_LO, mad64::<FMA>(n, PI_HI, -x));
    negate_if_odd(sin_half_turn::<FMA>(r), rounded.to_bits()) as f32
}

/// Tangent, for `|x| <= TRIG_FAST_BOUND`.
#[inline(always)]
pub fn tan<const FMA: bool>(x: f32) -> f32 {
    let x = f64::from(x);
    let rounded = mad64::<FMA>(x, std::f64::consts::FRAC_2_PI, ROUNDER64);
    let n = rounded - ROUNDER64;
    let r = mad64::<FMA>(n, -0.5 * PI_LO, mad64::<FMA>(n, -0.5 * PI_HI, x));
    let s = r * r;
    // sin r, |r| <= pi / 4: minimax error 2^-37.
    let p = 2.718_116_052_393_051_7e-6;
    let p = mad64::<FMA>(p, s, -1.983_931_168_732_085_6e-4);
    let p = mad64::<FMA>(p, s, 8.333_329_302_933_21e-3);
    let p = mad64::<FMA>(p, s, -1.666_666_664_077_625_6e-1);
    let sin_r = r * mad64::<FMA>(p, s, 1.0);
    // cos r, |r| <= pi / 4: minimax error 2^-33.
    let q = 2.438_350_689_222_962_3e-5;
    let q = mad64::<FMA>(q, s, -1.388_668_100_423_029e-3);
    let q = mad64::<FMA>(q, s, 4.166_662_033_532_219e-2);
    let q = mad64::<FMA>(q, s, -4.999_999_969_422_652e-1);
    let cos_r = mad64::<FMA>(q, s, 1.0);
    // tan is sin r / cos r, or -cos r / sin r an odd number of quarter turns on. The f32 quotient costs a
    // third of the f64 one, and an ulp.
    let odd = rounded.to_bits() & 1 == 1;
    let numerator = if odd { -cos_r } else { sin_r };
    let denominator = if odd { sin_r } else { cos_r };
    numerator as f32 / denominator as f32
}

/// Sine of any x: a library call, for the lanes beyond [`TRIG_FAST_BOUND`].
#[inline]
pub fn sin_slow(x: f32) -> f32 {
    f64::from(x).sin() as f32
}

/// Cosine of any x: a library call, for the lanes beyond [`TRIG_FAST_BOUND`].
#[inline]
pub fn cos_slow(x: f32) -> f32 {
    f64::from(x).cos() as f32
}

/// Tangent of any x: a library call, for the lanes beyond [`TRIG_FAST_BOUND`].
#[inline]
pub fn tan_slow(x: f32) -> f32 {
    f64::from(x).tan() as f32
}
