//! burn's arms: its wgpu backend with fusion and autotuning, on the shared adapter.
//!
//! `burn` starts from the host's memory like everyone else. `burn-resident` has its inputs on the device already; it
//! shows what the transfer costs and is not what a bar is judged by. Its kernels are WGSL, or SPIR-V with this
//! package's feature `spirv` (burn decides when it is compiled).
//!
//! Results are read into a `Vec` inside the measured time: what `into_data` returns is fetched when it is first looked
//! at (a 256 x 256 product takes 250 us without a look and 5,800 us with one).

use burn_tensor::activation::{relu, sigmoid, softmax};
use burn_tensor::wgpu::WgpuBackend;
use burn_tensor::{Device, DeviceKind, Tensor, TensorData, Transaction};

use crate::arm::{Arm, Fallible};
use crate::attempt::{caught, returning};
use crate::workload::{Array, Kind, Workload};

const LIB: &str = "burn";
const RESIDENT: &str = "burn-resident";
const COMPILER: &str = if cfg!(feature = "spirv") { "spirv" } else { "wgsl" };

/// burn's device.
pub struct Burn {
    device: Device,
}

impl Burn {
    /// Starts burn's runtime on the adapter of this name.
    pub fn open(adapter: &str) -> Fallible<Burn> {
        caught(|| {
            let options = Device::wgpu_options().device_kind(DeviceKind::Cpu).graphics_api(WgpuBackend::Vulkan);
            let (device, setup) = options.init_with_setup()?;
            let name = setup.adapter.get_info().name;
            if name != adapter {
                return Err(format!("burn chose {name} instead of {adapter}").into());
            }
            Ok(Burn { device })
        })
    }

    /// The arms for one workload.
    pub fn arms<'w>(&self, workload: &'w Workload) -> Vec<Arm<'w>> {
        match workload.kind {
            Kind::Add => self.binary::<1, 1>(workload, |x, y| x + y),
            Kind::Dot => self.binary::<1, 1>(workload, |x, y| x.dot(y)),
            Kind::Matmul => self.binary::<2, 2>(workload, |x, y| x.matmul(y)),
            Kind::Relu => self.unary::<1, 1>(workload, relu),
            Kind::Softmax => self.unary::<1, 1>(workload, |x| softmax(x, 0)),
            Kind::RowSoftmax => self.unary::<2, 2>(workload, |x| softmax(x, 1)),
            Kind::Sum => self.unary::<1, 1>(workload, |x| x.sum()),
            Kind::Chain => self.unary::<1, 1>(workload, chain),
            Kind::Tasks => self.tasks(workload),
            Kind::Many => Vec::new(),
        }
    }

    fn unary<'w, const FROM: usize, const TO: usize>(
        &self,
        workload: &'w Workload,
        f: impl Fn(Tensor<FROM>) -> Tensor<TO> + Copy + 'w,
    ) -> Vec<Arm<'w>> {
        let device = self.device.clone();
        let from_host = move || values(f(upload(&workload.inputs[0], &device)));
        let resident: Tensor<FROM> = upload(&workload.inputs[0], &self.device);
        vec![
            returning(LIB, COMPILER, from_host, Ok),
            returning(RESIDENT, COMPILER, move || values(f(resident.clone())), Ok),
        ]
    }

    fn binary<'w, const FROM: usize, const TO: usize>(
        &self,
        workload: &'w Workload,
        f: impl Fn(Tensor<FROM>, Tensor<FROM>) -> Tensor<TO> + Copy + 'w,
    ) -> Vec<Arm<'w>> {
        let (device, inputs) = (self.device.clone(), &workload.inputs);
        let from_host = move || values(f(upload(&inputs[0], &device), upload(&inputs[1], &device)));
        let (x, y): (Tensor<FROM>, Tensor<FROM>) = (upload(&inputs[0], &self.device), upload(&inputs[1], &self.device));
        vec![
            returning(LIB, COMPILER, from_host, Ok),
            returning(RESIDENT, COMPILER, move || values(f(x.clone(), y.clone())), Ok),
        ]
    }

    /// One tensor a task: each read by itself, or all together in one transaction.
    fn tasks<'w>(&self, workload: &'w Workload) -> Vec<Arm<'w>> {
        let len = workload.inputs[0].shape[1];
        let device = self.device.clone();
        let task = move |data: &[f32]| relu(Tensor::<1>::from_data(TensorData::new(data.to_vec(), [len]), &device));
        let data = &workload.inputs[0].data;
        let each = task.clone();
        let one_by_one = move || data.chunks_exact(len).map(|data| values(each(data))).collect::<Fallible<Vec<_>>>();
        let together = move || {
            let tensors = data.chunks_exact(len).map(&task);
            let results = tensors.fold(Transaction::default(), Transaction::register).try_execute()?;
            results.into_iter().map(read).collect::<Fallible<Vec<_>>>()
        };
        let joined = |results: Vec<Vec<f32>>| Ok(results.concat());
        vec![
            returning(LIB, &format!("{COMPILER}-loop"), one_by_one, joined),
            returning(LIB, &format!("{COMPILER}-transaction"), together, joined),
        ]
    }
}

fn chain(x: Tensor<1>) -> Tensor<1> {
    let gate = sigmoid(x.clone() * 1.5 + 0.5);
    let root = ((gate * x.clone() - 0.25).abs() + 0.1).sqrt();
    let bent = ((root + x.clone()).tanh() * 0.5 + 1.0) * x.clone();
    let fallen = relu(bent).neg().exp() * 2.0;
    let third = (fallen - x) / 3.0;
    third.clone() * third
}

fn upload<const RANK: usize>(array: &Array, device: &Device) -> Tensor<RANK> {
    Tensor::from_data(TensorData::new(array.data.clone(), array.shape.clone()), device)
}

fn values<const RANK: usize>(tensor: Tensor<RANK>) -> Fallible<Vec<f32>> {
    read(tensor.try_into_data()?)
}

fn read(data: TensorData) -> Fallible<Vec<f32>> {
    data.try_to_vec().map_err(|error| format!("{error:?}").into())
}
