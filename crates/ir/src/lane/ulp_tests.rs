//! Every lane against f64 over a sample of all bit patterns and dense ranges around its critical points.

use super::*;

/// The step through all 2^32 bit patterns. Unoptimised lanes are 30 times slower.
const STRIDE: usize = if cfg!(debug_assertions) { 5_003 } else { 2_003 };
/// Patterns to each side of a critical point.
const NEIGHBOURS: u32 = if cfg!(debug_assertions) { 1_000 } else { 20_000 };

/// The distance of `got` from `truth` in ulps of the f32 nearest to `truth`. NaN and infinity must be
/// met exactly, but for a truth within the bound of overflow.
fn ulps(got: f32, truth: f64) -> f64 {
    if truth.is_nan() || got.is_nan() {
        return if truth.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let nearest = truth as f32;
    if nearest == got {
        // Also the infinities; otherwise still counts the rounding.
        return if got.is_finite() { (f64::from(got) - truth).abs() / ulp(nearest) } else { 0.0 };
    }
    if !truth.is_finite() {
        return f64::INFINITY;
    }
    let wide = if got.is_infinite() { 2f64.powi(128).copysign(f64::from(got)) } else { f64::from(got) };
    (wide - truth).abs() / ulp(nearest)
}

/// The last place of an f32, 2^-149 in the subnormals.
fn ulp(x: f32) -> f64 {
    let exponent = ((x.abs().to_bits() >> 23) as i32).clamp(1, 254);
    2f64.powi(exponent - 150)
}

/// Sample points: every [`STRIDE`]th pattern and the neighbours of `critical` and of its negatives.
fn samples(critical: &[f32]) -> impl Iterator<Item = f32> + '_ {
    let near = critical.iter().flat_map(|&c| [c, -c]).flat_map(|c| {
        let centre = c.to_bits();
        (centre.saturating_sub(NEIGHBOURS)..=centre.saturating_add(NEIGHBOURS)).map(f32::from_bits)
    });
    (0..=u32::MAX).step_by(STRIDE).map(f32::from_bits).chain(near)
}

/// Asserts a bound for both forms of a lane and prints what was measured (`--nocapture`).
#[track_caller]
fn check(name: &str, bound: f32, critical: &[f32], lanes: [fn(f32) -> f32; 2], truth: impl Fn(f64) -> f64) {
    let mut worst = [(0.0f64, 0.0f32, 0.0f32); 2];
    for x in samples(critical) {
        let exact = truth(f64::from(x));
        for (lane, worst) in lanes.iter().zip(&mut worst) {
            let got = lane(x);
            let error = ulps(got, exact);
            if error > worst.0 {
                *worst = (error, x, got);
            }
        }
    }
    report(name, bound, &worst);
}

#[track_caller]
#[expect(clippy::print_stderr, reason = "the measured bounds, for whoever tunes a lane")]
fn report(name: &str, bound: f32, worst: &[(f64, f32, f32); 2]) {
    let [(fused, fused_x, fused_got), (plain, plain_x, plain_got)] = worst;
    eprintln!(
        "{name:10} fused {fused:.3} at {fused_x:e} -> {fused_got:e}, plain {plain:.3} at {plain_x:e} -> {plain_got:e}"
    );
    assert!(
        *fused <= f64::from(bound) && *plain <= f64::from(bound),
        "{name}: fused {fused:.3} ulp at {fused_x:e}, plain {plain:.3} ulp at {plain_x:e}, expected at most {bound}"
    );
}

#[test]
fn exp_holds_its_bound() {
    check(
        "exp",
        EXP_ULP,
        &[1e-7, 0.346_573_6, 1.0, 88.0, 88.722_84, 87.336_54, 103.97],
        [exp::<true>, exp::<false>],
        f64::exp,
    );
}

#[test]
fn exp_m1_holds_its_bound() {
    let critical = [1e-7, 0.01, 0.346_573_6, 0.5, 1.039_72, 1.0, 17.0, 88.722_84];
    check("exp_m1", EXP_M1_ULP, &critical, [exp_m1::<true>, exp_m1::<false>], f64::exp_m1);
}

#[test]
fn log_holds_its_bound() {
    let critical =
        [1e-40, f32::MIN_POSITIVE, 0.5, std::f32::consts::FRAC_1_SQRT_2, 1.0, std::f32::consts::SQRT_2, 2.0, f32::MAX];
    check("log", LOG_ULP, &critical, [log::<true>, log::<false>], f64::ln);
    check("log2", LOG2_ULP, &critical, [log2::<true>, log2::<false>], f64::log2);
}

#[test]
fn ln_1p_holds_its_bound() {
    let critical = [1e-7, 0.1, 0.292_893_2, 0.414_213_5, 0.5, 1.0, 1.828_427_1, 1.6e7, 1e9, f32::MAX];
    check("ln_1p", LN_1P_ULP, &critical, [ln_1p::<true>, ln_1p::<false>], f64::ln_1p);
}

/// Multiples of pi / 2, where sin, cos or tan cross zero or a pole.
fn quarter_turns() -> Vec<f32> {
    [1.0, 2.0, 3.0, 4.0, 5.0, 22.0, 355.0, 710.0, 103_993.0, 2_000_000.0, 10_000_000.0]
        .map(|n| (n * std::f64::consts::FRAC_PI_2) as f32)
        .to_vec()
}

/// A trigonometric lane as a caller uses it, patched beyond the bound.
fn patched(x: f32, fast: fn(f32) -> f32, slow: fn(f32) -> f32) -> f32 {
    if x.abs() > TRIG_FAST_BOUND { slow(x) } else { fast(x) }
}

#[test]
fn sin_holds_its_bound() {
    let lanes: [fn(f32) -> f32; 2] = [|x| patched(x, sin::<true>, sin_slow), |x| patched(x, sin::<false>, sin_slow)];
    check("sin", SIN_ULP, &quarter_turns(), lanes, f64::sin);
}

#[test]
fn cos_holds_its_bound() {
    let lanes: [fn(f32) -> f32; 2] = [|x| patched(x, cos::<true>, cos_slow), |x| patched(x, cos::<false>, cos_slow)];
    check("cos", COS_ULP, &quarter_turns(), lanes, f64::cos);
}

#[test]
fn tan_holds_its_bound() {
    let lanes: [fn(f32) -> f32; 2] = [|x| patched(x, tan::<true>, tan_slow), |x| patched(x, tan::<false>, tan_slow)];
    check("tan", TAN_ULP, &quarter_turns(), lanes, f64::tan);
}

#[test]
fn tanh_holds_its_bound() {
    let critical = [1e-7, 0.01, 0.173_286_8, 0.25, 0.519_860_4, 1.0, 4.0, 9.0];
    check("tanh", TANH_ULP, &critical, [tanh::<true>, tanh::<false>], f64::tanh);
}

#[test]
fn erf_holds_its_bound() {
    check("erf", ERF_ULP, &[1e-7, 0.1, 0.5, 0.9277, 1.0, 2.0, 3.0, 3.92], [erf::<true>, erf::<false>], libm::erf);
}

#[test]
fn sigmoid_holds_its_bound() {
    let truth = |x: f64| 1.0 / (1.0 + (-x).exp());
    check("sigmoid", SIGMOID_ULP, &[1e-3, 1.0, 10.0, 87.5, 100.0], [sigmoid::<true>, sigmoid::<false>], truth);
}

#[test]
fn silu_holds_its_bound() {
    let truth = |x: f64| {
        if x == f64::NEG_INFINITY { -0.0 } else { x / (1.0 + (-x).exp()) }
    };
    check("silu", SILU_ULP, &[1e-3, 1.0, 10.0, 87.5, 100.0, 109.0], [silu::<true>, silu::<false>], truth);
}

#[test]
fn softplus_holds_its_bound() {
    let truth = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let truth = |x: f64| if x.is_nan() { x } else { truth(x) };
    check(
        "softplus",
        SOFTPLUS_ULP,
        &[1e-3, 0.881_373_6, 1.0, 17.0, 87.5, 100.0],
        [softplus::<true>, softplus::<false>],
        truth,
    );
}

#[test]
fn gelu_tanh_holds_its_bound() {
    let truth = |x: f64| {
        let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
        if x == f64::NEG_INFINITY { -0.0 } else { x / (1.0 + (-2.0 * u).exp()) }
    };
    check(
        "gelu_tanh",
        GELU_TANH_ULP,
        &[1e-3, 0.5, 1.0, 3.0, 5.0, 10.0, 10.8],
        [gelu_tanh::<true>, gelu_tanh::<false>],
        truth,
    );
}

#[test]
fn gelu_erf_holds_its_bound() {
    let truth = |x: f64| {
        if x == f64::NEG_INFINITY { -0.0 } else { 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) }
    };
    check(
        "gelu_erf",
        GELU_ERF_ULP,
        &[1e-3, 0.5, 1.0, 3.0, 5.0, 10.0, 13.0, 14.0],
        [gelu_erf::<true>, gelu_erf::<false>],
        truth,
    );
}

#[test]
fn elu_holds_its_bound() {
    let truth = |x: f64| {
        if x > 0.0 { x } else { f64::from(0.7f32) * x.exp_m1() }
    };
    check("elu", ELU_ULP, &[1e-3, 0.5, 1.0, 17.0], [|x| elu::<true>(x, 0.7), |x| elu::<false>(x, 0.7)], truth);
}

#[test]
fn rsqrt_holds_its_bound() {
    check("rsqrt", RSQRT_ULP, &[1e-40, 1.0, 3.0], [rsqrt, rsqrt], |x| 1.0 / x.sqrt());
}

#[test]
fn pow_holds_its_bound() {
    // A stride of 2^32 / golden ratio spreads the pairs over both operands' patterns.
    let steps = if cfg!(debug_assertions) { 100_000u32 } else { 2_000_000 };
    let mut worst = [(0.0f64, 0.0f32, 0.0f32); 2];
    let mut visit = |x: f32, y: f32| {
        let exact = f64::from(x).powf(f64::from(y));
        for (got, worst) in [pow::<true>(x, y), pow::<false>(x, y)].into_iter().zip(&mut worst) {
            let error = ulps(got, exact);
            if error > worst.0 {
                *worst = (error, x, y);
            }
        }
    };
    for i in 0..steps {
        let x = f32::from_bits(i.wrapping_mul(2_654_435_769));
        let y = f32::from_bits(i.wrapping_mul(1_640_531_527).rotate_left(11));
        visit(x, y);
        // Exponents that keep the result in range, where the bound is hardest to hold.
        let log = f64::from(x.abs()).log2();
        let target = (f64::from(i) / f64::from(steps) - 0.5) * 300.0;
        visit(x.abs(), (target / log) as f32);
        visit(x, (i % 41) as f32 - 20.0);
    }
    report("pow", POW_ULP, &worst);
}
