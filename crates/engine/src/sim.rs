//! A simulated device: batches enter, the CPU's results leave, with times that a profile tells.
//!
//! It is there for machines without the GPU in question: what a batch would take on it, and where the break-even lies, is
//! known in advance and the same in every run. Nothing sleeps and no clock is read: time is a number that batches add to.
//! A paced one really takes that time, for whatever works with several devices at once.

mod cost;
mod device;
mod fault;
mod load;
mod memory;
mod pace;
mod plan;
mod profile;

pub use profile::{ProfileError, SimProfile};

use crate::error::{Error, Result};
use breakeven_cpu::Cpu;
use breakeven_ir::backend::{Backend, Health, Prepared, Resident, RunError, Task, Timings, Usage};
use breakeven_ir::plan::Plan;
use cost::Work;
use device::{Simulated, add};
use load::Load;
use memory::SimResident;
use pace::Pace;
use plan::SimPlan;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// A device whose results are the CPU's and whose times are a profile's. Clones are the same device.
///
/// A batch costs its fixed part once, however many tasks it has, the transfer of what is not on the device yet, its
/// kernels, and the transfer of what comes back. Tasks that run the same plan share its kernels, each as large as all of
/// them together.
///
/// ```
/// use breakeven::{Config, Device, Engine, SimBackend, SimProfile, Tensor};
/// use std::sync::Arc;
/// let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090")?)?;
/// let config = Config { device: Device::Gpu(Some(0)), ..Config::default() };
/// let engine = Engine::with_backends(config, vec![Arc::new(sim.clone())])?;
///
/// let x = Tensor::from_vec(vec![1.0f32; 1_000_000], [1_000_000])?;
/// let y = Tensor::from_vec(vec![2.0f32; 1_000_000], [1_000_000])?;
/// let ran = engine.run_with(&[&(&x + &y)?], &Default::default())?;
/// assert_eq!(ran.outputs[0].as_slice::<f32>()?[0], 3.0);
/// assert_eq!(ran.decision.timings.total_ns, 5_980_000);   // as published
/// assert_eq!(sim.virtual_ns(), 5_980_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SimBackend {
    device: Arc<Simulated>,
}

impl SimBackend {
    /// A device of this id, such as `gpu:0`.
    pub fn new(id: impl Into<String>, profile: SimProfile) -> Result<SimBackend> {
        // One thread: the results are wanted, not their speed, and the machine's cores are another engine's.
        let cpu = Cpu::new(1).map_err(|error| Error::Threads { why: error.to_string() })?;
        Ok(SimBackend { device: Arc::new(Simulated::new(id.into(), profile, cpu)) })
    }

    /// The same device, slower: see [`SimBackend::set_slowdown`].
    pub fn with_slowdown(self, factor: f64) -> Result<SimBackend> {
        self.set_slowdown(factor)?;
        Ok(self)
    }

    /// Multiplies all costs from now on, until it is set again: 1 is as the profile says.
    pub fn set_slowdown(&self, factor: f64) -> Result<()> {
        self.device.slowdown.store(positive("slowdown", factor)?.to_bits(), Relaxed);
        Ok(())
    }

    /// The same device, all clones and plans of it, at work: from now on a batch really takes what it tells, and its caller
    /// waits for it. At a speed of 1 that is what the profile says, at 10 a tenth of it; times that are told or predicted
    /// are those of this speed, and are no longer simulated to anybody who asks.
    ///
    /// It has three engines that work at the same time: one uploads, one computes, one reads back. Batches go through them
    /// in the order in which they came, one at a time on each, so that threads that call at once overlap their parts. Of the
    /// fixed part, sending and reading back belong to their engines and the dispatch to the one that computes; buffers are
    /// created on the caller's thread, where nobody waits for anybody. A batch alone takes the sum of it all.
    ///
    /// What a batch tells includes its waits for engines. If the CPU needs longer for the results than the device would, the
    /// caller waits for them, but that is not told. A batch that is stopped half-way leaves the engines' time reserved; one
    /// that is lost with the device does not.
    ///
    /// ```
    /// # use breakeven::{SimBackend, SimProfile, backend::Backend};
    /// let sim = SimBackend::new("gpu:0", SimProfile::by_name("modern-discrete")?)?.paced(1.0)?;
    /// assert_eq!((sim.is_simulated(), sim.depth(), sim.pending_ns()), (false, 3, 0));
    /// let begun = std::time::Instant::now();
    /// sim.upload(&[7; 100_000])?;
    /// assert!(begun.elapsed().as_nanos() >= 10_000 + 100_000 / 25);
    /// assert!(sim.paced(f64::NAN).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paced(self, speed: f64) -> Result<SimBackend> {
        let speed = positive("speed", speed)?;
        self.device.pace.get_or_init(Pace::new).set_speed(speed);
        Ok(self)
    }

    /// Makes the device lost, for tests of what others do then: it says so, batches that run paced and all new ones answer
    /// [`RunError::Lost`] at once, and values on it are not current any more.
    ///
    /// ```
    /// # use breakeven::{RunError, SimBackend, SimProfile, Status, backend::Backend};
    /// # let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090")?)?;
    /// let value = sim.upload(&[1, 2, 3, 4])?;
    /// sim.lose("a cable was pulled");
    /// assert!(sim.is_lost() && !value.is_current());
    /// assert!(matches!(sim.upload(&[1]), Err(RunError::Lost { why, .. }) if why == "a cable was pulled"));
    /// sim.recover();
    /// assert_eq!((sim.health().status, sim.generation()), (Status::Healthy, 1));
    /// assert!(matches!(value.fetch(), Err(RunError::Stale { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lose(&self, why: impl Into<String>) {
        self.device.faults.lose(why.into());
        if let Some(pace) = self.device.pace.get() {
            pace.clear();
        }
    }

    /// Brings a lost device back, idle and empty. Plans that were made ready stay so.
    ///
    /// ```
    /// # use breakeven::{SimBackend, SimProfile, backend::Backend};
    /// # let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090")?)?;
    /// sim.lose("it fell off the bus");
    /// sim.recover();
    /// assert!(!sim.is_lost() && sim.upload(&[1]).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover(&self) {
        // Again, for whoever came to a device that was just about to be lost.
        if let Some(pace) = self.device.pace.get().filter(|_| self.device.faults.is_lost()) {
            pace.clear();
        }
        self.device.faults.recover();
    }

    /// Makes the next batches answer [`RunError::Device`], so many from now on, whatever was asked for before. They fail
    /// at once; transfers are no batches.
    ///
    /// ```
    /// use breakeven::{Config, Device, Engine, SimBackend, SimProfile, Tensor};
    /// let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090")?)?;
    /// let config = Config { device: Device::Gpu(Some(0)), ..Config::default() };
    /// let engine = Engine::with_backends(config, vec![std::sync::Arc::new(sim.clone())])?;
    /// sim.fail_next(1);
    /// let ran = engine.run_with(&[&Tensor::from_slice(&[4.0f32], [1])?.sqrt()?], &Default::default())?;
    /// assert_eq!((ran.decision.device.as_str(), ran.decision.fallbacks), ("cpu", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fail_next(&self, count: usize) {
        self.device.faults.fail_next(count);
    }

    /// How often it was lost. Values of an earlier generation are stale.
    pub fn generation(&self) -> u64 {
        self.device.faults.generation()
    }

    /// Makes the next batch take so much longer, and only that one, whatever the slowdown and the speed are.
    pub fn add_spike_ns(&self, ns: u64) {
        add(&self.device.spike_ns, ns);
    }

    /// What everything together has taken so far: batches, uploads, and results fetched later. Waits for the engines of a
    /// paced device are not in it.
    pub fn virtual_ns(&self) -> u64 {
        self.device.virtual_ns.load(Relaxed)
    }

    /// What so many tasks of a plan take as one batch now, if all their inputs come from the host: the truth that
    /// predictions are measured against. No spike is in it.
    pub fn batch_ns(&self, plan: &Plan, tasks: usize) -> u64 {
        let works: Vec<Work> = plan.kernels.iter().map(Work::of).collect();
        let mut load = Load::new(&self.device);
        load.add_tasks(plan, &works, tasks);
        load.timings().total_ns
    }

    /// The profile.
    pub fn profile(&self) -> &SimProfile {
        &self.device.profile
    }

    /// The plan made ready: the one that was made before, if someone keeps it.
    fn ready(&self, plan: &Arc<Plan>) -> Result<Arc<SimPlan>, RunError> {
        let address = Arc::as_ptr(plan) as usize;
        if let Some(ready) = self.device.plans().get(&address).and_then(Weak::upgrade) {
            return Ok(ready);
        }
        let works = plan.kernels.iter().map(Work::of).collect();
        let ready = Arc::new(SimPlan { device: self.device.clone(), works, inner: self.device.cpu.prepare(plan)? });
        let mut plans = self.device.plans();
        plans.retain(|_, plan| plan.strong_count() > 0);
        plans.insert(address, Arc::downgrade(&ready));
        Ok(ready)
    }

    /// Memory of this device.
    fn own<'a>(&self, value: &'a Arc<dyn Resident>) -> Result<&'a SimResident, RunError> {
        let why = || format!("the memory lies on {}, and was not had from this device", value.device());
        SimResident::of(&self.device, value)
            .ok_or_else(|| RunError::Unsupported { device: self.device.id.clone(), why: why() })
    }
}

impl Backend for SimBackend {
    fn id(&self) -> &str {
        &self.device.id
    }

    fn name(&self) -> &str {
        &self.device.name
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(self.ready(plan)?)
    }

    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        let mut groups: HashMap<usize, (Arc<SimPlan>, usize)> = HashMap::new();
        for task in tasks {
            let address = Arc::as_ptr(task.plan) as usize;
            match groups.get_mut(&address) {
                Some((_, count)) => *count += 1,
                None => drop(groups.insert(address, (self.ready(task.plan)?, 1))),
            }
        }
        let mut load = Load::new(&self.device);
        for (ready, count) in groups.values() {
            load.add_tasks(ready.plan(), &ready.works, *count);
        }
        let batch = load.begin()?;
        let mut wrong = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let Some((ready, _)) = groups.get(&(Arc::as_ptr(task.plan) as usize)) else { continue };
            let stride = task.plan.result_stride();
            let place = &mut results[task.offset..task.offset + stride];
            ready.inner.run_tasks(1, task.inputs, place, stride, &mut |_, error| wrong.push((number, error)));
        }
        let timings = batch.end(None)?;
        wrong.into_iter().for_each(|(number, error)| failed(number, error));
        Ok(timings)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        let mut block = self.device.cpu.blocks().take(bytes.len())?;
        let passage = self.device.begin_upload(bytes.len())?;
        block.as_mut_bytes().copy_from_slice(bytes);
        let generation = passage.generation();
        passage.end(None)?;
        Ok(Arc::new(SimResident::value(&self.device, generation, block)))
    }

    /// That takes no time: a profile's fixed part has the creation of buffers in every batch already.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Resident>, RunError> {
        Ok(Arc::new(SimResident::memory(&self.device, bytes)?))
    }

    fn write(&self, to: &Arc<dyn Resident>, offset: usize, bytes: &[u8]) -> Result<(), RunError> {
        self.own(to)?.write(offset, bytes)
    }

    fn read(&self, from: &Arc<dyn Resident>, offset: usize, into: &mut [u8]) -> Result<(), RunError> {
        self.own(from)?.read(offset, into)
    }

    fn depth(&self) -> usize {
        if self.device.pace.get().is_some() { pace::ENGINES } else { 1 }
    }

    fn quirks(&self) -> Vec<String> {
        vec![format!("it is simulated: results are the CPU's, times are told by {}", self.device.profile.source())]
    }

    /// A paced device's times are those of the wall clock.
    fn is_simulated(&self) -> bool {
        self.device.pace.get().is_none()
    }

    fn is_lost(&self) -> bool {
        self.device.faults.is_lost()
    }

    fn pending_ns(&self) -> u64 {
        self.device.pace.get().map_or(0, Pace::pending_ns)
    }

    fn usage(&self) -> Usage {
        let memory = self.device.cpu.blocks().stats();
        let (in_use_bytes, free_bytes) = (memory.used_bytes as u64, memory.free_bytes as u64);
        Usage { in_use_bytes, reserved_bytes: in_use_bytes + free_bytes, pending: 0, pending_ns: self.pending_ns() }
    }

    fn release(&self) -> Result<(), RunError> {
        self.device.cpu.blocks().clear();
        Ok(())
    }

    fn health(&self) -> Health {
        self.device.faults.health()
    }
}

fn positive(name: &'static str, factor: f64) -> Result<f64> {
    if factor.is_finite() && factor > 0.0 {
        return Ok(factor);
    }
    Err(Error::Setting { name, value: factor.to_string(), expected: "a finite factor above 0" })
}

#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
