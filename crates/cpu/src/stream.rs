//! Copies lanes past the caches, for outputs that are larger than they are.

/// Copies `n` lanes with non-temporal stores where the CPU has them.
///
/// # Safety
/// `src` holds `n` readable lanes, `dst` `n` writable ones elsewhere.
pub(crate) unsafe fn copy(dst: *mut u32, src: *const u32, n: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64; `stream` is only called on aligned addresses within the lanes.
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        let head = (dst.align_offset(16)).min(n);
        std::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), head * 4);
        let mut at = head;
        if dst.add(head).cast::<u8>().align_offset(16) == 0 {
            while at + 16 <= n {
                for k in 0..4 {
                    let lanes = _mm_loadu_si128(src.add(at + 4 * k).cast::<__m128i>());
                    _mm_stream_si128(dst.add(at + 4 * k).cast::<__m128i>(), lanes);
                }
                at += 16;
            }
        }
        std::ptr::copy_nonoverlapping(src.add(at).cast::<u8>(), dst.add(at).cast::<u8>(), (n - at) * 4);
        // Other threads see the stores when they see that this one is done.
        _mm_sfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller vouches for the lanes.
    unsafe {
        std::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), n * 4)
    }
}
