//! From what batches took to what things cost: the times of the probes enter, [`Costs`] leave.

use super::adjust::{Adjust, Seen};
use super::amount::{Amount, mean_weight};
use super::costs::{Costs, PASSES, overlapped};
use super::expressions::expression;
use super::measure::{
    AGAIN_OPS, KERNEL_ELEMENTS, OVERLAP_OPS, SAMPLE_ELEMENTS, Step, TASK_ELEMENTS, Took, WEIGHED_ROW, is_smaller,
    weighed,
};
use super::probes::{COMPUTE_OPS, HEAVY_OPS, OP_AROUND, OP_TIMES};
use super::products::ProductCost;
use super::rows::Rows;
use super::work::{KernelWork, Work};
use breakeven_ir::Plan;

/// Elements of a vector: of rows that are whole vectors the kernels are others.
const DEVICE_LANES: usize = 4;
const CPU_LANES: usize = 16;

/// Derives costs, each from what is known without it: fixed cost, transfers, memory, computing, and then the rest.
pub(crate) fn derive(took: &[(Step, Took)], is_device: bool) -> Costs {
    let took = &without_slow_moments(took)[..];
    let rows = || Rows::new(if is_device { DEVICE_LANES } else { CPU_LANES });
    let mut costs = Costs { reduce: rows(), passes: rows(), scan: rows(), ..Costs::default() };
    let find = |step: Step| took.iter().find(|(other, _)| *other == step).map(|(_, took)| took.total_ns);
    costs.fixed_ns = find(Step::Fixed).unwrap_or(0.0);
    let weighed = weighed(is_device);
    took.iter().for_each(|(step, took)| transfers(&mut costs, *step, *took));
    took.iter().for_each(|(step, took)| memory(&mut costs, *step, *took));
    overlap(&mut costs, took);
    took.iter().for_each(|(step, took)| classes(&mut costs, *step, *took));
    over_rows(&mut costs, took, rows);
    took.iter().for_each(|(step, took)| weights(&mut costs, *step, *took, weighed));
    heavy(&mut costs, took, rows);
    took.iter().for_each(|(step, took)| again(&mut costs, *step, *took, weighed));
    let n = KERNEL_ELEMENTS as f64;
    if let Some(two) = find(Step::Kernel) {
        // Both read little: what is beyond one batch of the first kernel is the second.
        let first = costs.reduce.at(64.0, n).unwrap_or(0.0);
        costs.kernel_ns = (two - costs.fixed_ns - costs.upload_ns(4.0 * n) - first).max(0.0);
    }
    if let (Some(few), Some(many)) = (find(Step::Tasks(16)), find(Step::Tasks(1024))) {
        let bytes = 4.0 * TASK_ELEMENTS as f64;
        let moved = |tasks: f64| {
            let transfers = costs.upload_ns(bytes * tasks) + costs.readback_ns(bytes * tasks);
            costs.memory_ns(2.0 * bytes * tasks) + transfers
        };
        costs.task_ns = ((many - few - (moved(1024.0) - moved(16.0))) / (1024.0 - 16.0)).max(0.0);
    }
    let samples = samples(took);
    sampled_products(&mut costs, &samples);
    costs.adjust = adjust(&costs, &samples);
    costs
}

/// The times without those of a moment in which the machine was slow: less of the same never takes longer.
fn without_slow_moments(took: &[(Step, Took)]) -> Vec<(Step, Took)> {
    let at_most = |(step, own): &(Step, Took)| {
        let larger = took.iter().filter(|(other, _)| is_smaller(*step, *other) && !matches!(step, Step::Product(_)));
        let total_ns = larger.map(|(_, took)| took.total_ns).fold(own.total_ns, f64::min);
        (*step, Took { total_ns, ..*own })
    };
    took.iter().map(at_most).collect()
}

/// What whole expressions ask for, and what they took.
fn samples(took: &[(Step, Took)]) -> Vec<(Work, f64)> {
    let samples = took.iter().filter_map(|(step, took)| match step {
        Step::Sample(seed) => {
            let expression = expression(*seed, SAMPLE_ELEMENTS, false).ok()?;
            Some((Work::of(&Plan::new(&[&expression.output]).ok()?), took.total_ns))
        }
        _ => None,
    });
    samples.collect()
}

/// Products without anything dear around them, of shapes that nobody thought of.
fn sampled_products(costs: &mut Costs, samples: &[(Work, f64)]) {
    for (work, total_ns) in samples {
        let [only] = &work.kernels[..] else { continue };
        let Some(shape) = only.product else { continue };
        let (up, down) = (work.upload_bytes as f64, work.readback_bytes as f64);
        let around = costs.kernel_ns(&KernelWork { product: None, ..only.clone() });
        let ns = (kernel(costs, *total_ns, up, down) - around).max(total_ns * 0.01);
        costs.products.push(ProductCost { shape, ns });
    }
}

/// What whole expressions took against what the curves say.
fn adjust(costs: &Costs, samples: &[(Work, f64)]) -> Adjust {
    let seen = samples.iter().filter_map(|(work, total_ns)| {
        let predicted = costs.predict(work, 0);
        let around = predicted.total_ns() as f64 - predicted.kernels_ns;
        // The kernel that takes most of it stands for all.
        let by_time = |a: &&KernelWork, b: &&KernelWork| costs.kernel_ns(a).total_cmp(&costs.kernel_ns(b));
        let kernel = work.kernels.iter().max_by(by_time)?;
        let predicted_ns = predicted.kernels_ns.max(1.0);
        let measured_ns = (total_ns - around).max(predicted_ns / 4.0);
        // What is left of a batch without what is around its kernels is as uncertain as the whole batch.
        let share = (predicted_ns.max(measured_ns) / total_ns).min(1.0);
        Some(Seen { kernel, predicted_ns, measured_ns, weight: share * share })
    });
    Adjust::learn(&seen.collect::<Vec<_>>())
}

fn size(n: usize) -> f64 {
    n as f64
}

fn bytes(n: usize) -> f64 {
    4.0 * size(n)
}

/// What is left of a batch without what is known about it; never nothing.
fn kernel(costs: &Costs, total: f64, up: f64, down: f64) -> f64 {
    (total - costs.fixed_ns - costs.upload_ns(up) - costs.readback_ns(down)).max(total * 0.01)
}

fn transfers(costs: &mut Costs, step: Step, took: Took) {
    let beyond = took.total_ns - costs.fixed_ns;
    match step {
        Step::Upload(n) => costs.upload.put(bytes(n), beyond.max(took.total_ns * 0.002)),
        Step::Readback(n) => {
            // Without a clock the kernel is taken for half of it.
            let kernel = took.device_ns.unwrap_or(beyond / 2.0);
            costs.readback.put(bytes(n), (beyond - kernel).max(took.total_ns * 0.002));
        }
        _ => {}
    }
}

fn memory(costs: &mut Costs, step: Step, took: Took) {
    match step {
        Step::Memory(n) => costs.memory.put(2.0 * bytes(n), kernel(costs, took.total_ns, bytes(n), bytes(n))),
        Step::Compute(n) => {
            let ns = kernel(costs, took.total_ns, bytes(n), bytes(n));
            costs.compute.put(size(n * COMPUTE_OPS), ns);
        }
        _ => {}
    }
}

fn classes(costs: &mut Costs, step: Step, Took { total_ns, .. }: Took) {
    match step {
        Step::Product(shape) => {
            let [batch, m, n, k] = shape.map(size);
            let ns = kernel(costs, total_ns, 4.0 * batch * k * (m + n), 4.0 * batch * m * n);
            costs.products.push(ProductCost { shape: [batch, m, n, k], ns });
        }
        Step::Reduce(n, row) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n.div_ceil(row)));
            costs.reduce.curve(row).put(size(n), ns);
        }
        Step::Passes(n, row) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n));
            costs.passes.curve(row).put(size(n), ns);
        }
        Step::Total(n) => costs.total.put(size(n), kernel(costs, total_ns, bytes(n), 0.0)),
        Step::Strided(n) => {
            // Half of what it moves is written one after the other.
            let half = costs.memory_ns(2.0 * bytes(n)) / 2.0;
            costs.strided.put(bytes(n), (kernel(costs, total_ns, bytes(n), bytes(n)) - half).max(half));
        }
        Step::Columns(n) => costs.columns.put(size(n), kernel(costs, total_ns, bytes(n), 0.0)),
        Step::Scan(n, row) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n));
            costs.scan.curve(row).put(size(n), ns);
        }
        _ => {}
    }
}

/// What is weighed against the curves of computing.
fn weights(costs: &mut Costs, step: Step, Took { total_ns, .. }: Took, n: usize) {
    match step {
        Step::Weight(op) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n));
            let computed = beyond(costs.overlap, ns, costs.memory_ns(2.0 * bytes(n)));
            let each = weighted(computed, |count| costs.computed_ns(Amount::light(count))) / size(n);
            costs.weights.insert(op.row().name.into(), weight(each));
        }
        Step::RowWeight(op) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n / WEIGHED_ROW));
            let each = row_weighted(costs, ns, WEIGHED_ROW, &costs.reduce, n);
            costs.row_weights.insert(op.row().name.into(), weight(each));
        }
        _ => {}
    }
}

/// The weight of an op whose probe takes as long as so many operations for each element.
fn weight(each: f64) -> f64 {
    ((each - size(OP_AROUND)) / size(OP_TIMES)).clamp(0.05, 1e4)
}

/// How much is computed again for each further pass over the rows: for the last one, which writes, as well.
fn again(costs: &mut Costs, step: Step, Took { total_ns, .. }: Took, n: usize) {
    if let Step::Again(row) = step {
        let ns = kernel(costs, total_ns, bytes(n), bytes(n));
        let each = row_weighted(costs, ns, row, &costs.passes, n);
        let share = (each / size(AGAIN_OPS) - 1.0) / (PASSES - 1.0);
        costs.again.put(size(row), 1.0 + share.clamp(0.0, PASSES));
    }
}

/// The weighted operations for each of `n` elements that take what a kernel took beyond its passes over the rows.
fn row_weighted(costs: &Costs, ns: f64, row: usize, passes: &Rows, n: usize) -> f64 {
    let computed = beyond(costs.row_overlap, ns, passes.at(size(row), size(n)).unwrap_or(0.0));
    weighted(computed, |count| costs.row_computed_ns(size(row), Amount::light(count))) / size(n)
}

/// What something takes alone that takes `ns` together with what takes `known_ns`.
fn beyond(overlap: f64, ns: f64, known_ns: f64) -> f64 {
    (ns.powf(overlap) - known_ns.min(ns * 0.99).powf(overlap)).max(0.0).powf(1.0 / overlap)
}

/// The weighted operations that are computed in that time.
fn weighted(computed_ns: f64, ns_of: impl Fn(f64) -> f64) -> f64 {
    let mut count = 1e6;
    // The curve is nearly in proportion: this settles at once.
    for _ in 0..8 {
        count *= computed_ns / ns_of(count).max(1e-3);
    }
    count
}

/// How well two things may overlap.
const OVERLAPS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0];

/// What is computed within reductions of rows, and how well it overlaps with the reductions: what fits kernels with much and
/// with little of it best together.
fn over_rows(costs: &mut Costs, took: &[(Step, Took)], rows: impl Fn() -> Rows) {
    let sums = |n: usize, row: usize| costs.reduce.at(size(row), size(n)).unwrap_or(0.0);
    let ns = |total_ns: f64, n: usize, row: usize| kernel(costs, total_ns, bytes(n), bytes(n.div_ceil(row)));
    let compute = |overlap: f64| {
        let mut compute = rows();
        for (step, took) in took {
            if let Step::RowCompute(n, row) = *step {
                let alone = beyond(overlap, ns(took.total_ns, n, row), sums(n, row));
                compute.curve(row).put(size(n * COMPUTE_OPS), alone);
            }
        }
        compute
    };
    let off = |overlap: f64| {
        let compute = compute(overlap);
        let each = took.iter().filter_map(|(step, took)| match *step {
            Step::RowOverlap(n) => {
                let computed = compute.at(size(WEIGHED_ROW), size(n * OVERLAP_OPS))?;
                let both = overlapped(overlap, sums(n, WEIGHED_ROW), computed);
                Some((both / ns(took.total_ns, n, WEIGHED_ROW)).ln().abs())
            }
            _ => None,
        });
        each.sum::<f64>()
    };
    let best = OVERLAPS.into_iter().min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(costs.row_overlap);
    (costs.row_compute, costs.row_overlap) = (compute(best), best);
}

/// What dear operations take, in maps and over rows.
fn heavy(costs: &mut Costs, took: &[(Step, Took)], rows: impl Fn() -> Rows) {
    let weight = |n: usize, mean: f64| size(n * HEAVY_OPS) * mean;
    let mean = mean_weight(|op| costs.weight(op.row().name, op.row().cost));
    let row_mean = mean_weight(|op| costs.row_weight(op.row().name, op.row().cost));
    let mut row_heavy = rows();
    for (step, took) in took {
        match *step {
            Step::Heavy(n) => {
                let ns = kernel(costs, took.total_ns, bytes(n), bytes(n));
                let alone = beyond(costs.overlap, ns, costs.memory_ns(2.0 * bytes(n)));
                costs.heavy.put(weight(n, mean), alone);
            }
            Step::RowHeavy(n, row) => {
                let ns = kernel(costs, took.total_ns, bytes(n), bytes(n.div_ceil(row)));
                let sums = costs.reduce.at(size(row), size(n)).unwrap_or(0.0);
                row_heavy.curve(row).put(weight(n, row_mean), beyond(costs.row_overlap, ns, sums));
            }
            _ => {}
        }
    }
    costs.row_heavy = row_heavy;
}

/// How well memory and computing overlap, from kernels that need some of both: what fits them best together.
fn overlap(costs: &mut Costs, took: &[(Step, Took)]) {
    let off = |p: f64| {
        let each = took.iter().filter_map(|(step, took)| match step {
            Step::Overlap(n) => {
                let computed = costs.computed_ns(Amount::light(size(*n * OVERLAP_OPS)));
                let both = overlapped(p, costs.memory_ns(2.0 * bytes(*n)), computed);
                Some((both / kernel(costs, took.total_ns, bytes(*n), bytes(*n))).ln().abs())
            }
            _ => None,
        });
        each.sum::<f64>()
    };
    costs.overlap = OVERLAPS.into_iter().min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(costs.overlap);
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;
