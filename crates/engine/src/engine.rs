//! The engine: runs batches of recorded tensors, and compiles programs that run again and again.

use crate::array::{Array, View};
use crate::batch::{Batch, Stay};
use crate::config::{Config, Device};
use crate::cost::{Costs, Effort, Measured, Prediction, Progress, Work};
use crate::decision::Decision;
use crate::devices::{DeviceInfo, Devices};
use crate::error::{Error, Result};
use crate::execute::{self, Views};
use crate::plans::{PlanStats, Plans};
use crate::program::Program;
use crate::queue::{self, Command, Events, Job, Memory, Patience, Queue, QueueStats, Ticket};
use crate::resident;
use crate::route::{self, RunOptions};
use crate::router::{DEVICES, Router};
use crate::scout::{Parts, Scout};
use breakeven_cpu::{BlockStats, Cpu};
use breakeven_ir::backend::{Backend, Prepared, RunError, Stop, Transfer};
use breakeven_ir::{Buffer, Plan, Tensor, plan_key};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

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
        let shared = Arc::new(Shared { plans, scout: Scout::new(parts.clone()), parts });
        Ok(Engine { shared, queue: Arc::default() })
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
        let (key, leaves) = plan_key(outputs);
        let prepared = self.shared.plans.get(key, outputs, &*self.shared.cpu)?;
        let views = leaf_views(&leaves)?;
        if self.shared.is_routed(&*prepared, 1) || views.iter().any(View::is_elsewhere) {
            let mut batch = Batch::new(&self.shared, &prepared, views);
            return Ok(route::run(&self.shared, &RunOptions::default(), &mut batch)?.0);
        }
        execute::with_bytes(&views, |inputs| execute::run(&*prepared, self.shared.cpu.blocks(), inputs, None))
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
        let (key, leaves) = plan_key(outputs);
        let prepared = self.shared.plans.get(key, outputs, &*self.shared.cpu)?;
        let views = leaf_views(&leaves)?;
        let batch = Batch::new(&self.shared, &prepared, views);
        let mut stay = Stay { batch, engine: self, recipes: outputs };
        Ok(route::run(&self.shared, &RunOptions::default(), &mut stay)?.0)
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
        let (_, leaves) = plan_key(outputs);
        let views = leaf_views(&leaves)?;
        let prepared = self.shared.cpu.prepare(&Arc::new(Plan::unfused(outputs)?))?;
        execute::with_bytes(&views, |inputs| execute::run(&*prepared, self.shared.cpu.blocks(), inputs, None))
    }

    /// A program that computes `outputs` from values for `inputs`, which were made by [`Tensor::input`]; values are
    /// given in this order.
    pub fn compile(&self, inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<Program> {
        Program::new(self.shared.clone(), &self.queue, inputs, outputs)
    }

    /// What this batch would take on each device whose costs are known, without running it.
    ///
    /// ```
    /// use breakeven::{Engine, Tensor, cost::Effort};
    /// let engine = Engine::with_config(breakeven::Config::default())?;
    /// engine.measure("cpu", Effort::Probe, &mut |_| std::ops::ControlFlow::Continue(()))?;
    /// let x = Tensor::zeros([1000], breakeven::DType::F32)?;
    /// assert!(engine.predict(&[&x.exp()?])?[0].1.total_ns() > 0);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn predict(&self, outputs: &[&Tensor]) -> Result<Vec<(String, Prediction)>> {
        let work = Work::of(&Plan::new(outputs)?);
        let id = |device: usize| if device == 0 { "cpu".to_owned() } else { format!("gpu:{}", device - 1) };
        let known = (0..DEVICES).filter_map(|device| Some((id(device), self.shared.router.costs(device)?)));
        Ok(known.map(|(id, costs)| (id, costs.predict(&work, 0))).collect())
    }

    /// Measures what a device costs (`cpu`, `gpu:0`, ..), uses it from now on, and remembers it in the cache folder. The
    /// watcher is told before each measurement and may end it: what was measured until then counts.
    pub fn measure(
        &self,
        device: &str,
        effort: Effort,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Measured> {
        let number = device_number(device)?;
        let (costs, complete) = self.shared.measure(number, effort, watch)?;
        Ok(Measured { device: device.into(), costs, complete })
    }

    /// Times transfers of this many bytes (rounded up to a multiple of 4) to a device and back, `samples` of each way: see
    /// [`Way`](crate::Way). A way that the device does not have is not among them, and the CPU has none: its kernels
    /// read the host's memory.
    ///
    /// ```
    /// let engine = breakeven::Engine::new()?;
    /// for device in engine.devices() {
    ///     for transfer in engine.transfers(&device.id, 1 << 20, 3)? {
    ///         let (direction, way) = (transfer.direction.name(), transfer.way.name());
    ///         println!("{} {direction}, {way}: {:.1} GB/s", device.id, transfer.gb_per_s());
    ///     }
    /// }
    /// assert!(engine.transfers("cpu", 1 << 20, 3)?.is_empty());
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn transfers(&self, device: &str, bytes: usize, samples: usize) -> Result<Vec<Transfer>> {
        for (name, value) in [("bytes", bytes), ("samples", samples)] {
            if value == 0 {
                return Err(Error::Setting { name, value: "0".into(), expected: "at least 1" });
            }
        }
        let Some(number) = device_number(device)?.checked_sub(1) else { return Ok(Vec::new()) };
        let slot = self.shared.devices.slot(number)?;
        slot.refusal().map_or_else(|| Ok(slot.backend.transfers(bytes, samples)?), |why| Err(why.into()))
    }

    /// Uses what was measured on this machine before, without waiting for batches that would be worth it. Why a file is
    /// not used comes back.
    pub fn load_costs(&self) -> Option<String> {
        for number in 0..self.shared.devices.count() {
            // One that can't be opened is not routed to.
            let _ = self.shared.devices.slot(number);
        }
        self.shared.load();
        self.shared.file().1
    }

    /// Says what a device costs, from now on and for this engine only: for costs that were measured elsewhere.
    ///
    /// ```
    /// use breakeven::{Config, Engine, cost::Costs};
    /// let engine = Engine::with_config(Config::default())?;
    /// engine.set_costs("cpu", Costs { fixed_ns: 100.0, ..Costs::default() })?;
    /// assert_eq!(engine.costs("cpu").map(|costs| costs.fixed_ns), Some(100.0));
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn set_costs(&self, device: &str, costs: Costs) -> Result<()> {
        let number = device_number(device)?;
        if let Some(number) = number.checked_sub(1) {
            self.shared.devices.slot(number)?;
        }
        self.shared.router.set_costs(number, costs);
        Ok(())
    }

    /// What a device costs, if that is known.
    pub fn costs(&self, device: &str) -> Option<Costs> {
        self.shared.router.costs(device_number(device).ok()?).map(|costs| (*costs).clone())
    }

    /// Hands a job to the queue, whose workers run it on the devices that share it (see
    /// [`QueueConfig`](crate::QueueConfig)). Waits while the queue is full.
    ///
    /// ```
    /// use breakeven::{Engine, Job, Tensor};
    /// let engine = Engine::new()?;
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
    /// let ticket = engine.submit(Job::batch(&[&(&x * 2.0)?]))?;
    /// assert_eq!(ticket.arrays()?[0].as_slice::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), breakeven::Error>(())
    /// ```
    pub fn submit(&self, job: Job) -> Result<Ticket> {
        self.queue.of(&self.shared)?.submit(job, Patience::Endless)
    }

    /// As [`Engine::submit`], but a full queue refuses at once: [`Error::QueueFull`] says when there should be room.
    pub fn try_submit(&self, job: Job) -> Result<Ticket> {
        self.queue.of(&self.shared)?.submit(job, Patience::None)
    }

    /// As [`Engine::submit`], but a queue that stays full for this long refuses.
    pub fn submit_timeout(&self, job: Job, timeout: Duration) -> Result<Ticket> {
        self.queue.of(&self.shared)?.submit(job, Patience::For(timeout))
    }

    /// What happens in the queue, from now on. Any number of subscribers; one that is too slow loses events, which are
    /// counted, and never slows the work. If the queue can't be started there is nothing to hear, and submitting tells why.
    pub fn events(&self) -> Events {
        self.queue.of(&self.shared).map_or_else(|_| Events::none(), |core| core.events())
    }

    /// How the queue fares.
    pub fn queue_stats(&self) -> QueueStats {
        self.queue.started().map_or_else(QueueStats::default, |core| core.stats())
    }

    /// Takes no more jobs, waits until all that were submitted are answered, and ends the queue's threads.
    pub fn close(&self) {
        if let Ok(core) = self.queue.of(&self.shared) {
            core.close();
        }
    }

    /// Takes no more jobs, answers all that are left [`Error::Aborted`], stops those that run, and ends the queue's
    /// threads. Dropping the last clone of an engine does this, too.
    pub fn abort(&self) {
        if let Ok(core) = self.queue.of(&self.shared) {
            core.abort();
        }
    }

    /// Memory on a device for a caller that manages it: see [`Command`](crate::Command).
    pub fn allocate(&self, device: Device, bytes: usize) -> Result<Memory> {
        let wanted = Command::Allocate { device, bytes }.device()?;
        queue::allocate(&self.shared, wanted, bytes)
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
    let (key, leaves) = plan_key(outputs);
    let prepared = engine.plans.get(key, outputs, &*engine.cpu)?;
    let views = leaf_views(&leaves)?;
    let mut batch = Batch { stop, ..Batch::new(engine, &prepared, views) };
    let (outputs, outcome) = route::run(engine, options, &mut batch)?;
    Ok(Ran { outputs, decision: outcome.decision(engine, &batch) })
}

/// The number of a device: 0 is the CPU.
fn device_number(device: &str) -> Result<usize> {
    match device.parse() {
        Ok(Device::Cpu) => Ok(0),
        Ok(Device::Gpu(Some(number))) => Ok(number + 1),
        _ => Err(Error::Setting { name: "device", value: device.into(), expected: "cpu or gpu:N" }),
    }
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
