//! The workloads that every library runs: a kind and a size enter, its inputs and its cost leave.
//!
//! One table, so that each library meets the same numbers, and so that a row of the report can say how much of the
//! machine's limit it reached. The kinds and sizes are those of the peers' survey that set the bars.

use serde::Serialize;

use crate::reference::Expected;

/// Columns of the row workloads `W4.rowsoftmax` and `W4.layernorm`.
pub const ROW_COLS: usize = 512;
/// Rows (and, for the sums, columns) of the `W4` workloads.
pub const ROWS: usize = 4096;
/// Side of the small matrices of `W5`.
pub const SMALL_SIDE: usize = 32;
/// Length of the small vectors of `W5`.
pub const SMALL_LEN: usize = 256;
/// Layer widths of the `W6` network.
pub const MLP_WIDTHS: [usize; 4] = [784, 512, 512, 10];
/// The epsilon of `W4.layernorm`.
pub const LAYER_NORM_EPSILON: f32 = 1e-5;
/// The scalars `a`, `b`, `c` of `W2.chain`: `gelu(((x*a+b)*sigmoid(x)-c).abs().sqrt()+x)`.
pub const CHAIN: (f32, f32, f32) = (1.5, 0.5, 0.25);

// Nominal floating-point work of one element, for the share of the machine's limit: what a vectorised f32 kernel
// of 1-2 ulp spends (range reduction, a polynomial of degree 6 to 8, scaling), a multiply-add counting as two.
const EXP_FLOPS: f64 = 20.0;
const TANH_FLOPS: f64 = 26.0;
const DIV_FLOPS: f64 = 4.0;
const SIGMOID_FLOPS: f64 = EXP_FLOPS + DIV_FLOPS + 2.0;
const GELU_FLOPS: f64 = TANH_FLOPS + 8.0;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `x + y`
    Add,
    /// Inner product of two vectors.
    Dot,
    /// `gelu(x)`, tanh form.
    Gelu,
    /// `max(x, 0)`
    Relu,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
    /// Softmax of one vector.
    Softmax,
    /// Sum of one vector.
    Sum,
    /// The ten-op elementwise chain, with scalars `a`, `b`, `c` ([`CHAIN`]).
    Chain,
    /// Square matrix product.
    Matmul,
    /// Softmax along the rows of a matrix.
    RowSoftmax,
    /// Layer norm with gain and offset along the rows of a matrix.
    LayerNorm,
    /// Sum over the rows of a matrix.
    SumAxis0,
    /// Sum over the columns of a matrix.
    SumAxis1,
    /// Many small matrix products as one batched call.
    Mm32Batched,
    /// Many small matrix products as separate tasks.
    Mm32Loop,
    /// Many small relus as one call.
    Relu256Batched,
    /// Many small relus as separate tasks.
    Relu256Loop,
    /// A three-layer perceptron: relu, relu, softmax.
    Mlp,
}

impl Kind {
    /// The workload's name in the report, in `--filter` and towards the Python peers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Add => "W1.add",
            Kind::Dot => "W1.dot",
            Kind::Gelu => "W1.gelu",
            Kind::Relu => "W1.relu",
            Kind::Sigmoid => "W1.sigmoid",
            Kind::Softmax => "W1.softmax",
            Kind::Sum => "W1.sum",
            Kind::Chain => "W2.chain",
            Kind::Matmul => "W3.matmul",
            Kind::RowSoftmax => "W4.rowsoftmax",
            Kind::LayerNorm => "W4.layernorm",
            Kind::SumAxis0 => "W4.sumaxis0",
            Kind::SumAxis1 => "W4.sumaxis1",
            Kind::Mm32Batched => "W5.mm32-batched",
            Kind::Mm32Loop => "W5.mm32-loop",
            Kind::Relu256Batched => "W5.relu256-batched",
            Kind::Relu256Loop => "W5.relu256-loop",
            Kind::Mlp => "W6.mlp",
        }
    }

    /// Whether the row counts for the bar against Rust libraries, which have no vectorised exp and tanh.
    pub fn is_transcendental(self) -> bool {
        matches!(self, Kind::Sigmoid | Kind::Gelu | Kind::Softmax | Kind::Chain)
    }
}

/// A row of the report before its inputs exist.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// What is computed.
    pub kind: Kind,
    /// Elements, matrix side, rows, tasks or batch size, as the kind has it.
    pub n: usize,
}

/// Every row, in the report's order; `quick` leaves out the largest matrix product.
pub fn specs(quick: bool) -> Vec<Spec> {
    let lengths = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let vectors = [Kind::Add, Kind::Dot, Kind::Gelu, Kind::Relu, Kind::Sigmoid, Kind::Softmax, Kind::Sum, Kind::Chain];
    let mut specs: Vec<Spec> =
        vectors.iter().flat_map(|&kind| lengths.iter().map(move |&n| Spec { kind, n })).collect();
    let sides: &[usize] = if quick { &[64, 128, 256, 512, 1024] } else { &[64, 128, 256, 512, 1024, 2048] };
    specs.extend(sides.iter().map(|&n| Spec { kind: Kind::Matmul, n }));
    let rows = [Kind::LayerNorm, Kind::RowSoftmax, Kind::SumAxis0, Kind::SumAxis1];
    specs.extend(rows.map(|kind| Spec { kind, n: ROWS }));
    specs.extend([
        Spec { kind: Kind::Mm32Batched, n: 1000 },
        Spec { kind: Kind::Mm32Loop, n: 1000 },
        Spec { kind: Kind::Relu256Batched, n: 1000 },
        Spec { kind: Kind::Relu256Loop, n: 20 },
        Spec { kind: Kind::Relu256Loop, n: 1000 },
        Spec { kind: Kind::Mlp, n: 64 },
        Spec { kind: Kind::Mlp, n: 1024 },
    ]);
    specs
}

/// A dense row-major input.
pub struct Array {
    /// Lengths of the axes, outermost first.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<f32>,
}

/// What the machine must at least do for a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cost {
    /// Floating-point operations, a multiply-add counting as two.
    pub flops: f64,
    /// Bytes read from inputs and written to outputs, each once.
    pub bytes: f64,
    /// Whether next to nothing is written, so that read bandwidth is the limit rather than the triad's.
    pub read_only: bool,
}

/// A row with its inputs, its expected results and its cost.
pub struct Workload {
    /// What is computed.
    pub kind: Kind,
    /// The size, as in [`Spec`].
    pub n: usize,
    /// The inputs, in the order of the kind's formula.
    pub inputs: Vec<Array>,
    /// What the result must be.
    pub expected: Expected,
    /// What the machine must at least do.
    pub cost: Cost,
}

impl Spec {
    /// Makes the inputs (same seed, same numbers, every run) and the f64 reference.
    pub fn prepare(self) -> Workload {
        let inputs = self.inputs();
        let expected = Expected::of(self, &inputs);
        Workload { kind: self.kind, n: self.n, inputs, expected, cost: self.cost() }
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
            // Up to +-6: where the activations bend and where they are flat.
            Kind::Gelu | Kind::Relu | Kind::Sigmoid | Kind::Softmax | Kind::Chain => vec![uniform(&[n], 6.0)],
            Kind::Sum => vec![uniform(&[n], 1.0)],
            Kind::Matmul => vec![uniform(&[n, n], 1.0), uniform(&[n, n], 1.0)],
            Kind::RowSoftmax => vec![uniform(&[n, ROW_COLS], 6.0)],
            Kind::LayerNorm => {
                vec![uniform(&[n, ROW_COLS], 6.0), uniform(&[ROW_COLS], 1.0), uniform(&[ROW_COLS], 1.0)]
            }
            Kind::SumAxis0 | Kind::SumAxis1 => vec![uniform(&[n, ROWS], 1.0)],
            Kind::Mm32Batched | Kind::Mm32Loop => {
                let shape = [n, SMALL_SIDE, SMALL_SIDE];
                vec![uniform(&shape, 1.0), uniform(&shape, 1.0)]
            }
            Kind::Relu256Batched | Kind::Relu256Loop => vec![uniform(&[n, SMALL_LEN], 1.0)],
            Kind::Mlp => {
                let mut inputs = vec![uniform(&[n, MLP_WIDTHS[0]], 1.0)];
                for layer in MLP_WIDTHS.windows(2) {
                    // Keeps the variance about equal from layer to layer.
                    inputs.push(uniform(&[layer[0], layer[1]], (6.0 / layer[0] as f32).sqrt()));
                    inputs.push(uniform(&[layer[1]], 0.5));
                }
                inputs
            }
        }
    }

    fn cost(self) -> Cost {
        let n = self.n as f64;
        let cols = ROW_COLS as f64;
        let map = |elems: f64, inputs: f64, flops: f64| (flops * elems, (inputs + 1.0) * 4.0 * elems, false);
        let (flops, bytes, read_only) = match self.kind {
            Kind::Add => map(n, 2.0, 1.0),
            Kind::Dot => (2.0 * n, 8.0 * n, true),
            Kind::Gelu => map(n, 1.0, GELU_FLOPS),
            Kind::Relu => map(n, 1.0, 1.0),
            Kind::Sigmoid => map(n, 1.0, SIGMOID_FLOPS),
            Kind::Softmax => map(n, 1.0, EXP_FLOPS + 4.0),
            Kind::Sum => (n, 4.0 * n, true),
            Kind::Chain => map(n, 1.0, SIGMOID_FLOPS + GELU_FLOPS + DIV_FLOPS + 7.0),
            Kind::Matmul => (2.0 * n * n * n, 12.0 * n * n, false),
            Kind::RowSoftmax => map(n * cols, 1.0, EXP_FLOPS + 4.0),
            Kind::LayerNorm => map(n * cols, 1.0, 8.0),
            Kind::SumAxis0 | Kind::SumAxis1 => (n * ROWS as f64, 4.0 * n * ROWS as f64, true),
            Kind::Mm32Batched | Kind::Mm32Loop => {
                let side = SMALL_SIDE as f64;
                (2.0 * n * side.powi(3), 12.0 * n * side * side, false)
            }
            Kind::Relu256Batched | Kind::Relu256Loop => map(n * SMALL_LEN as f64, 1.0, 1.0),
            Kind::Mlp => {
                let weights: f64 = MLP_WIDTHS.windows(2).map(|layer| (layer[0] * layer[1]) as f64).sum();
                let ends = (MLP_WIDTHS[0] + MLP_WIDTHS[3]) as f64;
                (2.0 * n * weights, 4.0 * (weights + n * ends), false)
            }
        };
        Cost { flops, bytes, read_only }
    }
}
