//! Reductions of lanes: a tile into one accumulator (`rows`, `dot`), or a tile into an accumulator for each lane
//! (`columns`). Here is what they have in common: accumulators, how they fold, and which kernel an op gets.

use super::bytes::{col_bytes_at, row_bytes_at};
use super::columns::{col_arg_at, col_fold_at, col_prod_at, col_sum_at, col_sum_rows_at};
pub(crate) use super::dot::{row_deviation_at, row_dot_at};
pub(crate) use super::rows::GROUP;
use super::rows::{row_arg_at, row_fold_at, row_prod_at, row_sum_at, row_sum_over};
use crate::level::Level;
use breakeven_ir::lane::{maximum, minimum};
use breakeven_ir::{DType, LaneBits, ReduceOp};

/// The running result of a row reduction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Acc {
    /// A sum or product of f32.
    pub(super) wide: f64,
    /// The lane bits of every other running value.
    pub(super) bits: u32,
    /// Is there no element yet?
    pub(super) empty: bool,
    /// Where the running value was found.
    pub(super) index: i32,
}

impl Acc {
    /// Of a sum of nothing.
    pub(super) const NOTHING: Acc = Acc { wide: 0.0, bits: 0, empty: true, index: 0 };
}

/// Adds `n` lanes to an accumulator; the first of them has this index in the row.
pub(crate) type RowFn = unsafe fn(*const u32, usize, *mut Acc, usize);
/// Adds `n` lanes to the accumulators of `n` columns (8 bytes each), at this step of the reduction.
pub(crate) type ColFn = unsafe fn(*const u32, usize, *mut u64, usize);

/// Adds `rows` rows of `n` lanes, `stride` lanes apart, to the accumulators of `n` columns.
pub(crate) type ColRowsFn = unsafe fn(*const u32, isize, usize, usize, *mut u64);

/// Adds the products of `n` lanes of two vectors to an accumulator.
pub(crate) type DotFn = unsafe fn(*const u32, *const u32, usize, *mut Acc);

/// How one reduction of one dtype runs.
#[derive(Clone, Copy)]
pub(crate) struct ReduceFns {
    op: ReduceOp,
    dtype: DType,
    start: Acc,
    pub(crate) row: RowFn,
    pub(crate) col: ColFn,
    /// The same over lanes, where these take bytes.
    join: (RowFn, ColFn),
    /// Many rows at once, where that is faster than one by one.
    pub(crate) col_rows: Option<ColRowsFn>,
}

/// A value that accumulates.
pub(crate) trait Fold {
    type T: LaneBits;
    const START: Self::T;
    fn fold(a: Self::T, b: Self::T) -> Self::T;
}
macro_rules! fold {
    ($($name:ident $t:ty, $start:expr, |$a:ident, $b:ident| $fold:expr;)*) => {$(
        pub(crate) struct $name;
        impl Fold for $name {
            type T = $t;
            const START: $t = $start;
            #[inline(always)]
            fn fold($a: $t, $b: $t) -> $t { $fold }
        }
    )*};
}
fold! {
    SumI u32, 0, |a, b| a.wrapping_add(b);
    ProdI u32, 1, |a, b| a.wrapping_mul(b);
    MaxF f32, f32::NEG_INFINITY, |a, b| maximum(a, b);
    MinF f32, f32::INFINITY, |a, b| minimum(a, b);
    MaxI i32, i32::MIN, |a, b| a.max(b);
    MinI i32, i32::MAX, |a, b| a.min(b);
    MaxU u32, 0, |a, b| a.max(b);
    MinU u32, u32::MAX, |a, b| a.min(b);
    Or u32, 0, |a, b| a | b;
    And u32, 1, |a, b| a & b;
}

/// Reads one lane.
///
/// # Safety
/// `src` points to `at + 1` readable lanes.
#[inline(always)]
pub(crate) unsafe fn lane<T: LaneBits>(src: *const u32, at: usize) -> T {
    // SAFETY: the caller vouches for the lane.
    T::from_lane_bits(unsafe { src.add(at).read_unaligned() })
}

/// Is `a` the better candidate for an arg reduction? NaN beats everything, the first of equals stays.
pub(crate) trait Better {
    type F: Fold;
    fn better(a: <Self::F as Fold>::T, b: <Self::F as Fold>::T) -> bool;
    /// The better one of two that have an order.
    fn plain(a: <Self::F as Fold>::T, b: <Self::F as Fold>::T) -> <Self::F as Fold>::T;
    /// NaN if `a` may have no order, or `known` is NaN.
    fn odd(a: <Self::F as Fold>::T, known: f32) -> f32;
    /// Does it have no order?
    fn is_nan(a: <Self::F as Fold>::T) -> bool;
    /// Are they the same? Not asked of those without an order.
    fn is(a: <Self::F as Fold>::T, b: <Self::F as Fold>::T) -> bool;
}
macro_rules! better {
    ($($name:ident $fold:ident $t:ident $operator:tt;)*) => {$(
        pub(crate) struct $name;
        impl Better for $name {
            type F = $fold;
            #[inline(always)]
            fn better(a: $t, b: $t) -> bool { (a $operator b) | (Self::is_nan(a) & !Self::is_nan(b)) }
            #[inline(always)]
            fn plain(a: $t, b: $t) -> $t { if a $operator b { a } else { b } }
            #[inline(always)]
            fn is(a: $t, b: $t) -> bool { a == b }
            better!(@ $t);
        }
    )*};
    (@ f32) => {
        #[inline(always)]
        fn odd(a: f32, known: f32) -> f32 { a * 0.0 + known }
        #[inline(always)]
        fn is_nan(a: f32) -> bool { a.is_nan() }
    };
    (@ $int:ident) => {
        #[inline(always)]
        fn odd(_: $int, known: f32) -> f32 { known }
        #[inline(always)]
        fn is_nan(_: $int) -> bool { false }
    };
}
better! {
    ArgMaxF MaxF f32 >;
    ArgMinF MinF f32 <;
    ArgMaxI MaxI i32 >;
    ArgMinI MinI i32 <;
    ArgMaxU MaxU u32 >;
    ArgMinU MinU u32 <;
}

impl ReduceFns {
    /// The kernels of `op` over lanes of `dtype`.
    pub(crate) fn new(op: ReduceOp, dtype: DType, level: Level) -> ReduceFns {
        macro_rules! fold {
            ($f:ident) => {
                (row_fold_at::<$f>(level), col_fold_at::<$f>(level))
            };
            (arg $f:ident) => {
                (row_arg_at::<$f>(level), col_arg_at::<$f>(level))
            };
        }
        use DType::{F32, I32};
        let (row, col): (RowFn, ColFn) = match (op, dtype) {
            (ReduceOp::Sum, F32) => (row_sum_at(level, false), col_sum_at(level)),
            (ReduceOp::Prod, F32) => (row_prod_at(level), col_prod_at(level)),
            (ReduceOp::Sum, _) => fold!(SumI),
            (ReduceOp::Prod, _) => fold!(ProdI),
            (ReduceOp::Max, F32) => fold!(MaxF),
            (ReduceOp::Max, I32) => fold!(MaxI),
            (ReduceOp::Max, _) => fold!(MaxU),
            (ReduceOp::Min, F32) => fold!(MinF),
            (ReduceOp::Min, I32) => fold!(MinI),
            (ReduceOp::Min, _) => fold!(MinU),
            (ReduceOp::ArgMax, F32) => fold!(arg ArgMaxF),
            (ReduceOp::ArgMax, I32) => fold!(arg ArgMaxI),
            (ReduceOp::ArgMax, _) => fold!(arg ArgMaxU),
            (ReduceOp::ArgMin, F32) => fold!(arg ArgMinF),
            (ReduceOp::ArgMin, I32) => fold!(arg ArgMinI),
            (ReduceOp::ArgMin, _) => fold!(arg ArgMinU),
            (ReduceOp::Any, _) => fold!(Or),
            (ReduceOp::All, _) => fold!(And),
        };
        let col_rows = ((op, dtype) == (ReduceOp::Sum, F32)).then(|| col_sum_rows_at(level));
        let wide = if op == ReduceOp::Prod { 1.0 } else { 0.0 };
        let start = Acc { wide, bits: ReduceFns::start_bits(op, dtype), empty: true, index: 0 };
        ReduceFns { op, dtype, start, row, col, join: (row, col), col_rows }
    }

    /// The same over rows of that many lanes, where memory is moved fastest at the level `moving`.
    pub(crate) fn over_rows_of(self, lanes: usize, moving: Level) -> ReduceFns {
        match self.is_grouped() {
            true => ReduceFns { row: row_sum_over(lanes, moving).unwrap_or(self.row), ..self },
            false => self,
        }
    }

    /// The same over rows of a long array.
    pub(crate) fn over_long_rows(self, level: Level) -> ReduceFns {
        match self.is_grouped() {
            true => ReduceFns { row: row_sum_at(level, true), ..self },
            false => self,
        }
    }

    /// The kernels of `op` over bools that lie in memory as bytes, if it has some.
    pub(crate) fn of_bytes(op: ReduceOp, level: Level) -> Option<ReduceFns> {
        let (row, col): (RowFn, ColFn) = match op {
            ReduceOp::Any => (row_bytes_at::<Or>(level), col_bytes_at::<Or>(level)),
            ReduceOp::All => (row_bytes_at::<And>(level), col_bytes_at::<And>(level)),
            _ => return None,
        };
        Some(ReduceFns { row, col, ..ReduceFns::new(op, DType::Bool, level) })
    }

    /// Does the running value live in f64?
    fn wide(&self) -> bool {
        self.dtype == DType::F32 && matches!(self.op, ReduceOp::Sum | ReduceOp::Prod)
    }

    fn start_bits(op: ReduceOp, dtype: DType) -> u32 {
        match (op, dtype) {
            (ReduceOp::Sum | ReduceOp::Any, _) => 0,
            (ReduceOp::Prod | ReduceOp::All, _) => 1,
            (ReduceOp::Max | ReduceOp::ArgMax, DType::F32) => MaxF::START.to_bits(),
            (ReduceOp::Min | ReduceOp::ArgMin, DType::F32) => MinF::START.to_bits(),
            (ReduceOp::Max | ReduceOp::ArgMax, DType::I32) => MaxI::START as u32,
            (ReduceOp::Min | ReduceOp::ArgMin, DType::I32) => MinI::START as u32,
            (ReduceOp::Max | ReduceOp::ArgMax, _) => MaxU::START,
            (ReduceOp::Min | ReduceOp::ArgMin, _) => MinU::START,
        }
    }

    /// An accumulator of nothing.
    #[inline(always)]
    pub(crate) fn start(&self) -> Acc {
        self.start
    }

    /// Is it a sum of f32, in groups of [`GROUP`] elements?
    pub(crate) fn is_grouped(&self) -> bool {
        self.op == ReduceOp::Sum && self.dtype == DType::F32
    }

    /// Can the running value settle before the end, as that of `any` does with the first true?
    pub(crate) fn settles(&self) -> bool {
        matches!(self.op, ReduceOp::Any | ReduceOp::All)
    }

    /// Is the result known whatever follows?
    pub(crate) fn is_settled(&self, acc: &Acc) -> bool {
        match self.op {
            ReduceOp::Any => acc.bits != 0,
            ReduceOp::All => acc.bits == 0,
            _ => false,
        }
    }

    /// `later` joined to `acc`, which covers what comes before it.
    pub(crate) fn combine(&self, acc: &mut Acc, later: &Acc) {
        if self.wide() {
            acc.wide = if self.op == ReduceOp::Sum { acc.wide + later.wide } else { acc.wide * later.wide };
        } else if matches!(self.op, ReduceOp::ArgMax | ReduceOp::ArgMin) {
            let f = f32::from_bits;
            let better = match (self.op, self.dtype) {
                (ReduceOp::ArgMax, DType::F32) => ArgMaxF::better(f(later.bits), f(acc.bits)),
                (ReduceOp::ArgMax, DType::I32) => later.bits as i32 > acc.bits as i32,
                (ReduceOp::ArgMax, _) => later.bits > acc.bits,
                (_, DType::F32) => ArgMinF::better(f(later.bits), f(acc.bits)),
                (_, DType::I32) => (later.bits as i32) < acc.bits as i32,
                _ => later.bits < acc.bits,
            };
            if !later.empty && (acc.empty || better) {
                *acc = *later;
            }
        } else {
            let as_index = 0;
            // SAFETY: both point to one lane and one accumulator.
            unsafe { (self.join.0)(&later.bits, 1, acc, as_index) };
        }
    }

    /// The result's lane bits.
    pub(crate) fn finish(&self, acc: &Acc) -> u32 {
        match self.op {
            _ if self.wide() => (acc.wide as f32).to_bits(),
            ReduceOp::ArgMax | ReduceOp::ArgMin => acc.index as u32,
            _ => acc.bits,
        }
    }

    /// Fills the accumulators of `n` columns with nothing.
    ///
    /// # Safety
    /// `acc` points to `n` writable accumulators.
    pub(crate) unsafe fn start_cols(&self, acc: *mut u64, n: usize) {
        // SAFETY: the caller vouches for the accumulators.
        unsafe {
            if self.wide() {
                let start = if self.op == ReduceOp::Prod { 1f64 } else { 0.0 };
                std::slice::from_raw_parts_mut(acc.cast::<f64>(), n).fill(start);
            } else if matches!(self.op, ReduceOp::ArgMax | ReduceOp::ArgMin) {
                std::slice::from_raw_parts_mut(acc, n).fill(u64::from(self.start.bits) | u64::MAX << 32);
            } else {
                std::slice::from_raw_parts_mut(acc.cast::<u32>(), n).fill(self.start.bits);
            }
        }
    }

    /// Joins the accumulators `later` to `acc`, which cover what comes before them.
    ///
    /// # Safety
    /// Both point to `n` accumulators.
    pub(crate) unsafe fn combine_cols(&self, acc: *mut u64, later: *const u64, n: usize) {
        // SAFETY: the caller vouches for the accumulators.
        unsafe {
            if self.wide() {
                let acc = std::slice::from_raw_parts_mut(acc.cast::<f64>(), n);
                let later = std::slice::from_raw_parts(later.cast::<f64>(), n);
                for (a, b) in acc.iter_mut().zip(later) {
                    *a = if self.op == ReduceOp::Sum { *a + b } else { *a * b };
                }
                return;
            }
            for at in 0..n {
                if matches!(self.op, ReduceOp::ArgMax | ReduceOp::ArgMin) {
                    let unpack = |v: u64| Acc {
                        wide: 0.0,
                        bits: v as u32,
                        empty: v >> 32 == u64::from(u32::MAX),
                        index: (v >> 32) as i32,
                    };
                    let (mut a, b) = (unpack(acc.add(at).read()), unpack(later.add(at).read()));
                    if !b.empty {
                        self.combine(&mut a, &b);
                        acc.add(at).write(u64::from(a.bits) | (a.index as u32 as u64) << 32);
                    }
                } else {
                    (self.join.1)(later.cast::<u32>().add(at), 1, acc.cast::<u32>().add(at).cast(), 0);
                }
            }
        }
    }

    /// Writes the results of `n` columns as lanes.
    ///
    /// # Safety
    /// `acc` points to `n` accumulators, `dst` to `n` writable lanes elsewhere.
    pub(crate) unsafe fn finish_cols(&self, acc: *const u64, dst: *mut u32, n: usize) {
        for at in 0..n {
            // SAFETY: `at < n`.
            unsafe {
                let bits = if self.wide() {
                    (acc.cast::<f64>().add(at).read() as f32).to_bits()
                } else if matches!(self.op, ReduceOp::ArgMax | ReduceOp::ArgMin) {
                    (acc.add(at).read() >> 32) as u32
                } else {
                    acc.cast::<u32>().add(at).read()
                };
                dst.add(at).write_unaligned(bits);
            }
        }
    }
}
