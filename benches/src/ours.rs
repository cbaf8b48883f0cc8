//! Our own arms: a workload enters, the compiled program in each way of running it leaves.
//!
//! `ours` takes its output from the engine's pool, `ours-out` writes into the caller's memory; where a workload is many
//! tasks, both run the program once a task; `ours-many` and `ours-many-out` hand all tasks over as one batch. Without the feature
//! `ours` there are no arms, and the peers are measured among themselves.

use crate::arm::{Arm, Fallible};
use crate::workload::Workload;

#[cfg(not(feature = "ours"))]
/// Stands where the library would.
pub struct Ours;

#[cfg(not(feature = "ours"))]
impl Ours {
    /// Nothing to start.
    pub fn start() -> Fallible<Ours> {
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
    use breakeven::{Array, DType, Engine, Many, Program, Tensor, View};

    use super::{Arm, Fallible, Workload};
    use crate::OURS;
    use crate::workload::{CHAIN, Kind, LAYER_NORM_EPSILON};

    const RUNS: &str = "a compiled program runs on inputs of its shapes";

    /// One engine for the whole run, as a user would have it.
    pub struct Ours {
        engine: Engine,
    }

    impl Ours {
        /// Starts the engine.
        pub fn start() -> Fallible<Ours> {
            Ok(Ours { engine: Engine::new()? })
        }

        /// Records and compiles the workload; its arms.
        pub fn arms<'w>(&self, workload: &'w Workload) -> Fallible<Vec<Arm<'w>>> {
            if matches!(workload.kind, Kind::Mm32Loop | Kind::Relu256Loop) {
                self.looped(workload)
            } else {
                self.whole(workload)
            }
        }

        fn compile(&self, inputs: &[Tensor], output: &Tensor) -> Fallible<Program> {
            Ok(self.engine.compile(&inputs.iter().collect::<Vec<_>>(), &[output])?)
        }

        fn whole<'w>(&self, workload: &'w Workload) -> Fallible<Vec<Arm<'w>>> {
            let shapes: Vec<&[usize]> = workload.inputs.iter().map(|input| input.shape.as_slice()).collect();
            let (inputs, output) = record(workload.kind, &shapes)?;
            let elems = output.shape().dims().iter().product();
            let compile = || self.compile(&inputs, &output);
            let (pooled, into) = (compile()?, compile()?);
            let views = || workload.inputs.iter().map(|input| View::from(&input.data)).collect::<Vec<_>>();
            let (pooled_views, into_views) = (views(), views());
            let read = |outputs: Vec<Array>| outputs[0].to_vec::<f32>().expect(RUNS);
            Ok(vec![
                Arm::returning(OURS, "", move || pooled.run(&pooled_views).expect(RUNS), read),
                Arm::writing(
                    OURS,
                    "out",
                    vec![0.0f32; elems],
                    move |out| into.run_into(&into_views, &mut [out.as_mut_slice().into()]).expect(RUNS),
                    Vec::clone,
                ),
            ])
        }

        fn looped<'w>(&self, workload: &'w Workload) -> Fallible<Vec<Arm<'w>>> {
            let shapes: Vec<&[usize]> = workload.inputs.iter().map(|input| &input.shape[1..]).collect();
            let task_elems: usize = shapes[0].iter().product();
            let (inputs, output) = record(workload.kind, &shapes)?;
            let compile = || self.compile(&inputs, &output);
            let (pooled, into, many, again) = (compile()?, compile()?, compile()?, compile()?);
            let tasks = || {
                let task = |task: usize| {
                    let view = |data: &'w [f32]| View::from(&data[task * task_elems..][..task_elems]);
                    workload.inputs.iter().map(|input| view(&input.data)).collect::<Vec<_>>()
                };
                (0..workload.n).map(task).collect::<Vec<_>>()
            };
            let (pooled_tasks, into_tasks, many_tasks, again_tasks) = (tasks(), tasks(), tasks(), tasks());
            let one_by_one = move || pooled_tasks.iter().map(|task| pooled.run(task).expect(RUNS)).collect::<Vec<_>>();
            let read = |outputs: Vec<Vec<Array>>| {
                outputs.iter().flat_map(|task| task[0].to_vec::<f32>().expect(RUNS)).collect()
            };
            let read_many = |many: &Many| {
                (0..many.len()).flat_map(|task| many.slice::<f32>(task, 0).expect(RUNS).to_vec()).collect()
            };
            let existing = move |out: &mut Vec<f32>| {
                for (task, out) in into_tasks.iter().zip(out.chunks_exact_mut(task_elems)) {
                    into.run_into(task, &mut [out.into()]).expect(RUNS);
                }
            };
            let out = vec![0.0f32; workload.n * task_elems];
            Ok(vec![
                Arm::returning(OURS, "", one_by_one, read),
                Arm::writing(OURS, "out", out, existing, Vec::clone),
                Arm::returning(
                    OURS,
                    "many",
                    move || many.run_many(&many_tasks).expect(RUNS),
                    move |many| read_many(&many),
                ),
                Arm::writing(
                    OURS,
                    "many-out",
                    again.run_many(&again_tasks)?,
                    move |results| again.run_many_into(&again_tasks, results).expect(RUNS),
                    read_many,
                ),
            ])
        }
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
            Kind::Dot => x.dot(&inputs[1])?,
            Kind::Gelu => x.gelu()?,
            Kind::Relu | Kind::Relu256Batched | Kind::Relu256Loop => x.relu()?,
            Kind::Sigmoid => x.sigmoid()?,
            Kind::Softmax | Kind::RowSoftmax => x.softmax(-1)?,
            Kind::Sum => x.sum(&[0], false)?,
            Kind::Chain => {
                let (a, b, c) = CHAIN;
                let scaled = ((x * a)? + b)?;
                let product = (scaled * x.sigmoid()?)?;
                ((product - c)?.abs()?.sqrt()? + x)?.gelu()?
            }
            Kind::Matmul | Kind::Mm32Batched | Kind::Mm32Loop => x.matmul(&inputs[1])?,
            Kind::LayerNorm => ((x.layer_norm(-1, LAYER_NORM_EPSILON)? * &inputs[1])? + &inputs[2])?,
            Kind::SumAxis0 => x.sum(&[0], false)?,
            Kind::SumAxis1 => x.sum(&[1], false)?,
            Kind::Mlp => {
                let hidden = (x.matmul(&inputs[1])? + &inputs[2])?.relu()?;
                let hidden = (hidden.matmul(&inputs[3])? + &inputs[4])?.relu()?;
                (hidden.matmul(&inputs[5])? + &inputs[6])?.softmax(-1)?
            }
        };
        Ok((inputs, output))
    }
}
