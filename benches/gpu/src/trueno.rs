//! trueno's arms: the calls of its `GpuDevice`, on the shared adapter.
//!
//! Each call makes its shader, pipeline and buffers anew; that is the library as published. It has no softmax along
//! rows, so that one is a call a row.

use trueno::backends::gpu::GpuDevice;

use crate::arm::{Arm, Fallible};
use crate::attempt::writing;
use crate::workload::{Kind, Workload};

const LIB: &str = "trueno";

/// trueno's device.
pub struct Trueno {
    device: GpuDevice,
}

impl Trueno {
    /// Opens the Vulkan adapter of this name.
    pub fn open(adapter: &str) -> Fallible<Trueno> {
        let adapters = GpuDevice::list_adapters();
        let found = adapters.iter().find(|(_, name, backend)| name == adapter && backend == "Vulkan");
        let (index, ..) = found.ok_or_else(|| format!("trueno does not see {adapter} but {adapters:?}"))?;
        Ok(Trueno { device: GpuDevice::new_with_adapter_index(*index)? })
    }

    /// The arms for one workload. `quick` leaves out what takes seconds a call.
    pub fn arms<'w>(&self, workload: &'w Workload, quick: bool) -> Vec<Arm<'w>> {
        let device = self.device.clone();
        let n = workload.n;
        let x = workload.inputs[0].data.as_slice();
        let y = workload.inputs.get(1).map_or(&[][..], |y| y.data.as_slice());
        let arm = match workload.kind {
            Kind::Add => writing(LIB, "", vec![0.0; n], move |out| Ok(device.vec_add(x, y, out)?)),
            Kind::Relu => writing(LIB, "", vec![0.0; n], move |out| Ok(device.relu(x, out)?)),
            Kind::Softmax => writing(LIB, "", vec![0.0; n], move |out| Ok(device.softmax(x, out)?)),
            Kind::Dot => writing(LIB, "", vec![0.0], move |out| {
                out[0] = device.dot(x, y)?;
                Ok(())
            }),
            // As near to a square as divides it: its sum is one over tiles of a matrix.
            Kind::Sum => {
                let width = (1..=n.isqrt()).rev().find(|width| n.is_multiple_of(*width)).unwrap_or(1);
                writing(LIB, "", vec![0.0], move |out| {
                    out[0] = device.tiled_sum_2d(x, width, n / width)?;
                    Ok(())
                })
            }
            Kind::Matmul => writing(LIB, "", vec![0.0; n * n], move |out| Ok(device.matmul(x, y, out, n, n, n)?)),
            Kind::RowSoftmax if !quick => writing(LIB, "rows", vec![0.0; x.len()], move |out| {
                for (row, out) in x.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
                    device.softmax(row, out)?;
                }
                Ok(())
            }),
            Kind::RowSoftmax | Kind::Chain | Kind::Tasks | Kind::Many => return Vec::new(),
        };
        vec![arm]
    }
}
