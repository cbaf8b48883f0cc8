//! What curves alone get wrong, learned from whole expressions: predicted and measured times of kernels enter, a factor
//! for each kind of kernel leaves, which depends a little on its size.
//!
//! The curves are made of pure cases: one class, one intensity. Real kernels mix them, and a device may be better or worse
//! at mixtures than the sum of their parts. A plain regression on logarithms, held back towards a factor of 1, so that a
//! few measurements can't say more than they know.

use super::work::KernelWork;
use breakeven_ir::plan::Class;
use serde::{Deserialize, Serialize};

/// A constant, and what depends on points, row and work of a kernel.
pub(crate) const TERMS: usize = 4;
/// How strongly a factor of 1 is held on to, in measurements.
const HOLD: [f64; TERMS] = [0.5, 4.0, 4.0, 4.0];
/// No factor is beyond this, whatever was measured.
const MOST: f64 = 4.0;

/// Factors for each kind of kernel.
///
/// ```
/// use breakeven::{DType, Plan, Tensor, cost::{Adjust, Work}};
/// let x = Tensor::input("x", DType::F32, [1000])?;
/// let kernel = &Work::of(&Plan::new(&[&x.exp()?])?).kernels[0];
/// assert_eq!(Adjust::default().factor(kernel), 1.0);   // nothing was learned
/// # Ok::<(), breakeven::RecordError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Adjust {
    terms: [[f64; TERMS]; KINDS],
}

/// Kinds of kernels: maps, single reductions, several of them over one row, scans, products.
pub(crate) const KINDS: usize = 5;

pub(crate) fn kind(kernel: &KernelWork) -> usize {
    match kernel.class {
        Class::Map => 0,
        Class::Reduce if kernel.steps <= 1.01 * kernel.points => 1,
        Class::Reduce => 2,
        Class::Scan => 3,
        Class::Contract => 4,
    }
}

/// What the factor of a kernel depends on.
pub(crate) type Features = [f64; TERMS];

/// What a factor may depend on, each about 0 in the middle of what is common.
pub(crate) fn features(kernel: &KernelWork) -> Features {
    let size = match kernel.product {
        Some(shape) => shape.iter().product::<f64>() / 32.0,
        None => kernel.points,
    };
    let row = match kernel.product {
        Some([_, _, n, _]) => n,
        None => kernel.row,
    };
    let ops: f64 = kernel.ops.iter().map(|(op, count)| count * f64::from(op.row().cost)).sum();
    let intensity = 1.0 + ops / kernel.points.max(1.0);
    [1.0, (size.max(1.0) / 3e4).ln() / 4.0, (row.max(1.0) / 64.0).ln() / 3.0, (intensity / 16.0).ln() / 2.0]
}

/// A kernel that was predicted and measured.
pub(crate) struct Seen<'a> {
    pub(crate) kernel: &'a KernelWork,
    pub(crate) predicted_ns: f64,
    pub(crate) measured_ns: f64,
    /// How much it says: less if the kernel was a small part of its batch.
    pub(crate) weight: f64,
}

impl Adjust {
    /// What the curves' prediction of a kernel is multiplied with.
    pub fn factor(&self, kernel: &KernelWork) -> f64 {
        let terms = &self.terms[kind(kernel)];
        let log: f64 = features(kernel).iter().zip(terms).map(|(feature, term)| feature * term).sum();
        log.clamp(-MOST.ln(), MOST.ln()).exp()
    }

    /// Learns from kernels.
    pub(crate) fn learn(seen: &[Seen<'_>]) -> Adjust {
        let mut adjust = Adjust::default();
        for (number, terms) in adjust.terms.iter_mut().enumerate() {
            let of_kind = seen.iter().filter(|seen| kind(seen.kernel) == number);
            let seen = of_kind.map(|seen| {
                let log = (seen.measured_ns / seen.predicted_ns).ln().clamp(-MOST.ln(), MOST.ln());
                (features(seen.kernel), log, seen.weight)
            });
            *terms = fit(HOLD, seen);
        }
        adjust
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.terms.iter().flatten().all(|term| term.is_finite())
    }
}

/// The terms that explain logarithms of factors best, each known for the features of a kernel and with a weight. `hold` tells
/// how strongly each term is held back towards 0, in measurements.
pub(crate) fn fit(hold: Features, seen: impl Iterator<Item = (Features, f64, f64)>) -> Features {
    let mut matrix = [[0.0; TERMS]; TERMS];
    let mut right = [0.0; TERMS];
    (0..TERMS).for_each(|i| matrix[i][i] = hold[i]);
    for (x, log, weight) in seen {
        for i in 0..TERMS {
            (0..TERMS).for_each(|j| matrix[i][j] += weight * x[i] * x[j]);
            right[i] += weight * x[i] * log;
        }
    }
    solve(matrix, right)
}

/// Solves a small positive definite system: no pivot is ever near 0, because every diagonal was begun with something.
fn solve(mut matrix: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> [f64; TERMS] {
    for pivot in 0..TERMS {
        for row in pivot + 1..TERMS {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot];
            (pivot..TERMS).for_each(|column| matrix[row][column] -= factor * above[column]);
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..TERMS).rev() {
        let known: f64 = (row + 1..TERMS).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
#[path = "adjust_tests.rs"]
mod tests;
