//! A device with a hook: every batch enters the hook first, which may wait, count or refuse it; then the device has it.
//!
//! What it does is not stopped half-way: it is also the device that ignores whoever tells it to stop.

use breakeven::backend::{Backend, Launch, Made, Prepared, Resident, Source, Task};
use breakeven::{Health, Plan, RunError, SimBackend, SimProfile, Timings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Is asked before each batch, with how many tasks it has.
pub type Hook = Arc<dyn Fn(usize) -> Result<(), RunError> + Send + Sync>;

/// Shut until somebody opens it: what a test wants in the queue is there before any of it is done.
#[derive(Clone, Default)]
pub struct Gate {
    open: Arc<AtomicBool>,
}

impl Gate {
    /// Lets all pass, from now on.
    pub fn open(&self) {
        self.open.store(true, Relaxed);
    }

    /// May batches pass?
    pub fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }
}

/// A device, and what comes before each of its batches.
pub struct Hooked {
    inner: Arc<dyn Backend>,
    hook: Hook,
}

impl Hooked {
    /// Wraps a device.
    pub fn new(
        inner: impl Backend + 'static,
        hook: impl Fn(usize) -> Result<(), RunError> + Send + Sync + 'static,
    ) -> Hooked {
        Hooked { inner: Arc::new(inner), hook: Arc::new(hook) }
    }

    /// One that takes this long for every batch, whoever tells it to stop.
    pub fn sleeping(inner: impl Backend + 'static, time: Duration) -> Hooked {
        Hooked::new(inner, move |_| {
            std::thread::sleep(time);
            Ok(())
        })
    }

    /// One whose batches wait until the gate is open.
    pub fn gated(inner: impl Backend + 'static, gate: &Gate) -> Hooked {
        let gate = gate.clone();
        Hooked::new(inner, move |_| {
            while !gate.is_open() {
                std::thread::sleep(Duration::from_micros(200));
            }
            Ok(())
        })
    }

    /// One that fails at every `every`-th batch.
    pub fn failing(inner: impl Backend + 'static, every: u64) -> Hooked {
        let count = AtomicU64::new(0);
        Hooked::new(inner, move |_| {
            if (count.fetch_add(1, Relaxed) + 1).is_multiple_of(every) {
                return Err(RunError::Device { device: "gpu".into(), message: "injected".into() });
            }
            Ok(())
        })
    }
}

/// A simulated device whose batches cost a dispatch of so many microseconds and next to nothing beside it.
pub fn simulated(id: &str, dispatch_us: f64) -> SimBackend {
    let text = format!(
        "name = 'plain'\nsource = 'a test'\n\
         [fixed]\nbuffer_creation_us = 0.0\nupload_us = 0.1\ndispatch_us = {dispatch_us:?}\nreadback_us = 0.1\n\
         [transfer]\nupload_gb_s = 1000.0\nreadback_gb_s = 1000.0\n\
         [map]\ngb_s = 1000.0\n\
         [contract]\ngflop_s = [[64, 1000.0]]\n"
    );
    let profile = SimProfile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    SimBackend::new(id, profile).unwrap_or_else(|error| panic!("{error}"))
}

impl Backend for Hooked {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(Arc::new(HookedPlan { inner: self.inner.prepare(plan)?, hook: self.hook.clone() }))
    }

    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        (self.hook)(tasks.len())?;
        self.inner.run_mixed(tasks, results, failed)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        self.inner.upload(bytes)
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Resident>, RunError> {
        self.inner.allocate(bytes)
    }

    fn write(&self, to: &Arc<dyn Resident>, offset: usize, bytes: &[u8]) -> Result<(), RunError> {
        self.inner.write(to, offset, bytes)
    }

    fn read(&self, from: &Arc<dyn Resident>, offset: usize, into: &mut [u8]) -> Result<(), RunError> {
        self.inner.read(from, offset, into)
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<Timings, RunError> {
        self.inner.launch(launch)
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn is_simulated(&self) -> bool {
        self.inner.is_simulated()
    }

    fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }

    fn pending_ns(&self) -> u64 {
        self.inner.pending_ns()
    }

    fn health(&self) -> Health {
        self.inner.health()
    }
}

struct HookedPlan {
    inner: Arc<dyn Prepared>,
    hook: Hook,
}

impl Prepared for HookedPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError> {
        (self.hook)(1)?;
        self.inner.run(inputs, outputs, threads)
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        match (self.hook)(tasks) {
            Ok(()) => self.inner.run_tasks(tasks, inputs, results, stride, failed),
            Err(error) => (0..tasks).for_each(|task| failed(task, error.clone())),
        }
    }

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        (self.hook)(1)?;
        self.inner.run_batch(inputs, stay)
    }
}
