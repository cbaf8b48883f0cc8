//! Integers divided by one and the same number, whose inverse is made once: a multiplication for each instead of a division.

use super::{ALIGN_FROM, W, load, store};
use crate::level::{Level, leveled};
use breakeven_ir::lane::{div_rem_by_i32, div_rem_by_u32};

/// The signatures over i32 and u32 of `floor_div` and `rem`.
pub(super) const I32: u8 = 1;
pub(super) const U32: u8 = 2;

/// What is wanted of a division by `b`, which is not 0.
pub(crate) trait Divide {
    fn inverse(b: u32) -> f64;
    fn lane<const FMA: bool>(a: u32, b: u32, inverse: f64) -> u32;
}

macro_rules! divide {
    ($($name:ident $int:ident, $by:ident, $part:tt;)*) => {$(
        pub(crate) struct $name;
        impl Divide for $name {
            #[inline(always)]
            fn inverse(b: u32) -> f64 {
                1.0 / f64::from(b as $int)
            }
            #[inline(always)]
            fn lane<const FMA: bool>(a: u32, b: u32, inverse: f64) -> u32 {
                $by::<FMA>(a as $int, b as $int, inverse).$part as u32
            }
        }
    )*};
}
divide! {
    FloorI i32, div_rem_by_i32, 0;
    FloorU u32, div_rem_by_u32, 0;
    RemI i32, div_rem_by_i32, 1;
    RemU u32, div_rem_by_u32, 1;
}

/// # Safety
/// See [`super::MapFn`]; `b` is a scalar.
#[inline(always)]
unsafe fn by_scalar<const FMA: bool, D: Divide>(dst: *mut u32, a: *const u32, b: *const u32, _: *const u32, n: usize) {
    // SAFETY: every pointer holds at least one lane.
    let b = unsafe { b.read_unaligned() };
    let inverse = D::inverse(b);
    // Chunks of zeros, where it is divided by 0.
    let divisor = if b == 0 { 1 } else { b };
    let keep = if b == 0 { 0 } else { u32::MAX };
    chunks!(dst, n, [a], |at, lanes| {
        // SAFETY: the caller's pointers hold `n` lanes.
        let x = unsafe { load(a, at, lanes) };
        let mut out = [0; W];
        for k in 0..W {
            out[k] = D::lane::<FMA>(x[k], divisor, inverse) & keep;
        }
        // SAFETY: as above.
        unsafe { store(dst, at, lanes, out) }
    });
}
leveled! {
    fn by_scalar_at<D: Divide;>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => by_scalar
}

#[cfg(test)]
mod tests {
    use super::*;
    use breakeven_ir::lane::{floor_div_i32, floor_div_u32, rem_i32, rem_u32};

    #[test]
    fn division_by_a_scalar_is_division() {
        let spread = (0..200u32).map(|i| i.wrapping_mul(2_654_435_769) >> (i % 29));
        let around = |centre: u32| (0..7).map(move |i| centre.wrapping_add(i).wrapping_sub(3));
        let numbers: Vec<u32> = [0, 1 << 16, 1 << 31, 65_536 * 3].into_iter().flat_map(around).chain(spread).collect();
        type Case = (super::super::MapFn, fn(u32, u32) -> u32);
        for level in Level::all() {
            let cases: [Case; 4] = [
                (by_scalar_at::<FloorI>(level), |a, b| floor_div_i32(a as i32, b as i32) as u32),
                (by_scalar_at::<FloorU>(level), floor_div_u32),
                (by_scalar_at::<RemI>(level), |a, b| rem_i32(a as i32, b as i32) as u32),
                (by_scalar_at::<RemU>(level), rem_u32),
            ];
            for (number, (f, expected)) in cases.into_iter().enumerate() {
                for b in &numbers {
                    let mut got = vec![7; numbers.len()];
                    // SAFETY: `a` and `dst` hold as many lanes as are asked for, `b` and `c` one.
                    unsafe { f(got.as_mut_ptr(), numbers.as_ptr(), b, b, numbers.len()) };
                    for (&a, got) in numbers.iter().zip(got) {
                        assert_eq!(got, expected(a, *b), "{a} by {b}, case {number}, at {}", level.name());
                    }
                }
            }
        }
    }
}
