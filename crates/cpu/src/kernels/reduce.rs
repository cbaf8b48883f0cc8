//! Reductions of lanes: a tile into one accumulator (rows), or a tile into an accumulator for each lane (columns).
//!
//! f32 sums and products are carried in f64: a block of at most [`BLOCK`] elements is summed in 64 f32 lanes, then
//! everything meets in f64. The order is fixed by the shapes alone, so results do not depend on the number of threads.

use super::columns::{col_arg_at, col_fold_at, col_prod_at, col_sum_at, col_sum_rows_at};
use crate::level::{Level, leveled};
use breakeven_ir::lane::{maximum, minimum};
use breakeven_ir::{DType, LaneBits, ReduceOp};

/// Independent accumulators in a row reduction. Fewer leave the adders waiting: 32 lanes are 2.3x slower for a dot.
const LANES: usize = 64;
/// Elements of one f32 lane sum before it goes to f64: 64 additions a lane keep the error below 1e-9 at 10^7 elements.
const BLOCK: usize = 4096;

/// The running result of a row reduction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Acc {
    /// A sum or product of f32.
    wide: f64,
    /// The lane bits of every other running value.
    bits: u32,
    /// Is there no element yet?
    empty: bool,
    /// Where the running value was found.
    index: i32,
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
    pub(crate) row: RowFn,
    pub(crate) col: ColFn,
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

/// Folds the second `WIDTH` lanes into the first.
#[inline(always)]
fn halve<F: Fold, const WIDTH: usize>(acc: &mut [F::T; LANES]) {
    for k in 0..WIDTH {
        acc[k] = F::fold(acc[k], acc[k + WIDTH]);
    }
}

/// The fold of `n` lanes, in [`LANES`] chains.
///
/// # Safety
/// `src` points to `n` readable lanes.
#[inline(always)]
unsafe fn fold_lanes<F: Fold>(src: *const u32, n: usize) -> F::T {
    let mut acc = [F::START; LANES];
    let whole = n / LANES * LANES;
    let mut at = 0;
    while at < whole {
        // SAFETY: `at + LANES <= n`.
        let chunk = unsafe { src.add(at).cast::<[u32; LANES]>().read_unaligned() };
        for k in 0..LANES {
            acc[k] = F::fold(acc[k], F::T::from_lane_bits(chunk[k]));
        }
        at += LANES;
    }
    for k in 0..n - whole {
        // SAFETY: `whole + k < n`.
        acc[k] = F::fold(acc[k], unsafe { lane(src, whole + k) });
    }
    // Halved while it is wide enough for vectors; every width is a constant, so that the loops are unrolled.
    halve::<F, 32>(&mut acc);
    halve::<F, 16>(&mut acc);
    halve::<F, 8>(&mut acc);
    halve::<F, 4>(&mut acc);
    halve::<F, 2>(&mut acc);
    halve::<F, 1>(&mut acc);
    acc[0]
}

/// # Safety
/// See [`RowFn`].
#[inline(always)]
unsafe fn row_fold<const FMA: bool, F: Fold>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    // SAFETY: the caller's pointers are valid.
    unsafe {
        let value = fold_lanes::<F>(src, n);
        (*acc).bits = F::fold(F::T::from_lane_bits((*acc).bits), value).lane_bits();
    }
}

/// # Safety
/// See [`RowFn`].
#[inline(always)]
unsafe fn row_sum<const FMA: bool>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    let mut total = 0.0;
    let mut at = 0;
    while at < n {
        let len = BLOCK.min(n - at);
        let mut lanes = [0f32; LANES];
        let whole = len / LANES * LANES;
        let mut k = 0;
        while k < whole {
            // SAFETY: `at + k + LANES <= n`.
            let chunk = unsafe { src.add(at + k).cast::<[f32; LANES]>().read_unaligned() };
            for l in 0..LANES {
                lanes[l] += chunk[l];
            }
            k += LANES;
        }
        for l in 0..len - whole {
            // SAFETY: `at + whole + l < n`.
            lanes[l] += unsafe { lane::<f32>(src, at + whole + l) };
        }
        total += sum_wide(&lanes);
        at += len;
    }
    // SAFETY: the caller's accumulator is valid.
    unsafe { (*acc).wide += total };
}

/// The sum of products without a slot between: as [`row_sum`], in blocks that meet in f64.
///
/// # Safety
/// See [`DotFn`].
#[inline(always)]
unsafe fn row_dot<const FMA: bool>(a: *const u32, b: *const u32, n: usize, acc: *mut Acc) {
    #[inline(always)]
    fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
        if FMA { a.mul_add(b, c) } else { a * b + c }
    }
    let mut total = 0.0;
    let mut at = 0;
    while at < n {
        let len = BLOCK.min(n - at);
        let mut lanes = [0f32; LANES];
        let whole = len / LANES * LANES;
        let mut k = 0;
        while k < whole {
            // SAFETY: `at + k + LANES <= n`.
            let (x, y) = unsafe {
                let read = |src: *const u32| src.add(at + k).cast::<[f32; LANES]>().read_unaligned();
                (read(a), read(b))
            };
            for l in 0..LANES {
                lanes[l] = fma::<FMA>(x[l], y[l], lanes[l]);
            }
            k += LANES;
        }
        for l in 0..len - whole {
            // SAFETY: `at + whole + l < n`.
            let (x, y) = unsafe { (lane::<f32>(a, at + whole + l), lane::<f32>(b, at + whole + l)) };
            lanes[l] = fma::<FMA>(x, y, lanes[l]);
        }
        total += sum_wide(&lanes);
        at += len;
    }
    // SAFETY: the caller's accumulator is valid.
    unsafe { (*acc).wide += total };
}

/// The lanes of a block in f64.
#[inline(always)]
fn sum_wide(lanes: &[f32; LANES]) -> f64 {
    let mut wide = [0f64; 8];
    for eight in lanes.chunks_exact(8) {
        for k in 0..8 {
            wide[k] += f64::from(eight[k]);
        }
    }
    ((wide[0] + wide[4]) + (wide[1] + wide[5])) + ((wide[2] + wide[6]) + (wide[3] + wide[7]))
}

/// # Safety
/// See [`RowFn`].
#[inline(always)]
unsafe fn row_prod<const FMA: bool>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    let mut lanes = [1f64; 16];
    for at in 0..n {
        // SAFETY: `at < n`.
        lanes[at % 16] *= f64::from(unsafe { lane::<f32>(src, at) });
    }
    // SAFETY: the caller's accumulator is valid.
    unsafe { (*acc).wide *= lanes.iter().product::<f64>() };
}

/// Is `a` the better candidate for an arg reduction? NaN beats everything, the first of equals stays.
pub(crate) trait Better {
    type F: Fold;
    fn better(a: <Self::F as Fold>::T, b: <Self::F as Fold>::T) -> bool;
    fn is(a: <Self::F as Fold>::T, b: <Self::F as Fold>::T) -> bool;
}
macro_rules! better {
    ($($name:ident $fold:ident $t:ty, |$a:ident, $b:ident| $better:expr, $is:expr;)*) => {$(
        pub(crate) struct $name;
        impl Better for $name {
            type F = $fold;
            #[inline(always)]
            fn better($a: $t, $b: $t) -> bool { $better }
            #[inline(always)]
            fn is($a: $t, $b: $t) -> bool { $is }
        }
    )*};
}
better! {
    ArgMaxF MaxF f32, |a, b| a > b || (a.is_nan() && !b.is_nan()), a == b || (a.is_nan() && b.is_nan());
    ArgMinF MinF f32, |a, b| a < b || (a.is_nan() && !b.is_nan()), a == b || (a.is_nan() && b.is_nan());
    ArgMaxI MaxI i32, |a, b| a > b, a == b;
    ArgMinI MinI i32, |a, b| a < b, a == b;
    ArgMaxU MaxU u32, |a, b| a > b, a == b;
    ArgMinU MinU u32, |a, b| a < b, a == b;
}

/// Finds the extreme of the tile with vectors, and looks for its place only if it beats what is known.
///
/// # Safety
/// See [`RowFn`].
#[inline(always)]
unsafe fn row_arg<const FMA: bool, B: Better>(src: *const u32, n: usize, acc: *mut Acc, first: usize) {
    if n == 0 {
        return;
    }
    // SAFETY: the caller's pointers are valid, and `at < n`.
    unsafe {
        let value = fold_lanes::<B::F>(src, n);
        let known = LaneBits::from_lane_bits((*acc).bits);
        if (*acc).empty || B::better(value, known) {
            let place = (0..n).find(|&at| B::is(lane(src, at), value)).unwrap_or(0);
            *acc = Acc { bits: value.lane_bits(), empty: false, index: (first + place) as i32, ..*acc };
        }
    }
}

leveled! { fn row_fold_at<F: Fold;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_fold }
leveled! { fn row_sum_at<;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_sum }
leveled! {
    /// The sum of products of two vectors.
    fn row_dot_at<;>(a: *const u32, b: *const u32, n: usize, acc: *mut Acc) => row_dot
}
leveled! { fn row_prod_at<;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_prod }
leveled! { fn row_arg_at<B: Better;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_arg }

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
            (ReduceOp::Sum, F32) => (row_sum_at(level), col_sum_at(level)),
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
        ReduceFns { op, dtype, row, col, col_rows }
    }

    /// Does the running value live in f64?
    fn wide(&self) -> bool {
        self.dtype == DType::F32 && matches!(self.op, ReduceOp::Sum | ReduceOp::Prod)
    }

    fn start_bits(&self) -> u32 {
        match (self.op, self.dtype) {
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
    pub(crate) fn start(&self) -> Acc {
        let wide = if self.op == ReduceOp::Prod { 1.0 } else { 0.0 };
        Acc { wide, bits: self.start_bits(), empty: true, index: 0 }
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
            unsafe { (self.row)(&later.bits, 1, acc, as_index) };
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
                std::slice::from_raw_parts_mut(acc, n).fill(u64::from(self.start_bits()) | u64::MAX << 32);
            } else {
                std::slice::from_raw_parts_mut(acc.cast::<u32>(), n).fill(self.start_bits());
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
                    (self.col)(later.cast::<u32>().add(at), 1, acc.cast::<u32>().add(at).cast(), 0);
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
