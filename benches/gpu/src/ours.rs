//! Our own arms: a workload enters, the compiled program in each way of running it leaves.
//!
//! `ours` takes its output from the engine, `ours-out` writes into the caller's memory; where a workload is many tasks,
//! `ours-many` hands them over as one batch. The engine is strict: if the adapter fails, the arm fails, and no time of
//! the CPU's gets into the table. Without the feature `ours` there are no arms, and the peers are measured among
//! themselves.

use crate::arm::{Arm, Fallible};
use crate::workload::Workload;

#[cfg(not(feature = "ours"))]
/// Stands where the library would.
pub struct Ours;

#[cfg(not(feature = "ours"))]
impl Ours {
    /// Nothing to open.
    pub fn open() -> Fallible<Ours> {
        Ok(Ours)
    }

    /// No arms.
    pub fn arms<'w>(&self, _: &'w Workload) -> Fallible<Vec<Arm<'w>>> {
        Ok(Vec::new())
    }
}

#[cfg(feature = "ours")]
pub use library::Ours;

#[cfg(feature = "ours")]
mod library {
    use std::hint::black_box;

    use breakeven::{Api, Array, Config, DType, Device, Engine, Many, Program, Tensor, View};

    use super::{Arm, Fallible, Workload};
    use crate::OURS;
    use crate::attempt::{returning, writing};
    use crate::workload::Kind;

    /// One engine for the whole run, as a user would have it.
    pub struct Ours {
        engine: Engine,
    }

    impl Ours {
        /// Starts the engine on the only Vulkan adapter.
        pub fn open() -> Fallible<Ours> {
            let config =
                Config { device: Device::Gpu(Some(0)), strict: true, apis: vec![Api::Vulkan], ..Config::from_env()? };
            Ok(Ours { engine: Engine::with_config(config)? })
        }

        /// Records and compiles the workload; its arms.
        pub fn arms<'w>(&self, workload: &'w Workload) -> Fallible<Vec<Arm<'w>>> {
            match workload.kind {
                Kind::Tasks => Ok(vec![self.many(workload)?]),
                Kind::Many => {
                    let one = self.whole(workload)?;
                    // Also ours, but what the many are compared with.
                    let one = one.into_iter().map(|arm| Arm { library: "one-call", ..arm });
                    Ok([self.many(workload)?].into_iter().chain(one).collect())
                }
                _ => self.whole(workload),
            }
        }

        fn compile(&self, inputs: &[Tensor], output: &Tensor) -> Fallible<Program> {
            Ok(self.engine.compile(&inputs.iter().collect::<Vec<_>>(), &[output])?)
        }

        fn whole<'w>(&self, workload: &'w Workload) -> Fallible<Vec<Arm<'w>>> {
            let shapes: Vec<&[usize]> = workload.inputs.iter().map(|input| input.shape.as_slice()).collect();
            let (inputs, output) = record(workload.kind, &shapes)?;
            let elements = output.shape().dims().iter().product();
            let (pooled, into) = (self.compile(&inputs, &output)?, self.compile(&inputs, &output)?);
            let views = || workload.inputs.iter().map(|input| View::from(&input.data)).collect::<Vec<_>>();
            let (pooled_views, into_views) = (views(), views());
            let read = |outputs: Vec<Array>| Ok(outputs[0].to_vec::<f32>()?);
            Ok(vec![
                returning(OURS, "", move || looked_at(pooled.run(&pooled_views)?), read),
                writing(
                    OURS,
                    "out",
                    vec![0.0; elements],
                    move |out| Ok(into.run_into(&into_views, &mut [out.into()])?),
                ),
            ])
        }

        fn many<'w>(&self, workload: &'w Workload) -> Fallible<Arm<'w>> {
            let shapes: Vec<&[usize]> = workload.inputs.iter().map(|input| &input.shape[1..]).collect();
            let (inputs, output) = record(Kind::Relu, &shapes)?;
            let program = self.compile(&inputs, &output)?;
            let len = shapes[0].iter().product();
            let tasks: Vec<[View<'w>; 1]> =
                workload.inputs[0].data.chunks_exact(len).map(|data| [View::from(data)]).collect();
            let read = |many: Many| {
                let slices = (0..many.len()).map(|task| Ok(many.slice::<f32>(task, 0)?.to_vec()));
                Ok(slices.collect::<Fallible<Vec<_>>>()?.concat())
            };
            let run = move || {
                let many = program.run_many(&tasks)?;
                black_box(many.slice::<f32>(many.len() - 1, 0)?);
                Ok(many)
            };
            Ok(returning(OURS, "many", run, read))
        }
    }

    /// Results that stayed on the device are not done before someone looks at them.
    fn looked_at(outputs: Vec<Array>) -> Fallible<Vec<Array>> {
        for output in &outputs {
            black_box(output.as_slice::<f32>()?);
        }
        Ok(outputs)
    }

    /// The workload's expression: its inputs, in the order in which values are given, and its output.
    fn record(kind: Kind, shapes: &[&[usize]]) -> Fallible<(Vec<Tensor>, Tensor)> {
        let mut inputs = Vec::new();
        for (i, &shape) in shapes.iter().enumerate() {
            inputs.push(Tensor::input(&format!("x{i}"), DType::F32, shape)?);
        }
        let x = &inputs[0];
        let output = match kind {
            Kind::Add => (x + &inputs[1])?,
            Kind::Relu | Kind::Tasks | Kind::Many => x.relu()?,
            Kind::Dot => x.dot(&inputs[1])?,
            Kind::Softmax | Kind::RowSoftmax => x.softmax(-1)?,
            Kind::Sum => x.sum(&[0], false)?,
            Kind::Matmul => x.matmul(&inputs[1])?,
            Kind::Chain => {
                let gate = ((x * 1.5f32)? + 0.5f32)?.sigmoid()?;
                let root = (((gate * x)? - 0.25f32)?.abs()? + 0.1f32)?.sqrt()?;
                let bent = ((((root + x)?.tanh()? * 0.5f32)? + 1.0f32)? * x)?;
                let fallen = (bent.relu()?.neg()?.exp()? * 2.0f32)?;
                let third = ((fallen - x)? / 3.0f32)?;
                (&third * &third)?
            }
        };
        Ok((inputs, output))
    }
}
