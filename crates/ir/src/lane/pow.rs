//! pow: x and y enter, `2^(y log2 |x|)` in f64 leaves, with C99's special cases.
//!
//! f64 because y multiplies the logarithm's error: `x^y` near the top of f32's range would need log2 to 2^-32.

use super::log::{split, split_any};
use super::round::round;
use super::{ROUNDER64, mad64};

/// Bound of [`pow`]; measured 0.502.
pub const POW_ULP: f32 = 1.0;

/// `log2(2^e (1 + f))`, minimax error 2^-45 relative to `log2(1 + f)`.
#[inline(always)]
fn log2_wide<const FMA: bool>(f: f32, e: f32) -> f64 {
    let f = f64::from(f);
    // log2(1 + f) = 2 atanh(s) / ln 2.
    let s = f / (f + 2.0);
    let z = s * s;
    let p = 0.282_900_732_274_538_3;
    let p = mad64::<FMA>(p, z, 0.319_905_645_816_856_65);
    let p = mad64::<FMA>(p, z, 0.412_209_253_976_425_55);
    let p = mad64::<FMA>(p, z, 0.577_077_942_344_038);
    let p = mad64::<FMA>(p, z, 0.961_796_694_113_439_5);
    let p = mad64::<FMA>(p, z, 2.885_390_081_777_85);
    mad64::<FMA>(p, s, f64::from(e))
}

/// `2^z` for `|z| <= 200`, minimax error 2^-33.
#[inline(always)]
fn exp2_wide<const FMA: bool>(z: f64) -> f64 {
    let rounded = z + ROUNDER64;
    let r = z - (rounded - ROUNDER64);
    let p = 1.522_271_000_445_089_5e-5;
    let p = mad64::<FMA>(p, r, 1.546_109_433_247_777_6e-4);
    let p = mad64::<FMA>(p, r, 1.333_374_677_501_305_5e-3);
    let p = mad64::<FMA>(p, r, 9.618_057_661_028_974e-3);
    let p = mad64::<FMA>(p, r, 5.550_410_831_579_79e-2);
    let p = mad64::<FMA>(p, r, 2.402_265_092_307_582_8e-1);
    let p = mad64::<FMA>(p, r, 6.931_471_803_190_377e-1);
    let p = mad64::<FMA>(p, r, 1.0);
    p * f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52)
}

/// `2^(y log)`.
#[inline(always)]
fn power<const FMA: bool>(log: f64, y: f32) -> f32 {
    // Outside +-200 the f32 is infinite or zero anyway, and the exponent stays a normal f64's.
    let z = log * f64::from(y);
    let z = if z > 200.0 { 200.0 } else { z };
    let z = if z < -200.0 { -200.0 } else { z };
    exp2_wide::<FMA>(z) as f32
}

/// [`pow`] of a positive normal x and a finite y, to the bit.
#[inline(always)]
pub fn pow_normal<const FMA: bool>(x: f32, y: f32) -> f32 {
    let (f, e) = split(x);
    power::<FMA>(log2_wide::<FMA>(f, e as f32), y)
}

/// `x^y` with the special cases of C99 (and so of numpy): `x^0` and `1^y` are 1 even for NaN, a negative x
/// gives NaN for a finite y that is no integer and keeps its sign for an odd one, `(-1)^(+-inf)` is 1.
#[inline(always)]
pub fn pow<const FMA: bool>(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let (f, e) = split_any(magnitude);
    let log = log2_wide::<FMA>(f, e);
    let log = if magnitude == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if magnitude < f32::INFINITY { log } else { f64::from(magnitude) };
    let power = power::<FMA>(log, y);

    // From 2^24 on, every f32 is an even integer; so is infinity, as C99 has it.
    let integer = round::<FMA>(y) == y;
    let half = 0.5 * y;
    let odd = integer & (round::<FMA>(half) != half);
    let negative = x.is_sign_negative();
    let power = if negative & odd { -power } else { power };
    let power = if (x < 0.0) & (x > f32::NEG_INFINITY) & !integer { f32::NAN } else { power };

    let unit_to_infinity = (magnitude == 1.0) & (y.abs() == f32::INFINITY);
    if (y == 0.0) | (x == 1.0) | unit_to_infinity { 1.0 } else { power }
}
