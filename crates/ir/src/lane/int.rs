//! Integer division, powers and casts with numpy's semantics: no traps, no branches.
//!
//! There is no vector instruction for integer division. A quotient of two 32-bit integers in f64 is off by
//! less than the distance to the next integer, so rounding it gives the floor or one more; the remainder's
//! sign tells which.

use super::{ROUNDER, ROUNDER64, mad64};

/// The quotient rounded to an integer, modulo 2^32; anything where it is no number.
#[inline(always)]
fn nearest(quotient: f64) -> u32 {
    (quotient + ROUNDER64).to_bits() as u32
}

/// The same of a quotient by a number with this inverse. It is off by 2^-20 more, which leaves the floor or one more, too.
#[inline(always)]
fn nearest_by<const FMA: bool>(a: f64, inverse: f64) -> u32 {
    mad64::<FMA>(a, inverse, ROUNDER64).to_bits() as u32
}

/// `(a // b, a % b)` for `b != 0`, where the quotient is `q` or one less.
#[inline(always)]
fn settle_i32(a: i32, b: i32, q: i32) -> (i32, i32) {
    let r = a.wrapping_sub(q.wrapping_mul(b));
    let too_high = (r != 0) & ((r ^ b) < 0);
    (q.wrapping_sub(i32::from(too_high)), if too_high { r.wrapping_add(b) } else { r })
}

/// `(a // b, a % b)` for `b != 0`, where the quotient is `q` or one less.
#[inline(always)]
fn settle_u32(a: u32, b: u32, q: u32) -> (u32, u32) {
    // |r| <= b / 2 < 2^31: the sign bit is the sign.
    let r = a.wrapping_sub(q.wrapping_mul(b));
    let too_high = (r as i32) < 0;
    (q.wrapping_sub(u32::from(too_high)), if too_high { r.wrapping_add(b) } else { r })
}

/// `(a // b, a % b)` for `b != 0`.
#[inline(always)]
fn div_rem_i32(a: i32, b: i32) -> (i32, i32) {
    settle_i32(a, b, nearest(f64::from(a) / f64::from(b)) as i32)
}

/// `(a // b, a % b)` for `b != 0`.
#[inline(always)]
fn div_rem_u32(a: u32, b: u32) -> (u32, u32) {
    settle_u32(a, b, nearest(f64::from(a) / f64::from(b)))
}

/// `(a // b, a % b)` for `b != 0` and its inverse in f64: for many numbers that are divided by one.
#[inline(always)]
pub fn div_rem_by_i32<const FMA: bool>(a: i32, b: i32, inverse: f64) -> (i32, i32) {
    settle_i32(a, b, nearest_by::<FMA>(f64::from(a), inverse) as i32)
}

/// `(a // b, a % b)` for `b != 0` and its inverse in f64: for many numbers that are divided by one.
#[inline(always)]
pub fn div_rem_by_u32<const FMA: bool>(a: u32, b: u32, inverse: f64) -> (u32, u32) {
    settle_u32(a, b, nearest_by::<FMA>(f64::from(a), inverse))
}

/// `a // b` rounded down: 0 where b is 0; `i32::MIN // -1` wraps to `i32::MIN`.
#[inline(always)]
pub fn floor_div_i32(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { div_rem_i32(a, b).0 }
}

/// `a % b` with the sign of b: 0 where b is 0.
#[inline(always)]
pub fn rem_i32(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { div_rem_i32(a, b).1 }
}

/// `a // b`: 0 where b is 0.
#[inline(always)]
pub fn floor_div_u32(a: u32, b: u32) -> u32 {
    if b == 0 { 0 } else { div_rem_u32(a, b).0 }
}

/// `a % b`: 0 where b is 0.
#[inline(always)]
pub fn rem_u32(a: u32, b: u32) -> u32 {
    if b == 0 { 0 } else { div_rem_u32(a, b).1 }
}

/// -1, 0 or 1. (`signum` compares three ways, which does not become vector code.)
#[inline(always)]
pub fn sign_i32(x: i32) -> i32 {
    i32::from(x > 0) - i32::from(x < 0)
}

/// `(result, square, exponent)` after one bit of the exponent.
#[inline(always)]
fn pow_bit((result, square, exponent): (u32, u32, u32)) -> (u32, u32, u32) {
    let factor = if exponent & 1 == 1 { square } else { 1 };
    (result.wrapping_mul(factor), square.wrapping_mul(square), exponent >> 1)
}

/// Eight bits of the exponent, written out: a loop inside a lane may keep the loop over lanes from
/// becoming vector code.
#[inline(always)]
fn pow_byte(state: (u32, u32, u32)) -> (u32, u32, u32) {
    let state = pow_bit(pow_bit(pow_bit(pow_bit(state))));
    pow_bit(pow_bit(pow_bit(pow_bit(state))))
}

/// `base^exponent` modulo 2^32; `0^0` is 1.
#[inline(always)]
pub fn pow_u32(base: u32, exponent: u32) -> u32 {
    pow_byte(pow_byte(pow_byte(pow_byte((1, base, exponent))))).0
}

/// `base^exponent`, wrapping. numpy refuses negative exponents; here they give the true value rounded
/// towards zero, which is 1 for base 1, +-1 for base -1, and 0 otherwise (0 for base 0 too).
#[inline(always)]
pub fn pow_i32(base: i32, exponent: i32) -> i32 {
    // Modulo 2^32 a signed product is the unsigned one. (+-1)^-n = (+-1)^n, and only the parity of n matters,
    // so the bits of the negative exponent serve as they are.
    let power = pow_u32(base as u32, exponent as u32) as i32;
    let unit = (base == 1) | (base == -1);
    if (exponent < 0) & !unit { 0 } else { power }
}

/// The integer part of `0 <= x <= 2^32`, modulo 2^32. Not a cast: a saturating one does not become vector code
/// (3.1 cycles an element with AVX2 and 6.4 with AVX-512, against 0.6-0.9 and 0.4-0.5).
#[inline(always)]
fn integer_part(x: f32) -> u32 {
    // x = 2^16 high + low with |low| <= 2^15: each fits the low bits of a rounded sum.
    let high = x * (1.0 / 65_536.0) + ROUNDER;
    let low = x - (high - ROUNDER) * 65_536.0;
    let rounded = low + ROUNDER;
    let up = u32::from(rounded - ROUNDER > low);
    // The shift drops the bits of ROUNDER itself from the high part.
    (high.to_bits() << 16).wrapping_add(rounded.to_bits()).wrapping_sub(ROUNDER.to_bits() + up)
}

/// Towards zero, saturating; 0 for NaN. numpy leaves out-of-range casts to the machine.
#[inline(always)]
pub fn to_i32(x: f32) -> i32 {
    const LIMIT: f32 = 2_147_483_648.0;
    let magnitude = x.abs();
    // Also replaces NaN.
    let bounded = if magnitude < LIMIT { magnitude } else { LIMIT };
    let integer = integer_part(bounded) as i32;
    let signed = if x < 0.0 { integer.wrapping_neg() } else { integer };
    let saturated = if x >= LIMIT { i32::MAX } else { signed };
    if x.is_nan() { 0 } else { saturated }
}

/// Towards zero, saturating; 0 for NaN. numpy leaves out-of-range casts to the machine.
#[inline(always)]
pub fn to_u32(x: f32) -> u32 {
    const LIMIT: f32 = 4_294_967_296.0;
    // Also replaces NaN.
    let bounded = if x > 0.0 { x } else { 0.0 };
    let bounded = if bounded > LIMIT { LIMIT } else { bounded };
    let integer = integer_part(bounded);
    if x >= LIMIT { u32::MAX } else { integer }
}
