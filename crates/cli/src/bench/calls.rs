//! Calls of compiled programs: an engine and a size enter, something leaves that runs on any device, tells what that took,
//! and gives its results to be compared.

use breakeven::{Array, DType, Device, Engine, Program, Result, Tensor, View};

use super::job::Fault;
use crate::scan::ops::{self, Load, only};

/// Something that is measured.
pub trait Subject {
    /// Runs it there, and nowhere else; nanoseconds leave.
    fn run(&mut self, device: Device) -> Result<u64, Fault>;

    /// What it computes there.
    fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault>;
}

/// Values of arrays.
pub fn numbers(arrays: &[Array]) -> Vec<Vec<f64>> {
    arrays.iter().map(Array::to_f64).collect()
}

impl Subject for Load {
    fn run(&mut self, device: Device) -> Result<u64, Fault> {
        Ok(Load::run(self, device)?)
    }

    fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
        Ok(numbers(&Load::results(self, device)?))
    }
}

/// The product of two square matrices.
pub fn matmul(engine: &Engine, size: u64) -> Result<Load> {
    ops::batch(engine, &ops::data(&[size, size])?.matmul(&ops::data(&[size, size])?)?)
}

/// `exp(x * y) + y` as one batch.
pub fn three_fused(engine: &Engine, size: u64) -> Result<Load> {
    let (x, y) = (ops::data(&[size])?, ops::data(&[size])?);
    ops::batch(engine, &(&(&x * &y)?.exp()? + &y)?)
}

/// The same as three calls, from host memory to host memory.
pub struct ThreeCalls {
    multiply: Program,
    exp: Program,
    add: Program,
    x: Vec<f32>,
}

impl ThreeCalls {
    /// Of so many elements.
    pub fn new(engine: &Engine, size: u64) -> Result<ThreeCalls> {
        let input = |name| Tensor::input(name, DType::F32, [size as usize]);
        let (x, y) = (input("x")?, input("y")?);
        let multiply = engine.compile(&[&x, &y], &[&(&x * &y)?])?;
        let exp = engine.compile(&[&x], &[&x.exp()?])?;
        let add = engine.compile(&[&x, &y], &[&(&x + &y)?])?;
        Ok(ThreeCalls { multiply, exp, add, x: ops::values(size) })
    }

    fn go(&self, device: Device) -> Result<(u64, Vec<Array>)> {
        let (options, x) = (only(device), View::from(&self.x));
        let product = self.multiply.run_with(&[x, x], &options)?;
        let exp = self.exp.run_with(&[View::from(&product.outputs[0])], &options)?;
        let sum = self.add.run_with(&[View::from(&exp.outputs[0]), x], &options)?;
        let ns = [&product, &exp, &sum].map(|ran| ran.decision.actual_ns).iter().sum();
        Ok((ns, sum.outputs))
    }
}

impl Subject for ThreeCalls {
    fn run(&mut self, device: Device) -> Result<u64, Fault> {
        Ok(self.go(device)?.0)
    }

    fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
        Ok(numbers(&self.go(device)?.1))
    }
}
