//! Copies lanes past the caches, for outputs that are larger than they are.

use crate::level::Level;

/// Copies lanes from the second address to the first.
pub(crate) type CopyFn = unsafe fn(*mut u32, *const u32, usize);

/// Copies with non-temporal stores where the CPU has them, as wide as it has them: a line is one store with AVX-512.
///
/// The function's callers vouch for `n` readable lanes behind `src` and for `n` writable ones elsewhere behind `dst`.
pub(crate) fn copy_at(level: Level) -> CopyFn {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Portable => x86::portable,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => x86::avx2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => x86::avx512,
        #[cfg(not(target_arch = "x86_64"))]
        _ => plain,
    }
}

/// Lanes of a [`Piece`]. Reading and writing memory take turns after so many: the relu of 10^7 elements takes 1.44 ms with 128 lanes, 1.55
/// with 64 and with 256, 2.1 with tiles of 1,024 in slots, and 1.63 through the caches (Zen 5, two threads, beside others who use the memory).
pub(crate) const PIECE: usize = 128;

/// Results on their way past the caches.
#[repr(align(64))]
pub(crate) struct Piece(pub(crate) [u32; PIECE]);

/// Has other threads see what this one has copied when they see that it is done. Not after each copy: a fence waits for memory,
/// and copies are of a tile.
pub(crate) fn fence() {
    // SAFETY: every x86-64 CPU has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// # Safety
/// As for every [`CopyFn`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn plain(dst: *mut u32, src: *const u32, n: usize) {
    // SAFETY: the caller vouches for the lanes.
    unsafe { std::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), n * 4) }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Lanes of a cache line.
    const LINE: usize = 16;

    /// A copy whose whole lines go past the caches, by `$load` and `$stream` of `$lanes` lanes each.
    macro_rules! copy {
        ($(#[$feature:meta])* $name:ident $vector:ty, $lanes:literal, $load:ident, $stream:ident) => {
            /// # Safety
            /// As for every [`super::CopyFn`]; the CPU has the level.
            $(#[$feature])*
            pub(super) unsafe fn $name(dst: *mut u32, src: *const u32, n: usize) {
                // SAFETY: all lanes are within the caller's; vectors are streamed to the aligned addresses of whole lines.
                unsafe {
                    let head = if (dst as usize).is_multiple_of(4) { (64 - dst as usize % 64) % 64 / 4 } else { n }.min(n);
                    // A call for no bytes takes as long as storing a line.
                    if head > 0 {
                        std::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), head * 4);
                    }
                    let mut at = head;
                    while at + LINE <= n {
                        for k in 0..LINE / $lanes {
                            let lanes = $load(src.add(at + $lanes * k).cast());
                            $stream(dst.add(at + $lanes * k).cast::<$vector>(), lanes);
                        }
                        at += LINE;
                    }
                    if at < n {
                        std::ptr::copy_nonoverlapping(src.add(at).cast::<u8>(), dst.add(at).cast::<u8>(), (n - at) * 4);
                    }
                }
            }
        };
    }
    copy!(portable __m128i, 4, _mm_loadu_si128, _mm_stream_si128);
    copy!(#[target_feature(enable = "avx2")] avx2 __m256i, 8, _mm256_loadu_si256, _mm256_stream_si256);
    copy!(#[target_feature(enable = "avx512f")] avx512 __m512i, 16, _mm512_loadu_si512, _mm512_stream_si512);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_arrives_wherever_they_lie() {
        let from: Vec<u32> = (0..600).map(|i| i * 7 + 1).collect();
        for level in Level::all() {
            for n in [0, 1, 15, 16, 17, 100, 500] {
                for (i, j) in (0..18).flat_map(|i| [(i, 0), (0, i), (i, i + 1)]) {
                    let mut to = vec![0; 600];
                    // SAFETY: both have 600 lanes, and `Level::all` has asked the CPU.
                    unsafe { copy_at(level)(to[i..].as_mut_ptr(), from[j..].as_ptr(), n) };
                    assert_eq!(to[i..i + n], from[j..j + n], "{n} lanes from {j} to {i}");
                    assert!(to[..i].iter().chain(&to[i + n..]).all(|&lane| lane == 0), "{n} lanes at {i}: no others");
                    // In the middle of an element.
                    // SAFETY: as above, and a byte more is there.
                    unsafe { copy_at(level)(to[i..].as_mut_ptr().byte_add(1), from[j..].as_ptr(), n) };
                    // SAFETY: as above.
                    let read = |k: usize| unsafe { to[i..].as_ptr().byte_add(1).add(k).read_unaligned() };
                    assert!((0..n).all(|k| read(k) == from[j + k]), "{n} lanes across {i}");
                }
            }
        }
    }
}
