//! Reductions of columns: a tile into an accumulator for each of its lanes.

use super::reduce::{Better, Fold, lane};
use super::unaligned;
use crate::level::{Level, leveled};
use breakeven_ir::LaneBits;

/// # Safety
/// See [`super::reduce::ColFn`].
#[inline(always)]
unsafe fn col_fold<const FMA: bool, F: Fold>(src: *const u32, n: usize, acc: *mut u64, _: usize) {
    let acc = acc.cast::<u32>();
    const W: usize = 64;
    let whole = n / W * W;
    let mut at = 0;
    while at < whole {
        // SAFETY: `at + W <= n`, and the accumulators hold two lanes for each column.
        unsafe {
            let x = src.add(at).cast::<[u32; W]>().read_unaligned();
            let mut y = acc.add(at).cast::<[u32; W]>().read_unaligned();
            for k in 0..W {
                y[k] = F::fold(F::T::from_lane_bits(y[k]), F::T::from_lane_bits(x[k])).lane_bits();
            }
            acc.add(at).cast::<[u32; W]>().write_unaligned(y);
        }
        at += W;
    }
    for at in whole..n {
        // SAFETY: `at < n`.
        unsafe { acc.add(at).write(F::fold(LaneBits::from_lane_bits(acc.add(at).read()), lane(src, at)).lane_bits()) };
    }
}

/// Folds f32 lanes into f64 accumulators.
///
/// # Safety
/// See [`super::reduce::ColFn`].
#[inline(always)]
unsafe fn col_wide(src: *const u32, n: usize, acc: *mut u64, fold: impl Fn(f64, f64) -> f64) {
    // SAFETY: the caller's pointers; every u64 is an f64.
    let (src, acc) = unsafe { (unaligned(src, n), std::slice::from_raw_parts_mut(acc.cast::<f64>(), n)) };
    // Element by element: of chunks of lanes, as in `col_fold`, the compiler makes scatters where lanes double their width
    // (150 us for the sum of 300 x 528 products instead of 35).
    for (x, acc) in src.iter().zip(acc) {
        *acc = fold(*acc, f64::from(f32::from_ne_bytes(*x)));
    }
}

/// # Safety
/// See [`super::reduce::ColFn`].
#[inline(always)]
unsafe fn col_sum<const FMA: bool>(src: *const u32, n: usize, acc: *mut u64, _: usize) {
    // SAFETY: the caller's pointers are valid.
    unsafe { col_wide(src, n, acc, |a, b| a + b) }
}

/// Four rows meet in f32 before they go to f64: the accumulators are read and written a quarter as often.
///
/// # Safety
/// See [`super::reduce::ColRowsFn`].
#[inline(always)]
unsafe fn col_sum_rows<const FMA: bool>(src: *const u32, stride: isize, rows: usize, n: usize, acc: *mut u64) {
    let mut row = 0;
    while row + 4 <= rows {
        // SAFETY: the caller vouches for `rows` rows of `n` lanes and for `n` accumulators.
        let ([a, b, c, d], wide) = unsafe {
            let read = |next: isize| unaligned(src.offset((row as isize + next) * stride), n);
            ([0, 1, 2, 3].map(read), std::slice::from_raw_parts_mut(acc.cast::<f64>(), n))
        };
        let f = |x: [u8; 4]| f32::from_ne_bytes(x);
        for ((((a, b), c), d), wide) in a.iter().zip(b).zip(c).zip(d).zip(wide) {
            *wide += f64::from((f(*a) + f(*b)) + (f(*c) + f(*d)));
        }
        row += 4;
    }
    while row < rows {
        // SAFETY: as above.
        unsafe { col_wide(src.offset(row as isize * stride), n, acc, |a, b| a + b) };
        row += 1;
    }
}

/// # Safety
/// See [`super::reduce::ColFn`].
#[inline(always)]
unsafe fn col_prod<const FMA: bool>(src: *const u32, n: usize, acc: *mut u64, _: usize) {
    // SAFETY: the caller's pointers are valid.
    unsafe { col_wide(src, n, acc, |a, b| a * b) }
}

/// Each accumulator holds a value's bits (low half) and its place (high half; -1 for none yet).
///
/// # Safety
/// See [`super::reduce::ColFn`].
#[inline(always)]
unsafe fn col_arg<const FMA: bool, B: Better>(src: *const u32, n: usize, acc: *mut u64, step: usize) {
    for at in 0..n {
        // SAFETY: `at < n`.
        unsafe {
            let (known, x) = (acc.add(at).read(), src.add(at).read_unaligned());
            let first = (known >> 32) as i32 == -1;
            let wins = first | B::better(LaneBits::from_lane_bits(x), LaneBits::from_lane_bits(known as u32));
            acc.add(at).write(if wins { u64::from(x) | (step as u64) << 32 } else { known });
        }
    }
}

leveled! { fn col_fold_at<F: Fold;>(src: *const u32, n: usize, acc: *mut u64, step: usize) => col_fold }
leveled! { fn col_sum_at<;>(src: *const u32, n: usize, acc: *mut u64, step: usize) => col_sum }
leveled! { fn col_sum_rows_at<;>(src: *const u32, stride: isize, rows: usize, n: usize, acc: *mut u64) => col_sum_rows }
leveled! { fn col_prod_at<;>(src: *const u32, n: usize, acc: *mut u64, step: usize) => col_prod }
leveled! { fn col_arg_at<B: Better;>(src: *const u32, n: usize, acc: *mut u64, step: usize) => col_arg }

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
