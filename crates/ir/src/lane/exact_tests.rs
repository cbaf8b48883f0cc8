//! Lanes that are exact, against the obvious scalar code: rounding, casts, integer division and powers.

use super::*;

/// The step through all bit patterns.
const STRIDE: usize = if cfg!(debug_assertions) { 9_001 } else { 251 };

/// Every [`STRIDE`]th pattern, and the values around which rounding changes.
fn samples() -> impl Iterator<Item = f32> {
    let halves = (-2_000..=2_000).map(|i| i as f32 * 0.25);
    let edges = [23, 24, 30, 31, 32, 33].into_iter().flat_map(|e| {
        let centre = 2f32.powi(e).to_bits();
        (centre - 300..centre + 300).flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)])
    });
    let limits =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::from_bits(1), 0.499_999_97, -0.499_999_97];
    (0..=u32::MAX).step_by(STRIDE).map(f32::from_bits).chain(halves).chain(edges).chain(limits)
}

#[test]
fn rounding_is_the_standard_library_s() {
    type Pair = (&'static str, fn(f32) -> f32, fn(f32) -> f32, fn(f32) -> f32);
    let pairs: [Pair; 4] = [
        ("floor", floor::<true>, floor::<false>, f32::floor),
        ("ceil", ceil::<true>, ceil::<false>, f32::ceil),
        ("trunc", trunc::<true>, trunc::<false>, f32::trunc),
        ("round", round::<true>, round::<false>, f32::round_ties_even),
    ];
    for x in samples() {
        for (name, fused, plain, expected) in pairs {
            let expected = expected(x);
            for got in [fused(x), plain(x)] {
                let equal = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
                assert!(equal, "{name}({x:e}) = {got:e}, expected {expected:e}");
            }
        }
    }
}

#[test]
fn casts_saturate_as_rust_s() {
    for x in samples() {
        assert_eq!(to_i32(x), x as i32, "{x:e}");
        assert_eq!(to_u32(x), x as u32, "{x:e}");
    }
}

/// Small and extreme values and a spread of all bits.
fn integers() -> Vec<u32> {
    let spread = (0..if cfg!(debug_assertions) { 120u32 } else { 700 }).map(|i| i.wrapping_mul(2_654_435_769));
    let shorter = (0..60u32).map(|i| i.wrapping_mul(2_654_435_769) >> (i % 31));
    let around = |centre: u32| (0..7).map(move |i| centre.wrapping_add(i).wrapping_sub(3));
    [0, 1 << 16, 1 << 31, 46_341, 65_536 * 3].into_iter().flat_map(around).chain(spread).chain(shorter).collect()
}

#[test]
fn signed_division_rounds_down() {
    let integers = integers();
    for a in integers.iter().map(|&a| a as i32) {
        for b in integers.iter().map(|&b| b as i32) {
            let (wide_a, wide_b) = (i64::from(a), i64::from(b));
            let (q, r) = if b == 0 {
                (0, 0)
            } else {
                let r = wide_a.rem_euclid(wide_b.abs());
                let r = if b < 0 && r != 0 { r + wide_b } else { r };
                (((wide_a - r) / wide_b) as i32, r as i32)
            };
            assert_eq!(floor_div_i32(a, b), q, "{a} // {b}");
            assert_eq!(rem_i32(a, b), r, "{a} % {b}");
        }
    }
    assert_eq!((floor_div_i32(i32::MIN, -1), rem_i32(i32::MIN, -1)), (i32::MIN, 0));
}

#[test]
fn unsigned_division_is_exact() {
    let integers = integers();
    for &a in &integers {
        for &b in &integers {
            assert_eq!(floor_div_u32(a, b), a.checked_div(b).unwrap_or(0), "{a} // {b}");
            assert_eq!(rem_u32(a, b), a.checked_rem(b).unwrap_or(0), "{a} % {b}");
        }
    }
}

#[test]
fn integer_powers_wrap() {
    for base in integers() {
        for exponent in integers() {
            let expected = base.wrapping_pow(exponent);
            assert_eq!(pow_u32(base, exponent), expected, "{base}^{exponent}");
            let (base, exponent) = (base as i32, exponent as i32);
            let expected = match (base, exponent) {
                (_, 0..) => expected as i32,
                (1, _) => 1,
                (-1, _) => 1 - 2 * (exponent & 1),
                _ => 0,
            };
            assert_eq!(pow_i32(base, exponent), expected, "{base}^{exponent}");
        }
    }
}
