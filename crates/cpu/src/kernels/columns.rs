//! Reductions of columns: a tile into an accumulator for each of its lanes.

use super::reduce::{Better, Fold, lane};
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
    let acc = acc.cast::<f64>();
    const W: usize = 32;
    let whole = n / W * W;
    let mut at = 0;
    while at < whole {
        // SAFETY: `at + W <= n`.
        unsafe {
            let x = src.add(at).cast::<[f32; W]>().read_unaligned();
            let mut y = acc.add(at).cast::<[f64; W]>().read_unaligned();
            for k in 0..W {
                y[k] = fold(y[k], f64::from(x[k]));
            }
            acc.add(at).cast::<[f64; W]>().write_unaligned(y);
        }
        at += W;
    }
    for at in whole..n {
        // SAFETY: `at < n`.
        unsafe { acc.add(at).write(fold(acc.add(at).read(), f64::from(lane::<f32>(src, at)))) };
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
    const W: usize = 32;
    let wide = acc.cast::<f64>();
    let src = src.cast::<f32>();
    let mut row = 0;
    while row + 4 <= rows {
        // SAFETY: the caller vouches for `rows` rows of `n` lanes and for `n` accumulators.
        unsafe {
            let first = src.offset(row as isize * stride);
            let whole = n / W * W;
            let mut at = 0;
            while at < whole {
                let read = |r: isize| first.offset(r * stride).add(at).cast::<[f32; W]>().read_unaligned();
                let (a, b, c, d) = (read(0), read(1), read(2), read(3));
                let mut y = wide.add(at).cast::<[f64; W]>().read_unaligned();
                for k in 0..W {
                    y[k] += f64::from((a[k] + b[k]) + (c[k] + d[k]));
                }
                wide.add(at).cast::<[f64; W]>().write_unaligned(y);
                at += W;
            }
            for at in whole..n {
                let read = |r: isize| first.offset(r * stride).add(at).read_unaligned();
                let sum = (read(0) + read(1)) + (read(2) + read(3));
                wide.add(at).write(wide.add(at).read() + f64::from(sum));
            }
        }
        row += 4;
    }
    while row < rows {
        // SAFETY: as above.
        unsafe { col_wide(src.offset(row as isize * stride).cast(), n, acc, |a, b| a + b) };
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
