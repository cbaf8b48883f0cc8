//! How much is computed: operations, counted and by weight, enter with what light and dear ones were measured to take; the time
//! of all of them leaves.
//!
//! A kernel pays for each operation and for its weight, in a proportion that depends on how much an operation has to do at a
//! time: over rows of 256 elements the CPU takes twice as long for an addition as over rows of 4,096, and for a sine about as
//! long as in a map.

use super::probes::{HEAVY, HEAVY_OPS};
use breakeven_ir::Op;

/// Operations of a kernel.
#[derive(Clone, Copy, Default)]
pub(crate) struct Amount {
    /// How many.
    pub(crate) count: f64,
    /// The sum of their weights; an addition is 1.
    pub(crate) weight: f64,
}

impl Amount {
    /// So many additions.
    pub(crate) fn light(count: f64) -> Amount {
        Amount { count, weight: count }
    }

    /// The time of all of them, where operations of this weight take `light_ns` if they are additions and `heavy_ns` if
    /// they are as dear as [`mean_weight`] tells.
    pub(super) fn ns(self, light_ns: f64, heavy_ns: Option<f64>, mean_weight: impl Fn() -> f64) -> f64 {
        let Some(heavy_ns) = heavy_ns else { return light_ns };
        let mean = mean_weight();
        if self.weight <= 0.0 || mean < LEAST_MEAN {
            return light_ns;
        }
        // What an addition takes is a part for each operation and a part for its weight; so is what a dear one takes.
        let (light, heavy) = (light_ns / self.weight, heavy_ns / self.weight);
        let by_weight = ((heavy * mean - light) / (mean - 1.0)).clamp(0.0, heavy);
        let each = (light - by_weight).max(0.0);
        each * self.count + by_weight * self.weight
    }
}

/// Dear operations that weigh less than this on average tell nothing about what weight costs.
const LEAST_MEAN: f64 = 1.5;

/// What an operation of the probes with dear operations weighs on average.
pub(crate) fn mean_weight(weight: impl Fn(Op) -> f64) -> f64 {
    let around = (HEAVY_OPS - HEAVY.len()) as f64;
    (HEAVY.into_iter().map(weight).sum::<f64>() + around) / HEAVY_OPS as f64
}

#[cfg(test)]
#[path = "amount_tests.rs"]
mod tests;
