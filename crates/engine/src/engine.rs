//! The engine: runs batches of recorded tensors, and compiles programs that run again and again.

use crate::array::{Array, View};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::execute;
use crate::plans::{PlanStats, Plans};
use crate::program::Program;
use breakeven_cpu::{BlockStats, Cpu};
use breakeven_ir::backend::Backend;
use breakeven_ir::{Plan, Tensor, plan_key};
use std::sync::Arc;

/// Runs array work. Two engines share nothing; cloning one shares everything.
///
/// ```
/// use breakeven::{Engine, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::from_slice(&[1.0f32, -2.0, 3.0], [3])?;
/// let (y, total) = (x.relu()?, x.sum(&[], false)?);
/// let outputs = engine.run(&[&y, &total])?;
/// assert_eq!(outputs[0].as_slice::<f32>()?, [1.0, 0.0, 3.0]);
/// assert_eq!(outputs[1].as_slice::<f32>()?, [2.0]);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) cpu: Cpu,
    pub(crate) plans: Plans,
    pub(crate) threads: usize,
}

impl Engine {
    /// An engine with the defaults, changed by the environment (see [`Config::from_env`]).
    pub fn new() -> Result<Engine> {
        Engine::with_config(Config::from_env()?)
    }

    /// An engine with these settings.
    pub fn with_config(config: Config) -> Result<Engine> {
        let threads = config.thread_count()?;
        let cpu = Cpu::new(threads).map_err(|error| Error::Threads { why: error.to_string() })?;
        Ok(Engine { shared: Arc::new(Shared { cpu, plans: Plans::new(config.plan_cache), threads }) })
    }

    /// How many threads work on a batch, the calling one included.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// The CPU in words: threads and SIMD level.
    pub fn device_name(&self) -> &str {
        self.shared.cpu.name()
    }

    /// Computes these tensors as one batch. Planned once for each structure: the same expression over other data runs
    /// the plan that is remembered.
    pub fn run(&self, outputs: &[&Tensor]) -> Result<Vec<Array>> {
        let (key, leaves) = plan_key(outputs);
        let views = leaf_views(&leaves)?;
        let prepared = self.shared.plans.get(key, outputs, &self.shared.cpu)?;
        execute::with_bytes(&views, |inputs| execute::run(&*prepared, self.shared.cpu.blocks(), inputs, true))
    }

    /// Computes with one kernel for each operation: what fused results are tested against, and how much fusion saves.
    pub fn run_unfused(&self, outputs: &[&Tensor]) -> Result<Vec<Array>> {
        let (_, leaves) = plan_key(outputs);
        let views = leaf_views(&leaves)?;
        let prepared = self.shared.cpu.prepare(&Arc::new(Plan::unfused(outputs)?))?;
        execute::with_bytes(&views, |inputs| execute::run(&*prepared, self.shared.cpu.blocks(), inputs, true))
    }

    /// A program that computes `outputs` from values for `inputs`, which were made by [`Tensor::input`]; values are
    /// given in this order.
    pub fn compile(&self, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<Program> {
        Program::new(self.shared.clone(), inputs, outputs)
    }

    /// How the plan cache has been used.
    pub fn plan_stats(&self) -> PlanStats {
        self.shared.plans.stats()
    }

    /// How the memory pool has been used.
    pub fn memory_stats(&self) -> BlockStats {
        self.shared.cpu.blocks().stats()
    }

    /// Gives memory that is kept for the next batch back to the system.
    pub fn release_memory(&self) {
        self.shared.cpu.blocks().clear();
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.device_name())
    }
}

/// The data of a graph's leaves; an input without a value is an error.
fn leaf_views<'a>(leaves: &[&'a Tensor]) -> Result<Vec<View<'a>>> {
    leaves
        .iter()
        .map(|leaf| {
            View::of(leaf).ok_or_else(|| {
                let name = leaf.as_input().map_or(String::new(), |i| i.name().into());
                breakeven_ir::Error::UnboundInput { name }.into()
            })
        })
        .collect()
}
