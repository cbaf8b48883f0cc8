//! The queue: jobs enter from any thread, workers of every device take them in the order in which they are due, and each
//! is answered once.
//!
//! Producers push into a bounded ring without a lock; workers sort what they find there into lanes, choose, run and
//! answer. Deadlines are kept by a thread of their own. Nothing is dropped: a job is answered with its result or with a
//! typed error, also when devices fail or the engine ends.

mod bell;
mod carry;
mod command;
mod config;
mod events;
mod gather;
mod job;
mod lanes;
mod place;
mod pool;
mod ring;
mod run;
mod seat;
mod share;
mod stats;
mod submit;
mod sync;
mod ticket;
mod timer;

pub(crate) use carry::allocate;
pub(crate) use command::one_device;
pub use command::{Command, Kernel, Memory};
pub use config::QueueConfig;
pub use events::{Event, Events};
pub use job::{Admit, Job, Priority};
pub use stats::QueueStats;
pub(crate) use submit::Patience;
pub use ticket::{Answer, Ticket};

use crate::array::View;
use crate::engine::Shared;
use crate::error::{Error, Result};
use crate::router::DEVICES;
use bell::Bell;
use breakeven_cpu::held::Held;
use crossbeam_utils::CachePadded;
use events::Subscribers;
use lanes::Lanes;
use pool::TaskRef;
use ring::Ring;
use seat::Seat;
use stats::Counters;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sync::{Mutex, lock};
use ticket::Task;
use timer::Timer;

/// Of so many jobs one is timed while nobody asks for all of them: reading the clock is a quarter of a submission.
const SAMPLE: u64 = 8;
/// After so many jobs fewer of them will do.
const MANY: u64 = 4096;
/// Of so many of those one is timed. With one in eight, metrics cost 7 ns of a round trip of 216.
const SAMPLE_MANY: u64 = 64;

/// Is the job of this number one of those that are timed? For how many it stands, then.
#[inline]
pub(crate) fn sampled(id: u64) -> Option<u64> {
    // Powers of two: with a division on both ends of a round trip metrics cost 1.8 to 4.3 % of it, without 0.8 to 2.9.
    const { assert!(SAMPLE.is_power_of_two() && SAMPLE_MANY.is_power_of_two()) };
    let each = if id <= MANY { SAMPLE } else { SAMPLE_MANY };
    (id & (each - 1) == 0).then_some(each)
}

/// The queue, as its threads share it.
pub(crate) struct Core {
    pub(crate) engine: Arc<Shared>,
    pub(crate) config: QueueConfig,
    /// What was submitted and not looked at yet. One step decides whether a job is among those that the end of the queue waits
    /// for. A device's workers sleep at a door of their own: waking one that can't do a job takes 20 us of the core that
    /// somebody else needs.
    intake: Ring<Held<Task>, DEVICES>,
    /// Apart from what those who submit read.
    pub(crate) state: CachePadded<Mutex<State>>,
    /// Jobs that have left the queue for a worker, or because they were answered in it.
    taken: CachePadded<AtomicU64>,
    /// Jobs that nobody has anything to do with any more.
    done: CachePadded<AtomicU64>,
    /// Jobs that have come back, and other reasons to look again.
    changes: CachePadded<AtomicU64>,
    /// Rung when there is room.
    room: Bell,
    /// Rung when a job is done.
    idle: Bell,
    /// What is left is answered instead of run.
    aborted: AtomicBool,
    ended: AtomicBool,
    /// The devices, as bits, that jobs may run on if they don't say.
    devices: AtomicU32,
    /// The devices, as bits, that have workers.
    seated: AtomicU32,
    /// Have devices that became known later been added?
    extended: AtomicBool,
    /// Is somebody awake, waiting for work?
    watch: CachePadded<AtomicBool>,
    pressed: AtomicBool,
    pub(crate) counters: CachePadded<Counters>,
    events: Subscribers,
    timer: Timer,
    timer_started: OnceLock<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The name that most answers carry.
    cpu: Arc<str>,
    /// Times are counted from here.
    pub(crate) begun: Instant,
}

/// What workers share under one lock.
pub(crate) struct State {
    lanes: Lanes<TaskRef>,
    seats: Vec<Arc<Seat>>,
}

/// An engine's queue, started when first used; it ends with the engine.
#[derive(Default)]
pub(crate) struct Queue {
    core: OnceLock<Result<Arc<Core>>>,
}

impl Queue {
    /// The queue of this engine.
    pub(crate) fn of(&self, engine: &Arc<Shared>) -> Result<&Arc<Core>> {
        self.core.get_or_init(|| Core::start(engine.clone())).as_ref().map_err(Clone::clone)
    }

    /// The queue, if it was ever used.
    pub(crate) fn started(&self) -> Option<&Arc<Core>> {
        self.core.get()?.as_ref().ok()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let Some(core) = self.started() else { return };
        // The last handle of an engine may go with a waker, on a thread that everybody would wait for.
        let is_own = lock(&core.threads).iter().any(|thread| thread.thread().id() == std::thread::current().id());
        if is_own {
            // Whoever this thread would run next is answered instead.
            core.aborted.store(true, Ordering::Relaxed);
            let core = core.clone();
            // Without a thread to end it, it ends with the process.
            let _ = std::thread::Builder::new().name("breakeven end".into()).spawn(move || core.abort());
        } else {
            core.abort();
        }
    }
}

impl Core {
    fn start(engine: Arc<Shared>) -> Result<Arc<Core>> {
        let config = engine.config.queue.clone();
        config.check()?;
        let core = Arc::new(Core {
            intake: Ring::new(config.capacity),
            state: CachePadded::new(Mutex::new(State { lanes: Lanes::new(config.ageing), seats: Vec::new() })),
            engine,
            config,
            taken: CachePadded::new(AtomicU64::new(0)),
            done: CachePadded::new(AtomicU64::new(0)),
            changes: CachePadded::new(AtomicU64::new(0)),
            room: Bell::default(),
            idle: Bell::default(),
            aborted: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            devices: AtomicU32::new(0),
            seated: AtomicU32::new(0),
            extended: AtomicBool::new(false),
            watch: CachePadded::new(AtomicBool::new(false)),
            pressed: AtomicBool::new(false),
            counters: CachePadded::default(),
            events: Subscribers::default(),
            timer: Timer::default(),
            timer_started: OnceLock::new(),
            threads: Mutex::new(Vec::new()),
            cpu: "cpu".into(),
            begun: Instant::now(),
        });
        let devices = core.wished()?;
        core.seat(devices)?;
        core.devices.store(devices, Ordering::Relaxed);
        Ok(core)
    }

    /// Jobs that wait for a worker.
    pub(crate) fn queued(&self) -> usize {
        // Taken first: what is taken was submitted before.
        let taken = self.taken.load(Ordering::Relaxed);
        self.submitted().saturating_sub(taken) as usize
    }

    /// Jobs that were submitted.
    pub(crate) fn submitted(&self) -> u64 {
        self.intake.numbered()
    }

    /// Are no more jobs taken?
    pub(crate) fn is_closed(&self) -> bool {
        self.intake.is_closed()
    }

    /// Has nobody anything to do with any job any more?
    fn is_idle(&self) -> Option<()> {
        (self.done.load(Ordering::Acquire) >= self.submitted()).then_some(())
    }

    /// Answers a task with an error, unless it was answered before, and stops its work.
    pub(crate) fn end(&self, task: &Task, error: Error) {
        // Counted first: whoever has the answer finds it counted.
        self.counters.count(&error, 1);
        let why = self.events.any().then(|| error.to_string());
        if task.answer(Err(error.clone())) {
            task.stop.stop();
            if let Some(why) = why {
                self.events.tell(|| Event::Failed { job: task.id, why });
            }
        } else {
            self.counters.count(&error, -1);
            self.note_end(task);
        }
    }

    /// Counts a task that was cancelled, once: its owner knows nothing of the queue.
    pub(crate) fn note_end(&self, task: &Task) {
        if task.take_cancelled() {
            self.counters.count(&Error::Cancelled, 1);
            self.events.tell(|| Event::Failed { job: task.id, why: Error::Cancelled.to_string() });
        }
    }

    pub(crate) fn events(&self) -> Events {
        self.events.subscribe()
    }

    /// Tells if the queue fills up; `id` is the number of the job that was submitted last.
    #[cold]
    fn feel_pressure(&self, id: u64) {
        let taken = self.taken.load(Ordering::Acquire);
        self.intake.note_left(taken);
        let queued = id.saturating_sub(taken) as usize;
        let capacity = self.config.capacity;
        if queued * 4 >= capacity * 3 && !self.pressed.load(Ordering::Relaxed) {
            self.pressed.store(true, Ordering::Relaxed);
            self.events.tell(|| Event::Pressure { queued, capacity });
        }
    }

    /// Takes no more jobs, and waits until all that were taken are answered.
    pub(crate) fn close(&self) {
        self.intake.close();
        self.room.ring();
        self.idle.wait(None, || self.is_idle());
        self.finish();
    }

    /// Takes no more jobs, and answers all that are left.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.intake.close();
        self.room.ring();
        // A submission that has its number may still be on its way into the ring.
        while self.is_idle().is_none() {
            let mut left = Vec::new();
            let running: Vec<TaskRef> = {
                let mut state = lock(&self.state);
                self.sort(&mut state);
                left.append(&mut state.lanes.drain());
                state.seats.iter().flat_map(|seat| lock(&seat.running).clone()).collect()
            };
            for task in &left {
                self.end(task, Error::Aborted);
            }
            self.leave_queue(left.len());
            self.leave(left.len());
            for task in &running {
                self.end(task, Error::Aborted);
            }
            let until = Some(Instant::now() + Duration::from_millis(5));
            self.idle.wait(until, || self.is_idle());
        }
        self.finish();
    }

    /// Ends the threads.
    fn finish(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.intake.ring(u32::MAX);
        self.timer.end();
        let own = std::thread::current().id();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // Whoever is woken by an answer may end the queue on the thread that answers.
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
        self.events.end();
    }

    /// Jobs have left the queue: there is room.
    fn leave_queue(&self, count: usize) {
        if count > 0 {
            self.taken.fetch_add(count as u64, Ordering::AcqRel);
            self.room.ring();
            if self.pressed.load(Ordering::Relaxed) && self.queued() * 2 <= self.config.capacity {
                self.pressed.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Nobody has anything to do with these jobs any more.
    fn leave(&self, count: usize) {
        if count > 0 {
            self.done.fetch_add(count as u64, Ordering::AcqRel);
            self.idle.ring();
        }
    }

    /// What was submitted goes into its lane.
    fn sort(&self, state: &mut State) {
        let State { lanes, seats } = state;
        let tell = || {
            if seats.len() > 1 {
                // What is found here may be for somebody who sleeps. Before it leaves the ring: whoever finds that empty sees this.
                self.changes.fetch_add(1, Ordering::AcqRel);
            }
        };
        self.intake.drain(tell, pool::coming, |task| {
            let task = TaskRef::from(task);
            lanes.push(task.priority() as usize, task.producer, task.id, task);
        });
    }
}

/// The values of a program's inputs.
pub(crate) fn views(inputs: &[breakeven_ir::Tensor]) -> crate::execute::Views<'_> {
    inputs.iter().filter_map(View::of).collect()
}

#[cfg(all(test, not(loom)))]
#[path = "queue_tests.rs"]
mod tests;
