//! Matrix products: GEMM from proven crates for large ones, an unpacked kernel of plain loops for small ones, and `thin` where
//! one operand is a vector.

use super::thin::{Thin, thin};
use crate::level::{Level, leveled};
use breakeven_ir::backend::Stop;

/// A matrix in memory: base address and strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) base: *const f32,
    pub(crate) row: isize,
    pub(crate) column: isize,
}

/// `dst[m, n] = left[m, k] * right[k, n]`, `dst` row-major with `dst_row` elements a row.
#[derive(Clone, Copy)]
pub(crate) struct Gemm {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) left: Matrix,
    pub(crate) right: Matrix,
    pub(crate) dst: *mut f32,
    pub(crate) dst_row: isize,
    /// What [`Way::of`] says of the whole product, of which this may be a thread's share.
    pub(crate) way: Way,
}

/// Which kernel computes a product. They sum in different orders: whoever computes a part has to ask for the whole, or its bits
/// would depend on how many threads share it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// One of the operands is a vector.
    Thin(Thin),
    /// Unpacked blocks, which sum along k without a pause.
    Small,
    /// GEMM, which sums in steps.
    Packed,
}

/// Up to this many multiply-adds the unpacked kernel wins: 1,000 products of 32x32 take 487-725 us with it and
/// 654-871 us with packing.
const SMALL: usize = 64 * 64 * 64;

/// Below this many columns faer's GEMM does not cut a product to the sizes of the caches, and gets slower the larger it is: from
/// 200 GFLOP/s at 500 x 500 to 120 at 1,000 x 1,000. So it is given no more than these at a time.
#[cfg(target_arch = "x86_64")]
const UNBLOCKED: usize = 1024;
#[cfg(target_arch = "x86_64")]
const UNBLOCKED_COLUMNS: usize = 512;

/// Steps along k that faer's GEMM sums before it adds to the result, whatever the product: its own number.
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

impl Way {
    /// For a whole product.
    pub(crate) fn of(m: usize, n: usize, k: usize, left: &Matrix, right: &Matrix) -> Way {
        let small = m * n * k <= SMALL && right.column == 1 && n >= 8;
        match Thin::of(m, n, k, left, right) {
            Some(thin) => Way::Thin(thin),
            None if small => Way::Small,
            None => Way::Packed,
        }
    }
}

/// The fewest rows that a part of a product may have that has all `across` of its columns, or the other way round, so that it
/// is summed along k as the whole is. faer's GEMM always goes in the same steps.
pub(crate) fn least_side(level: Level, across: usize, k: usize) -> usize {
    if cfg!(target_arch = "x86_64") && level != Level::Portable {
        return 1;
    }
    let by_elems = FEW_ELEMS / across.max(1) + 1;
    if across > FEW_SIDE || k <= FEW_STEPS { by_elems } else { by_elems.max(FEW_SIDE + 1) }
}

/// # Safety
/// The matrices are readable and `dst` is writable over their extents, and `dst` overlaps neither.
pub(crate) unsafe fn gemm(level: Level, g: &Gemm) {
    match g.way {
        // SAFETY: passed on.
        Way::Thin(way) => return unsafe { thin(level, way, g, None) },
        // SAFETY: passed on.
        Way::Small => return unsafe { small(level, g) },
        Way::Packed => {}
    }
    #[cfg(target_arch = "x86_64")]
    if level != Level::Portable {
        let pieces = if g.n < UNBLOCKED { g.n.div_ceil(UNBLOCKED_COLUMNS) } else { 1 };
        for piece in 0..pieces {
            let (from, to) = (g.n * piece / pieces, g.n * (piece + 1) / pieces);
            // SAFETY: passed on; the level says that the CPU has the instructions, and the columns are inside.
            unsafe { packed_x86(level, &Gemm { n: to - from, ..g.from(0, from, 0) }, false) };
        }
        return;
    }
    // SAFETY: passed on.
    unsafe { packed_portable(g) };
}

/// As [`gemm`], block by block, as long as nobody tells it to stop. The elements are the same to the last bit: each is
/// summed along k in the same order in every block, and k is cut only where it is cut anyway.
///
/// # Safety
/// As for [`gemm`].
pub(crate) unsafe fn gemm_until(level: Level, g: &Gemm, stop: &Stop) {
    #[cfg(target_arch = "x86_64")]
    let packed_x86 = (level != Level::Portable).then_some(packed_x86);
    #[cfg(not(target_arch = "x86_64"))]
    let packed_x86 = None::<unsafe fn(Level, &Gemm, bool)>;
    if let Way::Thin(way) = g.way {
        // SAFETY: passed on.
        unsafe { thin(level, way, g, Some(stop)) };
        return;
    }
    if g.way == Way::Small || g.k == 0 {
        if !stop.is_told() {
            // SAFETY: passed on.
            unsafe { gemm(level, g) };
        }
        return;
    }
    // SAFETY: passed on; k was seen not to be 0.
    let g = &unsafe { if packed_x86.is_some() { g.as_summed() } else { *g } };
    let depth = if packed_x86.is_some() { DEPTH.min(g.k) } else { g.k };
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
            // SAFETY: passed on; the block is inside the product.
            unsafe {
                let block = Gemm { m, n, k, ..g.from(i, j, p) };
                match packed_x86 {
                    Some(packed) => packed(level, &block, p > 0),
                    None => packed_portable(&block),
                }
            }
            p += k;
        }
    }
}

impl Gemm {
    /// The product in the direction in which faer's GEMM sums it: from the end of k, if there the operand that lies along the
    /// rows of the result is read backwards. Cut into steps from the other end, its steps would have other borders.
    ///
    /// # Safety
    /// As for [`gemm`], with a `k` that is not 0.
    unsafe fn as_summed(&self) -> Gemm {
        let along = if self.dst_row > 1 { self.right.row } else { self.left.column };
        if along >= 0 {
            return *self;
        }
        // SAFETY: the last step is inside.
        let mut turned = unsafe { self.from(0, 0, self.k - 1) };
        turned.left.column = -turned.left.column;
        turned.right.row = -turned.right.row;
        turned
    }

    /// The product from row `i` and column `j` of the result and step `p` of the sums on.
    ///
    /// # Safety
    /// These are inside.
    unsafe fn from(&self, i: usize, j: usize, p: usize) -> Gemm {
        let (i, j, p) = (i as isize, j as isize, p as isize);
        let at = |matrix: Matrix, row: isize, column: isize| Matrix {
            // SAFETY: the caller's element is inside the matrix.
            base: unsafe { matrix.base.offset(row * matrix.row + column * matrix.column) },
            ..matrix
        };
        // SAFETY: as above.
        let dst = unsafe { self.dst.offset(i * self.dst_row + j) };
        Gemm { left: at(self.left, i, p), right: at(self.right, p, j), dst, ..*self }
    }
}

/// GEMM from the `gemm` crate, where there is no AVX2.
///
/// # Safety
/// As for [`gemm`].
unsafe fn packed_portable(g: &Gemm) {
    // SAFETY: passed on; strides and extents are those of the matrices.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            g.m,
            g.n,
            g.k,
            g.dst,
            1,
            g.dst_row,
            false,
            g.left.base,
            g.left.column,
            g.left.row,
            g.right.base,
            g.right.column,
            g.right.row,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// faer's kernels in assembly: 170-180 GFLOP/s on one AVX-512 core where the `gemm` crate reaches 92-110. With `add` the
/// product is added to what is there.
///
/// # Safety
/// As for [`gemm`], on a CPU of that level.
#[cfg(target_arch = "x86_64")]
unsafe fn packed_x86(level: Level, g: &Gemm, add: bool) {
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

leveled! { fn small_wide_at<;>(g: &Gemm) => small_wide }
leveled! { fn small_narrow_at<;>(g: &Gemm) => small_narrow }

/// The unpacked kernel whose accumulators fill the level's registers.
///
/// # Safety
/// As for [`gemm`], with contiguous rows of `right`.
unsafe fn small(level: Level, g: &Gemm) {
    #[cfg(target_arch = "x86_64")]
    let wide = level == Level::Avx512;
    #[cfg(not(target_arch = "x86_64"))]
    let wide = false;
    // SAFETY: passed on.
    unsafe { if wide { small_wide_at(level)(g) } else { small_narrow_at(level)(g) } }
}

/// 8 x 32 accumulators: 16 of the 32 registers of AVX-512.
///
/// # Safety
/// As for [`small`].
#[inline(always)]
unsafe fn small_wide<const FMA: bool>(g: &Gemm) {
    // SAFETY: passed on.
    unsafe { blocks::<FMA, 8, 32>(g) }
}

/// 4 x 16 accumulators: 8 of the 16 registers of AVX2.
///
/// # Safety
/// As for [`small`].
#[inline(always)]
unsafe fn small_narrow<const FMA: bool>(g: &Gemm) {
    // SAFETY: passed on.
    unsafe { blocks::<FMA, 4, 16>(g) }
}

/// # Safety
/// As for [`small`].
#[inline(always)]
unsafe fn blocks<const FMA: bool, const R: usize, const C: usize>(g: &Gemm) {
    let mut i = 0;
    while i < g.m {
        // Rows at the edge go one by one.
        let rows = if g.m - i >= R { R } else { 1 };
        let mut j = 0;
        while j < g.n {
            let columns = C.min(g.n - j);
            // SAFETY: the block is inside the product.
            unsafe {
                match (rows == R, columns) {
                    (true, _) if columns == C => block::<FMA, R, C>(g, i, j),
                    (false, _) if columns == C => block::<FMA, 1, C>(g, i, j),
                    (true, ..=16) => edge::<FMA, R, 16>(g, i, j, columns),
                    (false, ..=16) => edge::<FMA, 1, 16>(g, i, j, columns),
                    (true, _) => edge::<FMA, R, C>(g, i, j, columns),
                    (false, _) => edge::<FMA, 1, C>(g, i, j, columns),
                }
            }
            j += columns;
        }
        i += rows;
    }
}

#[inline(always)]
fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// A full block in registers.
///
/// # Safety
/// The block at (i, j) is inside the product.
#[inline(always)]
unsafe fn block<const FMA: bool, const R: usize, const C: usize>(g: &Gemm, i: usize, j: usize) {
    let mut acc = [[0f32; C]; R];
    // SAFETY: every element is inside its matrix.
    unsafe {
        for p in 0..g.k as isize {
            let b = g.right.base.offset(p * g.right.row + j as isize).cast::<[f32; C]>().read_unaligned();
            for r in 0..R {
                let a = *g.left.base.offset((i + r) as isize * g.left.row + p * g.left.column);
                for c in 0..C {
                    acc[r][c] = fma::<FMA>(a, b[c], acc[r][c]);
                }
            }
        }
        for r in 0..R {
            g.dst.offset((i + r) as isize * g.dst_row + j as isize).cast::<[f32; C]>().write_unaligned(acc[r]);
        }
    }
}

/// Some elements, and zeros behind them. A call of its own: inlined, LLVM's vectoriser takes ten minutes over it.
///
/// # Safety
/// There are that many elements, at most `C`.
#[inline(never)]
unsafe fn padded<const C: usize>(from: *const f32, columns: usize) -> [f32; C] {
    let mut copy = [0f32; C];
    // SAFETY: the caller's elements; they fit.
    unsafe { std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), columns.min(C)) };
    copy
}

/// A block at the right edge: whole vectors are read, of which the rest is computed and not kept. Row by row of the right
/// operand that lies in the rows below, so only the last ones have to be copied first. (Element by element, a product of
/// 41 x 13 x 468 took 120 us instead of 8.)
///
/// # Safety
/// The block at (i, j) of `R` rows and that many columns is inside the product.
#[inline(always)]
unsafe fn edge<const FMA: bool, const R: usize, const C: usize>(g: &Gemm, i: usize, j: usize, columns: usize) {
    let mut acc = [[0f32; C]; R];
    let beyond = (C - columns) as isize;
    // Rows from which a whole vector ends inside of the operand.
    let whole = if g.right.row > 0 { g.k as isize - (beyond + g.right.row - 1) / g.right.row } else { 0 };
    // SAFETY: every element that is read is inside its matrix: a vector that begins in row `p` of the right operand ends
    // before its last row's end if `p < whole`.
    unsafe {
        for p in 0..g.k as isize {
            let from = g.right.base.offset(p * g.right.row + j as isize);
            let b = if p < whole { from.cast::<[f32; C]>().read_unaligned() } else { padded(from, columns) };
            for r in 0..R {
                let a = *g.left.base.offset((i + r) as isize * g.left.row + p * g.left.column);
                for c in 0..C {
                    acc[r][c] = fma::<FMA>(a, b[c], acc[r][c]);
                }
            }
        }
        for (r, row) in acc.iter().enumerate() {
            let dst = g.dst.offset((i + r) as isize * g.dst_row + j as isize);
            std::ptr::copy_nonoverlapping(row.as_ptr(), dst, columns);
        }
    }
}
