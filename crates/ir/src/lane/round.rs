//! floor, ceil, trunc and round: x enters, an integral float leaves, signed zeros as in IEEE 754.
//!
//! Every level with fused multiply-add has a rounding instruction, which the std methods become. SSE2 has
//! none: there the std methods would be library calls, and the addition of 2^23 does the rounding.

/// 2^23: f32s from here on are integers, and a sum with it has no fraction.
const INTEGERS: f32 = 8_388_608.0;

/// To the nearest integer, ties to even.
#[inline(always)]
pub fn round<const FMA: bool>(x: f32) -> f32 {
    if FMA {
        return x.round_ties_even();
    }
    let magnitude = x.abs();
    let rounded = ((magnitude + INTEGERS) - INTEGERS).copysign(x);
    // Not `>=`: NaN must take the first arm.
    if magnitude < INTEGERS { rounded } else { x }
}

/// To the largest integer not above.
#[inline(always)]
pub fn floor<const FMA: bool>(x: f32) -> f32 {
    if FMA {
        return x.floor();
    }
    let rounded = round::<false>(x);
    let down = if rounded > x { 1.0 } else { 0.0 };
    // The sign is x's even where the result is zero.
    (rounded - down).copysign(x)
}

/// To the smallest integer not below.
#[inline(always)]
pub fn ceil<const FMA: bool>(x: f32) -> f32 {
    if FMA {
        return x.ceil();
    }
    let rounded = round::<false>(x);
    let up = if rounded < x { 1.0 } else { 0.0 };
    (rounded + up).copysign(x)
}

/// Towards zero.
#[inline(always)]
pub fn trunc<const FMA: bool>(x: f32) -> f32 {
    if FMA {
        return x.trunc();
    }
    let magnitude = x.abs();
    let rounded = round::<false>(magnitude);
    let down = if rounded > magnitude { 1.0 } else { 0.0 };
    (rounded - down).copysign(x)
}
