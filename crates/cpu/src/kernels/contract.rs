//! Matrix products: `packed` for large ones, an unpacked kernel of plain loops for small ones, and `thin` where one operand is a
//! vector.

use super::packed::{Maker, packed, packed_until};
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
    Packed(Maker),
}

/// Up to this many multiply-adds the unpacked kernel wins: 1,000 products of 32x32 take 487-725 us with it and
/// 654-871 us with packing.
pub(crate) const SMALL: usize = 64 * 64 * 64;

impl Way {
    /// For a whole product.
    pub(crate) fn of(level: Level, m: usize, n: usize, k: usize, left: &Matrix, right: &Matrix) -> Way {
        let small = m * n * k <= SMALL && right.column == 1 && n >= 8;
        match Thin::of(m, n, k, left, right) {
            Some(thin) => Way::Thin(thin),
            None if small => Way::Small,
            None => Way::Packed(Maker::of(level, m * n * k)),
        }
    }
}

/// # Safety
/// The matrices are readable and `dst` is writable over their extents, and `dst` overlaps neither.
pub(crate) unsafe fn gemm(level: Level, g: &Gemm) {
    match g.way {
        // SAFETY: passed on.
        Way::Thin(way) => unsafe { thin(level, way, g, None) },
        // SAFETY: passed on.
        Way::Small => unsafe { small(level, g) },
        // SAFETY: passed on.
        Way::Packed(maker) => unsafe { packed(maker, level, g) },
    }
}

/// As [`gemm`], block by block, as long as nobody tells it to stop. The elements are the same to the last bit: each is
/// summed along k in the same order in every block, and k is cut only where it is cut anyway.
///
/// # Safety
/// As for [`gemm`].
pub(crate) unsafe fn gemm_until(level: Level, g: &Gemm, stop: &Stop) {
    match g.way {
        // SAFETY: passed on.
        Way::Thin(way) => unsafe { thin(level, way, g, Some(stop)) },
        Way::Small if stop.is_told() => {}
        // SAFETY: passed on.
        Way::Small => unsafe { small(level, g) },
        // SAFETY: passed on.
        Way::Packed(maker) => unsafe { packed_until(maker, level, g, stop) },
    }
}

impl Gemm {
    /// The product in the direction in which faer's GEMM sums it: from the end of k, if there the operand that lies along the
    /// rows of the result is read backwards. Cut into steps from the other end, its steps would have other borders.
    ///
    /// # Safety
    /// As for [`gemm`], with a `k` that is not 0.
    pub(super) unsafe fn as_summed(&self) -> Gemm {
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
    pub(super) unsafe fn from(&self, i: usize, j: usize, p: usize) -> Gemm {
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
