//! What a device costs: its measured curves and the work of a plan enter, the predicted time of the batch leaves, in
//! its parts.
//!
//! A kernel is bound by the memory that it moves or by what it computes, whichever takes longer, and where both take
//! about as long they do not overlap perfectly: how well they do is measured, too. What was not measured follows from
//! what was, by the device's roofline.

use super::adjust::Adjust;
use super::curve::{Curve, Family, LARGEST};
use super::work::{KernelWork, Work};
use breakeven_ir::plan::Class;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a device costs.
///
/// ```
/// use breakeven::{DType, Plan, Tensor, cost::{Costs, Curve, Work}};
/// let x = Tensor::input("x", DType::F32, [1000])?;
/// let work = Work::of(&Plan::new(&[&(&x + 1.0)?])?);
/// let memory = Curve::new(vec![(8e3, 500.0)]);
/// let costs = Costs { fixed_ns: 100.0, memory, ..Costs::default() };
/// let predicted = costs.predict(&work, 0);
/// assert_eq!(predicted.fixed_ns, 100.0);
/// assert!(predicted.kernels_ns >= 500.0);
/// # Ok::<(), breakeven::RecordError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A batch that does next to nothing.
    pub fixed_ns: f64,
    /// The part of that in which the work is encoded and handed to the driver.
    pub submit_ns: f64,
    /// Each further kernel of a batch.
    pub kernel_ns: f64,
    /// Each further task of many.
    pub task_ns: f64,
    /// Bytes to the device.
    pub upload: Curve,
    /// Bytes back.
    pub readback: Curve,
    /// Bytes that a kernel moves, one after the other.
    pub memory: Curve,
    /// Bytes that a kernel reads with steps between them.
    pub strided: Curve,
    /// Operations of a map, each counted by its weight.
    pub compute: Curve,
    /// The weight of each op; an addition is 1.
    pub weights: BTreeMap<String, f64>,
    /// The weight of a reduction's step beyond the first, by the length of a row: short rows have dear ends.
    pub step_weights: Curve,
    /// The share of what comes before a reduction that is computed again in each further pass over the rows.
    pub again: f64,
    /// Points that are summed along memory, by the length of a row.
    pub reduce: Family,
    /// Points that are summed to one number.
    pub total: Curve,
    /// Points that are summed across memory's rows.
    pub columns: Curve,
    /// Points that are scanned, by the length of a row.
    pub scan: Family,
    /// Matrix products.
    pub products: Vec<ProductCost>,
    /// How well memory and computing overlap: 1 not at all, large perfectly.
    pub overlap: f64,
    /// What whole expressions took against what all that says.
    pub adjust: Adjust,
}

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

/// The predicted time of a batch, in its parts.
///
/// ```
/// use breakeven::cost::Prediction;
/// let parts = Prediction { fixed_ns: 1.0, upload_ns: 2.0, kernels_ns: 3.0, readback_ns: 4.0, ..Prediction::default() };
/// assert_eq!(parts.total_ns(), 10);
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Prediction {
    /// Until the device is free.
    pub wait_ns: f64,
    /// What every batch costs.
    pub fixed_ns: f64,
    /// Inputs that are not there yet.
    pub upload_ns: f64,
    /// All kernels.
    pub kernels_ns: f64,
    /// Results.
    pub readback_ns: f64,
}

impl Prediction {
    /// From the call to the results.
    pub fn total_ns(&self) -> u64 {
        (self.wait_ns + self.fixed_ns + self.upload_ns + self.kernels_ns + self.readback_ns) as u64
    }

    /// One after the other.
    pub(crate) fn and(&self, other: &Prediction) -> Prediction {
        Prediction {
            wait_ns: self.wait_ns + other.wait_ns,
            fixed_ns: self.fixed_ns + other.fixed_ns,
            upload_ns: self.upload_ns + other.upload_ns,
            kernels_ns: self.kernels_ns + other.kernels_ns,
            readback_ns: self.readback_ns + other.readback_ns,
        }
    }

    /// What the next batch waits for if they come without a pause: transfers of one overlap the kernels of another.
    pub fn busy_ns(&self) -> u64 {
        (self.fixed_ns + self.kernels_ns.max(self.upload_ns).max(self.readback_ns)) as u64
    }
}

/// Nanoseconds a byte, where nothing was measured: about 10 GB/s.
const ASSUMED_BYTE_NS: f64 = 0.1;
/// Nanoseconds of an operation, where nothing was measured.
const ASSUMED_OP_NS: f64 = 0.2;
/// How much dearer strided memory is, where that was not measured.
const ASSUMED_STRIDED: f64 = 3.0;
/// How many operations a step of a scan is worth, where that was not measured: it can't be done side by side.
const ASSUMED_SCAN: f64 = 10.0;

/// No processor takes so many times as long as a common one; kernels that were compiled without optimisation take a fifth of
/// this.
const SLOWEST: f64 = 150.0;
/// Bytes and operations at which that is looked at.
const BIG: f64 = 1e6;

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            fixed_ns: 0.0,
            submit_ns: 0.0,
            kernel_ns: 0.0,
            task_ns: 0.0,
            upload: Curve::default(),
            readback: Curve::default(),
            memory: Curve::default(),
            strided: Curve::default(),
            compute: Curve::default(),
            weights: BTreeMap::new(),
            step_weights: Curve::default(),
            again: 0.0,
            reduce: Family::default(),
            total: Curve::default(),
            columns: Curve::default(),
            scan: Family::default(),
            products: Vec::new(),
            overlap: 2.0,
            adjust: Adjust::default(),
        }
    }
}

impl Costs {
    /// What a batch takes if so many bytes of its inputs are on the device already.
    pub fn predict(&self, work: &Work, resident_bytes: u64) -> Prediction {
        let further = work.kernels.len().saturating_sub(1) as f64 * self.kernel_ns;
        Prediction {
            wait_ns: 0.0,
            fixed_ns: self.fixed_ns + further,
            upload_ns: self.upload_ns(work.upload_bytes.saturating_sub(resident_bytes) as f64),
            kernels_ns: work.kernels.iter().map(|kernel| self.kernel_ns(kernel)).sum(),
            readback_ns: self.readback_ns(work.readback_bytes as f64),
        }
    }

    /// As [`Costs::predict`], for many tasks of that work in one batch.
    pub fn predict_many(&self, work: &Work, tasks: usize) -> Prediction {
        let one = self.predict(&work.times(tasks as f64), 0);
        Prediction { fixed_ns: one.fixed_ns + self.task_ns * tasks as f64, ..one }
    }

    /// Of a device that takes so many times as long for everything.
    ///
    /// ```
    /// let costs = breakeven::cost::Costs { fixed_ns: 100.0, ..Default::default() };
    /// assert_eq!(costs.times(16.0).fixed_ns, 1600.0);
    /// ```
    pub fn times(mut self, factor: f64) -> Costs {
        let curves = [&mut self.upload, &mut self.readback, &mut self.memory, &mut self.strided, &mut self.compute];
        curves.into_iter().for_each(|curve| curve.scale(factor));
        [&mut self.total, &mut self.columns].into_iter().for_each(|curve| curve.scale(factor));
        [&mut self.reduce, &mut self.scan].into_iter().for_each(|family| family.scale(factor));
        self.products.iter_mut().for_each(|product| product.ns *= factor);
        [&mut self.fixed_ns, &mut self.submit_ns, &mut self.kernel_ns, &mut self.task_ns]
            .into_iter()
            .for_each(|ns| *ns *= factor);
        self
    }

    /// Bytes to the device; nothing where it has no memory of its own.
    pub fn upload_ns(&self, bytes: f64) -> f64 {
        self.upload.at(bytes).unwrap_or(0.0)
    }

    /// Bytes from the device.
    pub fn readback_ns(&self, bytes: f64) -> f64 {
        self.readback.at(bytes).unwrap_or(0.0)
    }

    /// What a kernel takes.
    pub fn kernel_ns(&self, kernel: &KernelWork) -> f64 {
        // A product of a shape that was measured needs no correction by others.
        let near = kernel.product.map_or(0.0, |shape| self.nearness(&shape));
        self.adjust.factor(kernel).powf(1.0 - near) * self.by_curves_ns(kernel)
    }

    /// How near a product's shape is to one that was measured: 1 if it is that one.
    fn nearness(&self, shape: &[f64; 4]) -> f64 {
        let apart = |(a, b): (&f64, &f64)| (a.max(1.0) / b.max(1.0)).ln().powi(2);
        let distance = |known: &ProductCost| shape.iter().zip(&known.shape).map(apart).sum::<f64>();
        (-self.products.iter().map(distance).fold(f64::INFINITY, f64::min)).exp()
    }

    fn by_curves_ns(&self, kernel: &KernelWork) -> f64 {
        let weighted: f64 =
            kernel.ops.iter().map(|(op, count)| count * self.weight(op.row().name, op.row().cost)).sum();
        let points = kernel.points;
        let elements = 4.0 * points;
        match kernel.class {
            Class::Map => self.both(self.moved_ns(kernel), self.computed_ns(weighted)),
            Class::Reduce => {
                let steps = (kernel.steps - points).max(0.0) * self.step_weights.near(kernel.row).unwrap_or(1.0);
                let base = match (kernel.along, kernel.row >= points) {
                    (false, _) => self.columns.at(points),
                    (true, true) => self.total.at(points),
                    (true, false) => None,
                };
                let rows = || self.reduce.at(kernel.row, points);
                let base = base.or_else(rows).unwrap_or_else(|| self.memory_ns(elements));
                let passes = (kernel.steps / points.max(1.0)).max(1.0);
                let weighted = weighted * (1.0 + self.again * (passes - 1.0));
                self.both(base + self.beyond_ns(kernel, elements), self.computed_ns(weighted + steps))
            }
            Class::Scan => {
                let assumed = || self.computed_ns(ASSUMED_SCAN * points);
                let base = self.scan.at(kernel.row, points).unwrap_or_else(assumed);
                self.both(base + self.beyond_ns(kernel, 2.0 * elements), self.computed_ns(weighted))
            }
            Class::Contract => {
                let product = kernel.product.map_or(0.0, |shape| self.product_ns(shape));
                // The result is written by the product; what is around it moves the rest.
                product + self.both(self.beyond_ns(kernel, elements), self.computed_ns(weighted))
            }
        }
    }

    /// What a kernel moves beyond what its class's own measurement moved.
    fn beyond_ns(&self, kernel: &KernelWork, bytes: f64) -> f64 {
        let moved = kernel.bytes + kernel.strided_bytes;
        // Noise may make a curve fall; more bytes never take less than none.
        if moved > bytes { (self.memory_ns(moved) - self.memory_ns(bytes)).max(0.0) } else { 0.0 }
    }

    fn moved_ns(&self, kernel: &KernelWork) -> f64 {
        let strided = match kernel.strided_bytes {
            0.0 => 0.0,
            bytes => self.strided.at(bytes).unwrap_or(ASSUMED_STRIDED * self.memory_ns(bytes)),
        };
        self.memory_ns(kernel.bytes) + strided
    }

    /// Bytes one after the other.
    pub(crate) fn memory_ns(&self, bytes: f64) -> f64 {
        self.memory.at(bytes).unwrap_or(ASSUMED_BYTE_NS * bytes)
    }

    /// Operations by weight.
    pub(crate) fn computed_ns(&self, weighted: f64) -> f64 {
        self.compute.at(weighted).unwrap_or(ASSUMED_OP_NS * weighted)
    }

    pub(crate) fn weight(&self, name: &str, assumed: u32) -> f64 {
        self.weights.get(name).copied().unwrap_or(f64::from(assumed))
    }

    /// Two things at once.
    pub(crate) fn both(&self, a: f64, b: f64) -> f64 {
        let (long, short) = if a > b { (a, b) } else { (b, a) };
        if long <= 0.0 { 0.0 } else { long * (1.0 + (short / long).powf(self.overlap)).powf(1.0 / self.overlap) }
    }

    /// A matrix product: as fast as a cube of as many operations, and as much slower as others of about its shape are.
    fn product_ns(&self, shape: [f64; 4]) -> f64 {
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
            self.computed_ns(flops / 2.0)
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

    /// Is enough known to compare it with others? What was not measured would look as if it cost next to nothing.
    pub(crate) fn is_telling(&self, is_device: bool) -> bool {
        let moves = !is_device || !self.upload.is_empty() && !self.readback.is_empty();
        moves && !self.memory.is_empty() && !self.compute.is_empty()
    }

    /// Can this be a processor, made so many times as slow? Figures of a moment in which it did not get to run are no
    /// figures of it, and everything else would seem to pay for as long as they are remembered.
    pub(crate) fn is_processor(&self, slowed: u32) -> bool {
        let factor = SLOWEST * f64::from(slowed.max(1));
        let common = Costs::default();
        self.memory_ns(BIG) <= factor * common.memory_ns(BIG)
            && self.computed_ns(BIG) <= factor * common.computed_ns(BIG)
    }

    /// As it was read from a file: nothing negative, nothing that is no number.
    pub(crate) fn is_sound(&self) -> bool {
        let curves = [
            &self.upload,
            &self.readback,
            &self.memory,
            &self.strided,
            &self.compute,
            &self.columns,
            &self.total,
            &self.step_weights,
        ];
        let fine = |ns: &f64| (0.0..=LARGEST).contains(ns);
        let extent = |n: &f64| (1.0..=LARGEST).contains(n);
        let product = |cost: &ProductCost| fine(&cost.ns) && cost.ns > 0.0 && cost.shape.iter().all(extent);
        curves.into_iter().all(Curve::is_sound)
            && self.reduce.is_sound()
            && self.scan.is_sound()
            && [self.fixed_ns, self.submit_ns, self.kernel_ns, self.task_ns, self.again].iter().all(fine)
            && self.weights.values().all(fine)
            && self.products.iter().all(product)
            && (1.0..=64.0).contains(&self.overlap)
            && self.adjust.is_sound()
    }
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;
