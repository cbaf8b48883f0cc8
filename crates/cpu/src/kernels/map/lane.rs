//! What one lane of an elementwise kernel computes: arguments enter, the result leaves. `map` makes kernels of it.

use breakeven_ir::LaneBits;

/// One argument.
pub(crate) trait Lane1 {
    type A: LaneBits;
    type O: LaneBits;
    const PATCHED: bool;
    fn lane<const FMA: bool>(a: Self::A) -> Self::O;
    /// Lanes that the fast expression does not cover.
    fn patch(_: Self::A) -> Option<Self::O> {
        None
    }
    /// Is there a quicker way for a chunk of nothing but common values?
    const QUICK: bool = false;
    #[inline(always)]
    fn is_common(_: Self::A) -> bool {
        false
    }
    /// The same bits, for common values.
    #[inline(always)]
    fn quick<const FMA: bool>(a: Self::A) -> Self::O {
        Self::lane::<FMA>(a)
    }
}

/// Two arguments.
pub(crate) trait Lane2 {
    type A: LaneBits;
    type B: LaneBits;
    type O: LaneBits;
    fn lane<const FMA: bool>(a: Self::A, b: Self::B) -> Self::O;
    /// As for [`Lane1`].
    const QUICK: bool = false;
    #[inline(always)]
    fn is_common(_: Self::A, _: Self::B) -> bool {
        false
    }
    #[inline(always)]
    fn quick<const FMA: bool>(a: Self::A, b: Self::B) -> Self::O {
        Self::lane::<FMA>(a, b)
    }
}

/// Three arguments.
pub(crate) trait Lane3 {
    type A: LaneBits;
    type B: LaneBits;
    type C: LaneBits;
    type O: LaneBits;
    fn lane<const FMA: bool>(a: Self::A, b: Self::B, c: Self::C) -> Self::O;
}
