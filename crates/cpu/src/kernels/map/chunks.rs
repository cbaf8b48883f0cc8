//! The chunks of lanes that an elementwise kernel goes through: pointers and a count enter, chunks of constant size leave, which
//! LLVM makes vectors of.

use crate::kernels::copy_some;

/// Lanes that are loaded, computed and stored together. With 32, LLVM unrolls the loop before it vectorises it and
/// AVX-512 additions take 1.3-1.9 cycles an element instead of 0.13; with 64 every op of the table is vector code.
pub(super) const W: usize = 64;

/// Up to `W` lanes from `src + at`.
///
/// # Safety
/// `src` points to `at + n` readable lanes.
#[inline(always)]
pub(super) unsafe fn load(src: *const u32, at: usize, n: usize) -> [u32; W] {
    // SAFETY: the caller vouches for the lanes; reads are unaligned.
    unsafe {
        if n == W {
            src.add(at).cast::<[u32; W]>().read_unaligned()
        } else {
            let mut lanes = [0; W];
            copy_some(lanes.as_mut_ptr(), src.add(at), n);
            lanes
        }
    }
}

/// Writes the first `n` lanes to `dst + at`.
///
/// # Safety
/// `dst` points to `at + n` writable lanes.
#[inline(always)]
pub(super) unsafe fn store(dst: *mut u32, at: usize, n: usize, lanes: [u32; W]) {
    // SAFETY: the caller vouches for the lanes; writes are unaligned.
    unsafe {
        if n == W {
            dst.add(at).cast::<[u32; W]>().write_unaligned(lanes);
        } else {
            copy_some(dst.add(at), lanes.as_ptr(), n);
        }
    }
}

/// From this many lanes on it pays to write whole cache lines: an AVX-512 store across two lines costs twice as much.
pub(super) const ALIGN_FROM: usize = 4096;

/// Runs `$chunk` for each `$at` and `$lanes` that make up `$n` lanes written to `$dst`: lanes up to a cache line of `$dst`,
/// whole chunks, the rest. `$args` are those of which as many lanes are read. No function with a closure: a closure that LLVM finds too large to inline is compiled without
/// the features of the level, and calls a library for every multiply-add.
macro_rules! chunks {
    ($dst:ident, $n:ident, $args:expr, |$at:ident, $lanes:ident| $chunk:expr) => {{
        // Lanes that are computed twice are cheaper than some of a chunk; but where the result takes the place of an argument
        // they are not there any more.
        let again = $n > W && $args.iter().all(|arg: &*const u32| !std::ptr::eq(*arg, $dst));
        let mut next = 0;
        if $n >= ALIGN_FROM && !($dst as usize).is_multiple_of(64) && ($dst as usize).is_multiple_of(4) {
            next = (64 - $dst as usize % 64) / 4;
            let ($at, $lanes) = (0, if again { W } else { next });
            $chunk;
        }
        let end = next + ($n - next) / W * W;
        while next < end {
            let ($at, $lanes) = (next, W);
            $chunk;
            next += W;
        }
        if next < $n {
            let ($at, $lanes) = if again { ($n - W, W) } else { (next, $n - next) };
            $chunk;
        }
    }};
}
