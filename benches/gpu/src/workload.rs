//! The workloads that every arm runs: a kind and a size enter, its inputs, its expected result and its bars leave.
//!
//! Kinds, sizes and bars are those that the project promises for its GPU side; one table, so that each arm meets the
//! same numbers.

use serde::Serialize;

use crate::reference::Expected;

/// Length of the small vectors of `many` and `tasks`.
pub const SMALL_LEN: usize = 256;
/// What a call may cost more than a hand-written program's at 256 elements, and from 10^5 elements on.
const HAND_SMALL: f64 = 1.25;
const HAND_LARGE: f64 = 1.1;
/// Noise between equal arms is about 5 %: "at least equal" is this share of the peer's speed.
const EQUAL: f64 = 0.95;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `x + y`
    Add,
    /// `max(x, 0)`
    Relu,
    /// Inner product of two vectors.
    Dot,
    /// Softmax of one vector.
    Softmax,
    /// Sum of one vector.
    Sum,
    /// Twenty elementwise operations, see [`chain`](crate::reference::chain).
    Chain,
    /// Square matrix product.
    Matmul,
    /// Softmax along the rows of an `n` x `n` matrix.
    RowSoftmax,
    /// `n` relus of [`SMALL_LEN`] elements as separate tasks.
    Tasks,
    /// The same few tasks, beside one call on as many elements.
    Many,
}

impl Kind {
    /// The workload's name in the report and in `--filter`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Add => "add",
            Kind::Relu => "relu",
            Kind::Dot => "dot",
            Kind::Softmax => "softmax",
            Kind::Sum => "sum",
            Kind::Chain => "chain20",
            Kind::Matmul => "matmul",
            Kind::RowSoftmax => "rowsoftmax",
            Kind::Tasks => "tasks-relu256",
            Kind::Many => "many-relu256",
        }
    }
}

/// A promise about one row: our time against that of an arm's library.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The library; its fastest right arm counts.
    pub against: &'static str,
    /// Its time over ours must be at least this.
    pub least_ratio: f64,
    /// The promise as the issue words it.
    pub promise: &'static str,
}

/// A row of the report before its inputs exist.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// What is computed.
    pub kind: Kind,
    /// Elements, matrix side or tasks, as the kind has it.
    pub n: usize,
}

/// Every row, in the report's order.
pub fn specs() -> Vec<Spec> {
    let lengths = [SMALL_LEN, 100_000, 1_000_000];
    let mut specs: Vec<Spec> = Vec::new();
    for kind in [Kind::Add, Kind::Relu] {
        specs.extend(lengths.map(|n| Spec { kind, n }));
    }
    let small = [Kind::Dot, Kind::Softmax, Kind::Sum];
    specs.extend(small.map(|kind| Spec { kind, n: SMALL_LEN }));
    specs.extend([16, 256, 512].map(|n| Spec { kind: Kind::Matmul, n }));
    specs.extend([
        Spec { kind: Kind::Chain, n: 1_000_000 },
        Spec { kind: Kind::Tasks, n: 1000 },
        Spec { kind: Kind::RowSoftmax, n: 1000 },
        Spec { kind: Kind::Sum, n: 1_000_000 },
        Spec { kind: Kind::Many, n: 20 },
    ]);
    specs
}

impl Spec {
    /// What is promised about this row.
    pub fn bars(self) -> Vec<Bar> {
        let hand_small = Bar { against: "hand", least_ratio: 1.0 / HAND_SMALL, promise: "ours <= 1.25x hand" };
        let hand_large = Bar { against: "hand", least_ratio: 1.0 / HAND_LARGE, promise: "ours <= 1.1x hand" };
        let small = Bar { against: "trueno", least_ratio: 10.0, promise: "ours >= 10x trueno" };
        let twice = Bar { against: "burn", least_ratio: 2.0, promise: "ours >= 2x burn" };
        let burn = Bar { against: "burn", least_ratio: EQUAL, promise: "ours >= burn" };
        let trueno = Bar { against: "trueno", least_ratio: EQUAL, promise: "ours >= trueno" };
        let whole = Bar { against: "one-call", least_ratio: 1.0 / 1.2, promise: "ours <= 1.2x one call" };
        match (self.kind, self.n) {
            (Kind::Add | Kind::Relu, SMALL_LEN) => vec![hand_small, small],
            (Kind::Add | Kind::Relu, _) => vec![hand_large],
            (Kind::Dot | Kind::Softmax | Kind::Sum, SMALL_LEN) | (Kind::Matmul, 16) => vec![small],
            (Kind::Chain | Kind::Tasks, _) => vec![twice],
            (Kind::Matmul | Kind::RowSoftmax | Kind::Sum, _) => vec![burn, trueno],
            (Kind::Many, _) => vec![whole],
            (Kind::Dot | Kind::Softmax, _) => Vec::new(),
        }
    }

    /// Makes the inputs (same seed, same numbers, every run) and the f64 reference.
    pub fn prepare(self) -> Workload {
        let inputs = self.inputs();
        let expected = Expected::of(self, &inputs);
        Workload { kind: self.kind, n: self.n, inputs, expected }
    }

    fn inputs(self) -> Vec<Array> {
        let mut rng = fastrand::Rng::with_seed(0x5EED ^ ((self.kind as u64) << 32) ^ self.n as u64);
        let mut uniform = |shape: &[usize], half_width: f32| Array {
            shape: shape.to_vec(),
            data: (0..shape.iter().product()).map(|_| (rng.f32() * 2.0 - 1.0) * half_width).collect(),
        };
        let n = self.n;
        match self.kind {
            Kind::Add | Kind::Dot => vec![uniform(&[n], 1.0), uniform(&[n], 1.0)],
            Kind::Relu => vec![uniform(&[n], 1.0)],
            // All positive: a part that was left out can't hide behind terms that cancel.
            Kind::Sum => {
                let mut terms = uniform(&[n], 1.0);
                terms.data.iter_mut().for_each(|v| *v = v.abs());
                vec![terms]
            }
            Kind::Softmax => vec![uniform(&[n], 6.0)],
            Kind::Chain => vec![uniform(&[n], 3.0)],
            Kind::Matmul => vec![uniform(&[n, n], 1.0), uniform(&[n, n], 1.0)],
            Kind::RowSoftmax => vec![uniform(&[n, n], 6.0)],
            Kind::Tasks | Kind::Many => vec![uniform(&[n, SMALL_LEN], 1.0)],
        }
    }
}

/// A dense row-major input.
pub struct Array {
    /// Lengths of the axes, outermost first.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<f32>,
}

/// A row with its inputs and its expected result.
pub struct Workload {
    /// What is computed.
    pub kind: Kind,
    /// The size, as in [`Spec`].
    pub n: usize,
    /// The inputs, in the order of the kind's formula.
    pub inputs: Vec<Array>,
    /// What the result must be.
    pub expected: Expected,
}
