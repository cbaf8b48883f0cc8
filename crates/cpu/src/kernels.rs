//! The inner loops: plain Rust over chunks of lanes, compiled once for each SIMD level.
//!
//! Slots and row-major memory enter as raw pointers to 32-bit lanes, unaligned and possibly in place (`dst` equal to an
//! argument, never overlapping it partly): every kernel reads a chunk before it writes that chunk.

#![allow(clippy::needless_range_loop, reason = "index loops over lane arrays are what LLVM vectorises")]

pub(crate) mod across;
pub(crate) mod bytes;
pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod contract;
mod dot;
#[cfg(target_arch = "x86_64")]
mod lines;
pub(crate) mod map;
pub(crate) mod packed;
pub(crate) mod reduce;
mod rows;
pub(crate) mod scan;
mod thin;

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

/// Copies fewer than 64 lanes: in pieces of constant size, because a call of `memcpy` costs more than a short row.
///
/// # Safety
/// `src` holds `n` readable lanes, `dst` `n` writable ones elsewhere.
#[inline(always)]
unsafe fn copy_some(dst: *mut u32, src: *const u32, n: usize) {
    let mut at = 0;
    macro_rules! piece {
        ($len:literal) => {
            if n & $len != 0 {
                // SAFETY: the pieces of `n`'s bits make up `n` lanes; reads and writes are unaligned.
                unsafe {
                    dst.add(at)
                        .cast::<[u32; $len]>()
                        .write_unaligned(src.add(at).cast::<[u32; $len]>().read_unaligned())
                };
                at += $len;
            }
        };
    }
    piece!(32);
    piece!(16);
    piece!(8);
    piece!(4);
    piece!(2);
    if n & 1 != 0 {
        // SAFETY: as above.
        unsafe { dst.add(at).write_unaligned(src.add(at).read_unaligned()) };
    }
}
