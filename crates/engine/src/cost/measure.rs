//! Measures what a device costs: a bench that times programs enters, [`Costs`] leave, the most telling figures first, so
//! that whatever was measured before an interruption can be used.

use super::costs::Costs;
use super::derive::derive;
use super::expressions::expression;
use super::probes::{self, COMPUTE_OPS};
use crate::error::Result;
use breakeven_ir::{Op, Tensor};
use std::ops::ControlFlow;

/// How thoroughly a device is measured.
///
/// ```
/// use breakeven::cost::Effort;
/// assert!(Effort::Probe < Effort::Quick && Effort::Quick < Effort::Full);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Effort {
    /// A first look, within 100 ms: the fixed cost and one or two sizes of each class.
    Probe,
    /// Good for routing: about ten seconds a device on two cores.
    Quick,
    /// Every op, more sizes.
    Full,
}

/// How far a measurement is.
///
/// ```
/// let progress = breakeven::cost::Progress { device: "cpu".into(), what: "memory".into(), done: 1, total: 4 };
/// assert_eq!(progress.done * 4, progress.total);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The device's id.
    pub device: String,
    /// What is measured next.
    pub what: String,
    /// Measurements that are done.
    pub done: usize,
    /// Measurements that there are.
    pub total: usize,
}

/// What came of measuring a device.
///
/// ```
/// use breakeven::cost::{Costs, Measured};
/// let measured = Measured { device: "cpu".into(), costs: Costs::default(), complete: false };
/// assert!(!measured.complete);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The device's id.
    pub device: String,
    /// What it costs.
    pub costs: Costs,
    /// Was everything measured, at least once?
    pub complete: bool,
}

/// Times programs on one device.
pub(crate) trait Bench {
    /// Does data have to go there and back?
    fn is_device(&self) -> bool;
    /// The median time of a batch, from host memory to host memory.
    fn time_ns(&mut self, output: &Tensor, effort: Effort) -> Result<f64>;
    /// The part of the last batch that the device's own clock saw; `None` if it has no clock.
    fn device_ns(&mut self, output: &Tensor) -> Result<Option<f64>>;
    /// The part of a batch in which it is encoded and handed to the driver; nothing where there is none.
    fn submit_ns(&mut self, output: &Tensor) -> Result<f64>;
    /// The median time of `tasks` tasks of `elements` elements each, as one batch.
    fn time_tasks_ns(&mut self, elements: usize, tasks: usize, effort: Effort) -> Result<f64>;
}

/// Told after each measurement with what is known so far; it may end the whole.
pub(crate) type Watch<'a> = dyn FnMut(&Costs, &str, usize, usize) -> ControlFlow<()> + 'a;

/// One thing to measure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    Fixed,
    Upload(usize),
    Readback(usize),
    Memory(usize),
    Compute(usize),
    Product([usize; 4]),
    Reduce(usize, usize),
    Overlap(usize),
    Strided(usize),
    Columns(usize),
    Total(usize),
    Heavy(usize),
    RowCompute(usize, usize),
    RowHeavy(usize, usize),
    RowOverlap(usize),
    Passes(usize, usize),
    Again(usize),
    Scan(usize, usize),
    Weight(Op),
    RowWeight(Op),
    Kernel,
    Tasks(usize),
    /// A whole expression, by its seed.
    Sample(u64),
}

impl Step {
    fn name(self) -> String {
        match self {
            Step::Fixed => "fixed cost".into(),
            Step::Upload(n) => format!("upload of {n} elements"),
            Step::Readback(n) => format!("readback of {n} elements"),
            Step::Memory(n) => format!("memory of {n} elements"),
            Step::Compute(n) => format!("computing over {n} elements"),
            Step::Product([batch, m, n, k]) => format!("product of {batch} x {m} x {n} x {k}"),
            Step::Reduce(n, row) => format!("sums of {n} elements by rows of {row}"),
            Step::Overlap(n) => format!("memory and computing over {n} elements"),
            Step::Strided(n) => format!("strided memory of {n} elements"),
            Step::Columns(n) => format!("sums of {n} elements by columns"),
            Step::Total(n) => format!("the sum of {n} elements"),
            Step::RowCompute(n, row) => format!("computing over {n} elements by rows of {row}"),
            Step::Heavy(n) => format!("dear operations over {n} elements"),
            Step::RowHeavy(n, row) => format!("dear operations over {n} elements by rows of {row}"),
            Step::RowOverlap(n) => format!("sums and computing over {n} elements"),
            Step::Passes(n, row) => format!("several reductions of {n} elements by rows of {row}"),
            Step::Again(row) => format!("passes over rows of {row}"),
            Step::Scan(n, row) => format!("scans of {n} elements by rows of {row}"),
            Step::Weight(op) => op.row().name.into(),
            Step::RowWeight(op) => format!("{} over rows", op.row().name),
            Step::Kernel => "a further kernel".into(),
            Step::Tasks(tasks) => format!("{tasks} tasks"),
            Step::Sample(number) => format!("expression {number}"),
        }
    }
}

/// A step whose smaller sister took longer than this is left out: larger sizes are in proportion.
const LONGEST_NS: f64 = 60e6;
/// Elements at which ops are weighed: small enough for every cache, and far above the fixed cost of a batch.
const WEIGHED: usize = 1 << 16;
const WEIGHED_ON_DEVICE: usize = 1 << 19;

/// Elements at which ops are weighed on such a device.
pub(crate) fn weighed(is_device: bool) -> usize {
    if is_device { WEIGHED_ON_DEVICE } else { WEIGHED }
}

/// Elements of each of [`Step::Tasks`]' tasks.
pub(crate) const TASK_ELEMENTS: usize = 256;
/// The length of the rows of [`Step::RowOverlap`] and [`Step::RowWeight`].
pub(crate) const WEIGHED_ROW: usize = 4096;
/// Operations of [`Step::Again`], and of [`Step::Overlap`] and [`Step::RowOverlap`], for each element.
pub(crate) const AGAIN_OPS: usize = 32;
pub(crate) const OVERLAP_OPS: usize = 8;
/// Elements of [`Step::Sample`] at most.
pub(crate) const SAMPLE_ELEMENTS: f64 = 1e6;
/// Elements of [`Step::Kernel`].
pub(crate) const KERNEL_ELEMENTS: usize = 64 * 64;
/// Shapes of products besides cubes: batches, rows, columns, summed extent. Thin ones, uneven ones, and some of every size.
const SHAPES: [[usize; 4]; 22] = [
    [1, 1, 512, 512],
    [1, 512, 1, 512],
    [1, 8, 512, 512],
    [1, 512, 512, 8],
    [1, 512, 8, 512],
    [64, 32, 32, 32],
    [1, 9, 14, 19],
    [1, 20, 23, 30],
    [1, 12, 24, 111],
    [1, 146, 14, 27],
    [1, 43, 18, 177],
    [1, 26, 208, 11],
    [1, 53, 23, 36],
    [1, 70, 90, 100],
    [1, 11, 401, 23],
    [1, 187, 30, 296],
    [1, 49, 39, 307],
    [1, 371, 394, 18],
    [1, 55, 497, 449],
    [1, 200, 150, 250],
    [1, 450, 60, 110],
    [1, 300, 410, 350],
];

/// Lengths of rows: whole vectors and others, and the last one longer than what is reduced several times.
const ROWS: [usize; 9] = [8, 9, 32, 67, 256, 259, 2048, 2051, 1 << 17];
const LONG: usize = ROWS.len() - 1;
/// The same for what is computed within them.
const COMPUTED_ROWS: [usize; 6] = [8, 9, 256, 259, WEIGHED_ROW, WEIGHED_ROW + 3];

/// Everything that is to be measured, the most telling first.
fn steps(effort: Effort, is_device: bool) -> Vec<Step> {
    let sizes: &[u32] = match effort {
        Effort::Probe => &[12, 18],
        Effort::Quick => &[8, 11, 14, 16, 18, 20, 22],
        Effort::Full => &[8, 10, 12, 14, 15, 16, 17, 18, 19, 20, 22, 24],
    };
    let sizes = || sizes.iter().map(|log| 1usize << log);
    let mut steps = vec![Step::Fixed];
    if is_device {
        steps.extend(sizes().flat_map(|n| [Step::Upload(n), Step::Readback(n)]));
    }
    steps.extend(sizes().flat_map(|n| [Step::Memory(n), Step::Compute(n)]));
    let cubes: &[usize] = match effort {
        Effort::Probe => &[64, 256],
        // Devices get faster up to here, and many break even between the last two.
        Effort::Quick | Effort::Full => &[16, 32, 64, 128, 256, 384, 512, 768, 1024],
    };
    steps.extend(cubes.iter().map(|&n| Step::Product([1, n, n, n])));
    // Fewer sizes than of what has no rows: each goes with several lengths.
    let row_sizes: &[u32] = match effort {
        Effort::Probe => &[12, 18],
        Effort::Quick => &[8, 14, 17, 20],
        Effort::Full => &[8, 11, 14, 16, 18, 20, 22],
    };
    let of_rows = |rows: &'static [usize], step: fn(usize, usize) -> Step| {
        let sizes = row_sizes.iter().map(|log| 1usize << log);
        sizes.flat_map(move |n| rows.iter().filter(move |row| n >= **row).map(move |row| step(n, *row)))
    };
    if effort == Effort::Probe {
        steps.extend(of_rows(&[1 << 12], Step::Reduce));
        return steps;
    }
    steps.extend(of_rows(&ROWS, Step::Reduce));
    steps.extend(SHAPES.map(Step::Product));
    steps.extend(sizes().map(Step::Total));
    steps.extend([16, 20].map(|log| Step::Overlap(1 << log)));
    steps.extend(sizes().flat_map(|n| [Step::Strided(n), Step::Columns(n)]));
    steps.extend(of_rows(&ROWS[..LONG], Step::Passes));
    steps.extend(sizes().map(Step::Heavy));
    steps.extend([Step::RowCompute, Step::RowHeavy].into_iter().flat_map(|step| of_rows(&COMPUTED_ROWS, step)));
    steps.extend([14, 19].map(|log| Step::RowOverlap(1 << log)));
    steps.extend([16, 256, 4096].map(Step::Again));
    steps.extend(of_rows(&ROWS, Step::Scan));
    let common = [Op::Exp, Op::Log, Op::Tanh, Op::Sigmoid, Op::Gelu, Op::Sin, Op::Sqrt, Op::Div, Op::Pow, Op::Erf];
    let ops = if effort == Effort::Full { Op::ALL } else { &common[..] };
    steps.extend(ops.iter().map(|op| Step::Weight(*op)));
    steps.extend(common.map(Step::RowWeight));
    steps.extend([Step::Kernel, Step::Tasks(16), Step::Tasks(1024)]);
    steps.extend((0..if effort == Effort::Full { 160 } else { 60 }).map(Step::Sample));
    steps
}

/// How many steps it takes until enough is known for a choice ([`Costs::is_telling`]).
pub(crate) fn telling_steps(is_device: bool) -> usize {
    let steps = steps(Effort::Probe, is_device);
    steps.iter().position(|step| matches!(step, Step::Compute(_))).map_or(steps.len(), |at| at + 1)
}

/// What a step took: the whole batch, and the device's own time where it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) total_ns: f64,
    pub(crate) device_ns: Option<f64>,
}

/// Measures a device. What fails on it (a product that does not fit, say) is left out; only a bench that can't even run
/// the smallest batch is an error. Everything is measured in several rounds, and the best counts, so that a slow moment
/// of the machine gets into no curve.
pub(crate) fn measure(bench: &mut dyn Bench, effort: Effort, watch: &mut Watch<'_>) -> Result<(Costs, bool)> {
    let steps = steps(effort, bench.is_device());
    let rounds = match effort {
        Effort::Probe => 1,
        Effort::Quick => 2,
        Effort::Full => 3,
    };
    let total = rounds * steps.len();
    bench.time_ns(&probes::nothing()?, effort)?;
    let submit_ns = bench.submit_ns(&probes::nothing()?)?;
    let is_device = bench.is_device();
    let known = |took: &[(Step, Took)]| Costs { submit_ns, ..derive(took, is_device) };
    let mut took: Vec<(Step, Took)> = Vec::new();
    let mut costs = Costs::default();
    for number in 0..total {
        let step = steps[number % steps.len()];
        if watch(&costs, &step.name(), number, total).is_break() {
            return Ok((known(&took), number >= steps.len()));
        }
        let is_long = |(other, took): &(Step, Took)| is_smaller(*other, step) && took.total_ns > LONGEST_NS;
        if took.iter().any(is_long) {
            continue;
        }
        // One that fails says nothing about the others, and leaves its curve shorter.
        let Ok(Some(now)) = take(bench, effort, step) else { continue };
        match took.iter_mut().find(|(other, _)| *other == step) {
            Some((_, before)) if before.total_ns > now.total_ns => *before = now,
            Some(_) => {}
            None => took.push((step, now)),
        }
        if number % WRITTEN_EVERY == 0 {
            costs = known(&took);
        }
    }
    Ok((known(&took), true))
}

/// Measurements after which what is known so far is told anew.
const WRITTEN_EVERY: usize = 16;

/// Is this the same thing with less to do?
pub(crate) fn is_smaller(a: Step, b: Step) -> bool {
    match (a, b) {
        (Step::Memory(a), Step::Memory(b))
        | (Step::Compute(a), Step::Compute(b))
        | (Step::Heavy(a), Step::Heavy(b))
        | (Step::Upload(a), Step::Upload(b))
        | (Step::Readback(a), Step::Readback(b))
        | (Step::Total(a), Step::Total(b))
        | (Step::Strided(a), Step::Strided(b))
        | (Step::Columns(a), Step::Columns(b)) => a < b,
        (Step::Reduce(a, row), Step::Reduce(b, other))
        | (Step::Passes(a, row), Step::Passes(b, other))
        | (Step::RowCompute(a, row), Step::RowCompute(b, other))
        | (Step::RowHeavy(a, row), Step::RowHeavy(b, other))
        | (Step::Scan(a, row), Step::Scan(b, other)) => row == other && a < b,
        (Step::Product(a), Step::Product(b)) => a.iter().zip(&b).all(|(a, b)| a <= b) && a != b,
        _ => false,
    }
}

fn take(bench: &mut dyn Bench, effort: Effort, step: Step) -> Result<Option<Took>> {
    if let Step::Tasks(tasks) = step {
        let total_ns = bench.time_tasks_ns(TASK_ELEMENTS, tasks, effort)?;
        return Ok(Some(Took { total_ns, device_ns: None }));
    }
    let weighed = weighed(bench.is_device());
    let output = match step {
        Step::Fixed => probes::nothing()?,
        Step::Upload(n) => probes::upload(n)?,
        Step::Readback(n) => probes::readback(n)?,
        Step::Memory(n) => probes::memory(n)?,
        Step::Compute(n) => probes::compute(n)?,
        Step::Product(shape) => probes::product(shape)?,
        Step::Reduce(n, row) => probes::reduce(n, row)?,
        Step::Overlap(n) => probes::chain(n, OVERLAP_OPS)?,
        Step::Strided(n) => probes::strided(n)?,
        Step::Columns(n) => probes::columns(n)?,
        Step::Total(n) => probes::reduce(n, n)?,
        Step::RowCompute(n, row) => probes::row_chain(n, row, COMPUTE_OPS)?,
        Step::Heavy(n) => probes::heavy(n)?,
        Step::RowHeavy(n, row) => probes::row_heavy(n, row)?,
        Step::RowOverlap(n) => probes::row_chain(n, WEIGHED_ROW, OVERLAP_OPS)?,
        Step::Passes(n, row) => probes::passes(n, row, 0)?,
        Step::Again(row) => probes::passes(weighed, row, AGAIN_OPS)?,
        Step::Scan(n, row) => probes::scan(n, row)?,
        Step::Weight(op) => match probes::op(op, weighed)? {
            Some(output) => output,
            None => return Ok(None),
        },
        Step::RowWeight(op) => match probes::row_op(op, weighed, WEIGHED_ROW)? {
            Some(output) => output,
            None => return Ok(None),
        },
        Step::Kernel => probes::two_kernels(KERNEL_ELEMENTS)?,
        Step::Sample(seed) => expression(seed, SAMPLE_ELEMENTS, true)?.output,
        Step::Tasks(_) => return Ok(None),
    };
    let total_ns = bench.time_ns(&output, effort)?;
    let device_ns = if matches!(step, Step::Readback(_)) { bench.device_ns(&output)? } else { None };
    Ok(Some(Took { total_ns, device_ns }))
}
