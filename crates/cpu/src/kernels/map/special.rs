//! Kernels that no row of the op table has: two ops in one, or one op with an argument that makes it cheaper.

use super::{Lane1, Lane2, Lane3, MapFns, fns1, fns2, fns3, one, two};
use crate::level::{Level, leveled};

/// The signature over f32 of `maximum` and of casts.
pub(super) const F32: u8 = 0;

/// The casts of f32, by the CPU's own instruction: that truncates, and is asked for nothing but what fits.
macro_rules! truncating_cast {
    ($lane:ident $fns:ident $int:ident, $least:literal, $most:literal) => {
        struct $lane;
        impl Lane1 for $lane {
            type A = f32;
            type O = $int;
            const PATCHED: bool = false;
            #[inline(always)]
            fn lane<const FMA: bool>(x: f32) -> $int {
                // NaN becomes the least, too.
                let bounded = if x > $least { x } else { $least };
                let bounded = if bounded < $most { bounded } else { $most };
                // SAFETY: it is between the least and the most, which the integer holds.
                let integer = unsafe { bounded.to_int_unchecked::<$int>() };
                let saturated = if x > $most { $int::MAX } else { integer };
                if x.is_nan() { 0 } else { saturated }
            }
        }

        /// The kernels of the cast at `level`.
        pub(super) fn $fns(level: Level) -> MapFns {
            fns1::<$lane>(level)
        }
    };
}
// The most is the largest float below the integers' end.
truncating_cast!(ToI32 to_i32_fns i32, -2_147_483_648.0, 2_147_483_520.0);
truncating_cast!(ToU32 to_u32_fns u32, 0.0, 4_294_967_040.0);

/// The logarithms without what zeros, subnormals and the like ask for, where a chunk has none of them.
macro_rules! quick_logarithm {
    ($lane:ident $fns:ident $whole:ident $quick:ident) => {
        struct $lane;
        impl Lane1 for $lane {
            type A = f32;
            type O = f32;
            const PATCHED: bool = false;
            const QUICK: bool = true;
            #[inline(always)]
            fn lane<const FMA: bool>(x: f32) -> f32 {
                breakeven_ir::lane::$whole::<FMA>(x)
            }
            #[inline(always)]
            fn is_common(x: f32) -> bool {
                breakeven_ir::lane::is_positive_normal(x)
            }
            #[inline(always)]
            fn quick<const FMA: bool>(x: f32) -> f32 {
                breakeven_ir::lane::$quick::<FMA>(x)
            }
        }

        /// The kernels of the logarithm at `level`.
        pub(super) fn $fns(level: Level) -> MapFns {
            fns1::<$lane>(level)
        }
    };
}
quick_logarithm!(Log log_fns log log_normal);
quick_logarithm!(Log2 log2_fns log2 log2_normal);

/// The same of powers.
struct Pow;
impl Lane2 for Pow {
    type A = f32;
    type B = f32;
    type O = f32;
    const QUICK: bool = true;
    #[inline(always)]
    fn lane<const FMA: bool>(x: f32, y: f32) -> f32 {
        breakeven_ir::lane::pow::<FMA>(x, y)
    }
    #[inline(always)]
    fn is_common(x: f32, y: f32) -> bool {
        breakeven_ir::lane::is_positive_normal(x) & (y.abs() < f32::INFINITY)
    }
    #[inline(always)]
    fn quick<const FMA: bool>(x: f32, y: f32) -> f32 {
        breakeven_ir::lane::pow_normal::<FMA>(x, y)
    }
}

/// The kernels of powers at `level`.
pub(super) fn pow_fns(level: Level) -> MapFns {
    fns2::<Pow>(level)
}

/// `maximum(a, 0)`: the comparison gives `a` where it is NaN, and the addition makes 0 of -0 as `maximum` does. Two
/// instructions instead of the four that any two values take: 20 x 256 lanes in 0.41 us instead of 0.52.
struct Relu;
impl Lane1 for Relu {
    type A = f32;
    type O = f32;
    const PATCHED: bool = false;
    #[inline(always)]
    fn lane<const FMA: bool>(a: f32) -> f32 {
        (if 0.0 > a { 0.0 } else { a }) + 0.0
    }
}

struct Maximum;
impl Lane2 for Maximum {
    type A = f32;
    type B = f32;
    type O = f32;
    #[inline(always)]
    fn lane<const FMA: bool>(a: f32, b: f32) -> f32 {
        breakeven_ir::lane::maximum(a, b)
    }
}

/// # Safety
/// See [`MapFn`]; `b` is a scalar.
#[inline(always)]
unsafe fn maximum_of_scalar<const FMA: bool>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) {
    // SAFETY: passed on; every pointer holds at least one lane.
    unsafe {
        if b.read_unaligned() == 0f32.to_bits() {
            one::<FMA, Relu>(dst, a, b, c, n);
        } else {
            two::<FMA, Maximum, false, true>(dst, a, b, c, n);
        }
    }
}
leveled! {
    fn maximum_of_scalar_at<;>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => maximum_of_scalar
}

/// `exp(a - b)`: the heart of softmax in one pass.
struct ExpSub;
impl Lane2 for ExpSub {
    type A = f32;
    type B = f32;
    type O = f32;
    #[inline(always)]
    fn lane<const FMA: bool>(a: f32, b: f32) -> f32 {
        breakeven_ir::lane::exp::<FMA>(a - b)
    }
}

/// The kernels of `exp(a - b)` at `level`.
pub(crate) fn exp_sub_fns(level: Level) -> MapFns {
    fns2::<ExpSub>(level)
}

/// Two ops of three f32 in one pass, each rounded.
macro_rules! two_ops {
    ($(#[$doc:meta])* $lane:ident $fns:ident |$a:ident, $b:ident, $c:ident| $value:expr) => {
        struct $lane;
        impl Lane3 for $lane {
            type A = f32;
            type B = f32;
            type C = f32;
            type O = f32;
            #[inline(always)]
            fn lane<const FMA: bool>($a: f32, $b: f32, $c: f32) -> f32 {
                $value
            }
        }

        $(#[$doc])*
        pub(crate) fn $fns(level: Level) -> MapFns {
            fns3::<$lane>(level)
        }
    };
}
two_ops! {
    /// The kernels of `a * b + c` at `level`: a factor and a shift after layer_norm.
    MulAdd mul_add_fns |a, b, c| a * b + c
}
two_ops! {
    /// The kernels of `(a - b) * c` at `level`: a row without its mean, by its deviation.
    SubMul sub_mul_fns |a, b, c| (a - b) * c
}

#[cfg(test)]
#[path = "special_tests.rs"]
mod tests;
