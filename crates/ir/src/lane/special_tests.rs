//! Limits, signed zeros and NaN: exact, for both forms of every lane.

use super::*;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// Equal in every bit, any NaN being equal to any other.
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[track_caller]
fn check(name: &str, lanes: [fn(f32) -> f32; 2], cases: &[(f32, f32)]) {
    for &(x, expected) in cases.iter().chain(&[(NAN, NAN), (-NAN, NAN)]) {
        for (lane, form) in lanes.iter().zip(["fused", "plain"]) {
            let got = lane(x);
            assert!(same(got, expected), "{name}({x:e}), {form}: {got:e}, expected {expected:e}");
        }
    }
}

/// Both forms of a lane.
macro_rules! both {
    ($lane:ident) => {
        [$lane::<true> as fn(f32) -> f32, $lane::<false> as fn(f32) -> f32]
    };
}

#[test]
fn exponentials() {
    let least = f32::from_bits(1);
    let cases = [
        (0.0, 1.0),
        (-0.0, 1.0),
        (INF, INF),
        (-INF, 0.0),
        (88.73, INF),
        (-104.0, 0.0),
        (f32::MAX, INF),
        (f32::MIN, 0.0),
    ];
    check("exp", both!(exp), &cases);
    check("exp", both!(exp), &[(-103.5, least), (-103.0, least), (-102.5, f32::from_bits(2)), (least, 1.0)]);
    let cases = [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (f32::MAX, INF), (f32::MIN, -1.0), (least, least)];
    check("exp_m1", both!(exp_m1), &cases);
    check(
        "tanh",
        both!(tanh),
        &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (20.0, 1.0), (-9.2, -1.0), (least, least)],
    );
    check("erf", both!(erf), &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (3.95, 1.0), (-f32::MAX, -1.0)]);
}

#[test]
fn tanh_and_erf_never_exceed_one() {
    for x in (0x3F80_0000..0x41C8_0000).step_by(97).map(f32::from_bits) {
        for lane in both!(tanh).into_iter().chain(both!(erf)) {
            assert!(lane(x) <= 1.0 && lane(-x) >= -1.0, "{x:e}");
        }
    }
}

#[test]
fn logarithms() {
    let cases =
        [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-INF, NAN), (-1.0, NAN), (-1e-45, NAN), (f32::MIN, NAN)];
    check("log", both!(log), &cases);
    check("log2", both!(log2), &cases);
    // Powers of two are exact, the subnormal ones too.
    for e in -149..128 {
        let x = 2f64.powi(e) as f32;
        check("log2", both!(log2), &[(x, e as f32)]);
    }
    let least = f32::from_bits(1);
    let cases = [
        (0.0, 0.0),
        (-0.0, -0.0),
        (-1.0, -INF),
        (-1.000_000_1, NAN),
        (-INF, NAN),
        (INF, INF),
        (least, least),
        (-least, -least),
    ];
    check("ln_1p", both!(ln_1p), &cases);
}

#[test]
fn trigonometry() {
    let least = f32::from_bits(1);
    let odd = [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (least, least), (-least, -least)];
    check("sin", both!(sin), &odd);
    check("tan", both!(tan), &odd);
    check("cos", both!(cos), &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (least, 1.0)]);
    check("sin_slow", [sin_slow; 2], &odd);
    check("tan_slow", [tan_slow; 2], &odd);
    check("cos_slow", [cos_slow; 2], &[(0.0, 1.0), (INF, NAN), (-INF, NAN)]);
}

#[test]
fn activations() {
    check(
        "sigmoid",
        both!(sigmoid),
        &[(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (f32::MAX, 1.0), (f32::MIN, 0.0), (-105.0, 0.0)],
    );
    let gated = [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -0.0), (f32::MAX, f32::MAX), (f32::MIN, -0.0)];
    check("silu", both!(silu), &gated);
    check("gelu_tanh", both!(gelu_tanh), &gated);
    check("gelu_erf", both!(gelu_erf), &gated);
    check(
        "softplus",
        both!(softplus),
        &[(INF, INF), (-INF, 0.0), (f32::MAX, f32::MAX), (f32::MIN, 0.0), (100.0, 100.0)],
    );
    let elus: [fn(f32) -> f32; 2] = [|x| elu::<true>(x, 1.5), |x| elu::<false>(x, 1.5)];
    check("elu", elus, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.5), (3.25, 3.25)]);
}

#[test]
fn power_follows_c99() {
    let cases = [
        (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0),
        (1.0, NAN, 1.0),
        (1.0, INF, 1.0),
        (0.0, 0.0, 1.0),
        (INF, 0.0, 1.0),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
        (-1.0, NAN, NAN),
        (0.0, NAN, NAN),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (0.5, INF, 0.0),
        (0.5, -INF, INF),
        (-0.5, INF, 0.0),
        (-0.5, -INF, INF),
        (0.0, INF, 0.0),
        (-0.0, -INF, INF),
        (2.0, INF, INF),
        (2.0, -INF, 0.0),
        (-2.0, INF, INF),
        (-2.0, -INF, 0.0),
        (1.000_000_1, INF, INF),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 0.5, 0.0),
        (0.0, 1e-30, 0.0),
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (-0.0, -2.0, INF),
        (-0.0, -0.5, INF),
        (INF, 2.0, INF),
        (INF, -2.0, 0.0),
        (INF, 1e-30, INF),
        (INF, INF, INF),
        (INF, -INF, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.0, INF),
        (-INF, 0.5, INF),
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-INF, -0.5, 0.0),
        (-INF, INF, INF),
        (-INF, -INF, 0.0),
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (-2.0, 0.5, NAN),
        (-2.0, -1.0, -0.5),
        (-8.0, 0.333_333_34, NAN),
        // From 2^24 on every exponent is even; 2^24 - 1 is the last odd one.
        (-1.0, 16_777_215.0, -1.0),
        (-1.0, 16_777_216.0, 1.0),
        (-1.0, 8_388_609.0, -1.0),
        (-1.0, 4_194_304.5, NAN),
        (2.0, 127.0, 1.701_411_8e38),
        (2.0, 128.0, INF),
        (2.0, -149.0, 1e-45),
        (2.0, -151.0, 0.0),
        (-2.0, -151.0, -0.0),
        (3.0, 3.0, 27.0),
        (10.0, 2.0, 100.0),
        (9.0, 0.5, 3.0),
        (1e-45, 2.0, 0.0),
        (1e-45, -1.0, INF),
        (f32::MAX, 1.0, f32::MAX),
        (2.0, f32::MAX, INF),
        (0.5, f32::MAX, 0.0),
    ];
    for (x, y, expected) in cases {
        for (got, form) in [(pow::<true>(x, y), "fused"), (pow::<false>(x, y), "plain")] {
            assert!(same(got, expected), "pow({x:e}, {y:e}), {form}: {got:e}, expected {expected:e}");
        }
    }
}

#[test]
fn sign_and_root() {
    check(
        "sign",
        [sign; 2],
        &[(0.0, 0.0), (-0.0, 0.0), (INF, 1.0), (-INF, -1.0), (1e-45, 1.0), (-1e-45, -1.0), (7.0, 1.0)],
    );
    check("rsqrt", [rsqrt; 2], &[(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5), (-INF, NAN)]);
}

#[test]
fn extrema_propagate_nan() {
    let cases = [
        (1.0, 2.0, 2.0, 1.0),
        (2.0, 1.0, 2.0, 1.0),
        (-INF, INF, INF, -INF),
        (INF, -INF, INF, -INF),
        (NAN, 1.0, NAN, NAN),
        (1.0, NAN, NAN, NAN),
        (NAN, INF, NAN, NAN),
        (-INF, NAN, NAN, NAN),
        (NAN, NAN, NAN, NAN),
    ];
    for (a, b, larger, smaller) in cases {
        assert!(same(maximum(a, b), larger), "maximum({a}, {b})");
        assert!(same(minimum(a, b), smaller), "minimum({a}, {b})");
    }
    assert_eq!(maximum(-0.0, 0.0), 0.0);
}

#[test]
fn remainder_and_floor_division_follow_numpy() {
    // (a, b, remainder, floor_divide) as numpy 2 prints them for float32.
    let cases = [
        (7.0, 3.0, 1.0, 2.0),
        (-7.0, 3.0, 2.0, -3.0),
        (7.0, -3.0, -2.0, -3.0),
        (-7.0, -3.0, -1.0, 2.0),
        (6.0, 3.0, 0.0, 2.0),
        (-6.0, 3.0, 0.0, -2.0),
        (6.0, -3.0, -0.0, -2.0),
        (0.0, 3.0, 0.0, 0.0),
        (-0.0, 3.0, 0.0, -0.0),
        (0.0, -3.0, -0.0, -0.0),
        (1.0, 0.0, NAN, INF),
        (-1.0, 0.0, NAN, -INF),
        (1.0, -0.0, NAN, -INF),
        (0.0, 0.0, NAN, NAN),
        (1.0, INF, 1.0, 0.0),
        (-1.0, INF, INF, -1.0),
        (1.0, -INF, -INF, -1.0),
        (-1.0, -INF, -1.0, 0.0),
        (INF, 3.0, NAN, NAN),
        (INF, INF, NAN, NAN),
        (NAN, 3.0, NAN, NAN),
        (3.0, NAN, NAN, NAN),
        (NAN, 0.0, NAN, NAN),
    ];
    for (a, b, remainder, quotient) in cases {
        assert!(same(rem(a, b), remainder), "rem({a}, {b}) = {}", rem(a, b));
        assert!(same(floor_div(a, b), quotient), "floor_div({a}, {b}) = {}", floor_div(a, b));
    }
    // Exact although the quotient has 98 bits; the integer is the f32 nearest to 1e30.
    let exact = (1_000_000_015_047_466_219_876_688_855_040u128 % 3) as f32;
    assert_eq!(rem(1e30, 3.0), exact);
}
