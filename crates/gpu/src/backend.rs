//! A GPU as the engine sees it.

use crate::adapters::AdapterInfo;
use crate::bandwidth;
use crate::buffers::PoolStats;
use crate::config::GpuConfig;
use crate::error::GpuError;
use crate::health::lock;
use crate::job::{Command, Core};
use crate::launch;
use crate::layout::{Layout, Spot};
use crate::lower;
use crate::memory;
use crate::mixed;
use crate::owner::Owner;
use crate::prepared::{DeviceBuffer, GpuPlan};
use crate::session::Session;
use crate::stage::Lowered;
use crate::tally::Counters;
use crate::tune::Step;
use crate::tune_report::TuneReport;
use breakeven_ir::Buffer;
use breakeven_ir::backend::{Backend, Health, Launch, Prepared, Resident, RunError, Task, Timings, Transfer, Usage};
use breakeven_ir::plan::Plan;
use crossbeam_channel::Sender;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// A GPU. Clones are the same device.
///
/// ```
/// use breakeven_gpu::{Adapters, Api, GpuConfig};
/// use breakeven_ir::backend::Backend;
/// use breakeven_ir::{Plan, Tensor};
///
/// let adapters = Adapters::find(Api::ALL);
/// if let Ok(gpu) = adapters.open(0, &GpuConfig::default()) {
///     let x = Tensor::from_slice(&[1.0f32, 4.0], [2])?;
///     let prepared = gpu.prepare(&Plan::new(&[&x.sqrt()?])?.into())?;
///     let (input, mut output) = ([1.0f32, 4.0].map(f32::to_ne_bytes).concat(), [0u8; 8]);
///     let timings = prepared.run(&[&input], &mut [&mut output], false)?;
///     assert_eq!((output[4..].to_vec(), timings.submits), (2.0f32.to_ne_bytes().to_vec(), 1));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Gpu {
    pub(crate) session: Arc<Session>,
    plans: Arc<Mutex<Plans>>,
}

/// Plans that were prepared here.
#[derive(Default)]
struct Plans {
    /// By the address of the plan, which is not another's for as long as the plan is here.
    prepared: HashMap<usize, Weak<GpuPlan>>,
    /// Plans that tasks needed although nobody keeps them.
    recent: VecDeque<Arc<GpuPlan>>,
    signatures: HashMap<Signature, usize>,
    next_id: u64,
}

/// The modules of all stages, and what each of their bindings shows.
type Signature = Vec<(Arc<str>, Vec<(Spot, usize, bool)>)>;

/// Plans without a keeper that are kept for tasks to come.
const RECENT: usize = 64;

/// What a compiler may take for a variant that somebody waits for, beyond the usual timeout, in nanoseconds.
const COMPILING: u64 = 30_000_000_000;

impl Gpu {
    pub(crate) fn open(adapter: wgpu::Adapter, info: AdapterInfo, config: &GpuConfig) -> Result<Gpu, GpuError> {
        Ok(Gpu { session: Session::open(adapter, info, config)?, plans: Arc::default() })
    }

    /// What it is.
    pub fn info(&self) -> &AdapterInfo {
        &self.session.info
    }

    /// What its buffer pool holds.
    pub fn pool_stats(&self) -> PoolStats {
        self.session.current().pool.stats()
    }

    /// Frees all idle buffers.
    pub fn compact(&self) -> Result<(), RunError> {
        let handle = self.session.handle()?;
        self.session.ask(&handle, || 0, None, Command::Compact)
    }

    /// What it did since it was opened.
    pub fn counters(&self) -> Counters {
        let (pending, _) = self.session.current().life.pending();
        self.session.tally.counters(self.session.generation(), u64::from(pending))
    }

    /// How often it was rebuilt. Values of an earlier generation are stale.
    pub fn generation(&self) -> u64 {
        self.session.generation()
    }

    /// What its driver is known to do wrong, in words.
    pub fn quirks(&self) -> Vec<String> {
        lock(&self.session.quirks).describe()
    }

    /// Measures the variants of kernels that were not measured yet, until all are or `budget` is spent, and chooses the
    /// quickest for plans to come. Unless it is zero at least one step is taken, and a step that has begun is brought to
    /// its end; batches go in between. Each measurement is remembered at once if there is a [`GpuConfig::cache_dir`]:
    /// what is missing is done by the next call, or by the next process.
    ///
    /// ```
    /// # use breakeven_gpu::{Adapters, Api, GpuConfig};
    /// # if let Ok(gpu) = Adapters::find(Api::ALL).open(0, &GpuConfig::default()) {
    /// let report = gpu.tune(std::time::Duration::from_millis(50));
    /// let map = &report.classes[0];
    /// println!("{}: {} ({})", map.class, map.in_use, map.why);
    /// # }
    /// ```
    pub fn tune(&self, budget: Duration) -> TuneReport {
        let begun = Instant::now();
        let step =
            |reply: Sender<_>| Command::Do(Box::new(move |owner: &mut Owner| drop(reply.send(owner.tune_now()))));
        let mut stopped = None;
        let mut first = !budget.is_zero();
        while std::mem::take(&mut first) || begun.elapsed() < budget {
            let taken = self.session.handle().and_then(|handle| self.session.ask(&handle, || COMPILING, None, step));
            match taken {
                Ok(Step::Taken) => {}
                Ok(Step::Done) => break,
                Err(error) => {
                    stopped = Some(error.to_string());
                    break;
                }
            }
        }
        self.session.tuner.report(stopped)
    }

    /// Waits until a plan is compiled; false if that takes longer.
    pub fn wait_ready(&self, prepared: &dyn Prepared, timeout: Duration) -> bool {
        let begun = Instant::now();
        while !prepared.is_ready() {
            if begun.elapsed() > timeout {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Destroys the device, with whatever is in flight. For tests of faults.
    #[doc(hidden)]
    pub fn destroy_for_test(&self) {
        let handle = self.session.current();
        handle.life.destroy.store(true, Relaxed);
        // Wakes an owner that has nothing to do.
        let (reply, _) = crossbeam_channel::bounded(1);
        let _ = handle.commands.try_send(Command::Compact(reply));
    }

    /// A plan made ready; compiled in the background.
    fn plan(&self, plan: &Arc<Plan>) -> Result<Arc<GpuPlan>, RunError> {
        if let Some(known) = self.known(plan) {
            return Ok(known);
        }
        let lowered = self.lower(plan)?;
        self.plan_lowered(plan, lowered)
    }

    /// The stages of a plan, if it can run here.
    fn lower(&self, plan: &Plan) -> Result<Lowered, RunError> {
        let unsupported = |why: String| RunError::Unsupported { device: self.session.info.id.clone(), why };
        let (limits, variants) = (self.session.limits(), self.session.tuner.variants());
        let lowered = lower::lower(plan, &limits, &variants).map_err(|error| unsupported(error.0))?;
        let broken = lock(&self.session.quirks).broken.clone();
        if let Some(stage) = lowered.stages.iter().find(|stage| broken.contains(&stage.class)) {
            return Err(unsupported(format!("its driver gets {} kernels wrong", stage.class)));
        }
        Ok(lowered)
    }

    /// A plan's layout, if it fits.
    fn layout(&self, plan: &Plan, lowered: &Lowered) -> Result<Layout, RunError> {
        let layout = Layout::new(plan, lowered, false);
        let largest = [layout.upload_bytes, layout.block_bytes].into_iter().chain(layout.privates.iter().copied());
        let largest = largest.max().unwrap_or(0);
        if largest > self.session.info.limits.buffer_bytes {
            return Err(RunError::OutOfMemory { bytes: largest as usize });
        }
        Ok(layout)
    }

    fn known(&self, plan: &Arc<Plan>) -> Option<Arc<GpuPlan>> {
        lock(&self.plans).prepared.get(&(Arc::as_ptr(plan) as usize)).and_then(Weak::upgrade)
    }

    /// A plan made ready from its stages.
    pub(crate) fn plan_lowered(&self, plan: &Arc<Plan>, lowered: Lowered) -> Result<Arc<GpuPlan>, RunError> {
        let layout = self.layout(plan, &lowered)?;
        let stages = lowered.stages.iter().zip(&layout.spots);
        let signature: Signature = stages
            .map(|(stage, spots)| {
                let bindings = stage.bindings.iter().zip(spots).map(|(b, spot)| (*spot, b.element_bytes, b.writes));
                (stage.source.clone(), bindings.collect())
            })
            .collect();
        let mut plans = lock(&self.plans);
        plans.next_id += 1;
        let (id, next) = (plans.next_id, plans.signatures.len());
        let signature = *plans.signatures.entry(signature).or_insert(next);
        let core = Arc::new(Core::new(id, plan, lowered, layout, signature));
        let prepared = Arc::new(GpuPlan { core: core.clone(), session: self.session.clone() });
        plans.prepared.retain(|_, known| known.strong_count() > 0);
        plans.prepared.insert(Arc::as_ptr(plan) as usize, Arc::downgrade(&prepared));
        drop(plans);
        core.warm(&self.session.current());
        Ok(prepared)
    }
}

impl Gpu {
    /// Runs many tasks, of any plans that were prepared here, as one batch.
    fn run_many(&self, tasks: &[Task<'_>], ends: &mut mixed::Ends<'_>) -> Result<Timings, RunError> {
        let mut used: Vec<Arc<GpuPlan>> = Vec::new();
        let mut numbers: Vec<usize> = Vec::with_capacity(tasks.len());
        let mut known: HashMap<*const Plan, usize> = HashMap::new();
        for (at, task) in tasks.iter().enumerate() {
            // Tasks of one plan come in a row more often than not.
            if at > 0 && Arc::ptr_eq(task.plan, tasks[at - 1].plan) {
                numbers.push(numbers[at - 1]);
                continue;
            }
            let number = match known.get(&Arc::as_ptr(task.plan)) {
                Some(number) => *number,
                None => {
                    used.push(self.plan(task.plan)?);
                    known.insert(Arc::as_ptr(task.plan), used.len() - 1);
                    used.len() - 1
                }
            };
            numbers.push(number);
        }
        let entries: Vec<mixed::Entry<'_>> = tasks
            .iter()
            .zip(&numbers)
            .map(|(task, number)| mixed::Entry { plan: &used[*number], inputs: task.inputs, offset: task.offset })
            .collect();
        let timings = mixed::run(&self.session, &entries, ends);
        drop(entries);
        self.keep_recent(used);
        timings
    }
}

impl Backend for Gpu {
    fn id(&self) -> &str {
        &self.session.info.id
    }

    fn name(&self) -> &str {
        &self.session.info.name
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(self.plan(plan)?)
    }

    fn accepts(&self, plan: &Arc<Plan>) -> Result<(), RunError> {
        if self.known(plan).is_some() {
            return Ok(());
        }
        self.layout(plan, &self.lower(plan)?).map(|_| ())
    }

    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        self.run_many(tasks, &mut mixed::Ends { results, failed, left: None })
    }

    fn run_mixed_in_place(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
        left: &mut dyn FnMut(usize, Vec<Buffer>),
    ) -> Result<Timings, RunError> {
        self.run_many(tasks, &mut mixed::Ends { results, failed, left: Some(left) })
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        let handle = self.session.handle()?;
        let generation = handle.life.generation;
        let size = bytes.len() as u64;
        let (mut upload, _) = self.session.upload(&handle, size, None)?;
        upload.write(0, bytes);
        let kept = self.session.ask(&handle, || 0, None, |reply| Command::Keep { upload, bytes: size, reply })?;
        let session = self.session.clone();
        Ok(Arc::new(DeviceBuffer { session, kept: Arc::new(kept), bytes: bytes.len(), generation }))
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Resident>, RunError> {
        memory::allocate(&self.session, bytes)
    }

    fn write(&self, to: &Arc<dyn Resident>, offset: usize, bytes: &[u8]) -> Result<(), RunError> {
        memory::write(&self.session, to, offset, bytes)
    }

    fn read(&self, from: &Arc<dyn Resident>, offset: usize, into: &mut [u8]) -> Result<(), RunError> {
        memory::read(&self.session, from, offset, into)
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<Timings, RunError> {
        launch::run(&self.session, launch)
    }

    fn depth(&self) -> usize {
        self.session.depth()
    }

    fn transfers(&self, bytes: usize, samples: usize) -> Result<Vec<Transfer>, RunError> {
        bandwidth::measure(&self.session, bytes, samples)
    }

    fn quirks(&self) -> Vec<String> {
        Gpu::quirks(self)
    }

    fn is_lost(&self) -> bool {
        self.session.current().life.is_lost()
    }

    fn pending_ns(&self) -> u64 {
        self.session.current().life.pending().1
    }

    fn usage(&self) -> Usage {
        let handle = self.session.current();
        let (pool, (pending, pending_ns)) = (handle.pool.stats(), handle.life.pending());
        Usage { in_use_bytes: pool.in_use_bytes, reserved_bytes: pool.reserved_bytes, pending, pending_ns }
    }

    fn release(&self) -> Result<(), RunError> {
        let recent = std::mem::take(&mut lock(&self.plans).recent);
        drop(recent); // outside of the lock: a plan that goes tells the owner
        self.compact()
    }

    fn health(&self) -> Health {
        self.session.health()
    }
}

impl Gpu {
    /// Keeps plans that nobody else keeps for a while: the next tasks probably need them again.
    fn keep_recent(&self, used: Vec<Arc<GpuPlan>>) {
        let mut dropped = Vec::new();
        let mut plans = lock(&self.plans);
        for plan in used {
            if Arc::strong_count(&plan) == 1 {
                plans.recent.push_back(plan);
            }
        }
        while plans.recent.len() > RECENT {
            dropped.extend(plans.recent.pop_front());
        }
        drop(plans);
        drop(dropped); // outside of the lock: a plan that goes tells the owner
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
pub(crate) mod tests;
