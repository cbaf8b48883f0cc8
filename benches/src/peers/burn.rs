//! burn's arms, on its CPU backends: `flex`, and `ndarray`, which it calls deprecated but still ships.
//!
//! burn's operations take their tensors by value; a clone shares the memory. Outputs are always fresh.

use burn_tensor::activation::{gelu_approximate, relu, sigmoid, softmax};
use burn_tensor::module::layer_norm;
use burn_tensor::{Device, Tensor, TensorData};

use crate::arm::Arm;
use crate::workload::{Array, CHAIN, Kind, LAYER_NORM_EPSILON, Workload};

const LIB: &str = "burn";

/// The arms for one workload.
pub fn arms(workload: &Workload) -> Vec<Arm<'_>> {
    #[expect(deprecated, reason = "burn 0.22 deprecates its ndarray backend; users still run it")]
    let ndarray = Device::ndarray();
    vec![arm(workload, "flex", &Device::flex()), arm(workload, "ndarray", &ndarray)]
}

fn arm<'w>(workload: &'w Workload, variant: &str, device: &Device) -> Arm<'w> {
    let vector = |i: usize| tensor::<1>(&workload.inputs[i], device);
    let matrix = |i: usize| tensor::<2>(&workload.inputs[i], device);
    match workload.kind {
        Kind::Add => {
            let (x, y) = (vector(0), vector(1));
            plain(variant, move || x.clone() + y.clone())
        }
        Kind::Dot => {
            let (x, y) = (vector(0), vector(1));
            plain(variant, move || x.clone().dot(y.clone()))
        }
        Kind::Gelu => unary(variant, vector(0), gelu_approximate),
        Kind::Relu => unary(variant, vector(0), relu),
        Kind::Sigmoid => unary(variant, vector(0), sigmoid),
        Kind::Softmax => unary(variant, vector(0), |x| softmax(x, 0)),
        Kind::Sum => unary(variant, vector(0), Tensor::sum),
        Kind::Chain => unary(variant, vector(0), |x| {
            let (a, b, c) = CHAIN;
            let product = (x.clone() * a + b) * sigmoid(x.clone());
            gelu_approximate((product - c).abs().sqrt() + x)
        }),
        Kind::Matmul => {
            let (x, y) = (matrix(0), matrix(1));
            plain(variant, move || x.clone().matmul(y.clone()))
        }
        Kind::RowSoftmax => unary(variant, matrix(0), |x| softmax(x, 1)),
        Kind::LayerNorm => {
            let (x, gain, offset) = (matrix(0), vector(1), vector(2));
            let epsilon = f64::from(LAYER_NORM_EPSILON);
            plain(variant, move || layer_norm(x.clone(), gain.clone(), Some(offset.clone()), epsilon))
        }
        Kind::SumAxis0 => unary(variant, matrix(0), |x| x.sum_dim(0)),
        Kind::SumAxis1 => unary(variant, matrix(0), |x| x.sum_dim(1)),
        Kind::Mm32Batched => {
            let (x, y) = (tensor::<3>(&workload.inputs[0], device), tensor::<3>(&workload.inputs[1], device));
            plain(variant, move || x.clone().matmul(y.clone()))
        }
        Kind::Mm32Loop => {
            let (x, y) = (tasks::<2>(&workload.inputs[0], device), tasks::<2>(&workload.inputs[1], device));
            looped(variant, move || x.iter().zip(&y).map(|(x, y)| x.clone().matmul(y.clone())).collect())
        }
        Kind::Relu256Batched => unary(variant, matrix(0), relu),
        Kind::Relu256Loop => {
            let tasks = tasks::<1>(&workload.inputs[0], device);
            looped(variant, move || tasks.iter().map(|task| relu(task.clone())).collect())
        }
        Kind::Mlp => {
            let x = matrix(0);
            let layers = [1, 3, 5].map(|i| (matrix(i), vector(i + 1).unsqueeze::<2>()));
            plain(variant, move || {
                let [first, second, last] = layers.clone();
                let hidden = relu(x.clone().matmul(first.0) + first.1);
                let hidden = relu(hidden.matmul(second.0) + second.1);
                softmax(hidden.matmul(last.0) + last.1, 1)
            })
        }
    }
}

fn tensor<const RANK: usize>(array: &Array, device: &Device) -> Tensor<RANK> {
    Tensor::from_data(TensorData::new(array.data.clone(), array.shape.clone()), device)
}

/// One tensor a task, each with memory of its own.
fn tasks<const RANK: usize>(array: &Array, device: &Device) -> Vec<Tensor<RANK>> {
    let shape = &array.shape[1..];
    let task = |data: &[f32]| Tensor::from_data(TensorData::new(data.to_vec(), shape.to_vec()), device);
    array.data.chunks_exact(shape.iter().product()).map(task).collect()
}

fn plain<'w, const RANK: usize>(variant: &str, run: impl FnMut() -> Tensor<RANK> + 'w) -> Arm<'w> {
    Arm::returning(LIB, variant, run, values)
}

fn unary<'w, const FROM: usize, const TO: usize>(
    variant: &str,
    x: Tensor<FROM>,
    f: impl Fn(Tensor<FROM>) -> Tensor<TO> + 'w,
) -> Arm<'w> {
    plain(variant, move || f(x.clone()))
}

fn looped<'w, const RANK: usize>(variant: &str, run: impl FnMut() -> Vec<Tensor<RANK>> + 'w) -> Arm<'w> {
    Arm::returning(LIB, variant, run, |tensors| tensors.into_iter().flat_map(values).collect())
}

fn values<const RANK: usize>(tensor: Tensor<RANK>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("a CPU tensor of f32 can be read")
}
