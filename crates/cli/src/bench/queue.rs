//! Round trips through the queue: a device enters, what it took from submitting to the answer leaves.

use std::time::Instant;

use breakeven::{Command, DType, Device, Engine, Job, Program, Tensor, View};

use super::batch::TASK;
use super::calls::{Subject, numbers};
use super::job::Fault;
use crate::scan::ops::{self, only};

/// A small job and its data.
struct Small {
    engine: Engine,
    program: Program,
    x: Tensor,
}

impl Small {
    fn new(engine: &Engine) -> Result<Small, Fault> {
        let x = Tensor::input("x", DType::F32, [TASK as usize])?;
        let program = engine.compile(&[&x], &[&x.relu()?])?;
        Ok(Small { engine: engine.clone(), program, x: ops::data(&[TASK])? })
    }

    fn job(&self, device: Device) -> Job {
        Job::program(&self.program, [self.x.clone()]).device(device).alone()
    }
}

fn ns(begun: Instant) -> u64 {
    begun.elapsed().as_nanos() as u64
}

/// A call on the calling thread.
pub fn direct(engine: &Engine, _jobs: u64) -> Result<Box<dyn Subject>, Fault> {
    struct Direct(Small);
    impl Subject for Direct {
        fn run(&mut self, device: Device) -> Result<u64, Fault> {
            let options = only(device);
            let view = View::of(&self.0.x).ok_or_else(|| Fault::failed("the input has no data"))?;
            Ok(self.0.program.run_with(&[view], &options)?.decision.actual_ns)
        }

        fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
            let view = View::of(&self.0.x).ok_or_else(|| Fault::failed("the input has no data"))?;
            Ok(numbers(&self.0.program.run_with(&[view], &only(device))?.outputs))
        }
    }
    Ok(Box::new(Direct(Small::new(engine)?)))
}

/// Jobs that are submitted together and answered one by one.
struct AtOnce {
    small: Small,
    jobs: u64,
}

impl Subject for AtOnce {
    fn run(&mut self, device: Device) -> Result<u64, Fault> {
        let begun = Instant::now();
        let submit = |_| self.small.engine.submit(self.small.job(device));
        let tickets: breakeven::Result<Vec<_>> = (0..self.jobs).map(submit).collect();
        for ticket in tickets? {
            ticket.wait()?;
        }
        Ok(ns(begun))
    }

    fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
        Ok(numbers(&self.small.engine.submit(self.small.job(device))?.arrays()?))
    }
}

/// One job, there and back.
pub fn round_trip(engine: &Engine, _jobs: u64) -> Result<Box<dyn Subject>, Fault> {
    Ok(Box::new(AtOnce { small: Small::new(engine)?, jobs: 1 }))
}

/// So many jobs at once, each for itself.
pub fn at_once(engine: &Engine, jobs: u64) -> Result<Box<dyn Subject>, Fault> {
    Ok(Box::new(AtOnce { small: Small::new(engine)?, jobs }))
}

/// A command that waits for a device that has nothing to do.
pub fn synchronize(engine: &Engine, _jobs: u64) -> Result<Box<dyn Subject>, Fault> {
    struct Synchronize(Engine);
    impl Subject for Synchronize {
        fn run(&mut self, device: Device) -> Result<u64, Fault> {
            let begun = Instant::now();
            self.0.submit(Job::command(Command::Synchronize { device }))?.wait()?;
            Ok(ns(begun))
        }

        fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
            self.run(device).map(|_| Vec::new())
        }
    }
    Ok(Box::new(Synchronize(engine.clone())))
}
