//! Many small tasks: so many of them enter, a call for each or one call with the elements of all leaves. What `run_many`
//! makes of them is [`ops::many`].

use breakeven::{Array, DType, Device, Engine, Program, Result, Tensor, View};

use super::calls::{Subject, numbers};
use super::job::Fault;
use crate::scan::ops::{self, Load, only};

/// Elements of a task.
pub const TASK: u64 = 256;

/// The elements of all tasks in one call.
pub fn one_call(engine: &Engine, tasks: u64) -> Result<Load> {
    ops::batch(engine, &ops::data(&[tasks * TASK])?.relu()?)
}

/// A call for each task.
pub struct OneByOne {
    program: Program,
    data: Vec<f32>,
}

impl OneByOne {
    /// So many tasks.
    pub fn new(engine: &Engine, tasks: u64) -> Result<OneByOne> {
        let x = Tensor::input("x", DType::F32, [TASK as usize])?;
        Ok(OneByOne { program: engine.compile(&[&x], &[&x.relu()?])?, data: ops::values(tasks * TASK) })
    }

    fn go(&self, device: Device, mut each: impl FnMut(Array)) -> Result<u64> {
        let options = only(device);
        let mut total_ns = 0;
        for task in self.data.chunks_exact(TASK as usize) {
            let mut ran = self.program.run_with(&[View::from(task)], &options)?;
            total_ns += ran.decision.actual_ns;
            each(ran.outputs.swap_remove(0));
        }
        Ok(total_ns)
    }
}

impl Subject for OneByOne {
    fn run(&mut self, device: Device) -> Result<u64, Fault> {
        Ok(self.go(device, drop)?)
    }

    fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
        let mut all = Vec::new();
        self.go(device, |array| all.push(array))?;
        Ok(numbers(&all))
    }
}
