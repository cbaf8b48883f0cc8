//! The sum of products of two rows, which are multiplied while they are summed.
//!
//! On AVX-512 the rows are read in whole cache lines (`lines`), with the same bits.

#[cfg(target_arch = "x86_64")]
use super::lines;
use super::reduce::{Acc, DotFn, lane};
use super::rows::{BLOCK, GROUP, LANES, last_lanes, sum_wide};
use crate::ahead::{LINE, fetch_far};
use crate::level::{Level, leveled};

/// The sum of products without a slot between: as a row's sum, in blocks that meet in f64. Or, of a row and its mean, the sum of
/// squares of what is between them, which variances are made of.
///
/// # Safety
/// See [`DotFn`]; a mean is one lane.
#[inline(always)]
unsafe fn row_dot<const FMA: bool, const MEAN: bool, const LONG: bool>(
    a: *const u32,
    b: *const u32,
    n: usize,
    acc: *mut Acc,
) {
    #[inline(always)]
    fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
        if FMA { a.mul_add(b, c) } else { a * b + c }
    }
    // SAFETY: both have at least one lane, if there are any.
    let mean = if MEAN && n > 0 { unsafe { lane::<f32>(b, 0) } } else { 0.0 };
    let factors = |x: f32, y: f32| if MEAN { (x - mean, x - mean) } else { (x, y) };
    let mut total = 0.0;
    let mut at = 0;
    while at < n {
        let len = BLOCK.min(n - at);
        let mut lanes = [0f32; LANES];
        let whole = len / LANES * LANES;
        let mut k = 0;
        while k < whole {
            if LONG {
                for l in (0..LANES).step_by(LINE / 4) {
                    fetch_far(a.wrapping_add(at + k + l));
                    if !MEAN {
                        fetch_far(b.wrapping_add(at + k + l));
                    }
                }
            }
            // SAFETY: `at + k + LANES <= n`.
            let (x, y) = unsafe {
                let read = |src: *const u32| src.add(at + k).cast::<[f32; LANES]>().read_unaligned();
                let x = read(a);
                // Squares are read once.
                (x, if MEAN || a == b { x } else { read(b) })
            };
            for l in 0..LANES {
                let (x, y) = factors(x[l], y[l]);
                lanes[l] = fma::<FMA>(x, y, lanes[l]);
            }
            k += LANES;
        }
        if whole < len {
            // SAFETY: these are the lanes of the block from `whole` on.
            let (x, y) = unsafe {
                let read = |src: *const u32| last_lanes(src.add(at + whole), len - whole, 0);
                (read(a), read(if MEAN { a } else { b }))
            };
            for l in 0..LANES {
                let (x, y) = factors(f32::from_bits(x[l]), f32::from_bits(y[l]));
                let sum = fma::<FMA>(x, y, lanes[l]);
                // No `lanes[..rest]`: lanes whose number the compiler does not know would go through the stack in every block.
                lanes[l] = if l < len - whole { sum } else { lanes[l] };
            }
        }
        total += sum_wide(&lanes);
        at += len;
        if at.is_multiple_of(GROUP) || at == n {
            // SAFETY: the caller's accumulator is valid.
            unsafe { (*acc).wide += total };
            total = 0.0;
        }
    }
}

leveled! { fn row_dot_as_it_lies_at<; const MEAN: bool, const LONG: bool>(a: *const u32, b: *const u32, n: usize, acc: *mut Acc) => row_dot }

/// The sum of products of two vectors, which are parts of `long` arrays or of any others.
pub(crate) fn row_dot_at(level: Level, long: bool) -> DotFn {
    match level {
        // A level is only ever given out by `Level::all`, which has asked the CPU: so this may be called.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if long => lines::row_dot::<true>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => lines::row_dot::<false>,
        level if long => row_dot_as_it_lies_at::<false, true>(level),
        level => row_dot_as_it_lies_at::<false, false>(level),
    }
}

/// The sum of squares of what is between a vector and its mean, which is one lane: the bits of the sum of products of the differences.
pub(crate) fn row_deviation_at(level: Level) -> DotFn {
    match level {
        // As above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => lines::row_deviation,
        level => row_dot_as_it_lies_at::<true, false>(level),
    }
}
