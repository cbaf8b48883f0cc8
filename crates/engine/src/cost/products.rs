//! What matrix products cost: those that were measured and a shape enter, its time leaves.

use super::amount::Amount;
use super::costs::Costs;
use serde::{Deserialize, Serialize};

/// What a matrix product was measured to take.
///
/// ```
/// let cost = breakeven::cost::ProductCost { shape: [1.0, 64.0, 64.0, 64.0], ns: 5000.0 };
/// assert_eq!(cost.flops(), 2.0 * 64.0 * 64.0 * 64.0);
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProductCost {
    /// Batches, rows, columns, summed extent.
    pub shape: [f64; 4],
    /// Its time.
    pub ns: f64,
}

impl ProductCost {
    /// Its operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.shape.iter().product::<f64>()
    }

    fn is_cube(&self) -> bool {
        let [batch, m, n, k] = self.shape;
        batch == 1.0 && m == n && n == k
    }

    fn ln_op_ns(&self) -> f64 {
        (self.ns / self.flops()).ln()
    }
}

impl Costs {
    /// How near a product's shape is to one that was measured: 1 if it is that one.
    pub(super) fn nearness(&self, shape: &[f64; 4]) -> f64 {
        let apart = |(a, b): (&f64, &f64)| (a.max(1.0) / b.max(1.0)).ln().powi(2);
        let distance = |known: &ProductCost| shape.iter().zip(&known.shape).map(apart).sum::<f64>();
        (-self.products.iter().map(distance).fold(f64::INFINITY, f64::min)).exp()
    }

    /// A matrix product: as fast as a cube of as many operations, and as much slower as others of about its shape are.
    pub(super) fn product_ns(&self, shape: [f64; 4]) -> f64 {
        let flops = 2.0 * shape.iter().product::<f64>();
        if flops <= 0.0 {
            return 0.0;
        }
        // Beyond all that was measured the speed is as at its end: from afar everything is about as near as the nearest.
        let ends = |at: usize| {
            let extents = self.products.iter().map(|known| known.shape[at]);
            extents.fold((f64::INFINITY, 1.0f64), |(least, most), extent| (least.min(extent), most.max(extent)))
        };
        let (mut weights, mut logs, asked) = (0.0, 0.0, shape);
        let mut shape = shape;
        for (at, extent) in shape.iter_mut().enumerate() {
            let (least, most) = ends(at);
            *extent = extent.clamp(least.min(most), most);
        }
        for known in &self.products {
            let apart = |(a, b): (&f64, &f64)| (a.max(1.0) / b.max(1.0)).ln().powi(2);
            // Whole vectors of columns or not is a matter of its own where there are few of them.
            let uneven = |columns: f64| columns % 16.0 != 0.0;
            let other = if uneven(asked[2]) == uneven(known.shape[2]) { 0.0 } else { (64.0 / asked[2]).min(1.0) };
            let distance: f64 = shape.iter().zip(&known.shape).map(apart).sum::<f64>() + other;
            let weight = 1.0 / (distance * distance + 1e-6);
            weights += weight;
            logs += weight * (known.ln_op_ns() - self.cube_ln_op_ns(known.flops()));
        }
        if weights > 0.0 {
            flops * (logs / weights + self.cube_ln_op_ns(2.0 * shape.iter().product::<f64>())).exp()
        } else {
            self.computed_ns(Amount::light(flops / 2.0))
        }
    }

    /// The logarithm of what an operation takes in cubes of so many: between those that were measured.
    fn cube_ln_op_ns(&self, flops: f64) -> f64 {
        let cubes = || self.products.iter().filter(|known| known.is_cube());
        let below = cubes().filter(|known| known.flops() <= flops).max_by(|a, b| a.flops().total_cmp(&b.flops()));
        let above = cubes().filter(|known| known.flops() >= flops).min_by(|a, b| a.flops().total_cmp(&b.flops()));
        match (below, above) {
            (Some(below), Some(above)) if above.flops() > below.flops() => {
                let share = (flops / below.flops()).ln() / (above.flops() / below.flops()).ln();
                below.ln_op_ns() * (1.0 - share) + above.ln_op_ns() * share
            }
            (Some(end), _) | (None, Some(end)) => end.ln_op_ns(),
            (None, None) => 0.0,
        }
    }
}
