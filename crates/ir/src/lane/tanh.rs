//! tanh: x enters, `(1 - e^-2|x|) / (1 + e^-2|x|)` leaves with the sign of x.
//!
//! Not a rational approximation: the fast ones are off by 4.6 ulp and exceed 1.0.

use super::exp::{exp_m1_reduced, pow2, reduce};
use super::mad;

/// Bound of [`tanh`]; measured 1.95.
pub const TANH_ULP: f32 = 2.5;

/// Hyperbolic tangent; never beyond 1.0 in magnitude.
#[inline(always)]
pub fn tanh<const FMA: bool>(x: f32) -> f32 {
    let y = -2.0 * x.abs();
    // e^-20 is below a quarter ulp of 1: the quotient below is 1.0 from here on.
    let y = if y < -20.0 { -20.0 } else { y };
    let (r, bits) = reduce::<FMA>(y, 0.0);
    let p = exp_m1_reduced::<FMA>(r);
    let s = pow2(bits);
    // e^y = s (1 + p). Both sums round once (1 - s and 1 + s are exact or nearly so), and near zero, where
    // s = 1, the numerator is -p itself, so nothing cancels.
    let numerator = mad::<FMA>(-s, p, 1.0 - s);
    let denominator = mad::<FMA>(s, p, 1.0 + s);
    (numerator / denominator).copysign(x)
}
