//! The engine: runs batches of recorded tensors, and compiles programs that run again and again. `costs` has what is known about
//! devices, `jobs` the queue.

mod costs;
mod jobs;

use crate::array::{Array, View};
use crate::batch::{Batch, Stay};
use crate::config::{Config, Device};
use crate::decision::Decision;
use crate::devices::{DeviceInfo, Devices};
use crate::error::{Error, Result};
use crate::execute::{self, Views};
use crate::plans::{PlanStats, Plans};
use crate::profile::{self, Outputs, Watch};
use crate::program::Program;
use crate::queue::Queue;
use crate::resident;
use crate::route::{self, OnCpu, RunOptions};
use crate::router::Router;
use crate::scout::{Parts, Scout};
use breakeven_cpu::{BlockStats, Blocks, Cpu};
use breakeven_ir::backend::{Backend, Health, Prepared, RunError, Stop, Usage};
use breakeven_ir::{Buffer, Plan, Tensor, plan_key};
use costs::device_number;
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
    /// Ends with the last of the engine's clones; programs and values that stay on a device do not keep it.
    queue: Arc<Queue>,
}

pub(crate) struct Shared {
    pub(crate) plans: Plans,
    scout: Scout,
    parts: Arc<Parts>,
    /// The profile that is recorded.
    pub(crate) profiling: profile::Place,
}

impl std::ops::Deref for Shared {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Shared {
    /// May this batch of so many tasks run elsewhere than on the CPU? Where it can't, its time tells whether to look for
    /// devices.
    #[inline]
    pub(crate) fn is_routed(&self, prepared: &dyn Prepared, tasks: usize) -> bool {
        match self.config.device {
            Device::Gpu(_) => true,
            Device::Cpu => self.config.slow_cpu > 1,
            Device::Auto | Device::All => {
                if self.router.is_open() || self.config.slow_cpu > 1 {
                    return !self.router.is_settled(prepared.plan(), tasks);
                }
                self.scout.note(prepared.estimate_ns() * tasks as u64);
                false
            }
        }
    }
}

impl Shared {
    /// Why a batch that is not routed runs on the CPU.
    pub(crate) fn why_cpu(&self) -> OnCpu {
        match self.config.device {
            Device::Auto | Device::All if self.router.is_open() => OnCpu::Settled,
            Device::Auto | Device::All => OnCpu::Unmeasured,
            Device::Cpu | Device::Gpu(_) => OnCpu::Asked,
        }
    }
}

/// A batch that has run.
///
/// ```
/// use breakeven::{Engine, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::from_slice(&[3.0f32, 4.0], [2])?;
/// let ran = engine.run_with(&[&x.norm(&[], false)?], &Default::default())?;
/// assert_eq!(ran.outputs[0].as_slice::<f32>()?, [5.0]);
/// assert_eq!(ran.decision.kernels, 1);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ran {
    /// The results.
    pub outputs: Vec<Array>,
    /// Where they were made, why, and what it took.
    pub decision: Decision,
}

impl Engine {
    /// An engine with the defaults, changed by the environment (see [`Config::from_env`]).
    pub fn new() -> Result<Engine> {
        Engine::with_config(Config::from_env()?)
    }

    /// An engine with these settings.
    pub fn with_config(config: Config) -> Result<Engine> {
        Engine::build(Devices::new(config.clone()), config)
    }

    /// An engine whose devices beside the CPU are these, as `gpu:0`, `gpu:1`, .. in this order: for devices of one's
    /// own, and for wrappers around others.
    pub fn with_backends(config: Config, backends: Vec<Arc<dyn Backend>>) -> Result<Engine> {
        Engine::build(Devices::given(config.clone(), backends), config)
    }

    fn build(devices: Devices, config: Config) -> Result<Engine> {
        let threads = config.thread_count()?;
        if !(0.0..=1.0).contains(&config.verify) {
            let value = config.verify.to_string();
            return Err(Error::Setting { name: "verify", value, expected: "a share from 0 to 1" });
        }
        let cpu = Cpu::new(threads).map_err(|error| Error::Threads { why: error.to_string() })?;
        if !(0.0..=1.0).contains(&config.explore) {
            let value = config.explore.to_string();
            return Err(Error::Setting { name: "explore", value, expected: "a share from 0 to 1" });
        }
        let plans = Plans::new(config.plan_cache);
        let router = Arc::new(Router::new(config.plan_cache, config.explore));
        let parts = Arc::new(Parts { cpu: Arc::new(cpu), devices: Arc::new(devices), router, config, threads });
        let (scout, profiling) = (Scout::new(parts.clone()), profile::Place::default());
        let shared = Arc::new(Shared { plans, scout, parts, profiling });
        Ok(Engine { shared, queue: Arc::default() })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The pool that outputs come from.
    pub(crate) fn blocks(&self) -> &Arc<Blocks> {
        self.shared.cpu.blocks()
    }

    /// Has this engine compiled it?
    pub(crate) fn is_of(&self, program: &Program) -> bool {
        Arc::ptr_eq(&self.shared, &program.inner.engine)
    }

    /// How many threads work on a batch, the calling one included.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// A device in words: threads and SIMD level of `cpu`, what `gpu:N` is called. Empty if there is none of that id.
    pub fn device_name(&self, id: &str) -> String {
        match id.parse() {
            Ok(Device::Cpu) => self.shared.cpu.name().to_owned(),
            Ok(Device::Gpu(Some(number))) => {
                self.shared.devices.slot(number).map_or(String::new(), |slot| slot.backend.name().to_owned())
            }
            _ => String::new(),
        }
    }

    /// The CPU and every other device, which are looked for and opened if they were not.
    pub fn devices(&self) -> Vec<DeviceInfo> {
        let mut devices = vec![DeviceInfo::named("cpu", self.shared.cpu.name())];
        devices.extend(self.shared.devices.infos());
        devices
    }

    /// Computes these tensors as one batch. Planned once for each structure: the same expression over other data runs
    /// the plan that is remembered.
    pub fn run(&self, outputs: &[&Tensor]) -> Result<Vec<Array>> {
        let mut watch = Watch::begin(&self.shared);
        let (key, leaves) = plan_key(outputs);
        watch.recorded();
        let prepared = self.shared.plans.get(key, outputs, &*self.shared.cpu)?;
        let views = leaf_views(&leaves)?;
        if self.shared.is_routed(&*prepared, 1) || views.iter().any(View::is_elsewhere) {
            watch.open(prepared.plan(), Outputs::Lent(outputs));
            let mut batch = Batch::new(&self.shared, &prepared, views);
            let done = route::run(&self.shared, &RunOptions::default(), &mut batch);
            watch.routed(&self.shared, prepared.plan(), 1, &done);
            return Ok(done?.0);
        }
        watch.planned();
        let done =
            execute::with_bytes(&views, |inputs| execute::run(&*prepared, self.shared.cpu.blocks(), inputs, None))?;
        watch.done_on_cpu(&self.shared, prepared.plan(), 1, Outputs::Lent(outputs));
        Ok(done)
    }

    /// Computes these tensors as one batch where `options` say, and tells where that was and why.
    pub fn run_with(&self, outputs: &[&Tensor], options: &RunOptions) -> Result<Ran> {
        run_batch(&self.shared, outputs, options, None)
    }

    /// Computes these tensors, and leaves the results on the device that made them: they feed the next batch without a
    /// transfer, and come to the host when it reads them. They outlive the device: what they were made from is kept,
    /// and the CPU computes them again if they are lost.
    ///
    /// ```
    /// use breakeven::{Engine, Tensor};
    /// let engine = Engine::new()?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
    /// let y = &engine.run_resident(&[&(&x * 2.0)?])?[0];
    /// assert_eq!(engine.run(&[&(y + 1.0)?])?[0].as_slice::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn run_resident(&self, outputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut watch = Watch::begin(&self.shared);
        let (key, leaves) = plan_key(outputs);
        watch.recorded();
        let prepared = self.shared.plans.get(key, outputs, &*self.shared.cpu)?;
        let views = leaf_views(&leaves)?;
        watch.open(prepared.plan(), Outputs::Lent(outputs));
        let batch = Batch::new(&self.shared, &prepared, views);
        let mut stay = Stay { batch, engine: self, recipes: outputs };
        let done = route::run(&self.shared, &RunOptions::default(), &mut stay);
        watch.routed(&self.shared, prepared.plan(), 1, &done);
        Ok(done?.0)
    }

    /// A tensor with its data on a device, computed if it was not: batches there read it without a transfer. The host
    /// keeps its copy, from which the data goes up again if the device is lost.
    ///
    /// With a device that is named (`Config::device`) it lies there; on the CPU there is nothing to do. With
    /// `Device::Auto` or `Device::All` it goes to the device on which large batches that read it are expected to be done
    /// first, by costs that are known by now ([`Engine::load_costs`], [`Engine::measure`], or what was found out in the
    /// background). Where no device is known or usable, or none would be done before the CPU, the data stays on the
    /// host, which is no error.
    ///
    /// ```
    /// use breakeven::{Engine, Tensor};
    /// let engine = Engine::new()?;
    /// let weights = engine.pin(&Tensor::from_slice(&[1.0f32, 2.0], [2])?)?;
    /// assert_eq!(engine.run(&[&(&weights * 2.0)?])?[0].as_slice::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn pin(&self, tensor: &Tensor) -> Result<Tensor> {
        let host = match tensor.as_data() {
            Some(buffer) => buffer.clone(),
            None => self.run(&[tensor])?.swap_remove(0).into_buffer(),
        };
        match resident::pin(&self.shared, &host, tensor)? {
            Some(pinned) => Ok(Tensor::from_buffer(pinned, tensor.dtype(), tensor.shape())?),
            None => Ok(Tensor::from_buffer(host, tensor.dtype(), tensor.shape())?),
        }
    }

    /// The same engine, for what must not keep its queue alive.
    pub(crate) fn without_queue(&self) -> Engine {
        Engine { shared: self.shared.clone(), queue: Arc::default() }
    }

    /// The value of a tensor that was computed before and lost, from the CPU.
    pub(crate) fn compute_again(&self, tensor: &Tensor) -> Result<Buffer, RunError> {
        let options = RunOptions { device: Some(Device::Cpu), ..RunOptions::default() };
        match self.run_with(&[tensor], &options) {
            Ok(mut ran) => Ok(ran.outputs.swap_remove(0).into_buffer()),
            Err(Error::Run(error)) => Err(error),
            Err(error) => Err(RunError::Device { device: "cpu".into(), message: error.to_string() }),
        }
    }

    /// Computes with one kernel for each operation: what fused results are tested against, and how much fusion saves.
    pub fn run_unfused(&self, outputs: &[&Tensor]) -> Result<Vec<Array>> {
        let mut watch = Watch::begin(&self.shared);
        let (_, leaves) = plan_key(outputs);
        watch.recorded();
        let views = leaf_views(&leaves)?;
        let prepared = self.shared.cpu.prepare(&Arc::new(Plan::unfused(outputs)?))?;
        watch.planned();
        let done =
            execute::with_bytes(&views, |inputs| execute::run(&*prepared, self.shared.cpu.blocks(), inputs, None))?;
        watch.end_on_cpu(prepared.plan(), 1, Outputs::Lent(outputs), OnCpu::Unfused);
        Ok(done)
    }

    /// Begins a profile: where the time goes from now on, until [`Recorder::finish`](profile::Recorder::finish). The calling
    /// thread takes part, and the queue's workers do; other threads [join](profile::Handle::join). An engine has one at a time.
    ///
    /// ```
    /// use breakeven::{Engine, Tensor, span};
    /// let engine = Engine::new()?;
    /// let recorder = engine.profile()?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
    /// for _ in 0..10 {
    ///     let _stage = span!("doubling");
    ///     engine.run(&[&(&x * 2.0)?])?;
    /// }
    /// let profile = recorder.finish();
    /// assert_eq!((profile.batches.len(), profile.plans.len()), (10, 1));
    /// assert_eq!(profile.batches[0].decision.device, "cpu");
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn profile(&self) -> Result<profile::Recorder> {
        let recorder = profile::Place::begin(&self.shared)?;
        if let Some(core) = self.queue.started() {
            // Workers that sleep join, too.
            core.wake();
        }
        Ok(recorder)
    }

    /// A program that computes `outputs` from values for `inputs`, which were made by [`Tensor::input`]; values are
    /// given in this order.
    pub fn compile(&self, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<Program> {
        Program::new(self.shared.clone(), &self.queue, inputs, outputs)
    }

    /// How the plan cache has been used.
    pub fn plan_stats(&self) -> PlanStats {
        self.shared.plans.stats()
    }

    /// How the memory pool has been used.
    pub fn memory_stats(&self) -> BlockStats {
        self.shared.cpu.blocks().stats()
    }

    /// Gives memory that is kept for the next batch back to the system, on devices too: plans that were made ready for
    /// them are made ready again when they are next needed.
    pub fn release_memory(&self) {
        self.shared.cpu.blocks().clear();
        for slot in self.shared.devices.all_opened() {
            // A device that does not answer keeps what it has, and its health says so.
            let _ = slot.release();
        }
    }

    /// What a device (`cpu`, `gpu:0`, ..) holds and has to do. It is opened if it was not.
    ///
    /// ```
    /// use breakeven::{Engine, Tensor};
    /// let engine = Engine::new()?;
    /// let ones = engine.run(&[&Tensor::from_slice(&[0.0f32], [1])?.exp()?])?;
    /// assert!(engine.usage("cpu")?.in_use_bytes > 0);
    /// drop(ones);
    /// assert_eq!(engine.usage("cpu")?.in_use_bytes, 0);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn usage(&self, device: &str) -> Result<Usage> {
        match device_number(device)?.checked_sub(1) {
            Some(number) => Ok(self.shared.devices.slot(number)?.backend.usage()),
            None => {
                let memory = self.memory_stats();
                let (in_use_bytes, free_bytes) = (memory.used_bytes as u64, memory.free_bytes as u64);
                Ok(Usage { in_use_bytes, reserved_bytes: in_use_bytes + free_bytes, ..Usage::default() })
            }
        }
    }

    /// How a device (`cpu`, `gpu:0`, ..) fares. It is opened if it was not.
    pub fn health(&self, device: &str) -> Result<Health> {
        match device_number(device)?.checked_sub(1) {
            Some(number) => Ok(self.shared.devices.slot(number)?.health()),
            None => Ok(DeviceInfo::named("cpu", self.shared.cpu.name()).health),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.shared.cpu.name())
    }
}

/// Computes these tensors as one batch where `options` say, unless it is told to stop.
pub(crate) fn run_batch(
    engine: &Shared,
    outputs: &[&Tensor],
    options: &RunOptions,
    stop: Option<&Stop>,
) -> Result<Ran> {
    let mut watch = Watch::begin(engine);
    let (key, leaves) = plan_key(outputs);
    watch.recorded();
    let prepared = engine.plans.get(key, outputs, &*engine.cpu)?;
    let views = leaf_views(&leaves)?;
    watch.open(prepared.plan(), Outputs::Lent(outputs));
    let mut batch = Batch { stop, ..Batch::new(engine, &prepared, views) };
    let done = route::run(engine, options, &mut batch);
    watch.routed(engine, prepared.plan(), 1, &done);
    let (outputs, outcome) = done?;
    Ok(Ran { outputs, decision: outcome.decision(engine, &batch) })
}

/// The data of a graph's leaves; an input without a value is an error.
fn leaf_views<'a>(leaves: &[&'a Tensor]) -> Result<Views<'a>> {
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
