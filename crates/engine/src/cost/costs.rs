//! What a device costs: its measured curves and the work of a plan enter, the predicted time of the batch leaves, in
//! its parts.
//!
//! A kernel is bound by the memory that it moves or by what it computes, whichever takes longer, and where both take
//! about as long they do not overlap perfectly: how well they do is measured, too. What was not measured follows from
//! what was, by the device's roofline.

use super::adjust::Adjust;
use super::amount::{Amount, mean_weight};
use super::curve::{Curve, LARGEST};
use super::products::ProductCost;
use super::rows::Rows;
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
    /// Operations of a map that are nothing but additions and products.
    pub compute: Curve,
    /// Operations of a map most of which are dear, each counted by its weight: a kernel may also pay for each operation,
    /// whatever it weighs.
    pub heavy: Curve,
    /// The weight of each op; an addition is 1.
    pub weights: BTreeMap<String, f64>,
    /// As [`Costs::compute`], within a reduction or scan of rows: the kernels of rows and those of maps are different
    /// programs.
    pub row_compute: Rows,
    /// As [`Costs::heavy`] there.
    pub row_heavy: Rows,
    /// The weight of each op there; an addition is 1.
    pub row_weights: BTreeMap<String, f64>,
    /// How well the passes over a row and computing overlap, as [`Costs::overlap`].
    pub row_overlap: f64,
    /// One more than the share of what comes before a reduction that is computed again in each further pass over the rows,
    /// by their length.
    pub again: Curve,
    /// Points that are summed along memory, by the length of a row.
    pub reduce: Rows,
    /// Points that are reduced twice and written.
    pub passes: Rows,
    /// Points that are summed to one number.
    pub total: Curve,
    /// Points that are summed across memory's rows.
    pub columns: Curve,
    /// Points that are scanned, by the length of a row.
    pub scan: Rows,
    /// Matrix products.
    pub products: Vec<ProductCost>,
    /// How well memory and computing overlap: 1 not at all, large perfectly.
    pub overlap: f64,
    /// What whole expressions took against what all that says.
    pub adjust: Adjust,
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

/// How often points are reduced in [`Costs::passes`], before they are written.
pub(crate) const PASSES: f64 = 2.0;
/// Operations for each point between those passes.
pub(crate) const PASS_OPS: f64 = 3.0;

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
            heavy: Curve::default(),
            weights: BTreeMap::new(),
            row_compute: Rows::default(),
            row_heavy: Rows::default(),
            row_weights: BTreeMap::new(),
            row_overlap: 2.0,
            again: Curve::default(),
            reduce: Rows::default(),
            passes: Rows::default(),
            total: Curve::default(),
            columns: Curve::default(),
            scan: Rows::default(),
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
        let curves = [&mut self.upload, &mut self.readback, &mut self.memory, &mut self.strided];
        curves.into_iter().for_each(|curve| curve.scale(factor));
        let curves = [&mut self.compute, &mut self.heavy, &mut self.total, &mut self.columns];
        curves.into_iter().for_each(|curve| curve.scale(factor));
        let rows = [&mut self.reduce, &mut self.passes, &mut self.scan, &mut self.row_compute, &mut self.row_heavy];
        rows.into_iter().for_each(|rows| rows.scale(factor));
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

    fn by_curves_ns(&self, kernel: &KernelWork) -> f64 {
        let points = kernel.points;
        let elements = 4.0 * points;
        match kernel.class {
            Class::Map => self.both(self.moved_ns(kernel), self.computed_ns(self.amount(kernel))),
            Class::Reduce => {
                let moved = if passes(kernel) > 1.0 && !self.passes.is_empty() { 2.0 * elements } else { elements };
                let base = self.reduced_ns(kernel) + self.beyond_ns(kernel, moved);
                self.with_rows(kernel, base)
            }
            Class::Scan => {
                let assumed = || self.computed_ns(Amount::light(ASSUMED_SCAN * points));
                let base = self.scan.at(kernel.row, points).unwrap_or_else(assumed);
                self.with_rows(kernel, base + self.beyond_ns(kernel, 2.0 * elements))
            }
            Class::Contract => {
                let product = kernel.product.map_or(0.0, |shape| self.product_ns(shape));
                // The result is written by the product; what is around it moves the rest.
                product + self.both(self.beyond_ns(kernel, elements), self.computed_ns(self.amount(kernel)))
            }
        }
    }

    /// The passes over the rows of a reduction, and nothing else.
    fn reduced_ns(&self, kernel: &KernelWork) -> f64 {
        let points = kernel.points;
        let rows = || self.reduce.at(kernel.row, points).unwrap_or_else(|| self.memory_ns(4.0 * points));
        let first = match (kernel.along, kernel.row >= points) {
            (false, _) => self.columns.at(points).unwrap_or_else(rows),
            (true, true) => self.total.at(points).unwrap_or_else(rows),
            (true, false) => rows(),
        };
        let further = passes(kernel) - 1.0;
        if further < 0.01 {
            return first;
        }
        let beyond = match self.passes.at(kernel.row, points) {
            Some(all) => (all - rows()).max(0.0) / (PASSES - 1.0),
            None => self.computed_ns(Amount::light(points)),
        };
        first + further * beyond
    }

    /// The operations of a map.
    fn amount(&self, kernel: &KernelWork) -> Amount {
        let mut all = Amount::default();
        for (op, count) in &kernel.ops {
            all.count += count;
            all.weight += count * self.weight(op.row().name, op.row().cost);
        }
        all
    }

    /// The operations of a kernel over rows, beyond those of the passes that were measured.
    fn row_amount(&self, kernel: &KernelWork) -> Amount {
        let mut all = Amount::default();
        for (op, count) in &kernel.ops {
            all.count += count;
            all.weight += count * self.row_weight(op.row().name, op.row().cost);
        }
        let further = passes(kernel) - 1.0;
        let measured = if self.passes.is_empty() { 0.0 } else { PASS_OPS / (PASSES - 1.0) * further * kernel.points };
        let times = 1.0 + further * self.again(kernel.row);
        Amount { count: (all.count - measured).max(0.0) * times, weight: (all.weight - measured).max(0.0) * times }
    }

    /// The share of what comes before a reduction that is computed again in each further pass over the rows.
    pub(crate) fn again(&self, row: f64) -> f64 {
        self.again.near(row).map_or(0.0, |times| times - 1.0)
    }

    fn with_rows(&self, kernel: &KernelWork, base: f64) -> f64 {
        overlapped(self.row_overlap, base, self.row_computed_ns(kernel.row, self.row_amount(kernel)))
    }

    /// Operations in a kernel over rows of this length.
    pub(crate) fn row_computed_ns(&self, row: f64, amount: Amount) -> f64 {
        match self.row_compute.at(row, amount.weight) {
            Some(light) => amount.ns(light, self.row_heavy.at(row, amount.weight), || {
                mean_weight(|op| self.row_weight(op.row().name, op.row().cost))
            }),
            None => self.computed_ns(amount),
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

    /// Operations of a map.
    pub(crate) fn computed_ns(&self, amount: Amount) -> f64 {
        let light = self.compute.at(amount.weight).unwrap_or(ASSUMED_OP_NS * amount.weight);
        amount.ns(light, self.heavy.at(amount.weight), || mean_weight(|op| self.weight(op.row().name, op.row().cost)))
    }

    pub(crate) fn row_weight(&self, name: &str, assumed: u32) -> f64 {
        self.row_weights.get(name).copied().unwrap_or_else(|| self.weight(name, assumed))
    }

    pub(crate) fn weight(&self, name: &str, assumed: u32) -> f64 {
        self.weights.get(name).copied().unwrap_or(f64::from(assumed))
    }

    /// Two things at once.
    pub(crate) fn both(&self, a: f64, b: f64) -> f64 {
        overlapped(self.overlap, a, b)
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
            && self.computed_ns(Amount::light(BIG)) <= factor * common.computed_ns(Amount::light(BIG))
    }

    /// As it was read from a file: nothing negative, nothing that is no number.
    pub(crate) fn is_sound(&self) -> bool {
        let curves = [
            &self.upload,
            &self.readback,
            &self.memory,
            &self.strided,
            &self.compute,
            &self.heavy,
            &self.columns,
            &self.total,
            &self.again,
        ];
        let fine = |ns: &f64| (0.0..=LARGEST).contains(ns);
        let extent = |n: &f64| (1.0..=LARGEST).contains(n);
        let product = |cost: &ProductCost| fine(&cost.ns) && cost.ns > 0.0 && cost.shape.iter().all(extent);
        let rows = [&self.reduce, &self.passes, &self.scan, &self.row_compute, &self.row_heavy];
        curves.into_iter().all(Curve::is_sound)
            && rows.into_iter().all(Rows::is_sound)
            && [self.fixed_ns, self.submit_ns, self.kernel_ns, self.task_ns].iter().all(fine)
            && self.weights.values().chain(self.row_weights.values()).all(fine)
            && self.again.points().iter().all(|(_, times)| *times >= 1.0)
            && self.products.iter().all(product)
            && [self.overlap, self.row_overlap].iter().all(|overlap| (1.0..=64.0).contains(overlap))
            && self.adjust.is_sound()
    }
}

/// Two things at once, which overlap not at all with 1 and perfectly with a large number.
pub(crate) fn overlapped(overlap: f64, a: f64, b: f64) -> f64 {
    let (long, short) = if a > b { (a, b) } else { (b, a) };
    if long <= 0.0 { 0.0 } else { long * (1.0 + (short / long).powf(overlap)).powf(1.0 / overlap) }
}

/// How often the points of a kernel are reduced.
fn passes(kernel: &KernelWork) -> f64 {
    (kernel.steps / kernel.points.max(1.0)).max(1.0)
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;
