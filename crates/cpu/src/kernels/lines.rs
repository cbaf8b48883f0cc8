//! Sums, dot products and deviations of rows in whole cache lines, for AVX-512: rows of a caller rarely begin on one, and a 64-byte
//! load that lies across two lines costs two. Every lane gets the elements that it gets without, so that results are the same
//! to the bit wherever the rows lie.
//!
//! 10^4 elements of two rows that begin in the middle of a line take 0.54 us, as many as with aligned rows; read as
//! they lie they take 0.98 us with 64-byte loads and 1.04 us with 32-byte ones (Xeon with 2 MiB of L2, which holds both rows).

use super::dot::row_dot_as_it_lies_at;
use super::reduce::Acc;
use super::rows::{BLOCK, GROUP, LANES, row_sum_as_it_lies_at};
use crate::ahead::fetch_far;
use crate::level::Level;
use std::arch::x86_64::*;

/// Lanes of a cache line, and of a vector.
const LINE: usize = 16;
/// Vectors that are summed side by side.
const VECTORS: usize = LANES / LINE;

/// A row that is read a line ahead: two neighbouring lines hold the next [`LINE`] elements, wherever it begins.
struct Row {
    /// The line after the one with the first element.
    next_line: *const f32,
    /// The lane of two lines that each element comes from.
    from: __m512i,
    /// The line that was read last.
    line: __m512,
}

impl Row {
    /// # Safety
    /// `row` is aligned to four bytes and points to the elements up to the end of its line.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn new(row: *const f32) -> Row {
        let before = row as usize % 64 / 4;
        let first_line = row.wrapping_sub(before);
        let count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        // SAFETY: what lies before the row is masked out, and the caller vouches for the rest of the line.
        let line = unsafe { _mm512_maskz_load_ps(u16::MAX << before, first_line) };
        let from = _mm512_add_epi32(_mm512_set1_epi32(before as i32), count);
        Row { next_line: first_line.wrapping_add(LINE), from, line }
    }

    /// The elements `at..at + LINE`, which come after those of the call before.
    ///
    /// # Safety
    /// The row has `at + 2 * LINE` elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn next<const LONG: bool>(&mut self, at: usize) -> __m512 {
        if LONG {
            fetch_far(self.next_line.wrapping_add(at));
        }
        // SAFETY: the line begins at most at element `at + LINE`.
        let line = unsafe { _mm512_load_ps(self.next_line.wrapping_add(at)) };
        let elements = _mm512_permutex2var_ps(self.line, self.from, line);
        self.line = line;
        elements
    }
}

/// The lanes of a block in f64, in the order of [`super::rows::sum_wide`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn sum_wide(lanes: [__m512; VECTORS]) -> f64 {
    let low = |lane: __m512| _mm512_cvtps_pd(_mm512_castps512_ps256(lane));
    let high = |lane: __m512| _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(lane));
    // Lanes k, k + 32, k + 16, k + 48; then those 8 further on.
    let fours = |of: fn(__m512) -> __m512d| {
        _mm512_add_pd(_mm512_add_pd(of(lanes[0]), of(lanes[2])), _mm512_add_pd(of(lanes[1]), of(lanes[3])))
    };
    let wide = _mm512_add_pd(fours(low), fours(high));
    let four = _mm256_add_pd(_mm512_castpd512_pd256(wide), _mm512_extractf64x4_pd::<1>(wide));
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

/// What is summed up: the elements of a row, the products of two, or the squares of what is between a row and its mean.
const SUM: u8 = 0;
const DOT: u8 = 1;
const DEVIATION: u8 = 2;

/// The terms `x` and `y` on top of `lanes`, where the mask says so.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn add<const OF: u8>(x: __m512, y: __m512, lanes: __m512, mask: u16) -> __m512 {
    match OF {
        SUM => _mm512_mask_add_ps(lanes, mask, lanes, x),
        DOT => _mm512_mask3_fmadd_ps(x, y, lanes, mask),
        _ => {
            let difference = _mm512_sub_ps(x, y);
            _mm512_mask3_fmadd_ps(difference, difference, lanes, mask)
        }
    }
}

/// Adds up `n` terms on top of `acc`, at least [`LANES`] and a line, in the order in which they are added where rows are read as they lie.
///
/// # Safety
/// `a` points to `n` elements, `b` to as many factors or to one mean; a sum has none. Both are aligned to elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn sum_of<const OF: u8, const LONG: bool>(a: *const f32, b: *const f32, n: usize, acc: &mut Acc) {
    // SAFETY: the rows are aligned to elements and longer than a line; a mean is there.
    let (mut x, mut y, mean) = unsafe {
        let mean = if OF == DEVIATION { _mm512_set1_ps(*b) } else { _mm512_setzero_ps() };
        (Row::new(a), Row::new(if OF == DOT { b } else { a }), mean)
    };
    let mut total = 0.0;
    let mut at = 0;
    while at < n {
        let end = n.min(at + BLOCK);
        // Whole chunks, as long as the line after each is inside.
        let whole = at + (end - at).min((n - at).saturating_sub(LINE)) / LANES * LANES;
        let mut lanes = [_mm512_setzero_ps(); VECTORS];
        while at < whole {
            for (k, lane) in lanes.iter_mut().enumerate() {
                // SAFETY: `at + LANES + LINE <= n`.
                let x = unsafe { x.next::<LONG>(at + k * LINE) };
                // SAFETY: as above.
                let y = if OF == DOT { unsafe { y.next::<LONG>(at + k * LINE) } } else { mean };
                *lane = add::<OF>(x, y, *lane, u16::MAX);
            }
            at += LANES;
        }
        // What is left of the block is at most a chunk and a line: again from the first lane on.
        while at < end {
            for lane in &mut lanes {
                let len = LINE.min(end - at);
                let mask = ((1u32 << len) - 1) as u16;
                // SAFETY: `at + len <= n`, and the others are masked out.
                let x = unsafe { _mm512_maskz_loadu_ps(mask, a.add(at)) };
                // SAFETY: as above.
                let y = if OF == DOT { unsafe { _mm512_maskz_loadu_ps(mask, b.add(at)) } } else { mean };
                *lane = add::<OF>(x, y, *lane, mask);
                at += len;
            }
        }
        total += sum_wide(lanes);
        if at.is_multiple_of(GROUP) || at == n {
            acc.wide += total;
            total = 0.0;
        }
    }
}

/// Shorter rows have no whole chunk, foreign memory may begin in the middle of an element, and what begins with a line needs none
/// of this.
fn is_worth_it(begins: usize, n: usize) -> bool {
    n >= LANES + LINE && begins.is_multiple_of(4) && !begins.is_multiple_of(64)
}

/// # Safety
/// See [`super::reduce::DotFn`]; the CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn row_dot<const LONG: bool>(a: *const u32, b: *const u32, n: usize, acc: *mut Acc) {
    // SAFETY: passed on.
    unsafe {
        if is_worth_it(a as usize | b as usize, n) {
            sum_of::<DOT, LONG>(a.cast(), b.cast(), n, &mut *acc);
        } else {
            row_dot_as_it_lies_at::<false, LONG>(Level::Avx512)(a, b, n, acc);
        }
    }
}

/// # Safety
/// See [`super::reduce::DotFn`]; `mean` is one lane, and the CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn row_deviation(row: *const u32, mean: *const u32, n: usize, acc: *mut Acc) {
    // SAFETY: passed on.
    unsafe {
        if is_worth_it(row as usize, n) {
            sum_of::<DEVIATION, false>(row.cast(), mean.cast(), n, &mut *acc);
        } else {
            row_dot_as_it_lies_at::<true, false>(Level::Avx512)(row, mean, n, acc);
        }
    }
}

/// # Safety
/// See [`super::reduce::RowFn`]; the CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub(super) unsafe fn row_sum<const LONG: bool>(row: *const u32, n: usize, acc: *mut Acc, first: usize) {
    // SAFETY: passed on.
    unsafe {
        if is_worth_it(row as usize, n) {
            sum_of::<SUM, LONG>(row.cast(), row.cast(), n, &mut *acc);
        } else {
            row_sum_as_it_lies_at::<LONG>(Level::Avx512)(row, n, acc, first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use breakeven_ir::{DType, ReduceOp};

    #[test]
    fn same_bits_wherever_the_rows_lie() {
        if !Level::all().contains(&Level::Avx512) {
            return;
        }
        let data = |seed: f32| (0..9000).map(|i| ((i as f32 * seed).fract() - 0.4).to_bits()).collect::<Vec<u32>>();
        let (a, b) = (data(0.754), data(0.3754));
        let fns = crate::kernels::reduce::ReduceFns::new(ReduceOp::Sum, DType::F32, Level::Avx512);
        // Which of two NaN a sum passes on is up to the order in which the compiler names the operands.
        let bits = |sum: f64| if sum.is_nan() { f64::NAN.to_bits() } else { sum.to_bits() };
        let dot = |f: crate::kernels::reduce::DotFn, a: *const u32, b: *const u32, n: usize| {
            let mut acc = fns.start();
            // SAFETY: the callers below stay inside the data, and the CPU has AVX-512.
            unsafe { f(a, b, n, &mut acc) };
            bits(acc.wide)
        };
        let sum = |f: crate::kernels::reduce::RowFn, a: *const u32, n: usize| {
            let mut acc = fns.start();
            // SAFETY: as above.
            unsafe { f(a, n, &mut acc, 0) };
            bits(acc.wide)
        };
        let check = |a: *const u32, b: *const u32, n: usize, place: &str| {
            let expected = dot(row_dot_as_it_lies_at::<false, false>(Level::Avx2), a, b, n);
            assert_eq!(dot(row_dot::<false>, a, b, n), expected, "dot of {n} elements {place}");
            assert_eq!(dot(row_dot::<true>, a, b, n), expected, "dot of {n} elements of long arrays {place}");
            let expected = dot(row_dot_as_it_lies_at::<true, false>(Level::Avx2), a, b, n);
            assert_eq!(dot(row_deviation, a, b, n), expected, "deviation of {n} elements {place}");
            let expected = sum(row_sum_as_it_lies_at::<false>(Level::Avx2), a, n);
            assert_eq!(sum(row_sum::<false>, a, n), expected, "sum of {n} elements {place}");
            assert_eq!(sum(row_sum::<true>, a, n), expected, "sum of {n} elements of a long array {place}");
        };
        for n in [0, 1, 16, 63, 64, 79, 80, 81, 1000, 4095, 4096, 4097, 4111, 4112, 4113, 4176, 8192, 8900] {
            for (i, j) in (0..17).flat_map(|i| [(i, 0), (i, 3), (i, i)]) {
                let (a, b) = (a[i..].as_ptr(), b[j..].as_ptr());
                check(a, b, n, &format!("at {i} and {j}"));
                // In the middle of an element: other values, but the same for both.
                check(a.wrapping_byte_add(1), b.wrapping_byte_add(2), n, &format!("across {i} and {j}"));
            }
        }
    }
}
