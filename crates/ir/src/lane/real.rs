//! What remains of the arithmetic of floats: sign, extrema, reciprocal root, and numpy's `%` and `//`.

/// Bound of [`rsqrt`]: two correct roundings; measured 1.49.
pub const RSQRT_ULP: f32 = 1.5;

/// `1 / sqrt(x)`: inf at 0, -inf at -0.0, NaN below.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// -1, 0 or 1; 0.0 at -0.0 too, NaN at NaN, as numpy has it.
#[inline(always)]
pub fn sign(x: f32) -> f32 {
    let zero_or_nan = if x == 0.0 { 0.0 } else { x };
    let nonneg = if x > 0.0 { 1.0 } else { zero_or_nan };
    if x < 0.0 { -1.0 } else { nonneg }
}

/// The larger one, or NaN if either is.
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    let larger = if a > b { a } else { b };
    // The sum is a NaN with the payload of one of them. The shorter `if a.is_nan() { a }` is left scalar by
    // LLVM 22 in chunks of lanes: 1.65 cycles an element against 0.20.
    if a.is_nan() | b.is_nan() { a + b } else { larger }
}

/// The smaller one, or NaN if either is.
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    let smaller = if a < b { a } else { b };
    if a.is_nan() | b.is_nan() { a + b } else { smaller }
}

/// numpy's `remainder`: exact, with the sign of the divisor, NaN where `b` is 0 or `a` infinite. Calls the
/// library's `fmodf`, because an exact remainder takes a loop over the quotient's bits.
#[inline(always)]
pub fn rem(a: f32, b: f32) -> f32 {
    let m = a % b;
    let other_side = (b < 0.0) != (m < 0.0);
    let shifted = if other_side { m + b } else { m };
    // `b == 0.0` gives NaN, which is not zero and stays.
    if m == 0.0 { 0.0f32.copysign(b) } else { shifted }
}

/// numpy's `floor_divide`: the integer q with `a = q b + rem(a, b)`; `a / b` where `b` is 0. Calls `fmodf`.
#[inline(always)]
pub fn floor_div(a: f32, b: f32) -> f32 {
    let m = a % b;
    let quotient = (a - m) / b;
    let other_side = (m != 0.0) & ((b < 0.0) != (m < 0.0));
    let quotient = if other_side { quotient - 1.0 } else { quotient };
    // The quotient is an integer up to its rounding: snap it to the nearest.
    let low = quotient.floor();
    let snapped = if quotient - low > 0.5 { low + 1.0 } else { low };
    let snapped = if quotient == 0.0 { 0.0f32.copysign(a / b) } else { snapped };
    if b == 0.0 { a / b } else { snapped }
}
