//! A real GPU that fails now and then: batches enter, every so-many-th fails in one of the ways in which devices do, or
//! comes back wrong.

use breakeven::backend::{Backend, Made, Prepared, Resident, Source, Task};
use breakeven::{Api, Buffer, Health, Plan, RunError, Timings, driver_hint};
use breakeven_gpu::{Adapters, Gpu, GpuConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first GPU behind an interface. A driver that is missing fails the test: nothing is skipped in silence.
#[track_caller]
pub fn gpu(api: Api, config: &GpuConfig) -> Gpu {
    let opened = Adapters::find(&[api]).open(0, config);
    opened.unwrap_or_else(|why| panic!("no {} device ({why}): {}", api.name(), driver_hint()))
}

/// A way to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The batch fails before the device sees it.
    Early(Kind),
    /// The device does the work, and its answer is lost.
    Late(Kind),
    /// The results are wrong, and nobody says so.
    Wrong,
}

/// What a failing device says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are RunError's")]
pub enum Kind {
    Timeout,
    Lost,
    Device,
    OutOfMemory,
    Unsupported,
    Stale,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Timeout, Kind::Lost, Kind::Device, Kind::OutOfMemory, Kind::Unsupported, Kind::Stale];

    fn error(self) -> RunError {
        let (device, why) = (String::from("gpu:0"), String::from("injected"));
        match self {
            Kind::Timeout => RunError::Timeout { device, waited_ms: 1 },
            Kind::Lost => RunError::Lost { device, why },
            Kind::Device => RunError::Device { device, message: why },
            Kind::OutOfMemory => RunError::OutOfMemory { bytes: 1 << 40 },
            Kind::Unsupported => RunError::Unsupported { device, why },
            Kind::Stale => RunError::Stale { device },
        }
    }
}

/// Every way to fail that is noticed.
pub fn every_noticed_fault() -> Vec<Fault> {
    Kind::ALL.into_iter().flat_map(|kind| [Fault::Early(kind), Fault::Late(kind)]).collect()
}

/// When to fail, and what was done so far.
pub struct Script {
    every: u64,
    faults: Vec<Fault>,
    attempts: AtomicU64,
    injected: AtomicU64,
}

impl Script {
    /// A fault in every `every`-th batch, one way after the other.
    pub fn new(every: u64, faults: Vec<Fault>) -> Arc<Script> {
        Arc::new(Script { every, faults, attempts: AtomicU64::new(0), injected: AtomicU64::new(0) })
    }

    /// Batches that were tried on the device.
    pub fn attempts(&self) -> u64 {
        self.attempts.load(Relaxed)
    }

    /// Those that failed.
    pub fn injected(&self) -> u64 {
        self.injected.load(Relaxed)
    }

    fn next(&self) -> Option<Fault> {
        let number = self.attempts.fetch_add(1, Relaxed) + 1;
        let due = !self.faults.is_empty() && number.is_multiple_of(self.every);
        due.then(|| self.faults[self.injected.fetch_add(1, Relaxed) as usize % self.faults.len()])
    }

    /// Does the work, or fails as it is due; `spoil` makes results wrong.
    fn run<T>(&self, work: impl FnOnce() -> Result<T, RunError>, spoil: impl FnOnce(T) -> T) -> Result<T, RunError> {
        match self.next() {
            None => work(),
            Some(Fault::Early(kind)) => Err(kind.error()),
            Some(Fault::Late(kind)) => work().and(Err(kind.error())),
            Some(Fault::Wrong) => work().map(spoil),
        }
    }
}

/// The GPU, failing as the script says.
pub struct Faulty {
    gpu: Gpu,
    script: Arc<Script>,
    mixes: bool,
    stores: bool,
}

impl Faulty {
    /// Wraps an opened GPU.
    pub fn new(gpu: &Gpu, script: &Arc<Script>) -> Faulty {
        Faulty { gpu: gpu.clone(), script: script.clone(), mixes: true, stores: true }
    }

    /// Leaves many tasks to the interface's own way: one after the other.
    pub fn one_by_one(self) -> Faulty {
        Faulty { mixes: false, ..self }
    }

    /// Refuses every upload.
    pub fn without_memory(self) -> Faulty {
        Faulty { stores: false, ..self }
    }
}

impl Backend for Faulty {
    fn id(&self) -> &str {
        "gpu:0"
    }

    fn name(&self) -> &str {
        "a GPU that fails"
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(Arc::new(FaultyPlan { inner: self.gpu.prepare(plan)?, script: self.script.clone() }))
    }

    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        if self.mixes {
            let mut failures = Vec::new();
            let mut work = || self.gpu.run_mixed(tasks, results, &mut |task, error| failures.push((task, error)));
            let timings = match self.script.next() {
                None => work()?,
                Some(Fault::Early(kind)) => return Err(kind.error()),
                Some(Fault::Late(kind)) => return work().and(Err(kind.error())),
                Some(Fault::Wrong) => {
                    let timings = work()?;
                    results[0..4].copy_from_slice(&77.0f32.to_ne_bytes());
                    timings
                }
            };
            failures.into_iter().for_each(|(task, error)| failed(task, error));
            return Ok(timings);
        }
        for (number, task) in tasks.iter().enumerate() {
            let stride = task.plan.result_stride();
            let place = &mut results[task.offset..task.offset + stride];
            self.prepare(task.plan)?.run_tasks(1, task.inputs, place, stride, &mut |_, error| failed(number, error));
        }
        Ok(Timings::default())
    }

    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        if self.stores { self.gpu.upload(bytes) } else { Err(RunError::OutOfMemory { bytes: bytes.len() }) }
    }

    fn health(&self) -> Health {
        self.gpu.health()
    }
}

struct FaultyPlan {
    inner: Arc<dyn Prepared>,
    script: Arc<Script>,
}

impl Prepared for FaultyPlan {
    fn plan(&self) -> &Arc<Plan> {
        self.inner.plan()
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError> {
        self.script.run(|| self.inner.run(inputs, outputs, threads), |timings| timings)
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        let work = || {
            self.inner.run_tasks(tasks, inputs, results, stride, failed);
            Ok(())
        };
        if let Err(error) = self.script.run(work, |done| done) {
            (0..tasks).for_each(|task| failed(task, error.clone()));
        }
    }

    fn estimate_ns(&self) -> u64 {
        self.inner.estimate_ns()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        let spoil = |(made, timings): (Vec<Made>, Timings)| (made.into_iter().map(spoiled).collect(), timings);
        self.script.run(|| self.inner.run_batch(inputs, stay), spoil)
    }

    /// Always: a batch that waits for the compiler is tried on the device too.
    fn is_ready(&self) -> bool {
        true
    }
}

/// The same value with its first word changed.
fn spoiled(made: Made) -> Made {
    let Ok(host) = (match made {
        Made::Host(buffer) => Ok(buffer),
        Made::Resident(value) => value.fetch(),
    }) else {
        return Made::Host(Buffer::from_vec(Vec::<f32>::new()));
    };
    let mut words: Vec<u32> =
        host.as_bytes().chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    words.iter_mut().take(1).for_each(|word| *word ^= 0x4040_0000);
    Made::Host(Buffer::from_vec(words))
}
