//! A device that was made up, with every cost known: from the times of its probes the same costs come back.

use super::super::{Curve, Rows, probes};
use super::*;
use breakeven_ir::plan::Class;
use breakeven_ir::{Op, Tensor};

fn each(ns: f64) -> Curve {
    Curve::new(vec![(1.0, ns)])
}

const SIZES: [usize; 5] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18];
const ROWS: [usize; 4] = [8, 67, 256, WEIGHED_ROW];
const AGAIN: [usize; 2] = [16, 1024];
const SHAPES: [[usize; 4]; 4] = [[1, 64, 64, 64], [1, 256, 256, 256], [16, 30, 20, 50], [1, 8, 300, 90]];
const SAMPLES: std::ops::Range<u64> = 0..160;

/// A device behind a bus.
fn made_up() -> Costs {
    of_lanes(DEVICE_LANES)
}

fn of_lanes(lanes: usize) -> Costs {
    let mut costs = Costs {
        fixed_ns: 100e3,
        kernel_ns: 7e3,
        task_ns: 40.0,
        upload: each(0.1),
        readback: each(0.3),
        memory: each(0.02),
        strided: each(0.15),
        compute: each(0.03),
        again: Curve::new(AGAIN.map(|row| (row as f64, 1.25)).to_vec()),
        total: each(0.11),
        columns: each(0.19),
        overlap: 2.0,
        row_overlap: 3.0,
        reduce: Rows::new(lanes),
        passes: Rows::new(lanes),
        scan: Rows::new(lanes),
        row_compute: Rows::new(lanes),
        row_heavy: Rows::new(lanes),
        heavy: each(0.03),
        ..Costs::default()
    };
    for (row, ns) in ROWS.into_iter().zip([0.5, 0.9, 0.2, 0.14]) {
        *costs.reduce.curve(row) = each(ns);
        *costs.passes.curve(row) = each(2.5 * ns);
        *costs.scan.curve(row) = each(4.0 * ns);
        *costs.row_compute.curve(row) = each(ns / 3.0);
        // Dear operations suffer less from short rows; in long ones each costs what it weighs.
        *costs.row_heavy.curve(row) = each((0.14 + (ns - 0.14) / 8.0) / 3.0);
    }
    for (shape, speed) in SHAPES.into_iter().zip([20.0, 90.0, 40.0, 30.0]) {
        let mut product = ProductCost { shape: shape.map(size), ns: 0.0 };
        product.ns = product.flops() / speed;
        costs.products.push(product);
    }
    for (op, weight) in [("exp", 9.0), ("tanh", 14.5), ("div", 2.5)] {
        costs.weights.insert(op.into(), weight);
        costs.row_weights.insert(op.into(), 2.0 * weight);
    }
    costs
}

/// As [`made_up`], without a bus and with little to pay for a batch.
fn processor() -> Costs {
    let none = Curve::default();
    let costs = of_lanes(CPU_LANES);
    Costs { fixed_ns: 300.0, kernel_ns: 500.0, task_ns: 25.0, upload: none.clone(), readback: none, ..costs }
}

/// With products of one speed, whatever their shape: between few shapes that differ, the truth would say something else than
/// when those of the samples are known as well.
fn evenly_fast(mut costs: Costs) -> Costs {
    costs.products.iter_mut().for_each(|product| product.ns = product.flops() / 40.0);
    costs
}

fn steps(is_device: bool) -> Vec<Step> {
    let mut steps = vec![Step::Fixed, Step::Kernel, Step::Tasks(16), Step::Tasks(1024)];
    if is_device {
        steps.extend(SIZES.iter().flat_map(|n| [Step::Upload(*n), Step::Readback(*n)]));
    }
    steps.extend(SIZES.iter().flat_map(|n| [Step::Memory(*n), Step::Compute(*n), Step::Total(*n)]));
    steps.extend(SIZES.iter().flat_map(|n| [Step::Strided(*n), Step::Columns(*n), Step::Overlap(*n)]));
    let rows = || ROWS.iter().flat_map(|row| SIZES.iter().filter(|n| *n >= row).map(|n| (*n, *row)));
    steps.extend(rows().flat_map(|(n, row)| {
        let computed = [Step::RowCompute(n, row), Step::RowHeavy(n, row)];
        [Step::Reduce(n, row), Step::Scan(n, row), Step::Passes(n, row)].into_iter().chain(computed)
    }));
    steps.extend(SIZES.map(Step::Heavy));
    steps.extend(SIZES.map(Step::RowOverlap));
    steps.extend(AGAIN.map(Step::Again));
    steps.extend(SHAPES.map(Step::Product));
    steps.extend([Op::Exp, Op::Tanh, Op::Div].into_iter().flat_map(|op| [Step::Weight(op), Step::RowWeight(op)]));
    steps.extend(SAMPLES.map(Step::Sample));
    steps
}

fn work(output: &Tensor) -> Work {
    Work::of(&Plan::new(&[output]).unwrap())
}

/// What a step takes on a device with these costs.
fn took(costs: &Costs, step: Step, is_device: bool) -> Took {
    let n = weighed(is_device);
    let output = match step {
        Step::Fixed => probes::nothing(),
        Step::Upload(n) => probes::upload(n),
        Step::Readback(n) => probes::readback(n),
        Step::Memory(n) => probes::memory(n),
        Step::Compute(n) => probes::compute(n),
        Step::Product(shape) => probes::product(shape),
        Step::Reduce(n, row) => probes::reduce(n, row),
        Step::Overlap(n) => probes::chain(n, OVERLAP_OPS),
        Step::Strided(n) => probes::strided(n),
        Step::Columns(n) => probes::columns(n),
        Step::Total(n) => probes::reduce(n, n),
        Step::RowCompute(n, row) => probes::row_chain(n, row, COMPUTE_OPS),
        Step::Heavy(n) => probes::heavy(n),
        Step::RowHeavy(n, row) => probes::row_heavy(n, row),
        Step::RowOverlap(n) => probes::row_chain(n, WEIGHED_ROW, OVERLAP_OPS),
        Step::Passes(n, row) => probes::passes(n, row, 0),
        Step::Again(row) => probes::passes(n, row, AGAIN_OPS),
        Step::Scan(n, row) => probes::scan(n, row),
        Step::Weight(op) => probes::op(op, n).map(|output| output.expect("it has a form over f32")),
        Step::RowWeight(op) => probes::row_op(op, n, WEIGHED_ROW).map(|output| output.expect("it has a form over f32")),
        Step::Kernel => probes::two_kernels(KERNEL_ELEMENTS),
        Step::Sample(seed) => expression(seed, SAMPLE_ELEMENTS, false).map(|expression| expression.output),
        Step::Tasks(tasks) => {
            let relu = work(&probes::data(&[TASK_ELEMENTS]).unwrap().relu().unwrap());
            let total_ns = costs.predict_many(&relu, tasks).total_ns() as f64;
            return Took { total_ns, device_ns: None };
        }
    };
    let predicted = costs.predict(&work(&output.unwrap()), 0);
    let clock = matches!(step, Step::Readback(_)).then_some(predicted.kernels_ns);
    Took { total_ns: predicted.total_ns() as f64, device_ns: clock }
}

fn derived(truth: &Costs, is_device: bool) -> Costs {
    let list: Vec<(Step, Took)> =
        steps(is_device).into_iter().map(|step| (step, took(truth, step, is_device))).collect();
    derive(&list, is_device)
}

#[track_caller]
fn assert_within(share: f64, what: &str, found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() <= share, "{what}: {found} instead of {truth}");
}

/// Compares at sizes between those that were measured, too.
#[track_caller]
fn assert_curve(share: f64, what: &str, found: &Curve, truth: &Curve, unit: f64) {
    // From a size on at which a kernel is more than a hundredth of its batch: less than that it is never taken for.
    for n in [40_000, 1 << 16, 100_000, 1 << 18, 5_000_000] {
        let at = n as f64 * unit;
        assert_within(share, &format!("{what} at {n}"), found.at(at).unwrap(), truth.at(at).unwrap());
    }
}

fn check(truth: &Costs, is_device: bool) {
    let mut found = derived(truth, is_device);
    assert!(found.is_sound());
    assert_within(0.02, "fixed", found.fixed_ns, truth.fixed_ns);
    if is_device {
        assert_curve(0.02, "upload", &found.upload, &truth.upload, 4.0);
        assert_curve(0.02, "readback", &found.readback, &truth.readback, 4.0);
    } else {
        assert!(found.upload.is_empty() && found.readback.is_empty());
    }
    assert_curve(0.05, "memory", &found.memory, &truth.memory, 4.0);
    assert_curve(0.05, "strided", &found.strided, &truth.strided, 4.0);
    assert_curve(0.03, "compute", &found.compute, &truth.compute, 64.0);
    assert_curve(0.05, "total", &found.total, &truth.total, 1.0);
    assert_curve(0.05, "columns", &found.columns, &truth.columns, 1.0);
    assert_eq!(found.overlap, truth.overlap);
    assert_eq!(found.row_overlap, truth.row_overlap);
    for row in ROWS {
        let mut truth = truth.clone();
        let mut check = |what: &str, part: fn(&mut Costs) -> &mut Rows, unit: f64| {
            let (found, truth) = (part(&mut found).curve(row), part(&mut truth).curve(row));
            assert_curve(0.05, &format!("{what} of {row}"), found, truth, unit);
        };
        check("rows", |costs| &mut costs.reduce, 1.0);
        check("passes over rows", |costs| &mut costs.passes, 1.0);
        check("scans", |costs| &mut costs.scan, 1.0);
        check("computing over rows", |costs| &mut costs.row_compute, 64.0);
    }
    for (op, weight) in &truth.weights {
        assert_within(0.05, op, found.weights[op], *weight);
        assert_within(0.05, &format!("{op} over rows"), found.row_weights[op], truth.row_weights[op]);
    }
    for row in AGAIN.map(size) {
        let again = [&found, truth].map(|costs| costs.again(row));
        assert!((again[0] - again[1]).abs() < 0.02, "again in rows of {row}: {again:?}");
    }
    assert_within(0.05, "a further kernel", found.kernel_ns, truth.kernel_ns);
    assert_within(0.05, "a further task", found.task_ns, truth.task_ns);
    // Those of the samples come on top.
    let sampled = SAMPLES.filter(|seed| {
        let work = work(&expression(*seed, SAMPLE_ELEMENTS, false).unwrap().output);
        matches!(&work.kernels[..], [only] if only.product.is_some())
    });
    assert_eq!(found.products.len(), truth.products.len() + sampled.count());
    for (found, truth) in found.products.iter().zip(&truth.products) {
        assert_eq!(found.shape, truth.shape);
        assert_within(0.03, "a product", found.ns, truth.ns);
    }
    // Nothing was wrong, so nothing is to be adjusted.
    let truth = &evenly_fast(truth.clone());
    let found = derived(truth, is_device);
    for seed in 1000..1060 {
        let work = work(&expression(seed, SAMPLE_ELEMENTS, false).unwrap().output);
        let (found, truth) = (found.predict(&work, 0).total_ns(), truth.predict(&work, 0).total_ns());
        assert_within(0.1, &format!("expression {seed}"), found as f64, truth as f64);
    }
}

#[test]
fn the_costs_of_a_device_come_back() {
    check(&made_up(), true);
}

#[test]
fn the_costs_of_a_processor_come_back() {
    check(&processor(), false);
}

#[test]
fn passes_that_compute_nothing_again_come_back() {
    check(&Costs { again: Curve::default(), ..made_up() }, true);
}

/// Transfers that cost something before the first byte: a batch that moves next to nothing pays that already.
#[test]
fn what_every_batch_pays_is_no_part_of_its_transfers() {
    let truth = Costs { fixed_ns: 3.5e6, ..made_up() };
    let found = derived(&truth, true);
    assert_within(0.01, "fixed", found.fixed_ns, 3.5e6);
    assert_within(0.02, "upload", found.upload_ns(4e6), 4e5);
}

/// Where nearly all of a batch is its fixed cost, what is left for the kernels says little about them.
#[test]
fn a_large_fixed_cost_is_not_taken_for_slow_kernels() {
    let truth = Costs { fixed_ns: 3.5e6, ..made_up() };
    let found = derived(&truth, true);
    let mut compared = 0;
    for seed in 1000..1200 {
        let work = work(&expression(seed, 4e6, false).unwrap().output);
        if work.kernels.iter().any(|kernel| kernel.product.is_some()) {
            // Four shapes, most of them a hundredth of their batch, don't tell what others take.
            continue;
        }
        let (found, truth) = (found.predict(&work, 0), truth.predict(&work, 0));
        // Less than a hundredth of a batch is never told from nothing.
        if truth.kernels_ns > 0.05 * truth.total_ns() as f64 {
            assert_within(0.25, &format!("the kernels of expression {seed}"), found.kernels_ns, truth.kernels_ns);
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn whole_expressions_teach_what_probes_do_not_show() {
    let truth = evenly_fast(processor());
    let slow = |work: &Work| matches!(&work.kernels[..], [k] if k.class == Class::Reduce && k.steps > 1.01 * k.points);
    let mut list: Vec<(Step, Took)> = steps(false).into_iter().map(|step| (step, took(&truth, step, false))).collect();
    // Several passes take twice as long within an expression.
    for (step, took) in &mut list {
        if let Step::Sample(seed) = step
            && slow(&work(&expression(*seed, SAMPLE_ELEMENTS, false).unwrap().output))
        {
            took.total_ns *= 2.0;
        }
    }
    let found = derive(&list, false);
    let mut counts = (0, 0);
    for seed in 1000..1100 {
        let work = work(&expression(seed, SAMPLE_ELEMENTS, false).unwrap().output);
        if work.kernels.len() > 1 || work.kernels[0].points < 2000.0 {
            continue;
        }
        let ratio = found.predict(&work, 0).total_ns() as f64 / truth.predict(&work, 0).total_ns() as f64;
        if slow(&work) {
            assert!((1.4..2.4).contains(&ratio), "{ratio} for expression {seed}: {work:?}");
            counts.0 += 1;
        } else {
            assert!((0.9..1.1).contains(&ratio), "{ratio} for expression {seed}");
            counts.1 += 1;
        }
    }
    assert!(counts.0 > 5 && counts.1 > 30, "{counts:?}");
}

/// As it was found on a machine that others use, too: four sizes in a row took twice what more of the same took.
#[test]
fn a_slow_moment_is_not_taken_for_a_slow_size() {
    let truth = made_up();
    let slowed = |step: Step| match step {
        Step::Memory(n) if n < 1 << 18 => 20.0,
        _ => 1.0,
    };
    let list: Vec<(Step, Took)> = steps(true)
        .into_iter()
        .map(|step| {
            let took = took(&truth, step, true);
            (step, Took { total_ns: took.total_ns * slowed(step), ..took })
        })
        .collect();
    let found = derive(&list, true);
    let whole = |costs: &Costs, n: usize| costs.predict(&work(&probes::memory(n).unwrap()), 0).total_ns() as f64;
    for n in &SIZES[..4] {
        let (found, truth, largest) = (whole(&found, *n), whole(&truth, *n), whole(&truth, 1 << 18));
        assert!(truth < found && found < 1.05 * largest, "{n} elements: {found}, in truth {truth}; the most {largest}");
    }
}

#[test]
fn what_was_measured_so_far_can_be_used() {
    let list: Vec<(Step, Took)> = steps(true).into_iter().map(|step| (step, took(&made_up(), step, true))).collect();
    for len in 0..list.len() {
        let found = derive(&list[..len], true);
        assert!(found.is_sound(), "after {len} measurements");
    }
    assert_eq!(derive(&[], true).fixed_ns, 0.0);
}

/// A probe that took less than what is known about its parts: noise, and never a cost of nothing or less.
#[test]
fn noise_makes_no_cost_negative() {
    let mut list: Vec<(Step, Took)> =
        steps(true).into_iter().map(|step| (step, took(&made_up(), step, true))).collect();
    for (number, (_, took)) in list.iter_mut().enumerate() {
        took.total_ns *= [1.0, 0.4, 2.5, 0.9, 1.1][number % 5];
    }
    let found = derive(&list, true);
    assert!(found.is_sound());
    for seed in 1000..1040 {
        let work = work(&expression(seed, SAMPLE_ELEMENTS, false).unwrap().output);
        let p = found.predict(&work, 0);
        assert!([p.fixed_ns, p.upload_ns, p.kernels_ns, p.readback_ns].iter().all(|ns| ns.is_finite() && *ns >= 0.0));
    }
}
