//! From nothing to the first result: a device enters, what it took to find and open it, to compile a kernel and to have its
//! result leaves.

use std::time::{Duration, Instant};

use breakeven::{Config, DType, Device, Engine, Tensor, View};

use super::batch::TASK;
use super::calls::Subject;
use super::child;
use super::job::{Ask, Fault, Job, Said};
use super::process;
use crate::scan::ops::{self, only};

/// A process that has no result after this has none.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first result of an engine.
pub fn first(config: Config, device: Device) -> Result<Vec<f32>, Fault> {
    let engine = Engine::with_config(config)?;
    let x = Tensor::input("x", DType::F32, [TASK as usize])?;
    let program = engine.compile(&[&x], &[&x.relu()?])?;
    let values = ops::values(TASK);
    let ran = program.run_with(&[View::from(&values)], &only(device))?;
    Ok(ran.outputs[0].to_vec()?)
}

/// A start, by an engine of so many threads.
struct Start {
    how: How,
    threads: usize,
}

/// How a start is made.
enum How {
    Engine,
    Process { remembered: bool },
}

impl Start {
    fn go(&self, device: Device) -> Result<(u64, Vec<f32>), Fault> {
        let begun = Instant::now();
        let ns = |begun: Instant| begun.elapsed().as_nanos() as u64;
        match &self.how {
            How::Engine => {
                let config = child::config(&[device], Some(self.threads))?;
                let values = first(Config { cache_dir: None, ..config }, device)?;
                Ok((ns(begun), values))
            }
            How::Process { remembered } => {
                let job = Job::asking(Ask::First { remembered: *remembered }, &[device]);
                let job = Job { threads: Some(self.threads), ..job };
                let mut found = None;
                let mut listen = |said| {
                    match said {
                        Said::First(values) => found = Some(Ok((ns(begun), values))),
                        Said::Trouble(trouble) => {
                            found = Some(Err(Fault { kind: trouble.kind, why: trouble.why }));
                        }
                        _ => {}
                    }
                    process::Then::GoOn
                };
                let ended = process::run(&job, PATIENCE, &|| false, &mut listen);
                found.unwrap_or_else(|| Err(Fault::failed(ended.why())))
            }
        }
    }
}

impl Subject for Start {
    fn run(&mut self, device: Device) -> Result<u64, Fault> {
        Ok(self.go(device)?.0)
    }

    fn results(&mut self, device: Device) -> Result<Vec<Vec<f64>>, Fault> {
        Ok(vec![self.go(device)?.1.into_iter().map(f64::from).collect()])
    }
}

/// A new engine in this process, which remembers nothing.
pub fn new_engine(engine: &Engine, _: u64) -> Result<Box<dyn Subject>, Fault> {
    Ok(Box::new(Start { how: How::Engine, threads: engine.threads() }))
}

/// A new process, which finds what was remembered.
pub fn new_process(engine: &Engine, _: u64) -> Result<Box<dyn Subject>, Fault> {
    Ok(Box::new(Start { how: How::Process { remembered: true }, threads: engine.threads() }))
}

/// A new process, as if it were the first one on this machine.
pub fn first_process(engine: &Engine, _: u64) -> Result<Box<dyn Subject>, Fault> {
    Ok(Box::new(Start { how: How::Process { remembered: false }, threads: engine.threads() }))
}
