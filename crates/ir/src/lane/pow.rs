//! pow: x and y enter, `2^(y log2 |x|)` leaves, with C99's special cases.
//!
//! y multiplies the logarithm's error: `x^y` near the top of f32's range needs log2 to 2^-32. With fused multiply-add that is a pair
//! of f32, which takes 60 % of f64's time (10^6 powers took 990 us that way); without, pairs would need more instructions than f64 does.

use super::log::{split, split_any};
use super::round::round;
use super::{ROUNDER, ROUNDER64, mad64};

/// Bound of [`pow`]; measured 0.502 in f64, 1.30 in pairs.
pub const POW_ULP: f32 = 1.5;

/// A value as an f32 and what is beyond its last place.
type Pair = (f32, f32);

/// `log2(2^e (1 + f))` to 2^-33, by fused multiply-add.
#[inline(always)]
fn log2_pair(f: f32, e: f32) -> Pair {
    /// 2 / ln 2 in two parts.
    const SCALE: Pair = (2.885_39, 3.851_926e-8);
    let m = 1.0 + f;
    // log2 m = log2 a + 2 atanh(s) / ln 2 with s = (m - a) / (m + a), |s| < 0.07. The high part of log2 a has 12 bits behind the
    // point: its sum with e is exact.
    let (below, above) = (m < 0.9, m > 1.12);
    let a = if above { 1.25 } else { 1.0 };
    let a = if below { 0.812_5 } else { a };
    let log_a = if above { 0.322_021_48 } else { 0.0 };
    let log_a = if below { -0.299_560_55 } else { log_a };
    let log_a_rest = if above { -9.338_948_4e-5 } else { 0.0 };
    let log_a_rest = if below { 2.650_161e-7 } else { log_a_rest };
    // Exact, and exact with its rest: m and a have the same exponent, or a is 1 and has the larger one.
    let n = m - a;
    let d = m + a;
    let d_rest = m - (d - a);
    let inverse = 1.0 / d;
    let s = n * inverse;
    let s_rest = (-s).mul_add(d_rest, (-s).mul_add(d, n)) * inverse;
    let z = s * s;
    let tail = 0.414_548_83f32.mul_add(z, 0.577_073_7).mul_add(z, 0.961_796_7) * (z * s);
    let line = SCALE.0 * s;
    let line_rest = SCALE.0.mul_add(s, -line) + SCALE.0.mul_add(s_rest, SCALE.1 * s);
    // The first is 0 or the larger one: what is lost of the sum is exact.
    let whole = e + log_a;
    let high = whole + line;
    let lost = line - (high - whole);
    (high, lost + (line_rest + (tail + log_a_rest)))
}

/// `2^(y log)`.
#[inline(always)]
fn power_pair((high, low): Pair, y: f32) -> f32 {
    let z = y * high;
    // Outside +-200 the result is infinite or zero anyway, and the exponents below stay those of normal numbers.
    let rest = y.mul_add(low, y.mul_add(high, -z));
    let rest = if z.abs() < 200.0 { rest } else { 0.0 };
    let z = if z > 200.0 { 200.0 } else { z };
    let z = if z < -200.0 { -200.0 } else { z };
    let rounded = z + ROUNDER;
    let r = (z - (rounded - ROUNDER)) + rest;
    // 2^r, minimax error 2^-27.
    let p = 1.546_147e-4f32;
    let p = p.mul_add(r, 1.339_089_1e-3);
    let p = p.mul_add(r, 9.618_057e-3);
    let p = p.mul_add(r, 5.550_357e-2);
    let p = p.mul_add(r, 2.402_265e-1);
    let p = p.mul_add(r, std::f32::consts::LN_2);
    let p = p.mul_add(r, 1.0);
    // In two steps, of which the first is exact: a subnormal is rounded once.
    let exponent = (rounded.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32);
    let half = exponent >> 1;
    let scale = |exponent: i32| f32::from_bits((exponent.wrapping_add(127) << 23) as u32);
    p * scale(half) * scale(exponent.wrapping_sub(half))
}

/// `log2(2^e (1 + f))`, minimax error 2^-45 relative to `log2(1 + f)`.
#[inline(always)]
fn log2_wide(f: f32, e: f32) -> f64 {
    let f = f64::from(f);
    // log2(1 + f) = 2 atanh(s) / ln 2.
    let s = f / (f + 2.0);
    let z = s * s;
    let p = 0.282_900_732_274_538_3;
    let p = mad64::<false>(p, z, 0.319_905_645_816_856_65);
    let p = mad64::<false>(p, z, 0.412_209_253_976_425_55);
    let p = mad64::<false>(p, z, 0.577_077_942_344_038);
    let p = mad64::<false>(p, z, 0.961_796_694_113_439_5);
    let p = mad64::<false>(p, z, 2.885_390_081_777_85);
    mad64::<false>(p, s, f64::from(e))
}

/// `2^z` for `|z| <= 200`, minimax error 2^-33.
#[inline(always)]
fn exp2_wide(z: f64) -> f64 {
    let rounded = z + ROUNDER64;
    let r = z - (rounded - ROUNDER64);
    let p = 1.522_271_000_445_089_5e-5;
    let p = mad64::<false>(p, r, 1.546_109_433_247_777_6e-4);
    let p = mad64::<false>(p, r, 1.333_374_677_501_305_5e-3);
    let p = mad64::<false>(p, r, 9.618_057_661_028_974e-3);
    let p = mad64::<false>(p, r, 5.550_410_831_579_79e-2);
    let p = mad64::<false>(p, r, 2.402_265_092_307_582_8e-1);
    let p = mad64::<false>(p, r, 6.931_471_803_190_377e-1);
    let p = mad64::<false>(p, r, 1.0);
    p * f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52)
}

/// `2^(y log)`.
#[inline(always)]
fn power(log: f64, y: f32) -> f32 {
    // Outside +-200 the f32 is infinite or zero anyway, and the exponent stays a normal f64's.
    let z = log * f64::from(y);
    let z = if z > 200.0 { 200.0 } else { z };
    let z = if z < -200.0 { -200.0 } else { z };
    exp2_wide(z) as f32
}

/// [`pow`] of a positive normal x and a finite y, to the bit.
#[inline(always)]
pub fn pow_normal<const FMA: bool>(x: f32, y: f32) -> f32 {
    let (f, e) = split(x);
    let e = e as f32;
    if FMA { power_pair(log2_pair(f, e), y) } else { power(log2_wide(f, e), y) }
}

/// `|x|^y` for every |x|.
#[inline(always)]
fn pow_magnitude<const FMA: bool>(magnitude: f32, y: f32) -> f32 {
    let (f, e) = split_any(magnitude);
    let is_finite = magnitude < f32::INFINITY;
    // The logarithm of what is neither zero nor finite.
    let limit = if magnitude == 0.0 { f32::NEG_INFINITY } else { magnitude };
    let is_plain = is_finite & (magnitude != 0.0);
    if FMA {
        let (high, low) = log2_pair(f, e);
        power_pair((if is_plain { high } else { limit }, if is_plain { low } else { 0.0 }), y)
    } else {
        let log = log2_wide(f, e);
        power(if is_plain { log } else { f64::from(limit) }, y)
    }
}

/// `x^y` with the special cases of C99 (and so of numpy): `x^0` and `1^y` are 1 even for NaN, a negative x
/// gives NaN for a finite y that is no integer and keeps its sign for an odd one, `(-1)^(+-inf)` is 1.
#[inline(always)]
pub fn pow<const FMA: bool>(x: f32, y: f32) -> f32 {
    let magnitude = x.abs();
    let power = pow_magnitude::<FMA>(magnitude, y);

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
