//! Lanes that the fast expression of a row does not cover: a chunk and its results enter, mended results leave.

use super::W;
use super::lane::Lane1;
use breakeven_ir::LaneBits;

/// Patched lanes are large magnitudes: above the bits of this bound a chunk is looked at lane by lane. The rows' own
/// conditions decide; this one only has to be no larger than theirs.
const PATCH_FROM_BITS: u32 = breakeven_ir::lane::TRIG_FAST_BOUND.to_bits();

/// Is it a lane that [`Lane1::patch`] has to look at?
#[inline(always)]
pub(super) fn may_be_patched(bits: u32) -> bool {
    (bits & 0x7fff_ffff) > PATCH_FROM_BITS
}

/// Puts other values in the lanes that the fast expression does not cover.
#[inline(always)]
pub(super) fn patch<L: Lane1>(x: &[u32; W], out: &mut [u32; W]) {
    let mut any = false;
    for &bits in x {
        any |= may_be_patched(bits);
    }
    if any {
        patch_slowly::<L>(x, out);
    }
}

#[cold]
#[inline(never)]
fn patch_slowly<L: Lane1>(x: &[u32; W], out: &mut [u32; W]) {
    for k in 0..W {
        if let Some(value) = L::patch(L::A::from_lane_bits(x[k])) {
            out[k] = value.lane_bits();
        }
    }
}
