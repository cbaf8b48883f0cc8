//! What callers hand to the owner thread: plain values, no borrowed memory, so that a caller may give up at any time.

use crate::buffers::{Kept, Readback, Upload};
use crate::health::Permit;
use crate::layout::{Layout, Region};
use crate::owner::Handle;
use crate::owner::Owner;
use crate::stage::Lowered;
use breakeven_ir::backend::{RunError, Stop, Timings};
use breakeven_ir::plan::Plan;
use crossbeam_channel::Sender;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A lowered plan with what callers and owner know about it.
pub(crate) struct Core {
    /// Unique on its device: the owner remembers what belongs to it by this.
    pub(crate) id: u64,
    pub(crate) plan: Arc<Plan>,
    pub(crate) lowered: Lowered,
    pub(crate) layout: Arc<Layout>,
    stay: OnceLock<Arc<Layout>>,
    /// Plans with the same number run the same kernels over the same spots: their tasks share dispatches.
    pub(crate) signature: usize,
    /// One more than the generation that has compiled it.
    ready: AtomicU64,
    /// One more than the generation that was asked to compile it.
    asked: AtomicU64,
    /// Measured nanoseconds of a run, estimated at first.
    pub(crate) estimate_ns: AtomicU64,
    /// What batches of many tasks that begin with one of this plan take, in 1024ths of what is assumed.
    tasks_share: AtomicU64,
    /// Nanoseconds of each of the plan's kernels by the device's clock; 0 before it was timed.
    kernel_ns: Box<[AtomicU64]>,
}

/// What a batch of so much work takes before it was ever measured: about what software Vulkan takes for a submission and
/// an element.
pub(crate) fn assumed_ns(work: u64) -> u64 {
    100_000 + work.saturating_mul(12)
}

impl Core {
    pub(crate) fn new(id: u64, plan: &Arc<Plan>, lowered: Lowered, layout: Layout, signature: usize) -> Core {
        let estimate_ns = AtomicU64::new(assumed_ns(lowered.stages.iter().map(|stage| stage.work).sum()));
        let layout = Arc::new(layout);
        let kernel_ns = plan.kernels.iter().map(|_| AtomicU64::new(0)).collect();
        let plan = plan.clone();
        Core {
            id,
            plan,
            lowered,
            layout,
            stay: OnceLock::new(),
            signature,
            ready: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            estimate_ns,
            tasks_share: AtomicU64::new(1024),
            kernel_ns,
        }
    }

    /// Where everything lies if results stay on the device.
    pub(crate) fn stay_layout(&self) -> &Arc<Layout> {
        self.stay.get_or_init(|| Arc::new(Layout::new(&self.plan, &self.lowered, true)))
    }

    pub(crate) fn is_ready(&self, generation: u64) -> bool {
        self.ready.load(Relaxed) == generation + 1
    }

    /// Asks a device object to compile it when there is nothing else to do, once. If it is gone or has more to do than
    /// it can note down, the next to ask tries again.
    pub(crate) fn warm(self: &Arc<Core>, handle: &Handle) {
        let generation = handle.life.generation + 1;
        if self.asked.load(Relaxed) != generation && handle.commands.try_send(Command::Warm(self.clone())).is_ok() {
            self.asked.store(generation, Relaxed);
        }
    }

    pub(crate) fn set_ready(&self, generation: u64) {
        self.ready.store(generation + 1, Relaxed);
    }

    /// Remembers what each stage of a run took.
    pub(crate) fn learn_kernels(&self, stages: impl Iterator<Item = (usize, u64)>) {
        let mut sums = vec![0; self.kernel_ns.len()];
        for (stage, ns) in stages {
            sums[self.lowered.stages[stage].kernel] += ns;
        }
        self.kernel_ns.iter().zip(sums).for_each(|(kernel, ns)| kernel.store(ns, Relaxed));
    }

    pub(crate) fn kernel_ns(&self) -> Vec<u64> {
        self.kernel_ns.iter().map(|ns| ns.load(Relaxed)).collect()
    }

    /// What so much work of many tasks is expected to take.
    pub(crate) fn tasks_ns(&self, work: u64) -> u64 {
        (u128::from(assumed_ns(work)) * u128::from(self.tasks_share.load(Relaxed)) / 1024) as u64
    }

    /// Learns what that took, as [`Core::learn`] does.
    pub(crate) fn learn_tasks(&self, work: u64, ns: u64) {
        let before = self.tasks_share.load(Relaxed);
        let share = (u128::from(ns) * 1024 / u128::from(assumed_ns(work))) as u64;
        self.tasks_share.store(((before * 3 + share.min(2 * before)) / 4).max(1), Relaxed);
    }

    /// Learns what a run took. One that took far longer than any other (the driver's compiler was in it, or the machine was
    /// busy elsewhere) says little about the next: callers would sleep through ten quick ones after it.
    pub(crate) fn learn(&self, ns: u64) {
        let before = self.estimate_ns.load(Relaxed);
        self.estimate_ns.store((before * 3 + ns.min(2 * before)) / 4, Relaxed);
    }
}

/// Tasks that run the same kernels, as one dispatch a stage.
pub(crate) struct Group {
    pub(crate) core: Arc<Core>,
    pub(crate) layout: Arc<Layout>,
    /// Inputs that lie on the device already; empty if none does.
    pub(crate) residents: Vec<Option<Arc<Kept>>>,
    /// `None` for a single task, whose parameters the plan keeps.
    pub(crate) many: Option<Many>,
}

/// What several tasks have beyond one.
#[derive(Default)]
pub(crate) struct Many {
    pub(crate) tasks: u32,
    /// The part of the upload with each stage's parameters.
    pub(crate) params: Vec<Region>,
    /// The most units of a task, for each stage.
    pub(crate) units: Vec<u64>,
    /// Units that a workgroup takes at a time, for each stage.
    pub(crate) group_units: Vec<u32>,
    /// The work of all tasks, for each stage.
    pub(crate) work: Vec<u64>,
    /// Where each input of the first task begins.
    pub(crate) inputs: Vec<u64>,
}

/// A batch.
pub(crate) struct Job {
    pub(crate) groups: Vec<Group>,
    /// The packed inputs, and the parameters of many tasks.
    pub(crate) upload: Option<Upload>,
    pub(crate) upload_bytes: u64,
    /// Bytes of the output block.
    pub(crate) block_bytes: u64,
    pub(crate) reply: Sender<Result<Done, RunError>>,
    /// Held until the batch is done, also if its caller has given up. Trials of the owner's own have none.
    pub(crate) permit: Option<Permit>,
    /// Whoever may tell it to stop before the device has it.
    pub(crate) stop: Option<Stop>,
    /// When it was handed over.
    pub(crate) sent: Instant,
}

/// A batch's results.
pub(crate) struct Done {
    /// The output block.
    pub(crate) read: Option<Readback>,
    /// The outputs that stay, in order.
    pub(crate) kept: Vec<Kept>,
    pub(crate) timings: Timings,
    /// When the device was done.
    pub(crate) finished: Instant,
}

/// What the owner thread is asked to do.
pub(crate) enum Command {
    Run(Box<Job>),
    /// New memory to fill.
    Upload {
        bytes: u64,
        reply: Sender<Result<Upload, RunError>>,
    },
    /// Keeps uploaded bytes on the device.
    Keep {
        upload: Upload,
        bytes: u64,
        reply: Sender<Result<Kept, RunError>>,
    },
    /// Reads kept bytes back.
    Fetch {
        kept: Arc<Kept>,
        bytes: u64,
        reply: Sender<Result<Readback, RunError>>,
    },
    /// Compiles a plan when there is nothing else to do.
    Warm(Arc<Core>),
    /// A plan is gone.
    Forget(u64),
    /// Frees all idle blocks.
    Compact(Sender<Result<(), RunError>>),
    /// Something rare.
    Do(Box<dyn FnOnce(&mut Owner) + Send>),
    Stop,
}

impl Command {
    /// Something rare that has an answer. What it let go of counts towards the pool's cap at once: there may be no batch
    /// for a long time.
    pub(crate) fn work<T: Send + 'static>(
        work: impl FnOnce(&mut Owner) -> Result<T, RunError> + Send + 'static,
    ) -> impl FnOnce(Sender<Result<T, RunError>>) -> Command {
        move |reply| {
            Command::Do(Box::new(move |owner| {
                let done = work(owner);
                owner.driver.trim(false);
                let _ = reply.send(done);
            }))
        }
    }
}
