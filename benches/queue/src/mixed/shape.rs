//! What is in a batch: the seven shapes and two programs enter, inputs and expected results leave.

use breakeven::{DType, Result, Tensor};

use crate::reference::Expected;

const K: usize = 1024;
/// The seed of all inputs.
const SEED: u64 = 7;

/// The sizes of the tasks in one batch.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name in the table.
    pub name: &'static str,
    /// Elements of each task.
    pub sizes: Vec<usize>,
    /// Is it one of the five whose fixed costs outweigh the rest on the simulated device?
    pub small: bool,
}

/// The seven shapes.
pub fn shapes() -> Vec<Shape> {
    let small = |name, sizes: Vec<usize>| Shape { name, sizes, small: true };
    let large = |name, sizes: Vec<usize>| Shape { name, sizes, small: false };
    vec![
        small("4 x 32k", vec![32 * K; 4]),
        small("4 x 64k", vec![64 * K; 4]),
        small("4 in one class, 33k to 64k", vec![33 * K, 40 * K, 50 * K, 64 * K]),
        small("4 alternating 32k/64k", vec![32 * K, 64 * K, 32 * K, 64 * K]),
        small("4 from 16k to 256k", vec![16 * K, 48 * K, 128 * K, 256 * K]),
        large("8 x 256k", vec![256 * K; 8]),
        large("6 alternating 256k/512k", [256 * K, 512 * K].repeat(3)),
    ]
}

/// What each task computes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    /// `x + y`: next to nothing a byte.
    Add,
    /// Ten operations over `x` and `y`, fused to one kernel.
    Chain,
}

impl Op {
    /// Both.
    pub const ALL: [Op; 2] = [Op::Add, Op::Chain];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Op::Add => "add",
            Op::Chain => "ten-op chain",
        }
    }

    /// Its inputs and its output, for tasks of this size.
    pub fn record(self, elements: usize) -> Result<([Tensor; 2], Tensor)> {
        let x = Tensor::input("x", DType::F32, [elements])?;
        let y = Tensor::input("y", DType::F32, [elements])?;
        let output = match self {
            Op::Add => (&x + &y)?,
            Op::Chain => {
                let gate = ((&x * 1.5f32)? + 0.5f32)?.sigmoid()?;
                let root = (((gate * &y)? - 0.25f32)?.abs()? + 0.1f32)?.sqrt()?;
                (root.tanh()? * 0.5f32)?
            }
        };
        Ok(([x, y], output))
    }

    fn value(self, x: f64, y: f64) -> f64 {
        match self {
            Op::Add => x + y,
            Op::Chain => {
                let gate = 1.0 / (1.0 + (-(x * 1.5 + 0.5)).exp());
                ((gate * y - 0.25).abs() + 0.1).sqrt().tanh() * 0.5
            }
        }
    }
}

/// A batch's inputs, task by task.
pub struct Inputs {
    /// Both inputs of each task.
    pub tasks: Vec<[Vec<f32>; 2]>,
}

impl Inputs {
    /// The same in every run.
    pub fn of(shape: &Shape) -> Inputs {
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut values = |elements: usize| (0..elements).map(|_| random.f32() * 8.0 - 4.0).collect::<Vec<f32>>();
        Inputs { tasks: shape.sizes.iter().map(|&elements| [values(elements), values(elements)]).collect() }
    }

    /// All results, task after task, computed in f64.
    pub fn expected(&self, op: Op) -> Expected {
        let pairs = self.tasks.iter().flat_map(|[x, y]| x.iter().zip(y));
        Expected::within(pairs.map(|(&x, &y)| op.value(f64::from(x), f64::from(y))).collect(), 1e-5)
    }
}
