//! How far a device's results may lie from the exact ones: an op enters, ulps leave.
//!
//! The algorithms are the CPU's (`shaders/*.wgsl`), but WGSL promises less of the arithmetic under them. The sign
//! of a zero is not promised. Infinities and NaNs are the CPU's, but for arguments that are denormal.

use breakeven_ir::{DType, Op};

/// Sum, difference, product and conversion: correctly rounded by WGSL's rules, but in either direction.
pub const ROUNDING_ULP: f32 = 1.0;

/// What divisions (2.5 ulp each), square roots (more) and the f32 pairs that stand in for the CPU's f64 may add to
/// the bound of the CPU's lane.
pub const SLACK_ULP: f32 = 4.0;

/// What may come on top in absolute terms where a device flushes denormals (WGSL allows it for arguments, results and
/// whatever lies between): the smallest normal f32. Also, a denormal argument may act as 0, as in `1 / 1e-40`.
pub const FLUSHED: f32 = f32::MIN_POSITIVE;

/// The largest error of `op` on a device, in units of the last place of an f32 result; 0 if results are exact.
///
/// ```
/// use breakeven_gpu::tolerance;
/// use breakeven_ir::Op;
/// assert_eq!(tolerance::ulp(Op::Maximum), 0.0);
/// assert_eq!(tolerance::ulp(Op::Exp), Op::Exp.row().ulp + tolerance::SLACK_ULP);
/// ```
pub fn ulp(op: Op) -> f32 {
    let row = op.row();
    match op {
        _ if row.ulp == 0.0 || row.signatures.iter().all(|s| s.result != DType::F32) => 0.0,
        // A remainder is exact; moving it to the divisor's side rounds once.
        Op::Add | Op::Sub | Op::Mul | Op::Square | Op::ToF32 | Op::Rem => ROUNDING_ULP,
        _ => row.ulp + SLACK_ULP,
    }
}
