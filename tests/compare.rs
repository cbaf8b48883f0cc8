//! Holds what the library computed against what the reference expects.

use crate::reference::RefArray;
use breakeven::DType;

/// How signs of zeros are looked at.
#[derive(Clone, Copy, PartialEq)]
pub enum Zeros {
    /// -0.0 and 0.0 are the same: sums, extrema and simplifications may give either.
    Same,
    /// An exact zero must have its sign.
    Signed,
}

/// Compares elements; how many could be, or the first that differs.
pub fn values(dtype: DType, shape: &[usize], got: &[f64], expected: &RefArray, zeros: Zeros) -> Result<usize, String> {
    if (dtype, shape) != (expected.dtype, &expected.shape[..]) {
        return Err(format!("found {dtype}{shape:?}, expected {}{:?}", expected.dtype, expected.shape));
    }
    if got.len() != expected.elems() {
        return Err(format!("found {} elements, expected {}", got.len(), expected.elems()));
    }
    // The sign of a zero is not promised on GPUs.
    let zeros = if crate::device::api().is_some() { Zeros::Same } else { zeros };
    let mut compared = 0;
    for (i, &got) in got.iter().enumerate() {
        let (want, err) = expected.at(i);
        if err == f64::INFINITY {
            continue;
        }
        compared += 1;
        let same = match want {
            w if w.is_nan() => got.is_nan(),
            w if w.is_infinite() || err == 0.0 => {
                got == w && (zeros == Zeros::Same || w != 0.0 || got.is_sign_negative() == w.is_sign_negative())
            }
            w => (got - w).abs() <= err,
        };
        if !same {
            return Err(format!("element {i} of {dtype}{shape:?}: found {got:e}, expected {want:e} within {err:e}"));
        }
    }
    Ok(compared)
}

/// Equal in every bit but for the payload of NaN.
pub fn identical(a: &[f64], b: &[f64]) -> Result<(), String> {
    if a.len() != b.len() {
        return Err(format!("{} elements and {}", a.len(), b.len()));
    }
    match a.iter().zip(b).position(|(a, b)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan())) {
        Some(i) => Err(format!("element {i}: {:e} and {:e}", a[i], b[i])),
        None => Ok(()),
    }
}
