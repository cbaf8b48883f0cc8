//! The inner loops: plain Rust over chunks of lanes, compiled once for each SIMD level.
//!
//! Slots and row-major memory enter as raw pointers to 32-bit lanes, unaligned and possibly in place (`dst` equal to an
//! argument, never overlapping it partly): every kernel reads a chunk before it writes that chunk.

#![allow(clippy::needless_range_loop, reason = "index loops over lane arrays are what LLVM vectorises")]

pub(crate) mod columns;
pub(crate) mod contract;
mod dot;
pub(crate) mod map;
pub(crate) mod reduce;
mod rows;
pub(crate) mod scan;

/// Lanes as bytes, which need no alignment. Loops over slices are vector code also where the library's own checks of pointers
/// are on.
///
/// # Safety
/// `n` lanes are there to be read for as long as the slice is used.
#[inline(always)]
unsafe fn unaligned<'a>(lanes: *const u32, n: usize) -> &'a [[u8; 4]] {
    // SAFETY: passed on; any bytes will do.
    unsafe { std::slice::from_raw_parts(lanes.cast(), n) }
}

/// The same, to be written.
///
/// # Safety
/// `n` lanes are there for nobody else for as long as the slice is used.
#[inline(always)]
unsafe fn unaligned_mut<'a>(lanes: *mut u32, n: usize) -> &'a mut [[u8; 4]] {
    // SAFETY: passed on; any bytes will do.
    unsafe { std::slice::from_raw_parts_mut(lanes.cast(), n) }
}
