//! The cheaper kernels give the bits of the ops that they stand for.

use super::*;

/// Every class of value, and enough of them that whole vectors and a rest are run.
fn values() -> Vec<f32> {
    let special = [0.0, -0.0, 1.5, -1.5, f32::MIN_POSITIVE, -f32::MIN_POSITIVE, f32::INFINITY, f32::NEG_INFINITY];
    let bits = [1, 0x8000_0001, 0x7fc0_0001, 0xffc1_2345, 0x7f80_0001].map(f32::from_bits);
    special.into_iter().chain(bits).cycle().take(101).collect()
}

#[test]
fn the_maximum_with_zero_is_the_maximum() {
    let values = values();
    for level in Level::all() {
        for zero in [0.0f32, -0.0, 2.0, f32::NAN] {
            let mut got = vec![0u32; values.len()];
            let f = maximum_of_scalar_at(level);
            // SAFETY: `a` and `dst` hold as many lanes as are asked for, `b` and `c` one.
            unsafe {
                f(
                    got.as_mut_ptr(),
                    values.as_ptr().cast(),
                    (&raw const zero).cast(),
                    (&raw const zero).cast(),
                    values.len(),
                );
            }
            for (&a, got) in values.iter().zip(got) {
                let (expected, got) = (breakeven_ir::lane::maximum(a, zero), f32::from_bits(got));
                let same = expected.to_bits() == got.to_bits() || (expected.is_nan() && got.is_nan());
                assert!(same, "maximum({a:?}, {zero:?}) is {expected:?}, not {got:?}, at {}", level.name());
            }
        }
    }
}

#[test]
fn casts_by_the_cpu_are_the_casts() {
    let ends = [2_147_483_520.0, 2_147_483_648.0, 4_294_967_040.0, 4_294_967_296.0, 1e20, 0.99, 16_777_217.5];
    let values: Vec<f32> = values().into_iter().chain(ends.into_iter().flat_map(|x: f32| [x, -x])).collect();
    for level in Level::all() {
        for (fns, cast) in [
            (to_i32_fns(level), (|x| breakeven_ir::lane::to_i32(x) as u32) as fn(f32) -> u32),
            (to_u32_fns(level), breakeven_ir::lane::to_u32),
        ] {
            let f = fns.version([false; 3]).expect("a version for lanes exists");
            let mut got = vec![0u32; values.len()];
            let a = values.as_ptr().cast();
            // SAFETY: both slices hold as many lanes as are asked for.
            unsafe { f(got.as_mut_ptr(), a, a, a, values.len()) };
            for (&x, got) in values.iter().zip(got) {
                assert_eq!(got, cast(x), "{x:?} at {}", level.name());
            }
        }
    }
}

/// With and without a rare one in the chunk.
#[test]
fn quick_logarithms_and_powers_are_the_whole_ones() {
    use breakeven_ir::lane::{log, log2, pow};
    let common = [f32::MIN_POSITIVE, 1e-30, 0.3, 0.999_999_94, 1.0, 1.000_000_1, 2.0, 77.7, 1e30, f32::MAX];
    let rare = values();
    let exponents = [0.0, -0.0, 1.0, 0.5, -3.0, 2.5, 1e-20, 1e20, -1e20, 7.0];
    for level in Level::all() {
        let fused = level != Level::Portable;
        for rest in [0, 1, rare.len()] {
            let x: Vec<f32> = common.into_iter().cycle().take(200).chain(rare[..rest].iter().copied()).collect();
            let y: Vec<f32> = exponents.into_iter().cycle().skip(3).take(x.len()).collect();
            let run = |fns: MapFns, lane: &dyn Fn(f32, f32) -> f32| {
                let f = fns.version([false; 3]).expect("a version for lanes exists");
                let mut got = vec![0u32; x.len()];
                // SAFETY: every slice holds as many lanes as are asked for.
                unsafe { f(got.as_mut_ptr(), x.as_ptr().cast(), y.as_ptr().cast(), x.as_ptr().cast(), x.len()) };
                for ((&x, &y), got) in x.iter().zip(&y).zip(got) {
                    let (expected, got) = (lane(x, y), f32::from_bits(got));
                    let same = expected.to_bits() == got.to_bits() || (expected.is_nan() && got.is_nan());
                    assert!(same, "of {x:?} and {y:?} {expected:?}, not {got:?}, at {}", level.name());
                }
            };
            run(log_fns(level), &|x, _| if fused { log::<true>(x) } else { log::<false>(x) });
            run(log2_fns(level), &|x, _| if fused { log2::<true>(x) } else { log2::<false>(x) });
            run(pow_fns(level), &|x, y| if fused { pow::<true>(x, y) } else { pow::<false>(x, y) });
        }
    }
}

#[test]
fn a_product_with_a_sum_is_rounded_twice() {
    let values = values();
    let (b, c): (Vec<f32>, Vec<f32>) =
        (values.iter().rev().copied().collect(), values.iter().map(|v| v * 0.3).collect());
    for level in Level::all() {
        for scalars in [[false, false, false], [false, true, false], [false, false, true], [false, true, true]] {
            let f = mul_add_fns(level).version(scalars).expect("every version with lanes first exists");
            let mut got = vec![0u32; values.len()];
            // SAFETY: every slice holds as many lanes as are asked for.
            unsafe { f(got.as_mut_ptr(), values.as_ptr().cast(), b.as_ptr().cast(), c.as_ptr().cast(), values.len()) };
            for (at, (a, got)) in values.iter().zip(got).enumerate() {
                let (b, c) = (b[if scalars[1] { 0 } else { at }], c[if scalars[2] { 0 } else { at }]);
                let (expected, got) = (a * b + c, f32::from_bits(got));
                let same = expected.to_bits() == got.to_bits() || (expected.is_nan() && got.is_nan());
                assert!(same, "{a:?} * {b:?} + {c:?} is {expected:?}, not {got:?}, at {}", level.name());
            }
        }
    }
}
