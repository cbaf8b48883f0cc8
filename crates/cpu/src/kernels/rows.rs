//! Reductions of rows: a tile into one accumulator.
//!
//! f32 sums and products are carried in f64: a block of at most [`BLOCK`] elements is summed in [`LANES`] f32 lanes,
//! then everything meets in f64. The order is fixed by the shapes alone, so results do not depend on the number of
//! threads.

use super::copy_some;
use super::reduce::{Acc, Better, Fold, RowFn, lane};
use crate::ahead::{LINE, fetch_far};
use crate::level::{Level, leveled};
use breakeven_ir::LaneBits;
use std::ops::Range;

/// Independent accumulators in a row reduction. Fewer leave the adders waiting: 32 lanes are 2.3x slower for a dot.
pub(super) const LANES: usize = 64;
/// Elements of one f32 lane sum before it goes to f64: 64 additions a lane keep the error below 1e-9 at 10^7 elements.
pub(super) const BLOCK: usize = 4096;
/// Elements whose blocks are added up before they join the others, in every call: a chunk of a long row is one such group, so that
/// many of them in one call are the same to the bit as one by one.
pub(crate) const GROUP: usize = 4 * BLOCK;

/// The last `n` lanes of a row, fewer than a chunk, and `rest` in the others.
///
/// # Safety
/// `src` points to `n` readable lanes.
#[inline(always)]
pub(super) unsafe fn last_lanes(src: *const u32, n: usize, rest: u32) -> [u32; LANES] {
    let mut lanes = [rest; LANES];
    // SAFETY: the caller's lanes, which are fewer.
    unsafe { copy_some(lanes.as_mut_ptr(), src, n) };
    lanes
}

/// Folds the second `WIDTH` lanes into the first.
#[inline(always)]
fn halve<F: Fold, const WIDTH: usize>(acc: &mut [F::T; LANES]) {
    for k in 0..WIDTH {
        acc[k] = F::fold(acc[k], acc[k + WIDTH]);
    }
}

/// The fold of `n` lanes, in [`LANES`] chains.
///
/// # Safety
/// `src` points to `n` readable lanes.
#[inline(always)]
unsafe fn fold_lanes<F: Fold>(src: *const u32, n: usize) -> F::T {
    let mut acc = [F::START; LANES];
    let whole = n / LANES * LANES;
    let mut at = 0;
    while at < whole {
        // SAFETY: `at + LANES <= n`.
        let chunk = unsafe { src.add(at).cast::<[u32; LANES]>().read_unaligned() };
        for k in 0..LANES {
            acc[k] = F::fold(acc[k], F::T::from_lane_bits(chunk[k]));
        }
        at += LANES;
    }
    if whole < n {
        // SAFETY: these are the lanes from `whole` to `n`.
        let chunk = unsafe { last_lanes(src.add(whole), n - whole, F::START.lane_bits()) };
        for k in 0..LANES {
            acc[k] = F::fold(acc[k], F::T::from_lane_bits(chunk[k]));
        }
    }
    // Halved while it is wide enough for vectors; every width is a constant, so that the loops are unrolled.
    halve::<F, 32>(&mut acc);
    halve::<F, 16>(&mut acc);
    halve::<F, 8>(&mut acc);
    halve::<F, 4>(&mut acc);
    halve::<F, 2>(&mut acc);
    halve::<F, 1>(&mut acc);
    acc[0]
}

/// # Safety
/// See [`super::reduce::RowFn`].
#[inline(always)]
unsafe fn row_fold<const FMA: bool, F: Fold>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    // SAFETY: the caller's pointers are valid.
    unsafe {
        let value = fold_lanes::<F>(src, n);
        (*acc).bits = F::fold(F::T::from_lane_bits((*acc).bits), value).lane_bits();
    }
}

/// # Safety
/// See [`super::reduce::RowFn`].
#[inline(always)]
unsafe fn row_sum<const FMA: bool, const LONG: bool>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    let mut total = 0.0;
    let mut at = 0;
    while at < n {
        let len = BLOCK.min(n - at);
        let mut lanes = [0f32; LANES];
        let whole = len / LANES * LANES;
        let mut k = 0;
        while k < whole {
            if LONG {
                (0..LANES).step_by(LINE / 4).for_each(|l| fetch_far(src.wrapping_add(at + k + l)));
            }
            // SAFETY: `at + k + LANES <= n`.
            let chunk = unsafe { src.add(at + k).cast::<[f32; LANES]>().read_unaligned() };
            for l in 0..LANES {
                lanes[l] += chunk[l];
            }
            k += LANES;
        }
        if whole < len {
            // SAFETY: these are the lanes of the block from `whole` on. (A sum that began with 0 is the same with another 0.)
            let chunk = unsafe { last_lanes(src.add(at + whole), len - whole, 0) };
            for l in 0..LANES {
                lanes[l] += f32::from_bits(chunk[l]);
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

/// The lanes of a block in f64.
#[inline(always)]
pub(super) fn sum_wide(lanes: &[f32; LANES]) -> f64 {
    let mut wide: [f64; LANES] = std::array::from_fn(|k| f64::from(lanes[k]));
    // Halved at constant widths, which become whole vectors.
    #[inline(always)]
    fn halve<const WIDTH: usize>(wide: &mut [f64; LANES]) {
        for k in 0..WIDTH {
            wide[k] += wide[k + WIDTH];
        }
    }
    halve::<32>(&mut wide);
    halve::<16>(&mut wide);
    halve::<8>(&mut wide);
    halve::<4>(&mut wide);
    halve::<2>(&mut wide);
    wide[0] + wide[1]
}

/// # Safety
/// See [`super::reduce::RowFn`].
#[inline(always)]
unsafe fn row_prod<const FMA: bool>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    let mut lanes = [1f64; 16];
    for at in 0..n {
        // SAFETY: `at < n`.
        lanes[at % 16] *= f64::from(unsafe { lane::<f32>(src, at) });
    }
    // SAFETY: the caller's accumulator is valid.
    unsafe { (*acc).wide *= lanes.iter().product::<f64>() };
}

/// The extreme of `n` lanes, at least [`LANES`], if none of them is NaN or infinite: an instruction for it, and one to find that out,
/// which is half of what a fold takes that NaN goes through.
///
/// # Safety
/// `src` points to `n` readable lanes.
#[inline(always)]
unsafe fn plain_extreme<B: Better>(src: *const u32, n: usize) -> Option<<B::F as Fold>::T> {
    // SAFETY: `from + LANES <= n` in all calls.
    let chunk = |from: usize| unsafe { src.add(from).cast::<[u32; LANES]>().read_unaligned() };
    let mut best = [B::F::START; LANES];
    let mut odd = [0f32; LANES];
    let mut from = 0;
    while from < n {
        // The last chunk begins with lanes that were seen.
        let lanes = chunk(from.min(n - LANES));
        for k in 0..LANES {
            let value = LaneBits::from_lane_bits(lanes[k]);
            best[k] = B::plain(value, best[k]);
            odd[k] = B::odd(value, odd[k]);
        }
        from += LANES;
    }
    macro_rules! halve {
        ($($width:literal)*) => {$(
            for k in 0..$width {
                best[k] = B::plain(best[k + $width], best[k]);
                odd[k] += odd[k + $width];
            }
        )*};
    }
    halve!(32 16 8 4 2 1);
    (!odd[0].is_nan()).then_some(best[0])
}

/// Of [`LANES`] lanes, the first of which this is true: without a branch, because where it is can't be foreseen.
#[inline(always)]
fn first_of<T: LaneBits>(chunk: &[u32; LANES], is: impl Fn(T) -> bool) -> usize {
    let mut first = LANES as u32;
    for k in 0..LANES {
        first = first.min(if is(T::from_lane_bits(chunk[k])) { k as u32 } else { LANES as u32 });
    }
    first as usize
}

/// The first of `n` lanes, at least [`LANES`], of which this is true; one of them is: chunk by chunk, and only in the right one lane
/// by lane.
///
/// # Safety
/// `src` points to `n` readable lanes.
#[inline(always)]
unsafe fn find<T: LaneBits>(src: *const u32, n: usize, is: impl Fn(T) -> bool) -> usize {
    let mut from = 0;
    loop {
        // The last chunk begins with lanes of which it is not true.
        let at = from.min(n - LANES);
        // SAFETY: `at + LANES <= n`.
        let chunk = unsafe { src.add(at).cast::<[u32; LANES]>().read_unaligned() };
        let mut here = 0;
        for bits in chunk {
            here |= u32::from(is(T::from_lane_bits(bits)));
        }
        if here != 0 || at < from {
            return at + first_of(&chunk, is);
        }
        from += LANES;
    }
}

/// The extreme of `n` lanes, at least [`LANES`], and its place.
///
/// # Safety
/// `src` points to `n` readable lanes.
#[inline(always)]
unsafe fn extreme<B: Better>(src: *const u32, n: usize) -> (<B::F as Fold>::T, usize) {
    // SAFETY: passed on.
    unsafe {
        let value = plain_extreme::<B>(src, n).unwrap_or_else(|| fold_lanes::<B::F>(src, n));
        let place = if B::is_nan(value) { find(src, n, B::is_nan) } else { find(src, n, |x| B::is(x, value)) };
        (value, place)
    }
}

/// # Safety
/// See [`super::reduce::RowFn`].
#[inline(always)]
unsafe fn row_arg<const FMA: bool, B: Better>(src: *const u32, n: usize, acc: *mut Acc, first: usize) {
    if n == 0 {
        return;
    }
    // SAFETY: the caller's pointers are valid, and `at < n`.
    unsafe {
        let (value, place) = if n < LANES {
            (1..n).fold((lane(src, 0), 0), |(best, place), at| {
                let value = lane(src, at);
                if B::better(value, best) { (value, at) } else { (best, place) }
            })
        } else {
            extreme::<B>(src, n)
        };
        if (*acc).empty || B::better(value, LaneBits::from_lane_bits((*acc).bits)) {
            *acc = Acc { bits: value.lane_bits(), empty: false, index: (first + place) as i32, ..*acc };
        }
    }
}

leveled! { fn row_fold_at<F: Fold;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_fold }
leveled! { fn row_sum_as_it_lies_at<; const LONG: bool>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_sum }
leveled! { fn row_prod_at<;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_prod }
leveled! { fn row_arg_at<B: Better;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_arg }

/// Elements of rows that are too long for every L1 and leave room in every L2.
const IN_L2: Range<usize> = (12 << 10) + 1..(128 << 10) + 1;

/// The sum of a row of f32 in L2, on CPUs that move memory fastest in vectors of whole lines wherever they begin: loads across two
/// lines cost nothing beside the way to L2 (10^5 elements take 1.67 us as they lie and 1.95 line by line on a Zen 5; 10^4 in L1
/// take 0.14 and 0.12, 4 * 10^6 in memory 142 and 126).
pub(super) fn row_sum_over(lanes: usize, moving: Level) -> Option<RowFn> {
    (IN_L2.contains(&lanes) && moving.with_half_lines() != moving).then(|| row_sum_as_it_lies_at::<false>(moving))
}

/// The sum of a row of f32, of a `long` array or of any other.
pub(crate) fn row_sum_at(level: Level, long: bool) -> RowFn {
    match level {
        // A level is only ever given out by `Level::all`, which has asked the CPU: so this may be called.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 if long => super::lines::row_sum::<true>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => super::lines::row_sum::<false>,
        level if long => row_sum_as_it_lies_at::<true>(level),
        level => row_sum_as_it_lies_at::<false>(level),
    }
}
