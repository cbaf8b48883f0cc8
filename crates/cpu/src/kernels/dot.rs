//! The sum of products of two rows, which are multiplied while they are summed.
//!
//! On AVX-512 the rows are read in whole cache lines: two rows of a caller rarely begin on one, and a 64-byte load that
//! lies across two lines costs two. Every lane gets the elements that it gets without, so that results are the same to
//! the bit wherever the rows lie.

#[cfg(target_arch = "x86_64")]
mod lines;

use super::reduce::{Acc, DotFn, lane};
use super::rows::{BLOCK, LANES, sum_wide};
use crate::level::{Level, leveled};

/// The sum of products without a slot between: as a row's sum, in blocks that meet in f64.
///
/// # Safety
/// See [`DotFn`].
#[inline(always)]
unsafe fn row_dot<const FMA: bool>(a: *const u32, b: *const u32, n: usize, acc: *mut Acc) {
    #[inline(always)]
    fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
        if FMA { a.mul_add(b, c) } else { a * b + c }
    }
    let mut total = 0.0;
    let mut at = 0;
    while at < n {
        let len = BLOCK.min(n - at);
        let mut lanes = [0f32; LANES];
        let whole = len / LANES * LANES;
        let mut k = 0;
        while k < whole {
            // SAFETY: `at + k + LANES <= n`.
            let (x, y) = unsafe {
                let read = |src: *const u32| src.add(at + k).cast::<[f32; LANES]>().read_unaligned();
                let x = read(a);
                // Squares, which variances are made of, are read once.
                (x, if a == b { x } else { read(b) })
            };
            for l in 0..LANES {
                lanes[l] = fma::<FMA>(x[l], y[l], lanes[l]);
            }
            k += LANES;
        }
        for l in 0..len - whole {
            // SAFETY: `at + whole + l < n`.
            let (x, y) = unsafe { (lane::<f32>(a, at + whole + l), lane::<f32>(b, at + whole + l)) };
            lanes[l] = fma::<FMA>(x, y, lanes[l]);
        }
        total += sum_wide(&lanes);
        at += len;
    }
    // SAFETY: the caller's accumulator is valid.
    unsafe { (*acc).wide += total };
}

leveled! { fn row_dot_as_it_lies_at<;>(a: *const u32, b: *const u32, n: usize, acc: *mut Acc) => row_dot }

/// The sum of products of two vectors.
pub(crate) fn row_dot_at(level: Level) -> DotFn {
    match level {
        // A level is only ever given out by `Level::all`, which has asked the CPU: so this may be called.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => lines::row_dot,
        level => row_dot_as_it_lies_at(level),
    }
}
