//! Where data is best kept for the batches to come: a tensor's dtype and shape enter, the devices on which large batches
//! that read it are expected to be done before the CPU leave, the best first.

use super::{DEVICES, Router};
use crate::cost::Work;
use breakeven_ir::{DType, Plan, Shape, Tensor};

/// Elements of what is computed with the data: large enough that what a batch costs at all is no matter.
const LARGE: usize = 1 << 22;
/// Rows that are multiplied with a matrix.
const ROWS: std::ops::RangeInclusive<usize> = 1024..=65_536;

/// What such data is kept for.
fn uses(dtype: DType, shape: Shape) -> Vec<Work> {
    let record = || Tensor::input("kept", dtype, shape)?.cast(DType::F32);
    let chain = |x: &Tensor| (0..8).try_fold(x.clone(), |y, _| ((y * 0.9)? + x)?.tanh());
    let width = shape.last().copied().unwrap_or(1).max(1);
    let of = |output: breakeven_ir::Result<Tensor>| Some(Work::of(&Plan::new(&[&output.ok()?]).ok()?));
    // All of it is read for one number; each of many rows is computed with one of it.
    let alone = record().and_then(|x| chain(&x)?.sum(&[], false));
    let row = Tensor::input("row", dtype, [width]).and_then(|x| x.cast(DType::F32));
    let many = Tensor::input("x", DType::F32, [(LARGE / width).max(1), width]);
    let beside = row.and_then(|row| chain(&(many? + row)?));
    let product = || {
        let [.., k, _] = shape.dims() else { return None };
        let rows = (LARGE / (*k).max(1)).clamp(*ROWS.start(), *ROWS.end());
        of(Tensor::input("x", DType::F32, [rows, *k]).and_then(|x| x.matmul(&record()?)))
    };
    [of(alone), of(beside), product()].into_iter().flatten().collect()
}

impl Router {
    /// The devices whose costs are known and on which some large batch with such data is expected to be done before the
    /// CPU, the best first.
    pub(crate) fn homes(&self, dtype: DType, shape: Shape) -> Vec<usize> {
        if !self.is_open() || shape.elems() == 0 {
            return Vec::new();
        }
        let bytes = (shape.elems() * dtype.size_bytes()) as u64;
        let uses = uses(dtype, shape);
        // A CPU that was not measured is a common one.
        let cpu = self.costs(0).unwrap_or_default();
        let mut homes: Vec<(usize, f64)> = (1..DEVICES)
            .filter_map(|device| {
                let costs = self.costs(device)?;
                let ratio = |work: &Work| {
                    costs.predict(work, bytes).total_ns() as f64 / cpu.predict(work, 0).total_ns().max(1) as f64
                };
                let best = uses.iter().map(ratio).fold(f64::INFINITY, f64::min);
                (best < 1.0).then_some((device, best))
            })
            .collect();
        homes.sort_by(|a, b| a.1.total_cmp(&b.1));
        homes.into_iter().map(|(device, _)| device).collect()
    }
}

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;
