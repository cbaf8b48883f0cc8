//! Bools in memory, where each is a byte: contiguous ones go to lanes, where each has 32 bits, and back, or are combined and
//! reduced as they lie.

use super::map::MapFn;
use super::reduce::{Acc, Fold};
use super::{unaligned, unaligned_mut};
use crate::level::{Level, leveled};
use breakeven_ir::Op;

/// # Safety
/// `src` holds `n` bytes, `dst` `n` lanes elsewhere.
#[inline(always)]
unsafe fn widen<const FMA: bool>(dst: *mut u32, src: *const u32, _: *const u32, _: *const u32, n: usize) {
    // SAFETY: the caller's pointers.
    let (from, to) = unsafe { (std::slice::from_raw_parts(src.cast::<u8>(), n), unaligned_mut(dst, n)) };
    from.iter().zip(to).for_each(|(from, to)| *to = u32::from(*from).to_ne_bytes());
}

/// # Safety
/// `src` holds `n` lanes, `dst` `n` bytes elsewhere.
#[inline(always)]
unsafe fn narrow<const FMA: bool>(dst: *mut u32, src: *const u32, _: *const u32, _: *const u32, n: usize) {
    // SAFETY: the caller's pointers.
    let (from, to) = unsafe { (unaligned(src, n), std::slice::from_raw_parts_mut(dst.cast::<u8>(), n)) };
    from.iter().zip(to).for_each(|(from, to)| *to = u32::from_ne_bytes(*from) as u8);
}

leveled! {
    /// Bytes to lanes, as a [`MapFn`](super::map::MapFn) whose argument is bytes.
    fn widen_at<;>(dst: *mut u32, src: *const u32, b: *const u32, c: *const u32, n: usize) => widen
}
leveled! {
    /// Lanes to bytes, as a [`MapFn`](super::map::MapFn) whose result is bytes.
    fn narrow_at<;>(dst: *mut u32, src: *const u32, b: *const u32, c: *const u32, n: usize) => narrow
}

/// An op of bools on bytes, each of which is 0 or 1.
pub(crate) trait Logic {
    fn byte(a: u8, b: u8, c: u8) -> u8;
}

/// # Safety
/// As for a [`MapFn`], with bytes for lanes; the result may take the place of an argument.
#[inline(always)]
unsafe fn logic<const FMA: bool, L: Logic>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) {
    const W: usize = 128;
    let [a, b, c] = [a, b, c].map(<*const u32>::cast::<u8>);
    let dst = dst.cast::<u8>();
    let mut at = 0;
    while at < n {
        // SAFETY: the caller's pointers hold `n` bytes.
        unsafe {
            if at + W <= n {
                let [x, y, z] = [a, b, c].map(|from| from.add(at).cast::<[u8; W]>().read());
                let mut out = [0; W];
                for k in 0..W {
                    out[k] = L::byte(x[k], y[k], z[k]);
                }
                dst.add(at).cast::<[u8; W]>().write(out);
                at += W;
            } else {
                dst.add(at).write(L::byte(a.add(at).read(), b.add(at).read(), c.add(at).read()));
                at += 1;
            }
        }
    }
}
leveled! { fn logic_at<L: Logic;>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => logic }

macro_rules! logic_fns {
    ($($($op:ident)|+ => |$a:ident, $b:ident, $c:ident| $byte:expr;)*) => {
        /// The kernel of `op` over bools, if it has one over bytes; arguments that it does not have are its first.
        pub(crate) fn logic_fn(op: Op, level: Level) -> Option<MapFn> {
            Some(match op {
                $($(Op::$op)|+ => {
                    struct L;
                    impl Logic for L {
                        #[inline(always)]
                        #[allow(unused_variables, reason = "few have three arguments")]
                        fn byte($a: u8, $b: u8, $c: u8) -> u8 { $byte }
                    }
                    logic_at::<L>(level)
                })*
                _ => return None,
            })
        }
    };
}
logic_fns! {
    And | Mul | Minimum => |a, b, c| a & b;
    Or | Add | Maximum => |a, b, c| a | b;
    Xor | Ne => |a, b, c| a ^ b;
    Eq => |a, b, c| a ^ b ^ 1;
    Not => |a, b, c| a ^ 1;
    ToBool => |a, b, c| a;
    Where => |a, b, c| (a & b) | ((a ^ 1) & c);
}

/// A fold of bools.
pub(crate) trait BoolFold: Fold<T = u32> {}
impl<F: Fold<T = u32>> BoolFold for F {}

/// Folds the bytes of a row, each of which is 0 or 1, into an accumulator: those of `any` and `all` need no lanes.
///
/// # Safety
/// See [`RowFn`](super::reduce::RowFn); `src` holds `n` bytes.
#[inline(always)]
unsafe fn row_bytes<const FMA: bool, F: BoolFold>(src: *const u32, n: usize, acc: *mut Acc, _: usize) {
    const W: usize = 128;
    // SAFETY: the caller's pointers.
    let (bytes, acc) = unsafe { (std::slice::from_raw_parts(src.cast::<u8>(), n), &mut *acc) };
    let start = F::START as u8;
    let mut lanes = [start; W];
    let (chunks, last) = bytes.as_chunks::<W>();
    for chunk in chunks {
        for k in 0..W {
            lanes[k] = F::fold(u32::from(lanes[k]), u32::from(chunk[k])) as u8;
        }
    }
    let fold = |all: u32, byte: &u8| F::fold(all, u32::from(*byte));
    acc.bits = last.iter().fold(lanes.iter().fold(acc.bits, fold), fold);
}

/// The same for an accumulator of each column.
///
/// # Safety
/// See [`ColFn`](super::reduce::ColFn); `src` holds `n` bytes.
#[inline(always)]
unsafe fn col_bytes<const FMA: bool, F: BoolFold>(src: *const u32, n: usize, acc: *mut u64, _: usize) {
    // SAFETY: the caller's pointers; accumulators hold two lanes for each column.
    let (bytes, acc) = unsafe {
        (std::slice::from_raw_parts(src.cast::<u8>(), n), std::slice::from_raw_parts_mut(acc.cast::<u32>(), n))
    };
    acc.iter_mut().zip(bytes).for_each(|(acc, byte)| *acc = F::fold(*acc, u32::from(*byte)));
}

leveled! { fn row_bytes_at<F: BoolFold;>(src: *const u32, n: usize, acc: *mut Acc, first: usize) => row_bytes }
leveled! { fn col_bytes_at<F: BoolFold;>(src: *const u32, n: usize, acc: *mut u64, step: usize) => col_bytes }
