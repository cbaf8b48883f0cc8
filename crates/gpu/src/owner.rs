//! The one thread that makes all wgpu calls of a device object.
//!
//! Commands enter through a bounded channel, answers leave through the channel that each command brings. Some drivers
//! block in `submit` and in `poll` for as long as a dispatch takes; here that delays nobody but those who wait for it
//! anyway, and those wait with a timeout. Compiling is put off until nothing else is to be done.

use crate::adapters::AdapterInfo;
use crate::batch::InFlight;
use crate::buffers::{Block, Pool, Role};
use crate::config::GpuConfig;
use crate::driver::Driver;
use crate::encode::Recording;
use crate::health::{Life, lock};
use crate::job::{Command, Core};
use crate::launch::Kernels;
use crate::layout::Region;
use crate::lookout;
use crate::monitor::Monitor;
use crate::pipelines::{self, Pipelines};
use crate::tally::Tally;
use crate::timing::Clock;
use crate::tune::{Bench, QUIET, Tuner};
use breakeven_ir::backend::RunError;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Completed submissions between two reports of the allocator.
const REPORT_EVERY: u64 = 64;

/// Commands that may wait. Batches are limited by their permits; this bounds the rest.
const COMMANDS: usize = 1024;

/// wgpu's compilers are recursive, and callers' kernels as deep as `nesting` lets them be. Only what is used takes memory.
const STACK: usize = 64 << 20;

/// What is told of a loss.
pub(crate) type OnLoss = Box<dyn Fn(&Arc<Life>, &str) + Send>;

/// What a device object is opened with.
pub(crate) struct Setup {
    pub(crate) info: AdapterInfo,
    pub(crate) config: GpuConfig,
    pub(crate) tally: Arc<Tally>,
    pub(crate) monitor: Arc<Monitor>,
    pub(crate) most_in_flight: u32,
    pub(crate) tuner: Arc<Tuner>,
    pub(crate) generation: u64,
}

/// How others see a device object.
pub(crate) struct Handle {
    pub(crate) life: Arc<Life>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) commands: Sender<Command>,
    /// Disconnected when the owner thread has let go of the device.
    done: Receiver<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the owner keeps for a plan.
pub(crate) struct PlanState {
    /// The pipeline of each stage.
    pub(crate) pipelines: Vec<usize>,
    /// The parameters of all stages for a single task.
    pub(crate) params: Block,
    pub(crate) regions: Vec<Region>,
}

/// The owner.
pub(crate) struct Owner {
    pub(crate) driver: Driver,
    pub(crate) pipelines: Pipelines,
    pub(crate) kernels: Kernels,
    pub(crate) clock: Option<Clock>,
    pub(crate) plans: HashMap<u64, PlanState>,
    pub(crate) life: Arc<Life>,
    pub(crate) in_flight: VecDeque<InFlight>,
    pub(crate) most_in_flight: usize,
    pub(crate) dispatch_limit_ns: f64,
    commands: Receiver<Command>,
    to_warm: VecDeque<Arc<Core>>,
    /// Plans of its own so far.
    pub(crate) trials: u64,
    pub(crate) tuner: Arc<Tuner>,
    pub(crate) bench: Bench,
    on_loss: OnLoss,
    monitor: Arc<Monitor>,
    /// Completed submissions at the last report.
    reported: u64,
    /// Samples that a trend of memory needs.
    growth_samples: usize,
    /// A caller that comes back at once finds it awake.
    pub(crate) linger_until: Instant,
}

impl Handle {
    /// Opens a device object on a thread of its own.
    pub(crate) fn open(adapter: wgpu::Adapter, setup: Setup, on_loss: OnLoss) -> Result<Handle, String> {
        let (commands, inbox) = bounded(COMMANDS);
        let (opened, outcome) = bounded(1);
        let (finished, done) = bounded(0);
        let (life, pool) = (Life::new(setup.generation), Pool::new(setup.config.pool_bytes));
        let (owner_life, owner_pool) = (life.clone(), pool.clone());
        let timeout = setup.config.sync_timeout.max(Duration::from_secs(1));
        let builder = std::thread::Builder::new().name(format!("breakeven {}", setup.info.id)).stack_size(STACK);
        let work = move || {
            let _finished = finished;
            // Dropped before that: a process that ends tears the driver down under whoever still uses it.
            let adapter = adapter;
            let open = || Owner::open(&adapter, &setup, owner_life, &owner_pool, inbox, on_loss);
            match catch_unwind(AssertUnwindSafe(open)) {
                Ok(Ok(owner)) => {
                    // An opener that has given up does not hear this, and disconnects: the owner then ends by itself.
                    let _ = opened.send(Ok(()));
                    owner.live();
                }
                Ok(Err(why)) => drop(opened.send(Err(why))),
                Err(_) => drop(opened.send(Err("the driver panicked".into()))),
            }
        };
        let thread = builder.spawn(work).map_err(|error| error.to_string())?;
        match outcome.recv_timeout(timeout) {
            Ok(Ok(())) => Ok(Handle { life, pool, commands, done, thread: Mutex::new(Some(thread)) }),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(format!("the driver did not answer within {} ms", timeout.as_millis())),
        }
    }

    /// Ends the owner, waiting for it only for so long: a thread that hangs in its driver is left behind.
    pub(crate) fn stop(&self, patience: Duration) {
        let _ = self.commands.try_send(Command::Stop);
        let Some(thread) = lock(&self.thread).take() else { return };
        let is_owner = thread.thread().id() == std::thread::current().id();
        if !is_owner && self.done.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected) {
            // It has nothing left to do that could hang. A panic in it was reported as a loss.
            let _ = thread.join();
        }
    }
}

impl Owner {
    fn open(
        adapter: &wgpu::Adapter,
        setup: &Setup,
        life: Arc<Life>,
        pool: &Arc<Pool>,
        commands: Receiver<Command>,
        on_loss: OnLoss,
    ) -> Result<Owner, String> {
        let config = &setup.config;
        let driver = Driver::open(adapter, &setup.info, pool, &setup.tally)?;
        let pipelines = Pipelines::new(&driver, config.cache_dir.as_deref());
        let clock = Clock::new(&driver);
        driver.check(0).map_err(|error| error.to_string())?;
        Ok(Owner {
            driver,
            pipelines,
            kernels: Kernels::default(),
            clock,
            plans: HashMap::new(),
            life,
            in_flight: VecDeque::new(),
            most_in_flight: setup.most_in_flight.max(1) as usize,
            monitor: setup.monitor.clone(),
            reported: 0,
            growth_samples: config.thresholds.growth_samples,
            linger_until: Instant::now(),
            dispatch_limit_ns: config.dispatch_limit.as_nanos() as f64,
            commands,
            to_warm: VecDeque::new(),
            trials: 0,
            tuner: setup.tuner.clone(),
            bench: Bench::default(),
            on_loss,
        })
    }

    /// Works until it is told to stop, nobody is left to tell it, or the device is lost.
    fn live(mut self) {
        let worked = catch_unwind(AssertUnwindSafe(|| while !self.life.is_lost() && self.step() {}));
        if let Err(panic) = worked {
            let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            self.lose(&format!("the driver panicked: {}", said.unwrap_or("no message")));
        }
        drop(self.driver.pool.evict(true));
    }

    fn step(&mut self) -> bool {
        let command = match self.commands.try_recv() {
            Ok(command) => command,
            Err(TryRecvError::Disconnected) => return false,
            Err(TryRecvError::Empty) if !self.in_flight.is_empty() => {
                self.finish_oldest();
                return true;
            }
            Err(TryRecvError::Empty) if Instant::now() < self.linger_until => {
                match lookout::until(&self.commands, self.linger_until) {
                    Some(command) => command,
                    None => {
                        self.linger_until = Instant::now();
                        return true;
                    }
                }
            }
            Err(TryRecvError::Empty) => match self.to_warm.pop_front() {
                // Nobody else has it any more.
                Some(core) if Arc::strong_count(&core) == 1 => return true,
                Some(core) => {
                    if self.ready(&core).is_err() {
                        // What fails fails again, with its message, when it is run: it must not wait for ever.
                        core.set_ready(self.life.generation);
                    }
                    return true;
                }
                None if self.report_is_due() => {
                    self.report();
                    return true;
                }
                None if self.pipelines.unsaved => {
                    self.pipelines.save();
                    return true;
                }
                None if self.tuner.is_waiting() => match self.commands.recv_timeout(QUIET) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Disconnected) => return false,
                    Err(RecvTimeoutError::Timeout) => {
                        self.tune_in_background();
                        return true;
                    }
                },
                None => match self.commands.recv() {
                    Ok(command) => command,
                    Err(_) => return false,
                },
            },
        };
        if self.is_destroyed() {
            return false;
        }
        self.driver.reclaim();
        match command {
            Command::Run(job) => {
                let stages = job.groups.iter().flat_map(|group| &group.core.lowered.stages);
                stages.for_each(|stage| self.tuner.note(stage.class));
                self.start(*job);
                while self.in_flight.len() >= self.most_in_flight {
                    self.finish_oldest();
                }
                self.driver.trim(false);
            }
            Command::Upload { bytes, reply } => drop(reply.send(self.driver.upload(bytes))),
            Command::Keep { upload, bytes, reply } => {
                let kept = self.keep(upload, bytes);
                let _ = reply.send(kept);
            }
            Command::Fetch { kept, bytes, reply } => {
                let read = self.fetch(&kept, 0, bytes);
                let _ = reply.send(read);
            }
            Command::Warm(core) => self.to_warm.push_back(core),
            Command::Forget(id) => {
                if let Some(state) = self.plans.remove(&id) {
                    self.driver.pool.give(state.params, None);
                }
            }
            Command::Compact(reply) => {
                self.driver.trim(true);
                let _ = self.driver.device.poll(wgpu::PollType::Poll);
                if let Some(why) = self.driver.lost() {
                    self.lose(&why);
                }
                let _ = reply.send(Ok(()));
            }
            Command::Do(work) => work(self),
            Command::Stop => {
                self.drain();
                return false;
            }
        }
        true
    }

    /// The allocator's report walks all of its allocations: now and then is enough.
    fn report_is_due(&self) -> bool {
        self.life.completed.load(Relaxed) >= self.reported + REPORT_EVERY
    }

    /// Leaves the allocator's figures for the monitor, and a sample for its trends: whoever asks it once is to hear of them.
    fn report(&mut self) {
        self.reported = self.life.completed.load(Relaxed);
        if let Some(report) = self.driver.device.generate_allocator_report() {
            self.monitor.allocated_bytes.store(report.total_allocated_bytes, Relaxed);
        }
        let reserved = self.driver.pool.stats().reserved_bytes;
        self.monitor.observe(reserved, self.life.busy_ns.load(Relaxed), self.growth_samples);
    }

    /// Latches the loss, which starts the rebuilding.
    pub(crate) fn lose(&self, why: &str) {
        (self.on_loss)(&self.life, why);
        self.life.lose(why);
    }

    pub(crate) fn lost_error(&self) -> RunError {
        RunError::Lost { device: self.driver.info.id.clone(), why: self.life.why() }
    }

    /// Destroys the device if a test asks for it. From then on nothing polls it, as nothing polls any device that is known
    /// to be lost: wgpu would free the memory that callers have mapped, and read or write just now.
    pub(crate) fn is_destroyed(&self) -> bool {
        let asked = self.life.destroy.swap(false, Relaxed);
        if asked {
            self.driver.device.destroy();
            self.lose("destroyed");
        }
        asked
    }

    /// Submits a recording and checks what the driver said to it.
    pub(crate) fn submit(&self, recording: &Recording<'_>) -> Result<wgpu::SubmissionIndex, RunError> {
        self.driver.followers.follow(recording.is_short);
        let index = self.driver.queue.submit([recording.encode(&self.driver)]);
        self.driver.tally.submits.fetch_add(1, Relaxed);
        self.driver.tally.dispatches.fetch_add(recording.dispatches.len() as u64, Relaxed);
        self.driver.check(0).map_err(|error| self.lost_or(error))?;
        Ok(index)
    }

    /// A lost device answers with errors of all kinds: this one, or the loss behind it.
    pub(crate) fn lost_or(&self, error: RunError) -> RunError {
        if self.driver.lost().is_none() {
            let _ = self.driver.device.poll(wgpu::PollType::Poll);
        }
        match self.driver.lost() {
            Some(why) => {
                self.lose(&why);
                self.lost_error()
            }
            None => error,
        }
    }

    /// Compiles what a plan needs and writes its parameters, once.
    pub(crate) fn ready(&mut self, core: &Arc<Core>) -> Result<(), RunError> {
        if self.plans.contains_key(&core.id) {
            return Ok(());
        }
        self.pipelines.trim(pipelines::MOST, needed(&self.plans));
        let compiled: Result<Vec<usize>, RunError> =
            core.lowered.stages.iter().map(|stage| self.pipelines.find(&mut self.driver, stage)).collect();
        let pipelines = compiled.map_err(|error| self.lost_or(error));
        if matches!(pipelines, Err(RunError::Device { .. })) {
            // It answers at once from now on, with the compiler's message.
            core.set_ready(self.life.generation);
        }
        let pipelines = pipelines?;
        let (words, regions) = crate::params::single(&core.lowered);
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let params = self.driver.block(Role::Device, bytes.len() as u64)?;
        self.driver.queue.write_buffer(&params.buffer, 0, bytes);
        // The warm-up dispatches and the parameters go now, so that the first run does not wait for them.
        let index = self.driver.queue.submit([]);
        self.plans.insert(core.id, PlanState { pipelines, params, regions });
        self.driver.check(0).and_then(|()| self.wait(&index))?;
        core.set_ready(self.life.generation);
        Ok(())
    }
}

/// The pipelines that plans need.
pub(crate) fn needed(plans: &HashMap<u64, PlanState>) -> impl Iterator<Item = usize> {
    plans.values().flat_map(|plan| plan.pipelines.iter().copied())
}
