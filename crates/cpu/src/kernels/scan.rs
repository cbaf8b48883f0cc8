//! Running values: along the lanes of a tile (rows), or from step to step for each lane (columns).

use breakeven_ir::lane::maximum;
use breakeven_ir::{DType, ScanOp};

/// The running value of one row or column: a sum or product of f32 as f64 bits, everything else as lane bits.
pub(crate) type Carry = u64;

/// How one scan of one dtype runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanFns {
    op: ScanOp,
    dtype: DType,
}

impl ScanFns {
    pub(crate) fn new(op: ScanOp, dtype: DType) -> ScanFns {
        ScanFns { op, dtype }
    }

    /// The carry before the first element.
    pub(crate) fn start(&self) -> Carry {
        match (self.op, self.dtype) {
            (ScanOp::Sum, DType::F32) => 0f64.to_bits(),
            (ScanOp::Prod, DType::F32) => 1f64.to_bits(),
            (ScanOp::Sum, _) => 0,
            (ScanOp::Prod, _) => 1,
            (ScanOp::Max, DType::F32) => u64::from(f32::NEG_INFINITY.to_bits()),
            (ScanOp::Max, DType::I32) => u64::from(i32::MIN as u32),
            (ScanOp::Max, _) => 0,
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
    /// `src` and `dst` hold `n` lanes and may be equal, `carry` holds `n` carries.
    pub(crate) unsafe fn col(&self, src: *const u32, dst: *mut u32, n: usize, carry: *mut Carry) {
        for at in 0..n {
            // SAFETY: `at < n`.
            unsafe {
                let (next, out) = self.step(carry.add(at).read(), src.add(at).read_unaligned());
                carry.add(at).write(next);
                dst.add(at).write_unaligned(out);
            }
        }
    }
}

#[inline(always)]
fn both(bits: u32) -> (Carry, u32) {
    (u64::from(bits), bits)
}
