//! candle's arms: tensors on its CPU device, activations from candle-nn.
//!
//! candle allocates every output; it has no way to write into an existing tensor. Its matrix product is gemm.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::{layer_norm, sigmoid, softmax_last_dim};

use crate::arm::Arm;
use crate::workload::{Array, CHAIN, Kind, LAYER_NORM_EPSILON, Workload};

const LIB: &str = "candle";

/// The arms for one workload.
pub fn arms(workload: &Workload) -> Vec<Arm<'_>> {
    let input = |i: usize| tensor(&workload.inputs[i]);
    let x = input(0);
    let arm = match workload.kind {
        Kind::Add => {
            let y = input(1);
            plain(move || &x + &y)
        }
        Kind::Dot => {
            let y = input(1);
            plain(move || (&x * &y)?.sum_all())
        }
        Kind::Gelu => plain(move || x.gelu()),
        Kind::Relu | Kind::Relu256Batched => plain(move || x.relu()),
        Kind::Sigmoid => plain(move || sigmoid(&x)),
        Kind::Softmax | Kind::RowSoftmax => plain(move || softmax_last_dim(&x)),
        Kind::Sum => plain(move || x.sum_all()),
        Kind::Chain => plain(move || {
            let (a, b, c) = (f64::from(CHAIN.0), f64::from(CHAIN.1), f64::from(CHAIN.2));
            let product = (x.affine(a, b)? * sigmoid(&x)?)?;
            ((product - c)?.abs()?.sqrt()? + &x)?.gelu()
        }),
        Kind::Matmul | Kind::Mm32Batched => {
            let y = input(1);
            plain(move || x.matmul(&y))
        }
        Kind::LayerNorm => {
            let (gain, offset) = (input(1), input(2));
            plain(move || layer_norm(&x, &gain, &offset, LAYER_NORM_EPSILON))
        }
        Kind::SumAxis0 => plain(move || x.sum(0)),
        Kind::SumAxis1 => plain(move || x.sum(D::Minus1)),
        Kind::Mm32Loop => {
            let (lhs, rhs) = (tasks(&workload.inputs[0]), tasks(&workload.inputs[1]));
            looped(move || lhs.iter().zip(&rhs).map(|(a, b)| a.matmul(b)).collect())
        }
        Kind::Relu256Loop => {
            let tasks = tasks(&workload.inputs[0]);
            looped(move || tasks.iter().map(Tensor::relu).collect())
        }
        Kind::Mlp => {
            let weights: Vec<Tensor> = (1..7).map(input).collect();
            plain(move || {
                let hidden = x.matmul(&weights[0])?.broadcast_add(&weights[1])?.relu()?;
                let hidden = hidden.matmul(&weights[2])?.broadcast_add(&weights[3])?.relu()?;
                softmax_last_dim(&hidden.matmul(&weights[4])?.broadcast_add(&weights[5])?)
            })
        }
    };
    vec![arm]
}

fn tensor(array: &Array) -> Tensor {
    Tensor::from_slice(&array.data, array.shape.as_slice(), &Device::Cpu).expect("the workload's shape fits its data")
}

/// One tensor a task, each with memory of its own.
fn tasks(array: &Array) -> Vec<Tensor> {
    let shape = &array.shape[1..];
    let task = |data: &[f32]| Tensor::from_slice(data, shape, &Device::Cpu);
    let len: usize = shape.iter().product();
    array.data.chunks_exact(len).map(|data| task(data).expect("a chunk is one task")).collect()
}

fn plain<'w>(mut run: impl FnMut() -> Result<Tensor> + 'w) -> Arm<'w> {
    Arm::returning(LIB, "", move || run().expect("the shapes fit"), |tensor| values(&tensor))
}

fn looped<'w>(mut run: impl FnMut() -> Result<Vec<Tensor>> + 'w) -> Arm<'w> {
    let read = |tensors: Vec<Tensor>| tensors.iter().flat_map(values).collect();
    Arm::returning(LIB, "", move || run().expect("the shapes fit"), read)
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().and_then(|flat| flat.to_vec1()).expect("a CPU tensor of f32 can be read")
}
