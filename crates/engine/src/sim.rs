//! A simulated device: batches enter, the CPU's results leave, with times that a profile tells.
//!
//! It is there for machines without the GPU in question: what a batch would take on it, and where the break-even lies, is
//! known in advance and the same in every run. Nothing sleeps and no clock is read: time is a number that batches add to.

mod cost;
mod profile;

pub use profile::{ProfileError, SimProfile};

use crate::error::{Error, Result};
use breakeven_cpu::{Block, Cpu};
use breakeven_ir::backend::{Backend, Made, Prepared, Resident, RunError, Source, Task, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use breakeven_ir::{Buffer, HostBytes};
use cost::Work;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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

/// The device, as its plans and values know it.
struct Simulated {
    id: String,
    name: String,
    profile: SimProfile,
    cpu: Cpu,
    /// The bits of an f64.
    slowdown: AtomicU64,
    spike_ns: AtomicU64,
    virtual_ns: AtomicU64,
    /// By the address of the plan, which is not another's for as long as the plan is here.
    plans: Mutex<HashMap<usize, Weak<SimPlan>>>,
}

impl SimBackend {
    /// A device of this id, such as `gpu:0`.
    pub fn new(id: impl Into<String>, profile: SimProfile) -> Result<SimBackend> {
        // One thread: the results are wanted, not their speed, and the machine's cores are another engine's.
        let cpu = Cpu::new(1).map_err(|error| Error::Threads { why: error.to_string() })?;
        let device = Simulated {
            id: id.into(),
            name: format!("{} (simulated)", profile.name()),
            profile,
            cpu,
            slowdown: AtomicU64::new(1.0f64.to_bits()),
            spike_ns: AtomicU64::new(0),
            virtual_ns: AtomicU64::new(0),
            plans: Mutex::default(),
        };
        Ok(SimBackend { device: Arc::new(device) })
    }

    /// The same device, slower: see [`SimBackend::set_slowdown`].
    pub fn with_slowdown(self, factor: f64) -> Result<SimBackend> {
        self.set_slowdown(factor)?;
        Ok(self)
    }

    /// Multiplies all costs from now on, until it is set again: 1 is as the profile says.
    pub fn set_slowdown(&self, factor: f64) -> Result<()> {
        if !factor.is_finite() || factor <= 0.0 {
            let (value, expected) = (factor.to_string(), "a finite factor above 0");
            return Err(Error::Setting { name: "slowdown", value, expected });
        }
        self.device.slowdown.store(factor.to_bits(), Relaxed);
        Ok(())
    }

    /// Makes the next batch take so much longer, and only that one.
    pub fn add_spike_ns(&self, ns: u64) {
        add(&self.device.spike_ns, ns);
    }

    /// What everything together has taken so far: batches, uploads, and results fetched later.
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
        for (number, task) in tasks.iter().enumerate() {
            let address = Arc::as_ptr(task.plan) as usize;
            let ready = match groups.get_mut(&address) {
                Some((ready, count)) => {
                    *count += 1;
                    ready.clone()
                }
                None => groups.entry(address).or_insert((self.ready(task.plan)?, 1)).0.clone(),
            };
            let stride = task.plan.result_stride();
            let place = &mut results[task.offset..task.offset + stride];
            ready.inner.run_tasks(1, task.inputs, place, stride, &mut |_, error| failed(number, error));
        }
        let mut load = Load::new(&self.device);
        for (ready, count) in groups.values() {
            load.add_tasks(ready.plan(), &ready.works, *count);
        }
        Ok(load.charge())
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        let mut block = self.device.cpu.blocks().take(bytes.len())?;
        block.as_mut_bytes().copy_from_slice(bytes);
        let device = &self.device;
        add(&device.virtual_ns, device.profile.costs().upload_ns(bytes.len() as u64, device.slowdown()));
        Ok(Arc::new(SimResident { device: device.clone(), data: buffer(block) }))
    }

    fn quirks(&self) -> Vec<String> {
        vec![format!("it is simulated: results are the CPU's, times are told by {}", self.device.profile.source())]
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

impl Simulated {
    fn plans(&self) -> MutexGuard<'_, HashMap<usize, Weak<SimPlan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slowdown(&self) -> f64 {
        f64::from_bits(self.slowdown.load(Relaxed))
    }
}

/// What one batch does, as it is put together.
struct Load<'a> {
    device: &'a Simulated,
    /// One factor for the whole batch, even if it is changed meanwhile.
    slowdown: f64,
    upload_bytes: u64,
    readback_bytes: u64,
    device_ns: u64,
    kernels: u32,
}

impl<'a> Load<'a> {
    fn new(device: &'a Simulated) -> Load<'a> {
        let slowdown = device.slowdown();
        Load { device, slowdown, upload_bytes: 0, readback_bytes: 0, device_ns: 0, kernels: 0 }
    }

    /// Kernels that each run once, for so many tasks.
    fn add_kernels(&mut self, works: &[Work], tasks: usize) {
        let ns = works.iter().map(|work| self.device.profile.costs().kernel_ns(work, tasks as u64, self.slowdown));
        self.device_ns = ns.fold(self.device_ns, u64::saturating_add);
        self.kernels = self.kernels.saturating_add(works.len() as u32);
    }

    /// Tasks of one plan, from host to host.
    fn add_tasks(&mut self, plan: &Plan, works: &[Work], tasks: usize) {
        if tasks == 0 {
            return;
        }
        let all = |bytes: usize| (bytes as u64).saturating_mul(tasks as u64);
        self.upload_bytes += all(plan.input_infos().iter().map(BufferInfo::bytes).sum());
        self.readback_bytes += all(plan.output_buffers().map(BufferInfo::bytes).sum());
        self.add_kernels(works, tasks);
    }

    /// What it takes, as the device would tell.
    fn timings(&self) -> Timings {
        // No tasks, or tasks without results: nothing is submitted.
        if self.kernels == 0 {
            return Timings::default();
        }
        let costs = self.device.profile.costs();
        let parts = [
            costs.call_ns(self.slowdown),
            costs.upload_ns(self.upload_bytes, self.slowdown),
            self.device_ns,
            costs.readback_ns(self.readback_bytes, self.slowdown),
        ];
        Timings {
            total_ns: parts.into_iter().fold(0, u64::saturating_add),
            kernels: self.kernels,
            dispatches: self.kernels,
            passes: 1,
            submits: 1,
            uploads: u32::from(self.upload_bytes > 0),
            readbacks: u32::from(self.readback_bytes > 0),
            upload_bytes: self.upload_bytes,
            readback_bytes: self.readback_bytes,
            device_ns: self.device_ns,
            ..Timings::default()
        }
    }

    /// Lets the time pass.
    fn charge(&self) -> Timings {
        let mut timings = self.timings();
        if self.kernels > 0 {
            timings.total_ns = timings.total_ns.saturating_add(self.device.spike_ns.swap(0, Relaxed));
        }
        add(&self.device.virtual_ns, timings.total_ns);
        timings
    }
}

/// A plan made ready.
struct SimPlan {
    device: Arc<Simulated>,
    works: Vec<Work>,
    inner: Arc<dyn Prepared>,
}

impl SimPlan {
    /// So many tasks, from host to host.
    fn load(&self, tasks: usize) -> Load<'_> {
        let mut load = Load::new(&self.device);
        load.add_tasks(self.plan(), &self.works, tasks);
        load
    }

    /// A value that lies here already.
    fn resident<'a>(&self, source: &Source<'a>) -> Option<&'a SimResident> {
        let Source::Shared(buffer) = source else { return None };
        let resident = buffer.resident()?.as_any().downcast_ref::<SimResident>()?;
        Arc::ptr_eq(&resident.device, &self.device).then_some(resident)
    }
}

impl Prepared for SimPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], _threads: bool) -> Result<Timings, RunError> {
        let done = self.inner.run(inputs, outputs, false);
        // The time passes either way: a device tells of a wrong index when it is done.
        let timings = self.load(1).charge();
        done.map(|_| timings)
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        self.inner.run_tasks(tasks, inputs, results, stride, failed);
        self.load(tasks).charge();
    }

    /// Exactly what a run takes now if all inputs come from the host.
    fn estimate_ns(&self) -> u64 {
        self.load(1).timings().total_ns
    }

    fn kernel_ns(&self) -> Vec<u64> {
        let (costs, slowdown) = (self.device.profile.costs(), self.device.slowdown());
        self.works.iter().map(|work| costs.kernel_ns(work, 1, slowdown)).collect()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        let mut load = Load::new(&self.device);
        let mut bytes: Vec<&[u8]> = Vec::with_capacity(inputs.len());
        for source in inputs {
            bytes.push(match self.resident(source) {
                Some(resident) => resident.data.as_bytes(),
                None => source.try_bytes().inspect(|bytes| load.upload_bytes += bytes.len() as u64)?,
            });
        }
        let sizes = self.plan().output_buffers().map(BufferInfo::bytes);
        let blocks = self.device.cpu.blocks();
        let mut made: Vec<Block> = sizes.map(|bytes| blocks.take(bytes)).collect::<Result<_, RunError>>()?;
        let mut slices: Vec<&mut [u8]> = made.iter_mut().map(Block::as_mut_bytes).collect();
        if !stay {
            load.readback_bytes = slices.iter().map(|slice| slice.len() as u64).sum();
        }
        let done = self.inner.run(&bytes, &mut slices, false);
        load.add_kernels(&self.works, 1);
        let timings = load.charge();
        done?;
        let made = made.into_iter().map(buffer).map(|data| match stay {
            true => Made::Resident(Arc::new(SimResident { device: self.device.clone(), data })),
            false => Made::Host(data),
        });
        Ok((made.collect(), timings))
    }
}

/// A value that counts as being on the device.
struct SimResident {
    device: Arc<Simulated>,
    data: Buffer,
}

impl Resident for SimResident {
    fn device(&self) -> &str {
        &self.device.id
    }

    fn len_bytes(&self) -> usize {
        self.data.len_bytes()
    }

    fn is_current(&self) -> bool {
        true
    }

    fn fetch(&self) -> Result<Buffer, RunError> {
        let ns = self.device.profile.costs().readback_ns(self.data.len_bytes() as u64, self.device.slowdown());
        add(&self.device.virtual_ns, ns);
        Ok(self.data.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn buffer(block: Block) -> Buffer {
    Buffer::new(Arc::new(block) as Arc<dyn HostBytes>)
}

/// Adds to a time that stays at its largest value rather than begin anew.
fn add(total: &AtomicU64, ns: u64) {
    // The closure always has a value, so that this can't fail.
    let _ = total.fetch_update(Relaxed, Relaxed, |total| Some(total.saturating_add(ns)));
}

#[cfg(test)]
#[path = "sim_tests.rs"]
mod tests;
