// The functions behind the WGSL strings of the op table: lanes enter, lanes leave, equal to crates/ir/src/lane within
// the tolerances of tolerance.rs on every driver. A module gets those that it calls (prelude.rs), so there are no
// constants or types at module level, and every function begins with `fn` in the first column.
//
// What drivers may do, and none of it may break a function here:
// - contract a * b + c into one rounding, or not;
// - assume that there are no NaNs and infinities (fast math): these are told by bits, never by comparison;
// - reassociate sums and products (Mesa does): where that would cancel digits or leave the exponents' range, an operand
//   goes through `firm`, which is opaque, or a factor is no constant;
// - flush denormals;
// - be off by 2.5 ulp in a division, by more in sqrt, by far more in exp, log, pow, sin and tanh, which are not used;
// - say that NaN != NaN is false (naga's SPIR-V compares ordered).
// Functions that prelude.rs also writes for four lanes at a time name the type of a constant where operators and builtins take
// nothing but lanes of one type: `u32(23u)` becomes `vec4<u32>(23u)`.
// Loops are avoided: some drivers count their iterations and stop silently.

// ---- bits ----

// A float from its bits; infinities and NaNs can't be written as literals.
fn bits(b: u32) -> f32 {
    return bitcast<f32>(b);
}

fn inf() -> f32 {
    return bits(0x7f800000u);
}

fn nan() -> f32 {
    return bits(0x7fc00000u);
}

// The bits of |x|.
fn magnitude(x: f32) -> u32 {
    return bitcast<u32>(x) & u32(0x7fffffffu);
}

fn is_nan(x: f32) -> bool {
    return magnitude(x) > u32(0x7f800000u);
}

fn any_nan(x: f32, y: f32) -> bool {
    return max(magnitude(x), magnitude(y)) > 0x7f800000u;
}

// y, or x where that is NaN.
fn keep_nan(x: f32, y: f32) -> f32 {
    return select(y, x, is_nan(x));
}

// x with the sign of s.
fn copysign(x: f32, s: f32) -> f32 {
    return bitcast<f32>(magnitude(x) | (bitcast<u32>(s) & u32(0x80000000u)));
}

// x itself, if it has at most 22 significant bits; no compiler sees through it, so nothing moves across.
fn firm(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & u32(0xfffffffcu));
}

// x itself, as opaque as `firm` and for any x; n is a number of at most 22 significant bits.
fn firm_by(x: f32, n: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ (bitcast<u32>(n) & 3u));
}

// The first 11 significant bits of x; the product of two such is exact.
fn first11(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xffffe000u);
}

// 2^n for -126 <= n <= 127.
fn pow2(n: i32) -> f32 {
    return bitcast<f32>(bitcast<u32>(n + 127) << 23u);
}

// The integer n in the low 23 bits, which are all that a shift to the exponents leaves of it; |n| < 2^22. The sum is exact. A
// conversion to i32 would be bounded first.
fn low_bits(n: f32) -> u32 {
    return bitcast<u32>(n + 12582912.0);
}

// 2^n for the low bits of -126 <= n <= 127.
fn exp2_bits(n: u32) -> f32 {
    return bitcast<f32>((n << u32(23u)) + 0x3f800000u);
}

// 2^n for an integer -126 <= n <= 127.
fn exp2_whole(n: f32) -> f32 {
    return exp2_bits(low_bits(n));
}

// The high word of a * b.
fn mul_high(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let mid = a1 * b0 + ((a0 * b0) >> 16u);
    let mid2 = a0 * b1 + (mid & 0xffffu);
    return a1 * b1 + (mid >> 16u) + (mid2 >> 16u);
}

// ---- integers ----

fn floor_div_i(a: i32, b: i32) -> i32 {
    // MIN / -1 is undefined in some shading languages: as MIN / 1 it gives the wrapped result.
    let trap = (b == 0) || ((a == i32(-2147483647 - 1)) && (b == -1));
    let q = a / select(b, 1, trap);
    let r = a - q * b;
    let down = (r != 0) && ((r ^ b) < 0);
    return select(q - select(0, 1, down), 0, b == 0);
}

fn rem_i(a: i32, b: i32) -> i32 {
    let trap = (b == 0) || (b == -1);
    let d = select(b, 1, trap);
    let r = a - (a / d) * d;
    let other = (r != 0) && ((r ^ d) < 0);
    return select(r, r + d, other);
}

fn floor_div_u(a: u32, b: u32) -> u32 {
    return select(a / select(b, 1u, b == 0u), 0u, b == 0u);
}

fn rem_u(a: u32, b: u32) -> u32 {
    return a % select(b, 1u, b == 0u);
}

// WGSL takes the count modulo 32: here every bit is gone beyond 31, and a negative count is beyond.
fn shl_u(a: u32, b: u32) -> u32 {
    return select(a << (b & 31u), 0u, b > 31u);
}

fn shl_i(a: i32, b: i32) -> i32 {
    return bitcast<i32>(shl_u(bitcast<u32>(a), bitcast<u32>(b)));
}

fn shr_u(a: u32, b: u32) -> u32 {
    return select(a >> (b & 31u), 0u, b > 31u);
}

fn shr_i(a: i32, b: i32) -> i32 {
    return a >> min(bitcast<u32>(b), 31u);
}

// a // b for index arithmetic: b > 0, rounds down.
fn div_floor(a: i32, b: i32) -> i32 {
    let q = a / b;
    return q - select(0, 1, a - q * b < 0);
}

// a - b * (a // b) for b > 0: from 0 to b - 1.
fn mod_floor(a: i32, b: i32) -> i32 {
    let r = a - (a / b) * b;
    return select(r, r + b, r < 0);
}

// (result, square, exponent) after one bit of the exponent.
fn pow_bit(s: vec3<u32>) -> vec3<u32> {
    return vec3<u32>(s.x * select(1u, s.y, (s.z & 1u) == 1u), s.y * s.y, s.z >> 1u);
}

fn pow_byte(s: vec3<u32>) -> vec3<u32> {
    let h = pow_bit(pow_bit(pow_bit(pow_bit(s))));
    return pow_bit(pow_bit(pow_bit(pow_bit(h))));
}

fn pow_u(x: u32, y: u32) -> u32 {
    return pow_byte(pow_byte(pow_byte(pow_byte(vec3<u32>(1u, x, y))))).x;
}

fn pow_i(x: i32, y: i32) -> i32 {
    let p = bitcast<i32>(pow_u(bitcast<u32>(x), bitcast<u32>(y)));
    return select(p, 0, (y < 0) && (x != 1) && (x != -1));
}

// ---- casts and comparisons ----

fn i32_(x: f32) -> i32 {
    let m = magnitude(x);
    let inside = m < 0x4f000000u;
    let limit = select(2147483647, i32(-2147483647 - 1), bitcast<u32>(x) > 0x7fffffffu);
    return select(select(limit, 0, m > 0x7f800000u), i32(select(0.0, x, inside)), inside);
}

fn u32_(x: f32) -> u32 {
    let b = bitcast<u32>(x);
    // Positive floats are ordered as their bits; those below 0 have larger ones.
    let inside = b < 0x4f800000u;
    return select(select(0u, 0xffffffffu, b <= 0x7f800000u), u32(select(0.0, x, inside)), inside);
}

fn bool_(x: f32) -> u32 {
    return u32(magnitude(x) != 0u);
}

fn eq_(x: f32, y: f32) -> u32 {
    return u32((x == y) && !any_nan(x, y));
}

fn ne_(x: f32, y: f32) -> u32 {
    return 1u - eq_(x, y);
}

fn lt_(x: f32, y: f32) -> u32 {
    return u32((x < y) && !any_nan(x, y));
}

fn le_(x: f32, y: f32) -> u32 {
    return u32((x <= y) && !any_nan(x, y));
}

fn gt_(x: f32, y: f32) -> u32 {
    return lt_(y, x);
}

fn ge_(x: f32, y: f32) -> u32 {
    return le_(y, x);
}

// ---- floats ----

fn max_(x: f32, y: f32) -> f32 {
    return select(select(y, x, x > y), nan(), any_nan(x, y));
}

// max_ and min_ for a y that is not NaN.
fn max_to(x: f32, y: f32) -> f32 {
    return keep_nan(x, select(y, x, x > y));
}

fn min_to(x: f32, y: f32) -> f32 {
    return keep_nan(x, select(y, x, x < y));
}

fn min_(x: f32, y: f32) -> f32 {
    return select(select(y, x, x < y), nan(), any_nan(x, y));
}

fn sign_(x: f32) -> f32 {
    return keep_nan(x, select(copysign(1.0, x), 0.0, magnitude(x) == 0u));
}

// (r 2^s) mod m for s <= 20, r < m < 2^24: the quotient has 20 bits, so the one from floats is off by at most 1, and
// the remainder, which needs only its low 32 bits, shows it.
fn fmod_step(r: u32, m: u32, inverse: f32, left: i32) -> u32 {
    let s = clamp(left, 0, 20);
    let q = u32(f32(r) * pow2(s) * inverse);
    let t = bitcast<i32>((r << u32(s)) - q * m);
    let n = bitcast<i32>(m);
    let u = select(t, t + n, t < 0);
    return bitcast<u32>(select(u, u - n, u >= n));
}

// C's fmod, exact: both as integers times a power of two, 20 bits of the quotient at a time.
fn fmod_(a: f32, b: f32) -> f32 {
    let x = magnitude(a);
    let y = magnitude(b);
    if ((x >= 0x7f800000u) || (y == 0u) || (y > 0x7f800000u)) {
        return nan();
    }
    if (x < y) {
        return a;
    }
    let ex = max(x >> 23u, 1u);
    let ey = max(y >> 23u, 1u);
    let m = (y & 0x7fffffu) | select(0x800000u, 0u, y < 0x800000u);
    var r = ((x & 0x7fffffu) | select(0x800000u, 0u, x < 0x800000u)) % m;
    let inverse = 1.0 / f32(m);
    let k = i32(ex) - i32(ey);
    r = fmod_step(r, m, inverse, k);
    if (k > 20) {
        // k <= 253.
        r = fmod_step(r, m, inverse, k - 20);
        r = fmod_step(r, m, inverse, k - 40);
        r = fmod_step(r, m, inverse, k - 60);
        r = fmod_step(r, m, inverse, k - 80);
        r = fmod_step(r, m, inverse, k - 100);
        r = fmod_step(r, m, inverse, k - 120);
        r = fmod_step(r, m, inverse, k - 140);
        r = fmod_step(r, m, inverse, k - 160);
        r = fmod_step(r, m, inverse, k - 180);
        r = fmod_step(r, m, inverse, k - 200);
        r = fmod_step(r, m, inverse, k - 220);
        r = fmod_step(r, m, inverse, k - 240);
    }
    // r 2^(ey - 150), put together by bits: a denormal is one even where arithmetic would flush it.
    let f = bitcast<u32>(f32(r));
    let normal = i32(f >> 23u) + i32(ey) - 150 > 0;
    let scaled = select(r << min(ey - 1u, 31u), f + ((ey - 150u) << 23u), normal);
    return bitcast<f32>(select(scaled, 0u, r == 0u) | (bitcast<u32>(a) & 0x80000000u));
}

// x 2^64 for |x| < 2^60, by bits, so that a denormal is not flushed.
fn up64(x: f32) -> f32 {
    let b = magnitude(x);
    let scaled = select(bitcast<f32>(b + 0x20000000u), f32(b) * 2.5849394e-26, b < 0x800000u);
    return copysign(scaled, x);
}

// Is b so small that remainders may be denormal, and |a| < 2^60? Then both are multiplied by 2^64 first.
fn rem_tiny(a: f32, b: f32) -> bool {
    return (magnitude(b) < 0x21800000u) && (magnitude(a) < 0x5d800000u);
}

fn rem(a: f32, b: f32) -> f32 {
    let tiny = rem_tiny(a, b);
    let d = select(b, up64(b), tiny);
    let m = fmod_(select(a, up64(a), tiny), d);
    let other = ((bitcast<u32>(m) ^ bitcast<u32>(d)) >> 31u) == 1u;
    let shifted = select(m, m + d, other) * select(1.0, 5.421011e-20, tiny);
    return keep_nan(m, select(shifted, copysign(0.0, b), magnitude(m) == 0u));
}

fn floor_div(a: f32, b: f32) -> f32 {
    let tiny = rem_tiny(a, b);
    let n = select(a, up64(a), tiny);
    let d = select(b, up64(b), tiny);
    let m = fmod_(n, d);
    let signs = bitcast<f32>(bitcast<u32>(a) ^ bitcast<u32>(b));
    let other = (magnitude(m) != 0u) && (((bitcast<u32>(m) ^ bitcast<u32>(d)) >> 31u) == 1u);
    let q = (n - m) / d - select(0.0, 1.0, other);
    // The quotient is an integer up to its rounding.
    let low = floor(q);
    let snapped = low + select(0.0, 1.0, q - low > 0.5);
    let finite = select(snapped, copysign(0.0, signs), snapped == 0.0);
    let by_zero = select(copysign(inf(), signs), nan(), (magnitude(a) == 0u) || is_nan(a));
    return select(keep_nan(m, finite), by_zero, magnitude(b) == 0u);
}
