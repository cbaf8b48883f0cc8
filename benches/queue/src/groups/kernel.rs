//! A small kernel through a queue: a program of 256 elements runs in the caller's thread, or in the worker's.

use std::hint::black_box;
use std::sync::Arc;

use breakeven::{Config, DType, Device, Engine, Program, Tensor, View};

use super::Row;
use crate::arm::Fallible;
use crate::case::Case;
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_peer};
use crate::request::{Answer, Kernel, Outcome, Refused, Request};

/// Its elements.
pub(crate) const ELEMENTS: usize = 256;

pub(super) fn rows() -> Vec<Row> {
    let row = Row::new("kernel", "256 elements", cases);
    vec![row.job(
        "one add of 256 floats by the same program: called directly, as a job of ours, or by a worker that a \
                  request with a closure reaches",
    )]
}

/// An add of two inputs on one thread of the CPU: at this size, helpers would only be in the way.
pub(crate) fn program() -> Fallible<(Engine, Program)> {
    let config = Config { device: Device::Cpu, threads: Some(1), ..Config::default() };
    let engine = Engine::with_config(config)?;
    let x = Tensor::input("x", DType::F32, [ELEMENTS])?;
    let y = Tensor::input("y", DType::F32, [ELEMENTS])?;
    let program = engine.compile(&[&x, &y], &[&(&x + &y)?])?;
    Ok((engine, program))
}

fn cases() -> Fallible<Vec<Case>> {
    let (_, program) = program()?;
    let values = vec![1.0f32; ELEMENTS];
    let kernel: Kernel = Arc::new(move || run(&program, &values));
    let direct = kernel.clone();
    let mut cases = crate::ours::cases::kernel()?;
    cases.push(Case::whole("direct", "", move || {
        drop(black_box(direct()?));
        Ok(())
    }));
    cases.extend(with_every_peer(&Launch(kernel))?);
    Ok(cases)
}

fn run(program: &Program, values: &[f32]) -> Outcome {
    let outputs = program.run(&[View::from(values), View::from(values)]).map_err(Refused::from)?;
    black_box(outputs);
    Ok(Answer::Done)
}

struct Launch(Kernel);

impl Experiment for Launch {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let (pipe, kernel) = (P::open(CAPACITY)?, self.0.clone());
        Ok(Case::whole(P::NAME, P::VARIANT, move || Ok(pipe.call(Request::Launch(kernel.clone())).map(drop)?)))
    }
}
