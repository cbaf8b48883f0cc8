//! Elements that lie across the rows of a result, as those of a transposed matrix do: whole cache lines of them enter, rows of
//! lanes leave.

use crate::level::Level;

/// Copies a block: lane `l` of row `r` of `dst`, whose rows are `dst_row` lanes apart, is element `l * stride + r` of `src`.
pub(crate) type AcrossFn =
    unsafe fn(src: *const u32, stride: isize, lanes: usize, rows: usize, dst: *mut u32, dst_row: usize);

/// Rows that are filled at once: what a cache line has elements.
pub(crate) const ROWS: usize = 16;

/// The version for a level.
pub(crate) fn across_at(level: Level) -> AcrossFn {
    match level {
        // A level is only ever given out by `Level::all`, which has asked the CPU: so this may be called.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 | Level::Avx512 => across_avx2,
        _ => across,
    }
}

/// # Safety
/// `src` has the elements of the block, `dst` room for it.
unsafe fn across(src: *const u32, stride: isize, lanes: usize, rows: usize, dst: *mut u32, dst_row: usize) {
    for lane in 0..lanes {
        for row in 0..rows {
            // SAFETY: the caller vouches for the block.
            unsafe {
                let element = src.offset(lane as isize * stride).add(row).read_unaligned();
                dst.add(row * dst_row + lane).write(element);
            }
        }
    }
}

/// Squares of 8 x 8 in registers, the rest element by element.
///
/// # Safety
/// As for [`across`], on a CPU with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn across_avx2(src: *const u32, stride: isize, lanes: usize, rows: usize, dst: *mut u32, dst_row: usize) {
    use std::arch::x86_64::{
        __m256, _mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    let (whole_lanes, whole_rows) = (lanes / 8 * 8, rows / 4 * 4);
    for lane in (0..whole_lanes).step_by(8) {
        for row in (0..whole_rows).step_by(4) {
            // SAFETY: four elements of eight lanes are inside the block.
            unsafe {
                // Four elements of a lane, and behind them those of the fourth lane after it.
                let pair = |l: usize| -> __m256 {
                    let from = |l: usize| _mm_loadu_ps(src.offset((lane + l) as isize * stride).add(row).cast());
                    _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(from(l)), from(l + 4))
                };
                let (a, b, c, d) = (pair(0), pair(1), pair(2), pair(3));
                let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
                let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
                let to = |r: usize, lanes: __m256| _mm256_storeu_ps(dst.add((row + r) * dst_row + lane).cast(), lanes);
                to(0, _mm256_shuffle_ps::<0x44>(ab, cd));
                to(1, _mm256_shuffle_ps::<0xee>(ab, cd));
                to(2, _mm256_shuffle_ps::<0x44>(ab_high, cd_high));
                to(3, _mm256_shuffle_ps::<0xee>(ab_high, cd_high));
            }
        }
    }
    // SAFETY: passed on; both parts are inside the block.
    unsafe {
        across(src.add(whole_rows), stride, whole_lanes, rows - whole_rows, dst.add(whole_rows * dst_row), dst_row);
        across(
            src.offset(whole_lanes as isize * stride),
            stride,
            lanes - whole_lanes,
            rows,
            dst.add(whole_lanes),
            dst_row,
        );
    }
}
