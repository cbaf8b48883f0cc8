//! Large matrix products: a product enters; GEMM from one of two proven crates leaves its elements, called piece by piece so that
//! what it packs stays in the caches.
//!
//! Both sum each element along k in steps whose borders depend on k alone, if a piece has enough rows and columns.

use super::contract::Gemm;
use crate::level::Level;
use breakeven_ir::backend::Stop;

/// The crate that computes a product. They sum in different steps, so that it is the same one on a CPU at a level always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Maker {
    /// `private-gemm-x86`, which sums steps of [`DEPTH`].
    #[cfg(target_arch = "x86_64")]
    Faer,
    /// `gemm-f32`, which chooses its steps.
    Gemm,
}

impl Maker {
    /// For a whole product of so many multiply-adds.
    ///
    /// faer's kernel reads 32 bytes of packed columns for each cycle of a core that does two AVX-512 multiply-adds in it, the `gemm`
    /// crate's 16. A Zen 5 fetches that many from its second-level cache, and both reach 92 to 96 % of its peak; on a Cascade Lake
    /// faer's reaches 70 to 79 % and the other one 77 to 88 %. Up to 128 x 128 x 128 they take the same time there, and faer's
    /// allocates nothing.
    pub(crate) fn of(level: Level, multiply_adds: usize) -> Maker {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Maker::Faer,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 if multiply_adds <= MEDIUM || !is_intel() => Maker::Faer,
            _ => Maker::Gemm,
        }
    }

    /// Columns that it is given at a time for such a product, and the fewest that are a piece of their own: fewer go with the one
    /// before.
    fn columns(self, g: &Gemm) -> (usize, usize) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Maker::Faer if g.m * g.k > STREAMED => (WIDE_COLUMNS, REST),
            #[cfg(target_arch = "x86_64")]
            Maker::Faer => (COLUMNS, REST),
            Maker::Gemm if g.m < THIN => (g.n.max(1), 0),
            Maker::Gemm => (GEMM_COLUMNS, LEAST_SIDE),
        }
    }

    /// The fewest rows that a part of a product may have that has all `across` of its columns, or the other way round, so that it
    /// is summed along k as the whole is. faer's GEMM always goes in the same steps.
    pub(crate) fn least_side(self, across: usize, k: usize) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Maker::Faer => 1,
            Maker::Gemm => {
                let by_elems = FEW_ELEMS / across.max(1) + 1;
                if across > FEW_SIDE || k <= FEW_STEPS { by_elems } else { by_elems.max(FEW_SIDE + 1) }
            }
        }
    }
}

/// Multiply-adds up to which memory that GEMM allocates would be noticed.
#[cfg(target_arch = "x86_64")]
const MEDIUM: usize = 1 << 22;

/// Asked once: on a virtual machine the answer takes microseconds.
#[cfg(target_arch = "x86_64")]
fn is_intel() -> bool {
    static IS_INTEL: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IS_INTEL.get_or_init(|| {
        let id = std::arch::x86_64::__cpuid(0);
        [id.ebx, id.edx, id.ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel"
    })
}

/// Columns of the right operand that faer's GEMM is given at a time: twice the width of its kernel with AVX-512. The 384 KiB
/// that it packs of them in a step along k stay in the second-level cache beside the rows that stream past; left to itself it
/// packs a whole step, or all columns that it has, at once. Two threads of a Zen 5 with half of the rows each, share of the FMA
/// peak with these columns, with 512 and with all: 94.9, 90.6 and 85.5 % at 1,000 x 1,000, 96.1, 95.6 and 95.3 % at 1,024, 95.0,
/// 94.0 and 89.7 % at 3,000.
#[cfg(target_arch = "x86_64")]
const COLUMNS: usize = 192;
/// As many where the left operand, which streams past once for each of these pieces, has more than [`STREAMED`] elements and
/// comes from main memory: 92.9 % where the narrow ones reach 90.4 % and all at once 89.4 % at 4,096 x 4,096.
#[cfg(target_arch = "x86_64")]
const WIDE_COLUMNS: usize = 512;
#[cfg(target_arch = "x86_64")]
const STREAMED: usize = 6 << 20;
/// 256 columns at once take 97 % of the time of 192 and 64.
#[cfg(target_arch = "x86_64")]
const REST: usize = 96;
/// The same for the `gemm` crate, which packs the left operand anew for each piece. One thread of a Cascade Lake with 192 columns,
/// with these and with all at once: 78, 82 and 75 % at 1,024 x 1,024, 76, 77 and 63 % at 2,048.
const GEMM_COLUMNS: usize = 512;

/// Steps along k that faer's GEMM sums before it adds to the result, whatever the product: its own number.
#[cfg(target_arch = "x86_64")]
const DEPTH: usize = 512;
/// Multiply-adds of a block between two looks at a stop: 1.6 ms at 170 GFLOP/s. As 512 x 512 x 512 its operands are packed
/// again at a cost of a few percent.
const BLOCK: usize = 512 * 512 * 512;
/// A block's rows and columns are never fewer, or half of it where they are cut evenly: the `gemm` crate sums along k in other
/// steps up to 64 x 64, and in yet others up to 256 elements, which a product of few rows or columns must not come to.
const LEAST_SIDE: usize = 192;
const LEAST_THIN: usize = 520;
const THIN: usize = 8;

/// Up to this many rows and columns the `gemm` crate cuts k in other places than beyond, if it has more than these steps; up to
/// this many elements it may sum in another order altogether.
const FEW_SIDE: usize = 64;
const FEW_STEPS: usize = 512;
const FEW_ELEMS: usize = 256;

/// # Safety
/// As for [`gemm`](super::contract::gemm).
pub(super) unsafe fn packed(maker: Maker, level: Level, g: &Gemm) {
    let (step, least) = maker.columns(g);
    let mut from = 0;
    while from < g.n {
        let to = if g.n - from < step + least { g.n } else { from + step };
        // SAFETY: passed on; the columns are inside.
        unsafe { make(maker, level, &Gemm { n: to - from, ..g.from(0, from, 0) }, false) };
        from = to;
    }
}

/// As [`packed`], block by block, as long as nobody tells it to stop.
///
/// # Safety
/// As for [`packed`].
pub(super) unsafe fn packed_until(maker: Maker, level: Level, g: &Gemm, stop: &Stop) {
    if g.k == 0 {
        if !stop.is_told() {
            // SAFETY: passed on.
            unsafe { packed(maker, level, g) };
        }
        return;
    }
    let (g, depth) = match maker {
        // SAFETY: passed on; k was seen not to be 0.
        #[cfg(target_arch = "x86_64")]
        Maker::Faer => (unsafe { g.as_summed() }, DEPTH.min(g.k)),
        Maker::Gemm => (*g, g.k),
    };
    let least = if g.m.min(g.n) < THIN { LEAST_THIN } else { LEAST_SIDE };
    let side = (BLOCK / depth).isqrt().max(least);
    let (rows, columns) = (g.m.div_ceil(side), g.n.div_ceil(side));
    for at in 0..rows * columns {
        let (row, column) = (at / columns, at % columns);
        let (i, j) = (g.m * row / rows, g.n * column / columns);
        let (m, n) = (g.m * (row + 1) / rows - i, g.n * (column + 1) / columns - j);
        let mut p = 0;
        while p < g.k && !stop.is_told() {
            let k = depth.min(g.k - p);
            // SAFETY: passed on; the block is inside the product, and after its first step it is written.
            unsafe { make(maker, level, &Gemm { m, n, k, ..g.from(i, j, p) }, p > 0) };
            p += k;
        }
    }
}

/// One call of a crate's GEMM. With `add` the product is added to what is there.
///
/// # Safety
/// As for [`packed`], on a CPU of that level.
unsafe fn make(maker: Maker, level: Level, g: &Gemm, add: bool) {
    match maker {
        // SAFETY: passed on.
        #[cfg(target_arch = "x86_64")]
        Maker::Faer => unsafe { faer(level, g, add) },
        // SAFETY: passed on.
        Maker::Gemm => unsafe { gemm_crate(g, add) },
    }
}

/// GEMM from the `gemm` crate. Its kernels want elements of the result that lie side by side in the columns: it is given the
/// transposed product, which takes half of the time.
///
/// # Safety
/// As for [`packed`].
unsafe fn gemm_crate(g: &Gemm, add: bool) {
    // SAFETY: passed on; strides and extents are those of the matrices.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            g.n,
            g.m,
            g.k,
            g.dst,
            g.dst_row,
            1,
            add,
            g.right.base,
            g.right.row,
            g.right.column,
            g.left.base,
            g.left.row,
            g.left.column,
            if add { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// GEMM from faer, whose kernels are assembly.
///
/// # Safety
/// As for [`packed`], on a CPU of that level.
#[cfg(target_arch = "x86_64")]
unsafe fn faer(level: Level, g: &Gemm, add: bool) {
    use private_gemm_x86::{Accum, DType, DstKind, IType, InstrSet, gemm};
    let instructions = if level == Level::Avx512 { InstrSet::Avx512 } else { InstrSet::Avx256 };
    let one = 1f32;
    let null = std::ptr::null();
    // SAFETY: passed on; strides and extents are those of the matrices, and nothing is conjugated, masked or permuted.
    unsafe {
        gemm(
            DType::F32,
            IType::U64,
            instructions,
            g.m,
            g.n,
            g.k,
            g.dst.cast(),
            g.dst_row,
            1,
            null,
            null,
            DstKind::Full,
            if add { Accum::Add } else { Accum::Replace },
            g.left.base.cast(),
            g.left.row,
            g.left.column,
            false,
            null,
            0,
            g.right.base.cast(),
            g.right.row,
            g.right.column,
            false,
            (&raw const one).cast(),
            1,
        );
    }
}
