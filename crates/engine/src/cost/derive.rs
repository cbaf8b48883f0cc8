//! From what batches took to what things cost: the times of the probes enter, [`Costs`] leave.

use super::adjust::{Adjust, Seen};
use super::costs::{Costs, ProductCost};
use super::curve::Curve;
use super::expressions::expression;
use super::measure::{
    AGAIN_OPS, AGAIN_ROW, KERNEL_ELEMENTS, OVERLAP_OPS, SAMPLE_ELEMENTS, Step, TASK_ELEMENTS, Took, weighed,
};
use super::probes::{COMPUTE_OPS, OP_AROUND, OP_TIMES};
use super::work::{KernelWork, Work};
use breakeven_ir::Plan;

/// Derives costs, each from what is known without it: fixed cost, transfers, memory, computing, and then the rest.
pub(crate) fn derive(took: &[(Step, Took)], is_device: bool) -> Costs {
    let mut costs = Costs::default();
    let find = |step: Step| took.iter().find(|(other, _)| *other == step).map(|(_, took)| took.total_ns);
    costs.fixed_ns = find(Step::Fixed).unwrap_or(0.0);
    let weighed = weighed(is_device);
    took.iter().for_each(|(step, took)| transfers(&mut costs, *step, *took));
    took.iter().for_each(|(step, took)| memory(&mut costs, *step, *took));
    overlap(&mut costs, took);
    took.iter().for_each(|(step, took)| classes(&mut costs, *step, *took));
    took.iter().for_each(|(step, took)| weights(&mut costs, *step, *took, weighed));
    costs.step_weights = without_what_is_computed_again(&costs);
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
    costs.adjust = adjust(&costs, took);
    costs
}

/// What whole expressions took against what the curves say.
fn adjust(costs: &Costs, took: &[(Step, Took)]) -> Adjust {
    let samples = took.iter().filter_map(|(step, took)| match step {
        Step::Sample(seed) => {
            let expression = expression(*seed, SAMPLE_ELEMENTS, false).ok()?;
            Some((Work::of(&Plan::new(&[&expression.output]).ok()?), took.total_ns))
        }
        _ => None,
    });
    let samples: Vec<(Work, f64)> = samples.collect();
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
            costs.reduce.curve(size(row)).put(size(n), ns);
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
            costs.scan.curve(size(row)).put(size(n), ns);
        }
        _ => {}
    }
}

/// What is weighed against the curves of computing.
fn weights(costs: &mut Costs, step: Step, Took { total_ns, .. }: Took, n: usize) {
    match step {
        Step::Weight(op) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n));
            let each = weighted(costs, ns, costs.memory_ns(2.0 * bytes(n))) / size(n);
            let weight = (each - size(OP_AROUND)) / size(OP_TIMES);
            costs.weights.insert(op.row().name.into(), weight.clamp(0.05, 1e4));
        }
        Step::Steps(row) => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n / row));
            let base = costs.reduce.at(size(row), size(n)).unwrap_or(0.0);
            // Two further reductions with three operations between them.
            let each = (weighted(costs, ns, base) / size(n) - 3.0) / 2.0;
            costs.step_weights.put(size(row), each.clamp(LIGHTEST_STEP, 1000.0));
        }
        Step::Again => {
            let ns = kernel(costs, total_ns, bytes(n), bytes(n / AGAIN_ROW));
            let base = costs.reduce.at(size(AGAIN_ROW), size(n)).unwrap_or(0.0);
            let steps = 2.0 * costs.step_weights.near(size(AGAIN_ROW)).unwrap_or(1.0) + 3.0;
            let each = weighted(costs, ns, base) / size(n) - steps;
            costs.again = ((each / size(AGAIN_OPS) - 1.0) / 2.0).clamp(0.0, 1.0);
        }
        _ => {}
    }
}

/// Two further passes each compute a share of [`Step::Steps`]' three operations again; how large it is was known only
/// after its steps were weighed, and they were taken for all of it.
fn without_what_is_computed_again(costs: &Costs) -> Curve {
    let weight = |weight: f64| (weight - 3.0 * costs.again).max(LIGHTEST_STEP);
    Curve::new(costs.step_weights.points().iter().map(|(row, each)| (*row, weight(*each))).collect())
}

/// What a step of a reduction weighs at least.
const LIGHTEST_STEP: f64 = 0.1;

/// The weighted operations that take what a kernel took beyond `memory_ns`.
fn weighted(costs: &Costs, ns: f64, memory_ns: f64) -> f64 {
    let p = costs.overlap;
    let computed = (ns.powf(p) - memory_ns.min(ns * 0.99).powf(p)).max(0.0).powf(1.0 / p);
    let mut count = 1e6;
    // The curve is nearly in proportion: this settles at once.
    for _ in 0..8 {
        count *= computed / costs.computed_ns(count).max(1e-3);
    }
    count
}

/// How well memory and computing overlap, from kernels that need some of both: what fits them best together.
fn overlap(costs: &mut Costs, took: &[(Step, Took)]) {
    let off = |p: f64| {
        let with = Costs { overlap: p, ..Costs::default() };
        let each = took.iter().filter_map(|(step, took)| match step {
            Step::Overlap(n) => {
                let both = with.both(costs.memory_ns(2.0 * bytes(*n)), costs.computed_ns(size(*n * OVERLAP_OPS)));
                Some((both / kernel(costs, took.total_ns, bytes(*n), bytes(*n))).ln().abs())
            }
            _ => None,
        });
        each.sum::<f64>()
    };
    let candidates = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0];
    costs.overlap = candidates.into_iter().min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(costs.overlap);
}

#[cfg(test)]
#[path = "derive_tests.rs"]
mod tests;
