//! Elementwise kernels: every signature of the op table at every level, with scalar operands where they occur.

#[macro_use]
mod chunks;
mod divide;
mod lane;
mod patch;
mod special;

pub(crate) use special::{exp_sub_fns, mul_add_fns, sub_mul_fns};

use crate::level::{Level, leveled};
use breakeven_ir::{LaneBits, Op, lane_type, op_table};
use chunks::{ALIGN_FROM, W, load, store};
use lane::{Lane1, Lane2, Lane3};
use patch::{may_be_patched, patch};

/// A kernel over `n` lanes: `dst`, then up to three arguments. A scalar argument points to one lane.
pub(crate) type MapFn = unsafe fn(*mut u32, *const u32, *const u32, *const u32, usize);

/// The versions of one signature by which arguments are scalars.
#[derive(Clone, Copy)]
pub(crate) struct MapFns {
    versions: [MapFn; 4],
    arity: usize,
}

impl MapFns {
    /// The version for arguments of which `scalar` tells which are scalars; `None` if some must be made vectors.
    pub(crate) fn version(&self, scalar: [bool; 3]) -> Option<MapFn> {
        let at = match (self.arity, scalar) {
            (1, [false, ..]) => 0,
            (2, [false, false, _]) => 0,
            (2, [false, true, _]) => 1,
            (2, [true, false, _]) => 2,
            (3, [false, b, c]) => usize::from(b) * 2 + usize::from(c),
            _ => return None,
        };
        Some(self.versions[at])
    }
}

/// Up to `W` lanes of a kernel with one argument.
///
/// # Safety
/// The pointers hold `at + n` lanes each.
#[inline(always)]
unsafe fn chunk_of_one<const FMA: bool, L: Lane1>(dst: *mut u32, a: *const u32, at: usize, n: usize) {
    // SAFETY: the caller's pointers hold `at + n` lanes.
    unsafe {
        if (L::QUICK || L::PATCHED) && n == W {
            let mut rare = 0;
            for k in 0..W {
                // Read where they are: lanes that two loops need would be kept on the stack, and waited for there (log of 10^6
                // takes 229 us instead of 670).
                let bits = a.add(at + k).read_unaligned();
                rare |= u32::from(L::PATCHED && may_be_patched(bits));
                rare |= u32::from(L::QUICK && !L::is_common(L::A::from_lane_bits(bits)));
            }
            if rare == 0 {
                let x = load(a, at, W);
                let mut out = [0; W];
                for k in 0..W {
                    out[k] = L::quick::<FMA>(L::A::from_lane_bits(x[k])).lane_bits();
                }
                return store(dst, at, W, out);
            }
        }
        let x = load(a, at, n);
        let mut out = [0; W];
        for k in 0..W {
            out[k] = L::lane::<FMA>(L::A::from_lane_bits(x[k])).lane_bits();
        }
        if L::PATCHED {
            patch::<L>(&x, &mut out);
        }
        store(dst, at, n, out);
    }
}

/// # Safety
/// The pointers hold `n` lanes each (see [`MapFn`]).
#[inline(always)]
unsafe fn one<const FMA: bool, L: Lane1>(dst: *mut u32, a: *const u32, _: *const u32, _: *const u32, n: usize) {
    if n == 1 {
        // A value beside a row: 64 lanes of a division would cost as much as a short row.
        // SAFETY: every pointer holds a lane.
        unsafe {
            let x = L::A::from_lane_bits(a.read_unaligned());
            let out = L::patch(x).unwrap_or_else(|| L::lane::<FMA>(x));
            dst.write_unaligned(out.lane_bits());
        }
        return;
    }
    // SAFETY: the caller's pointers hold `n` lanes.
    chunks!(dst, n, [a], |at, lanes| unsafe { chunk_of_one::<FMA, L>(dst, a, at, lanes) });
}

/// # Safety
/// The pointers hold `n` lanes each, or one where `SA` or `SB` is set (see [`MapFn`]).
#[inline(always)]
unsafe fn two<const FMA: bool, L: Lane2, const SA: bool, const SB: bool>(
    dst: *mut u32,
    a: *const u32,
    b: *const u32,
    _: *const u32,
    n: usize,
) {
    // A scalar stays a scalar: an array of copies of it would be written to the stack for every chunk.
    // SAFETY: every pointer holds at least one lane.
    let (sa, sb) = unsafe { (a.read_unaligned(), b.read_unaligned()) };
    if n == 1 {
        // SAFETY: as above.
        unsafe { dst.write_unaligned(L::lane::<FMA>(L::A::from_lane_bits(sa), L::B::from_lane_bits(sb)).lane_bits()) };
        return;
    }
    // SAFETY: the caller's pointers hold `n` lanes, or one.
    chunks!(dst, n, [a, b], |at, lanes| unsafe { chunk_of_two::<FMA, L, SA, SB>(dst, [a, b], [sa, sb], at, lanes) });
}

/// Up to `W` lanes of a kernel with two arguments.
///
/// # Safety
/// The pointers hold `at + n` lanes each, or one where `SA` or `SB` is set: that is the scalar.
#[inline(always)]
unsafe fn chunk_of_two<const FMA: bool, L: Lane2, const SA: bool, const SB: bool>(
    dst: *mut u32,
    [a, b]: [*const u32; 2],
    [sa, sb]: [u32; 2],
    at: usize,
    n: usize,
) {
    // SAFETY: the caller vouches for the lanes.
    unsafe {
        if L::QUICK && n == W {
            let mut rare = 0;
            for k in 0..W {
                let x = if SA { sa } else { a.add(at + k).read_unaligned() };
                let y = if SB { sb } else { b.add(at + k).read_unaligned() };
                rare |= u32::from(!L::is_common(L::A::from_lane_bits(x), L::B::from_lane_bits(y)));
            }
            if rare == 0 {
                let mut out = [0; W];
                for k in 0..W {
                    let x = if SA { sa } else { a.add(at + k).read_unaligned() };
                    let y = if SB { sb } else { b.add(at + k).read_unaligned() };
                    out[k] = L::quick::<FMA>(L::A::from_lane_bits(x), L::B::from_lane_bits(y)).lane_bits();
                }
                return store(dst, at, W, out);
            }
        }
        let x = if SA { [0; W] } else { load(a, at, n) };
        let y = if SB { [0; W] } else { load(b, at, n) };
        let mut out = [0; W];
        for k in 0..W {
            let (x, y) = (if SA { sa } else { x[k] }, if SB { sb } else { y[k] });
            out[k] = L::lane::<FMA>(L::A::from_lane_bits(x), L::B::from_lane_bits(y)).lane_bits();
        }
        store(dst, at, n, out);
    }
}

/// # Safety
/// The pointers hold `n` lanes each, or one where `SB` or `SC` is set (see [`MapFn`]).
#[inline(always)]
unsafe fn three<const FMA: bool, L: Lane3, const SB: bool, const SC: bool>(
    dst: *mut u32,
    a: *const u32,
    b: *const u32,
    c: *const u32,
    n: usize,
) {
    // SAFETY: every pointer holds at least one lane.
    let (sb, sc) = unsafe { (b.read_unaligned(), c.read_unaligned()) };
    // SAFETY: the caller's pointers hold `n` lanes, or one.
    chunks!(dst, n, [a, b, c], |at, lanes| unsafe {
        chunk_of_three::<FMA, L, SB, SC>(dst, [a, b, c], [sb, sc], at, lanes)
    });
}

/// Up to `W` lanes of a kernel with three arguments.
///
/// # Safety
/// The pointers hold `at + n` lanes each, or one where `SB` or `SC` is set: that is the scalar.
#[inline(always)]
unsafe fn chunk_of_three<const FMA: bool, L: Lane3, const SB: bool, const SC: bool>(
    dst: *mut u32,
    [a, b, c]: [*const u32; 3],
    [sb, sc]: [u32; 2],
    at: usize,
    n: usize,
) {
    // SAFETY: the caller vouches for the lanes.
    unsafe {
        let x = load(a, at, n);
        let y = if SB { [0; W] } else { load(b, at, n) };
        let z = if SC { [0; W] } else { load(c, at, n) };
        let mut out = [0; W];
        for k in 0..W {
            let (y, z) = (if SB { sb } else { y[k] }, if SC { sc } else { z[k] });
            let (y, z) = (L::B::from_lane_bits(y), L::C::from_lane_bits(z));
            out[k] = L::lane::<FMA>(L::A::from_lane_bits(x[k]), y, z).lane_bits();
        }
        store(dst, at, n, out);
    }
}

leveled! {
    fn one_at<L: Lane1;>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => one
}
leveled! {
    fn two_at<L: Lane2; const SA: bool, const SB: bool>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => two
}
leveled! {
    fn three_at<L: Lane3; const SB: bool, const SC: bool>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => three
}

fn fns1<L: Lane1>(level: Level) -> MapFns {
    MapFns { versions: [one_at::<L>(level); 4], arity: 1 }
}
fn fns2<L: Lane2>(level: Level) -> MapFns {
    let vectors = two_at::<L, false, false>(level);
    MapFns { versions: [vectors, two_at::<L, false, true>(level), two_at::<L, true, false>(level), vectors], arity: 2 }
}
fn fns3<L: Lane3>(level: Level) -> MapFns {
    MapFns {
        versions: [
            three_at::<L, false, false>(level),
            three_at::<L, false, true>(level),
            three_at::<L, true, false>(level),
            three_at::<L, true, true>(level),
        ],
        arity: 3,
    }
}

/// One signature of a row as a lane type, turned into its kernels.
macro_rules! lane {
    ($level:ident ($ta:ident $a:ident) $out:ident { $lane:expr } $(slow $when:expr => $slow:expr)?) => {{
        struct L;
        impl Lane1 for L {
            type A = lane_type!($ta);
            type O = lane_type!($out);
            const PATCHED: bool = lane!(@ patched $($when)?);
            #[inline(always)]
            #[allow(unused_variables, reason = "some rows ignore FMA")]
            fn lane<const FMA: bool>($a: Self::A) -> Self::O { $lane }
            $(fn patch($a: Self::A) -> Option<Self::O> { if $when { Some($slow) } else { None } })?
        }
        fns1::<L>($level)
    }};
    ($level:ident ($ta:ident $a:ident, $tb:ident $b:ident) $out:ident { $lane:expr }) => {{
        struct L;
        impl Lane2 for L {
            type A = lane_type!($ta);
            type B = lane_type!($tb);
            type O = lane_type!($out);
            #[inline(always)]
            fn lane<const FMA: bool>($a: Self::A, $b: Self::B) -> Self::O { $lane }
        }
        fns2::<L>($level)
    }};
    ($level:ident ($ta:ident $a:ident, $tb:ident $b:ident, $tc:ident $c:ident) $out:ident { $lane:expr }) => {{
        struct L;
        impl Lane3 for L {
            type A = lane_type!($ta);
            type B = lane_type!($tb);
            type C = lane_type!($tc);
            type O = lane_type!($out);
            #[inline(always)]
            fn lane<const FMA: bool>($a: Self::A, $b: Self::B, $c: Self::C) -> Self::O { $lane }
        }
        fns3::<L>($level)
    }};
    (@ patched) => { false };
    (@ patched $when:expr) => { true };
}

macro_rules! map_table {
    ($($variant:ident $method:ident $(= $name:literal)? ($($property:ident)*) {
        $(($($ty:ident $arg:ident),+) -> $out:ident { $lane:expr } $(slow $when:expr => $slow:expr;)? $wgsl:literal;)+
    } $cost:expr, $ulp:expr, [$([$($g:expr),*] $r:expr),*], $doc:literal;)*) => {
        fn table_fns(op: Op, signature: u8, level: Level) -> MapFns {
            let signatures: &[fn(Level) -> MapFns] = match op {
                $(Op::$variant => &[$(|level| lane!(level ($($ty $arg),+) $out { $lane } $(slow $when => $slow)?)),+],)*
            };
            signatures[usize::from(signature)](level)
        }
    };
}
op_table!(map_table);

/// The kernels of one signature of `op` at `level`.
pub(crate) fn map_fns(op: Op, signature: u8, level: Level) -> MapFns {
    let mut fns = table_fns(op, signature, level);
    match (op, signature) {
        (Op::Maximum, special::F32) => fns.versions[1] = special::maximum_of_scalar_at(level),
        (Op::Log, special::F32) => fns = special::log_fns(level),
        (Op::Log2, special::F32) => fns = special::log2_fns(level),
        (Op::Pow, special::F32) => fns = special::pow_fns(level),
        (Op::FloorDiv, divide::I32) => fns.versions[1] = divide::by_scalar_at::<divide::FloorI>(level),
        (Op::FloorDiv, divide::U32) => fns.versions[1] = divide::by_scalar_at::<divide::FloorU>(level),
        (Op::Rem, divide::I32) => fns.versions[1] = divide::by_scalar_at::<divide::RemI>(level),
        (Op::Rem, divide::U32) => fns.versions[1] = divide::by_scalar_at::<divide::RemU>(level),
        (Op::ToI32, special::F32) => fns = special::to_i32_fns(level),
        (Op::ToU32, special::F32) => fns = special::to_u32_fns(level),
        _ => {}
    }
    fns
}

/// # Safety
/// `dst` holds `n` lanes, `a` one.
#[inline(always)]
unsafe fn splat<const FMA: bool>(dst: *mut u32, a: *const u32, _: *const u32, _: *const u32, n: usize) {
    // SAFETY: the caller's pointers hold that many lanes.
    let lanes = [unsafe { a.read_unaligned() }; W];
    // SAFETY: as above.
    chunks!(dst, n, [a], |at, count| unsafe { store(dst, at, count, lanes) });
}
leveled! {
    /// One lane repeated.
    fn splat_at<;>(dst: *mut u32, a: *const u32, b: *const u32, c: *const u32, n: usize) => splat
}
