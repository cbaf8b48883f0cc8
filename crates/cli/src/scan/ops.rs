//! What a scan measures: an op and a size enter, a load leaves that runs on any device and tells what it took.

use breakeven::{Array, DType, Device, Engine, Many, Program, Result, RunOptions, Tensor, View};

/// The length of the rows of softmax and cumsum.
const ROW: u64 = 512;
/// Elements of each of many tasks: small ones, and some that are no longer mostly call.
const TASK: u64 = 256;
const LARGER_TASK: u64 = 4096;
/// Pairs of a product and a sum in the chain.
const PAIRS: usize = 5;

/// An op that is measured.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What it is called.
    pub name: &'static str,
    /// Its class in the report.
    pub class: &'static str,
    /// What its sizes count.
    pub unit: &'static str,
    /// Its size if its array has so many elements.
    pub size: fn(u64) -> u64,
    /// Its time goes with this power of the elements.
    pub power: f64,
    /// It at a size.
    pub load: fn(&Engine, u64) -> Result<Load>,
}

/// Every op that can be asked for.
pub const OPS: [Op; 9] = [
    Op { name: "add", class: "map", unit: "elements", size: elements, power: 1.0, load: add },
    Op { name: "sigmoid", class: "map", unit: "elements", size: elements, power: 1.0, load: sigmoid },
    CHAIN,
    Op { name: "sum", class: "reduce", unit: "elements", size: elements, power: 1.0, load: sum },
    Op { name: "softmax", class: "rows", unit: "elements", size: whole_rows, power: 1.0, load: softmax },
    Op { name: "cumsum", class: "scan", unit: "elements", size: whole_rows, power: 1.0, load: cumsum },
    Op { name: "matmul", class: "contract", unit: "n x n", size: side, power: 1.5, load: matmul },
    Op { name: "many", class: "many", unit: "tasks of 256", size: tasks::<TASK>, power: 1.0, load: many::<TASK> },
    MANY_LARGER,
];

/// Larger tasks.
const MANY_LARGER: Op = Op {
    name: "many4k",
    class: "many",
    unit: "tasks of 4096",
    size: tasks::<LARGER_TASK>,
    power: 1.0,
    load: many::<LARGER_TASK>,
};

/// Ten elementwise ops as one batch.
pub const CHAIN: Op = Op { name: "chain", class: "map", unit: "elements", size: elements, power: 1.0, load: chain };

/// The same ten ops as ten calls: what fusion is measured against. It can't be asked for.
pub const CALLS: Op =
    Op { name: "chain as 10 calls", class: "map", unit: "elements", size: elements, power: 1.0, load: calls };

/// The op of this name.
pub fn parse(name: &str) -> Result<Op, String> {
    let names = || OPS.map(|op| op.name).join(", ");
    OPS.into_iter().find(|op| op.name == name).ok_or_else(|| format!("expected some of {}", names()))
}

/// An op at a size, with its data.
pub enum Load {
    /// One batch.
    Batch(Program),
    /// Products and sums, each a call of its own, from host memory to host memory.
    Calls {
        /// A factor of each product.
        multiply: Vec<Program>,
        /// The sum of what there is and the first value.
        add: Program,
        /// That value.
        x: Vec<f32>,
    },
    /// Tasks of one length.
    Many {
        /// What each of them computes.
        program: Program,
        /// The data of all.
        data: Vec<f32>,
        /// Elements of each.
        each: usize,
    },
}

impl Load {
    /// Runs it there, and nowhere else; nanoseconds leave, from the call to the results.
    pub fn run(&self, device: Device) -> Result<u64> {
        Ok(self.go(device)?.0)
    }

    /// What it computes there.
    pub fn results(&self, device: Device) -> Result<Vec<Array>> {
        match self.go(device)?.1 {
            Results::Arrays(arrays) => Ok(arrays),
            Results::Many(many) => (0..many.len()).map(|task| many.array(task, 0)).collect(),
        }
    }

    fn go(&self, device: Device) -> Result<(u64, Results)> {
        let options = only(device);
        match self {
            Load::Batch(program) => {
                let ran = program.run_with(&[], &options)?;
                Ok((ran.decision.actual_ns, Results::Arrays(ran.outputs)))
            }
            Load::Calls { multiply, add, x } => {
                let mut total_ns = 0;
                let mut last = None;
                for program in multiply {
                    let y = last.as_ref().map_or(View::from(x), View::from);
                    let product = program.run_with(&[y], &options)?;
                    let mut sum = add.run_with(&[View::from(&product.outputs[0]), View::from(x)], &options)?;
                    total_ns += product.decision.actual_ns + sum.decision.actual_ns;
                    last = Some(sum.outputs.swap_remove(0));
                }
                Ok((total_ns, Results::Arrays(last.into_iter().collect())))
            }
            Load::Many { program, data, each } => {
                let tasks: Vec<[View<'_>; 1]> = data.chunks_exact(*each).map(|task| [task.into()]).collect();
                let mut many = Many::default();
                let ns = program.run_many_with(&tasks, &mut many, &options)?.actual_ns;
                Ok((ns, Results::Many(many)))
            }
        }
    }
}

/// What a load computed.
enum Results {
    Arrays(Vec<Array>),
    Many(Many),
}

/// On this device, or not at all.
pub fn only(device: Device) -> RunOptions {
    RunOptions { device: Some(device), strict: Some(true), ..RunOptions::default() }
}

fn elements(elements: u64) -> u64 {
    elements.max(1)
}

fn whole_rows(elements: u64) -> u64 {
    elements.div_ceil(ROW).max(1) * ROW
}

fn side(elements: u64) -> u64 {
    (elements as f64).sqrt().round().max(1.0) as u64
}

fn tasks<const EACH: u64>(elements: u64) -> u64 {
    (elements / EACH).max(1)
}

/// Values from 0.5 to 1.5: nothing that overflows, underflows or is special to a processor.
pub fn values(len: u64) -> Vec<f32> {
    (0..len).map(|i| 0.5 + (i.wrapping_mul(2_654_435_761) % 4096) as f32 / 4096.0).collect()
}

/// As many of them as this shape has.
pub fn data(shape: &[u64]) -> Result<Tensor> {
    let extents: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
    Ok(Tensor::from_vec(values(shape.iter().product()), extents.as_slice())?)
}

/// One batch that computes this.
pub fn batch(engine: &Engine, output: &Tensor) -> Result<Load> {
    Ok(Load::Batch(engine.compile(&[], &[output])?))
}

fn add(engine: &Engine, size: u64) -> Result<Load> {
    batch(engine, &(&data(&[size])? + &data(&[size])?)?)
}

fn sigmoid(engine: &Engine, size: u64) -> Result<Load> {
    batch(engine, &data(&[size])?.sigmoid()?)
}

fn sum(engine: &Engine, size: u64) -> Result<Load> {
    batch(engine, &data(&[size])?.sum(&[], false)?)
}

fn softmax(engine: &Engine, size: u64) -> Result<Load> {
    batch(engine, &data(&[size / ROW, ROW])?.softmax(-1)?)
}

fn cumsum(engine: &Engine, size: u64) -> Result<Load> {
    batch(engine, &data(&[size / ROW, ROW])?.cumsum(1)?)
}

fn matmul(engine: &Engine, size: u64) -> Result<Load> {
    batch(engine, &data(&[size, size])?.matmul(&data(&[size, size])?)?)
}

/// A factor of the chain: no two alike, so that none can be left out.
fn factor(pair: usize) -> f32 {
    0.5 + pair as f32 / 16.0
}

/// Products and sums, fused.
pub fn chain(engine: &Engine, size: u64) -> Result<Load> {
    let x = data(&[size])?;
    let mut y = x.clone();
    for pair in 0..PAIRS {
        y = (&(&y * factor(pair))? + &x)?;
    }
    batch(engine, &y)
}

/// The same, each a call.
pub fn calls(engine: &Engine, size: u64) -> Result<Load> {
    let input = |name| Tensor::input(name, DType::F32, [size as usize]);
    let (y, x) = (input("y")?, input("x")?);
    let product = |pair| engine.compile(&[&y], &[&(&y * factor(pair))?]);
    let multiply: Result<Vec<Program>> = (0..PAIRS).map(product).collect();
    let add = engine.compile(&[&y, &x], &[&(&y + &x)?])?;
    Ok(Load::Calls { multiply: multiply?, add, x: values(size) })
}

/// Tasks of so many elements.
pub fn many<const EACH: u64>(engine: &Engine, size: u64) -> Result<Load> {
    let x = Tensor::input("x", DType::F32, [EACH as usize])?;
    let program = engine.compile(&[&x], &[&x.relu()?])?;
    Ok(Load::Many { program, data: values(size * EACH), each: EACH as usize })
}

#[cfg(test)]
mod tests {
    use super::*;
    use breakeven::Config;

    #[test]
    fn every_op_runs_at_every_size() {
        let engine = Engine::with_config(Config::default()).unwrap();
        for op in OPS.into_iter().chain([CALLS]) {
            for elements in [1, 300, 5000] {
                let load = (op.load)(&engine, (op.size)(elements)).unwrap();
                assert!(load.run(Device::Cpu).unwrap() > 0, "{} of {elements}", op.name);
            }
        }
    }

    #[test]
    fn the_chain_has_ten_ops_and_is_one_kernel() {
        let engine = Engine::with_config(Config::default()).unwrap();
        let Ok(Load::Batch(program)) = chain(&engine, 100) else { panic!("a batch") };
        let stats = program.plan().stats();
        assert_eq!((stats.kernels, stats.flops), (1, 2 * PAIRS as u64 * 100));
    }

    #[test]
    fn sizes_are_those_that_an_op_can_have() {
        let sizes = |elements| OPS.map(|op| (op.size)(elements));
        assert_eq!(sizes(1), [1, 1, 1, 1, 512, 512, 1, 1, 1]);
        assert_eq!(sizes(1000), [1000, 1000, 1000, 1000, 1024, 1024, 32, 3, 1]);
    }
}
