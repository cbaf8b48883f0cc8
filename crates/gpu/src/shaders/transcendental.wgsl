// The second half of the prelude (rules and hazards: see prelude.wgsl): exp, log, pow, trigonometry, activations.

// ---- exponentials ----

// n with x = n ln 2 + r and |r| <= 0.3468.
fn exp_whole(x: f32) -> f32 {
    return round(x * 1.4426950408889634);
}

// r for that n.
fn exp_rest(x: f32, n: f32) -> f32 {
    // 355 / 512 has 10 bits: the product is exact.
    return (x - n * 0.693359375) + firm(n) * 2.1219444e-4;
}

// Both.
fn exp_reduce(x: f32) -> vec2<f32> {
    let n = exp_whole(x);
    return vec2<f32>(exp_rest(x, n), n);
}

// e^r - 1 for |r| <= 0.3468. In pairs: what does not depend on each other is computed at the same time.
fn exp_m1_reduced(r: f32) -> f32 {
    let s = r * r;
    let high = 1.3836458e-3 * s + (8.367134e-3 * r + 4.166775e-2);
    let p = high * s + (1.6666539e-1 * r + 4.9999997e-1);
    return p * s + r;
}

// (m, first, second, whole) with e^(hi + lo) = (1 + m) first second, for -127 <= hi <= 0 of at most 22 bits and |lo| <
// 0.3. A caller multiplies by `first`, does its arithmetic on normal numbers, and then by `second`, which is the only
// rounding of a denormal result. Neither is a constant, which compilers would move. `whole` is the product of both, or
// 2^-126 where it would be less.
fn exp_neg_parts(hi: f32, lo: f32) -> vec4<f32> {
    let n = round((hi + lo) * 1.4426950408889634);
    let r = (firm(hi - n * 0.693359375) + lo) + firm(n) * 2.1219444e-4;
    let k = low_bits(n);
    let first = k >> 1u;
    let whole = exp2_whole(max(n, -126.0));
    return vec4<f32>(exp_m1_reduced(r), exp2_bits(first), exp2_bits(k - first), whole);
}

fn exp_(x: f32) -> f32 {
    let y = clamp(x, f32(-120.0), f32(89.0));
    let whole = exp_whole(y);
    let n = low_bits(whole);
    let first = n >> u32(1u);
    // Two factors: 2^n itself may be beyond the exponents at both ends. The first is added to the exponent.
    let scaled = bitcast<u32>(exp_m1_reduced(exp_rest(y, whole)) + 1.0) + (first << u32(23u));
    return keep_nan(x, bitcast<f32>(scaled) * exp2_bits(n - first));
}

fn expm1(x: f32) -> f32 {
    let s = exp_reduce(clamp(x, -20.0, 89.0));
    // Half the result, because 2^128 is no f32.
    let scale = exp2_whole(s.y - 1.0);
    let y = 2.0 * (scale * exp_m1_reduced(s.x) + (firm(scale) - 0.5));
    return select(keep_nan(x, y), x, magnitude(x) < 0x33000000u);
}

// ---- logarithms ----

// (m, e) with |x| = 2^e m and sqrt(1/2) <= m < sqrt(2); x is not 0, but may be denormal.
fn log_split(x: f32) -> vec2<f32> {
    let b = magnitude(x);
    let tiny = b < 0x00800000u;
    // A denormal is its bits, times 2^-149.
    let shifted = select(b, bitcast<u32>(f32(b)), tiny) - 0x3f3504f3u;
    let m = bitcast<f32>((shifted & 0x7fffffu) + 0x3f3504f3u);
    return vec2<f32>(m, f32((bitcast<i32>(shifted) >> 23u) - select(0, 149, tiny)));
}

// ln(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2).
fn log_tail(f: f32) -> f32 {
    var p = -7.631891e-2 * f + 1.2761407e-1;
    p = p * f - 1.3160595e-1;
    p = p * f + 1.4201632e-1;
    p = p * f - 1.6623321e-1;
    p = p * f + 2.0001243e-1;
    p = p * f - 2.5000823e-1;
    p = p * f + 3.333333e-1;
    return (p * f - 0.5) * (f * f);
}

// e ln 2 + ln(1 + f).
fn log_compose(f: f32, e: f32) -> f32 {
    return e * 0.693359375 + (f + (firm(e) * -2.1219444e-4 + log_tail(f)));
}

// y, but -inf where x is 0, NaN below, x where that is inf or NaN.
fn log_limits(x: f32, y: f32) -> f32 {
    let b = bitcast<u32>(x);
    let negative = select(nan(), bits(0xff800000u), (b & 0x7fffffffu) == 0u);
    let finite = select(y, negative, (b > 0x7fffffffu) || (b == 0u));
    return select(finite, x, (b == 0x7f800000u) || is_nan(x));
}

fn log_(x: f32) -> f32 {
    let s = log_split(x);
    return log_limits(x, log_compose(s.x - 1.0, s.y));
}

fn log2_(x: f32) -> f32 {
    let s = log_split(x);
    let f = s.x - 1.0;
    let t = log_tail(f);
    return log_limits(x, ((t * 0.44269504 + f * 0.44269504 + t) + f) + s.y);
}

fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let s = log_split(u);
    // u lost digits of x, but its exponent is all that is needed of it: f = (1 + x) / 2^e - 1 is formed from x.
    let scale = pow2(clamp(-i32(s.y), -126, 127));
    let f = select(x * scale + (firm(scale) - 1.0), s.x - 1.0, s.y > 24.0);
    let y = copysign(log_limits(u, log_compose(f, s.y)), x);
    // Below 2^-25 it rounds to x, denormals too.
    return select(keep_nan(x, y), x, magnitude(x) < 0x33000000u);
}

// ln(1 + x) for 0 <= x <= 1.
fn log1p_unit(x: f32) -> f32 {
    let upper = x > 0.41421354;
    return log_compose(select(x, x * 0.5 - 0.5, upper), select(0.0, 1.0, upper));
}

// x^y = 2^(y log2 |x|) with C99's special cases. The logarithm is a sum of two floats good to about 2^-30, because y
// multiplies its error; all products that matter are of few bits, and exact.
fn pow_(x: f32, y: f32) -> f32 {
    let mx = magnitude(x);
    let my = magnitude(y);
    let split = log_split(x);
    // log2 m = log2 a + 2 atanh(s) / ln 2, s = (m - a) / (m + a), |s| < 0.07.
    let m = split.x;
    let below = m < 0.9;
    let above = m > 1.12;
    let a = select(select(1.0, 1.25, above), 0.8125, below);
    let log_a = select(select(0.0, 0.322021484375, above), -0.299560546875, below);
    let log_a_rest = select(select(0.0, -9.33894876e-5, above), 2.6501609e-7, below);
    let f = m - a;
    let d = m + a;
    let m_high = bitcast<f32>(bitcast<u32>(m) & 0xfffff000u);
    let s_high = bitcast<f32>(bitcast<u32>(f / d) & 0xffffc000u);
    let s_low = (firm(f - s_high * (m_high + a)) - s_high * (m - m_high)) / d;
    let s = s_high + s_low;
    let w = s * s;
    let series = s * w * (0.9617967 + w * (0.577078 + w * 0.41219858));
    // 2 / ln 2 = 2955 / 1024 - 3.52e-4.
    let first = s_high * 2.8857421875;
    let rest = log_a_rest + (s_high * -3.521057221e-4 + (s_low * 2.88539 + series));
    let known = split.y + log_a;
    let log = known + (first + rest);
    let log_high = first11(log);
    let log_low = firm(firm(known - log_high) + first) + rest;

    let at_limit = (mx == 0u) || (mx >= 0x7f800000u);
    let toward = select(-1000.0, 1000.0, (mx != 0u) == (bitcast<u32>(y) <= 0x7fffffffu));
    let z = select(y * log, toward, at_limit);
    let over = z > 130.0;
    let under = z < -152.0;
    let v = select(y, 0.0, over || under || at_limit || (my >= 0x7f800000u));
    let v_high = first11(v);
    let product = v_high * log_high;
    let remainder = (v - v_high) * log_high + v * log_low;
    let n = round(product + remainder);
    let r = firm(product - n) + remainder;
    let scale = i32(n);
    let half_scale = scale >> 1u;
    let finite = (firm_by(exp_m1_reduced(r * 0.6931472), n) + 1.0) * pow2(half_scale) * pow2(scale - half_scale);
    let positive = select(select(finite, inf(), over), 0.0, under);

    // From 2^24 on, every float is an even integer; infinity counts as one.
    let even = my >= 0x4b800000u;
    let integer = even || (floor(y) == y);
    let odd = !even && integer && (floor(0.5 * y) < 0.5 * y);
    let negative = bitcast<u32>(x) > 0x7fffffffu;
    let signed_power = select(positive, -positive, negative && odd);
    let undefined = (negative && !at_limit && !integer) || any_nan(x, y);
    let unit = (my == 0u) || (bitcast<u32>(x) == 0x3f800000u) || ((mx == 0x3f800000u) && (my == 0x7f800000u));
    return select(select(signed_power, nan(), undefined), 1.0, unit);
}

// ---- trigonometry ----

// (r, correction of r, n): |x| = n pi / 2 + r modulo 2 pi, |r| <= pi / 4. In integers, after Payne and Hanek: exact for
// every finite x, with relative accuracy near the multiples. The last is n as a float, 0 to 3.
fn quarter_turns(x: f32) -> vec3<f32> {
    let b = magnitude(x);
    if (b <= 0x3f490fdbu) {
        return vec3<f32>(abs(x), 0.0, 0.0);
    }
    let m = (b & 0x7fffffu) | 0x800000u;
    // |x| = m 2^(e - 150), e >= 126. The bits of 2 / pi that matter begin e - 152 after its point; words of it are
    // shifted until they lead, 32 zeros first.
    let skip = (b >> 23u) - 120u;
    let far = skip >= 128u;
    let w0 = select(0u, 0xf534ddc0u, far);
    let w1 = select(0xa2f9836eu, 0xdb629599u, far);
    let w2 = select(0x4e441529u, 0x3c439041u, far);
    let w3 = select(0xfc2757d1u, 0xfe5163abu, far);
    let w4 = 0xf534ddc0u;
    let w5 = 0xdb629599u;
    let two = (skip & 64u) != 0u;
    let v0 = select(w0, w2, two);
    let v1 = select(w1, w3, two);
    let v2 = select(w2, w4, two);
    let v3 = select(w3, w5, two);
    let v4 = select(w4, 0x3c439041u, two);
    let one = (skip & 32u) != 0u;
    let u0 = select(v0, v1, one);
    let u1 = select(v1, v2, one);
    let u2 = select(v2, v3, one);
    let u3 = select(v3, v4, one);
    let left = skip & 31u;
    let right = 31u - left;
    let t2 = (u0 << left) | ((u1 >> 1u) >> right);
    let t1 = (u1 << left) | ((u2 >> 1u) >> right);
    let t0 = (u2 << left) | ((u3 >> 1u) >> right);
    // m times those 96 bits, of which the middle 64 count: 2 bits of n, then the fraction of a quarter turn.
    let middle = m * t1;
    let low = middle + mul_high(m, t0);
    let high = m * t2 + mul_high(m, t1) + select(0u, 1u, low < middle);
    let n = (high + 0x20000000u) >> 30u;
    let rest = high - (n << 30u);
    let negative = rest > 0x7fffffffu;
    let h = select(rest, ~rest + select(0u, 1u, low == 0u), negative);
    let l = select(low, ~low + 1u, negative);
    let zeros = min(countLeadingZeros(h), 31u);
    let fraction = (h << zeros) | ((l >> 1u) >> (31u - zeros));
    // Times pi / 2.
    let p = mul_high(fraction, 0xc90fdaa2u);
    let scale = bitcast<f32>(((98u - zeros) << 23u) | select(0u, 0x80000000u, negative));
    return vec3<f32>(f32(p & 0xffffff00u) * scale, f32(p & 0xffu) * scale, f32(n & 3u));
}

// sin(r + low) for |r| <= pi / 4.
fn sin_reduced(r: f32, low: f32) -> f32 {
    let s = r * r;
    let p = s * (-0.16666667 + s * (8.333329e-3 + s * (-1.9839335e-4 + s * 2.7183114e-6)));
    return r + (low + r * p);
}

// cos(r + low) for |r| <= pi / 4.
fn cos_reduced(r: f32, low: f32) -> f32 {
    let s = r * r;
    let q = s * s * (4.1666623e-2 + s * (-1.3886764e-3 + s * 2.4390449e-5));
    return 1.0 - (0.5 * s - (q - r * low));
}

// y, or NaN where x is infinite or NaN.
fn if_finite(x: f32, y: f32) -> f32 {
    return select(y, nan(), magnitude(x) >= 0x7f800000u);
}

fn sin_(x: f32) -> f32 {
    let t = quarter_turns(x);
    let n = u32(t.z);
    let y = select(sin_reduced(t.x, t.y), cos_reduced(t.x, t.y), (n & 1u) == 1u);
    let flip = ((n & 2u) << 30u) ^ (bitcast<u32>(x) & 0x80000000u);
    return if_finite(x, bitcast<f32>(bitcast<u32>(y) ^ flip));
}

fn cos_(x: f32) -> f32 {
    let t = quarter_turns(x);
    let n = u32(t.z);
    let y = select(cos_reduced(t.x, t.y), sin_reduced(t.x, t.y), (n & 1u) == 1u);
    return if_finite(x, bitcast<f32>(bitcast<u32>(y) ^ (((n + 1u) & 2u) << 30u)));
}

fn tan_(x: f32) -> f32 {
    let t = quarter_turns(x);
    let odd = (u32(t.z) & 1u) == 1u;
    let s = sin_reduced(t.x, t.y);
    let c = cos_reduced(t.x, t.y);
    let y = select(s, -c, odd) / select(c, s, odd);
    return if_finite(x, bitcast<f32>(bitcast<u32>(y) ^ (bitcast<u32>(x) & 0x80000000u)));
}

// ---- tanh, erf and activations ----

fn tanh_(x: f32) -> f32 {
    let t = max(-2.0 * abs(x), f32(-20.0));
    let n = exp_whole(t);
    let p = exp_m1_reduced(exp_rest(t, n));
    let scale = exp2_whole(n);
    let y = ((1.0 - firm(scale)) - scale * p) / ((1.0 + firm(scale)) + scale * p);
    return keep_nan(x, copysign(y, x));
}

fn erf(x: f32) -> f32 {
    let s = x * x;
    var p = -5.970536e-4 * s + 4.9894857e-3;
    p = p * s - 2.6764391e-2;
    p = p * s + 1.1281768e-1;
    p = p * s - 3.7612492e-1;
    p = p * s + 1.2837915e-1;
    let near = p * x + x;

    let t = min(abs(x), 4.0);
    var q = -2.1372849e-4 * t + 3.2128226e-3;
    q = q * t - 2.2883074e-2;
    q = q * t + 1.0525103e-1;
    q = q * t + 6.357266e-1;
    q = q * t + 1.285119e-1;
    let r = exp_reduce(-(q * t + t));
    let scale = exp2_whole(r.y);
    let far = copysign((1.0 - scale) - scale * exp_m1_reduced(r.x), x);
    return keep_nan(x, select(far, near, t < 0.9277));
}

// 1 / (1 + e^-x). Where e^-x may be beyond the exponents, it and both ones are divided by 2^64.
fn sigmoid(x: f32) -> f32 {
    let t = clamp(-x, f32(-87.0), f32(104.0));
    let whole = exp_whole(t);
    let far = whole > f32(90.0);
    let one = select(f32(1.0), f32(5.421011e-20), far);
    let n = low_bits(whole) - select(u32(0u), u32(64u), far);
    let e = bitcast<f32>(bitcast<u32>(exp_m1_reduced(exp_rest(t, whole)) + 1.0) + (n << u32(23u)));
    return keep_nan(x, one / (one + e));
}

// x / (1 + e^-m) for x >= 0, x e^-m / (1 + e^-m) below; m = hi + lo, bounded = |x| without what lies beyond the tail.
fn gate(x: f32, bounded: f32, hi: f32, lo: f32) -> f32 {
    let s = exp_neg_parts(-hi, -lo);
    let negative = x < 0.0;
    let numerator = select(x, (-bounded * s.x - bounded) * s.y, negative);
    let y = numerator / (1.0 + (s.w * s.x + s.w)) * select(1.0, s.z, negative);
    // The quotient of an infinity may be NaN.
    return select(y, x, (bitcast<u32>(x) == 0x7f800000u) || is_nan(x));
}

fn silu(x: f32) -> f32 {
    let a = min(abs(x), 120.0);
    let high = first11(a);
    return gate(x, a, high, a - high);
}

fn softplus(x: f32) -> f32 {
    return keep_nan(x, max(x, 0.0) + log1p_unit(exp_(-min(abs(x), 120.0))));
}

// 2 sqrt(2 / pi) (a + 0.044715 a^3) as a sum of two: its relative error becomes an absolute one in the exponent.
fn gelu_exponent(a: f32) -> vec2<f32> {
    let a_high = first11(a);
    let a_low = a - a_high;
    // a^2 = square + square_low.
    let square = a_high * a_high;
    let square_high = first11(square);
    let square_low = (square - square_high) + a_low * (a + a_high);
    // u = C0 + C1 a^2 with short constants first, whose products are exact.
    let u_high = first11(1.5957691 + 0.071354816 * (a * a));
    let rest = 6.5996606e-5 + (4.7186164e-6 * square_high + 0.071354816 * square_low);
    let u_low = (firm(1.595703125 - u_high) + 0.07135009765625 * square_high) + rest;
    return vec2<f32>(a_high * u_high, a_low * u_high + a * u_low);
}

fn gelu(x: f32) -> f32 {
    let a = min(abs(x), 11.5);
    let e = gelu_exponent(a);
    return gate(x, a, e.x, e.y);
}

fn gelu_erf(x: f32) -> f32 {
    let a = min(abs(x), 15.0);
    let a_high = first11(a);
    let square = a_high * a_high;
    let s = exp_neg_parts(-0.5 * square, -0.5 * ((a - a_high) * (a + a_high)));
    let u = a / (a + 1.5);
    let q = 1.0 - 2.0 * u;
    var p = -1.6662844e-4 * q + 4.7419965e-4;
    p = p * q - 2.1785991e-4;
    p = p * q - 1.0566548e-3;
    p = p * q + 2.684137e-3;
    p = p * q - 2.4251575e-3;
    p = p * q - 3.9783577e-3;
    p = p * q + 1.7638115e-2;
    p = p * q - 1.7898114e-2;
    p = p * q - 5.7495248e-2;
    p = p * q + 1.9509956e-1;
    p = p * q + 6.17342e-1;
    let front = u * p;
    let tail = (front * s.x + front) * s.y;
    return keep_nan(x, max(x, 0.0) - tail * s.z);
}
