//! Running values: along the lanes of a tile (rows), or from step to step for each lane (columns).

use super::reduce::{Fold, MaxF, MaxI, MaxU, ProdI, SumI};
use super::{unaligned, unaligned_mut};
use crate::level::{Level, leveled};
use breakeven_ir::lane::maximum;
use breakeven_ir::{DType, LaneBits, ScanOp};

/// The running value of one row or column: a sum or product of f32 as f64 bits, everything else as lane bits, which
/// columns keep packed.
pub(crate) type Carry = u64;

/// One step of `n` columns: `src` and `dst` hold `n` lanes and may be equal, `carry` holds `n` carries.
type ColFn = unsafe fn(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry);

/// How one scan of one dtype runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanFns {
    op: ScanOp,
    dtype: DType,
    col: ColFn,
}

impl ScanFns {
    pub(crate) fn new(op: ScanOp, dtype: DType, level: Level) -> ScanFns {
        let col = match (op, dtype) {
            (ScanOp::Sum, DType::F32) => col_sum_at(level),
            (ScanOp::Prod, DType::F32) => col_prod_at(level),
            (ScanOp::Sum, _) => col_narrow_at::<SumI>(level),
            (ScanOp::Prod, _) => col_narrow_at::<ProdI>(level),
            (ScanOp::Max, DType::F32) => col_narrow_at::<MaxF>(level),
            (ScanOp::Max, DType::I32) => col_narrow_at::<MaxI>(level),
            (ScanOp::Max, _) => col_narrow_at::<MaxU>(level),
        };
        ScanFns { op, dtype, col }
    }

    /// The carry before the first element; lane bits stand in both halves, so that packed carries begin with them, too.
    pub(crate) fn start(&self) -> Carry {
        let narrow = |bits: u32| u64::from(bits) << 32 | u64::from(bits);
        match (self.op, self.dtype) {
            (ScanOp::Sum, DType::F32) => 0f64.to_bits(),
            (ScanOp::Prod, DType::F32) => 1f64.to_bits(),
            (ScanOp::Sum, _) => narrow(SumI::START),
            (ScanOp::Prod, _) => narrow(ProdI::START),
            (ScanOp::Max, DType::F32) => narrow(MaxF::START.lane_bits()),
            (ScanOp::Max, DType::I32) => narrow(MaxI::START.lane_bits()),
            (ScanOp::Max, _) => narrow(MaxU::START),
        }
    }

    /// The carry after one more element, and the result there.
    #[inline(always)]
    fn step(self, carry: Carry, x: u32) -> (Carry, u32) {
        let f = f32::from_bits(x);
        match (self.op, self.dtype) {
            (ScanOp::Sum, DType::F32) => {
                let sum = f64::from_bits(carry) + f64::from(f);
                (sum.to_bits(), (sum as f32).to_bits())
            }
            (ScanOp::Prod, DType::F32) => {
                let product = f64::from_bits(carry) * f64::from(f);
                (product.to_bits(), (product as f32).to_bits())
            }
            (ScanOp::Sum, _) => both((carry as u32).wrapping_add(x)),
            (ScanOp::Prod, _) => both((carry as u32).wrapping_mul(x)),
            (ScanOp::Max, DType::F32) => both(maximum(f32::from_bits(carry as u32), f).to_bits()),
            (ScanOp::Max, DType::I32) => both((carry as u32 as i32).max(x as i32) as u32),
            (ScanOp::Max, _) => both((carry as u32).max(x)),
        }
    }

    /// Scans `n` lanes of a row.
    ///
    /// # Safety
    /// `src` and `dst` hold `n` lanes; they may be equal.
    pub(crate) unsafe fn row(&self, src: *const u32, dst: *mut u32, n: usize, carry: &mut Carry) {
        macro_rules! along {
            ($op:pat, $dtype:pat) => {
                // The match inside `step` is on constants here, so that each loop compiles to its own few instructions.
                if matches!((self.op, self.dtype), ($op, $dtype)) {
                    let mut running = *carry;
                    for at in 0..n {
                        // SAFETY: `at < n`.
                        let (next, out) = self.step(running, unsafe { src.add(at).read_unaligned() });
                        running = next;
                        // SAFETY: `at < n`.
                        unsafe { dst.add(at).write_unaligned(out) };
                    }
                    *carry = running;
                    return;
                }
            };
        }
        along!(ScanOp::Sum, DType::F32);
        along!(ScanOp::Prod, DType::F32);
        along!(ScanOp::Max, DType::F32);
        along!(_, _);
    }

    /// One step of `n` columns.
    ///
    /// # Safety
    /// See [`ColFn`].
    pub(crate) unsafe fn col(&self, src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) {
        // SAFETY: the caller's pointers are valid, and the level was asked of this CPU.
        unsafe { (self.col)(src, dst, n, carry) }
    }
}

#[inline(always)]
fn both(bits: u32) -> (Carry, u32) {
    (u64::from(bits), bits)
}

/// Runs `step(src, dst, carry)` for each of `n` columns. A loop of its own where `dst` is `src`: the compiler asks at run time
/// whether they overlap, and takes lanes one by one if they do. (Chunks of lanes, which other kernels use for that, became
/// scatters here: 145 us for 30 x 5,280 lanes instead of 20.)
///
/// # Safety
/// `src`, `dst` and `carry` have `n` elements; `src` and `dst` may be equal, and do not overlap otherwise.
#[inline(always)]
unsafe fn each_column<C: Copy>(
    src: *const u32,
    dst: *mut u32,
    n: usize,
    carry: *mut C,
    step: impl Fn(u32, C) -> (C, u32),
) {
    let in_place = src == dst.cast_const();
    // SAFETY: the caller's pointers; bytes need no alignment.
    let (dst, carry) = unsafe { (unaligned_mut(dst, n), std::slice::from_raw_parts_mut(carry, n)) };
    if in_place {
        for (x, carry) in dst.iter_mut().zip(carry) {
            let (next, out) = step(u32::from_ne_bytes(*x), *carry);
            (*carry, *x) = (next, out.to_ne_bytes());
        }
        return;
    }
    // SAFETY: as above; it does not overlap `dst`.
    let src = unsafe { unaligned(src, n) };
    for ((x, y), carry) in src.iter().zip(dst).zip(carry) {
        let (next, out) = step(u32::from_ne_bytes(*x), *carry);
        (*carry, *y) = (next, out.to_ne_bytes());
    }
}

/// # Safety
/// See [`ColFn`].
#[inline(always)]
unsafe fn col_narrow<const FMA: bool, F: Fold>(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) {
    let next = |x: u32, running: u32| F::fold(F::T::from_lane_bits(running), F::T::from_lane_bits(x)).lane_bits();
    // SAFETY: the caller's pointers are valid, and there is room for two packed carries for each column.
    unsafe {
        each_column(src, dst, n, carry.cast::<u32>(), |x, running| {
            let y = next(x, running);
            (y, y)
        });
    }
}

/// Scans f32 lanes with f64 carries.
///
/// # Safety
/// See [`ColFn`].
#[inline(always)]
unsafe fn col_wide(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry, next: impl Fn(f64, f64) -> f64) {
    // SAFETY: the caller's pointers are valid.
    unsafe {
        each_column(src, dst, n, carry.cast::<f64>(), |x, running| {
            let y = next(running, f64::from(f32::from_bits(x)));
            (y, (y as f32).to_bits())
        });
    }
}

/// # Safety
/// See [`ColFn`].
#[inline(always)]
unsafe fn col_sum<const FMA: bool>(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) {
    // SAFETY: the caller's pointers are valid.
    unsafe { col_wide(src, dst, n, carry, |a, b| a + b) }
}

/// # Safety
/// See [`ColFn`].
#[inline(always)]
unsafe fn col_prod<const FMA: bool>(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) {
    // SAFETY: the caller's pointers are valid.
    unsafe { col_wide(src, dst, n, carry, |a, b| a * b) }
}

leveled! { fn col_narrow_at<F: Fold;>(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) => col_narrow }
leveled! { fn col_sum_at<;>(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) => col_sum }
leveled! { fn col_prod_at<;>(src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) => col_prod }
