//! A job on its way, and the ticket that its answer is collected with.

use super::command::Memory;
use super::job::{Inputs, Priority, Terms, What};
use super::place::Place;
use super::pool::{Pool, TaskRef};
use super::sync::{Mutex, lock};
use crate::array::Array;
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::profile::{self, FrameKind};
use crate::program::Program;
use crate::router::DEVICES;
use breakeven_ir::backend::Stop;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What came of a job.
///
/// ```
/// use breakeven::{Answer, Command, Engine, Job};
/// let engine = Engine::new()?;
/// let allocate = Command::Allocate { device: breakeven::Device::Cpu, bytes: 16 };
/// let Answer::Memory(memory) = engine.submit(Job::command(allocate))?.wait()? else { panic!("no memory") };
/// assert_eq!(memory.len_bytes(), 16);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The results of a program or a batch.
    Arrays {
        /// The outputs, in order.
        outputs: Vec<Array>,
        /// The device that made them: `cpu`, `gpu:0`, ..
        device: Arc<str>,
        /// Where, why and what it took, if that was asked for ([`Job::explained`](crate::Job::explained)).
        decision: Option<Box<Decision>>,
    },
    /// Memory that was allocated.
    Memory(Memory),
    /// Bytes that were read.
    Bytes(Bytes),
    /// Done; there is nothing to give back.
    Done,
}

/// The answer to come. Dropping it lets the job go on, unheard.
///
/// Wait for it, with or without a time limit, or `.await` it: it wakes whoever polled it last, under any runtime.
///
/// ```
/// use breakeven::{Engine, Error, Job, Tensor};
/// use std::time::Duration;
/// let engine = Engine::new()?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// let ticket = engine.submit(Job::batch(&[&x.sum(&[], false)?]))?;
/// assert!(ticket.wait_timeout(Duration::from_secs(10)).is_some());
/// assert_eq!(ticket.arrays()?[0].as_slice::<f32>()?, [3.0]);
/// # Ok::<(), Error>(())
/// ```
#[must_use = "the answer, an error perhaps, is only heard by whoever waits for it"]
pub struct Ticket {
    pub(super) task: TaskRef,
}

/// A job in the queue.
pub(crate) struct Task {
    /// In the order of submission, from 1.
    pub(crate) id: u64,
    pub(crate) producer: u64,
    pub(crate) terms: Terms,
    /// Not all are timed: see [`SAMPLE`](super::SAMPLE).
    pub(crate) submitted: Option<Instant>,
    /// The devices, as bits, on which it may run; those that failed are gone from it.
    pub(crate) devices: AtomicU32,
    /// Taken by whoever runs it, so that its inputs are free when it is done.
    what: Mutex<Option<What>>,
    pub(crate) is_command: bool,
    /// The address of its program, if it may be gathered with others; else 0.
    pub(crate) program: usize,
    /// What it is expected to take on each device: 0 where it can't run.
    pub(crate) expected_ns: OnceLock<[u64; DEVICES]>,
    pub(crate) stop: Stop,
    /// It was cancelled, which the queue has not counted yet.
    uncounted: AtomicBool,
    /// Errors are large and rare: every cache line of a task travels from its producer to its worker and back.
    place: Place<Result<Answer, Box<Error>>>,
    /// Where its place belongs.
    pub(super) home: Arc<Pool>,
}

impl Task {
    /// A place for jobs.
    pub(super) fn empty(home: Arc<Pool>) -> Task {
        Task {
            id: 0,
            producer: 0,
            terms: Terms::default(),
            submitted: None,
            devices: AtomicU32::new(0),
            what: Mutex::new(None),
            is_command: false,
            program: 0,
            expected_ns: OnceLock::new(),
            stop: Stop::new(),
            uncounted: AtomicBool::new(false),
            place: Place::new(),
            home,
        }
    }

    /// A job takes its place.
    pub(super) fn set(&mut self, id: u64, producer: u64, what: What, terms: Terms, devices: u32, timed: bool) {
        self.program = match &what {
            What::Program { program, .. } if !terms.explained && !terms.alone => Arc::as_ptr(&program.inner) as usize,
            _ => 0,
        };
        self.is_command = matches!(what, What::Command(_));
        self.id = id;
        self.producer = producer;
        self.terms = terms;
        self.submitted = (timed || terms.deadline.is_some()).then(Instant::now);
        self.devices = AtomicU32::new(devices);
        self.what = Mutex::new(Some(what));
    }

    /// Nobody has anything to do with it any more.
    pub(super) fn reset(&mut self) {
        self.what = Mutex::new(None);
        self.expected_ns = OnceLock::new();
        self.stop.renew();
        self.uncounted = AtomicBool::new(false);
        self.place.reset();
    }

    pub(crate) fn priority(&self) -> Priority {
        self.terms.priority
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.submitted?.checked_add(self.terms.deadline?)
    }

    /// Looks at the work.
    pub(crate) fn with_what<R>(&self, look: impl FnOnce(&What) -> R) -> Option<R> {
        lock(&self.what).as_ref().map(look)
    }

    pub(crate) fn take(&self) -> Option<What> {
        lock(&self.what).take()
    }

    pub(crate) fn take_program(&self) -> Option<(Program, Inputs)> {
        match self.take() {
            Some(What::Program { program, inputs }) => Some((program, inputs)),
            _ => None,
        }
    }

    /// The work is to be done by somebody else.
    pub(crate) fn put_back(&self, what: What) {
        *lock(&self.what) = Some(what);
    }

    /// May it run on this device?
    pub(crate) fn may_run_on(&self, device: usize) -> bool {
        self.devices.load(Relaxed) >> device & 1 == 1
    }

    /// It does not run on this device any more. The devices that are left.
    pub(crate) fn leave(&self, device: usize) -> u32 {
        self.devices.fetch_and(!(1 << device), Relaxed) & !(1 << device)
    }

    /// Was it answered?
    pub(crate) fn is_answered(&self) -> bool {
        self.place.is_filled()
    }

    /// Answers it, unless it was answered before.
    pub(super) fn answer(&self, answer: Result<Answer>) -> bool {
        self.place.fill(answer.map_err(Box::new)).is_ok()
    }

    /// Answers it as cancelled, unless it was answered before, and stops its work. Whoever of the queue meets it next counts
    /// it.
    pub(super) fn cancel(&self) -> bool {
        // Only by whoever is first: one that was late is counted already.
        let count = || self.uncounted.store(true, Relaxed);
        let first = self.place.fill_after(Err(Box::new(Error::Cancelled)), count).is_ok();
        if first {
            self.stop.stop();
        }
        first
    }

    /// Was it cancelled? Says so to whoever asks first: its owner may have taken the answer with him.
    pub(super) fn take_cancelled(&self) -> bool {
        self.is_answered() && self.uncounted.load(Relaxed) && self.uncounted.swap(false, Relaxed)
    }

    pub(super) fn late(&self) -> Error {
        Error::DeadlineExceeded { deadline: self.terms.deadline.unwrap_or_default() }
    }
}

impl Ticket {
    /// The number of the job, as events have it: in the order of submission, from 1.
    pub fn id(&self) -> u64 {
        self.task.id
    }

    /// Waits for the answer.
    pub fn wait(self) -> Result<Answer> {
        let _idle = self.idle();
        // Nobody else has this ticket, so that the answer is still there.
        self.task.place.wait(None, Option::take).flatten().map_or(Err(Error::Aborted), unboxed)
    }

    /// Waits for the answer, but not for longer than this; it can be asked for again.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<Answer>> {
        // A time that can't be told is never.
        let until = Instant::now().checked_add(timeout);
        let _idle = self.idle();
        self.task.place.wait(until, |answer| answer.clone()).flatten().map(unboxed)
    }

    /// Whoever waits has nothing else to do, unless the answer is there.
    fn idle(&self) -> Option<profile::Entered> {
        (!self.is_done()).then(|| profile::enter(FrameKind::Idle, || "waiting for a ticket".into()))
    }

    /// Waits for the results of a program or a batch.
    pub fn arrays(self) -> Result<Vec<Array>> {
        match self.wait()? {
            Answer::Arrays { outputs, .. } => Ok(outputs),
            _ => Ok(Vec::new()),
        }
    }

    /// Was the job answered?
    pub fn is_done(&self) -> bool {
        self.task.is_answered()
    }

    /// Answers the job [`Error::Cancelled`], unless it was answered before: then this is false. What is left of it is not
    /// computed.
    pub fn cancel(&self) -> bool {
        self.task.cancel()
    }
}

fn unboxed(answer: Result<Answer, Box<Error>>) -> Result<Answer> {
    answer.map_err(|error| *error)
}

impl Future for Ticket {
    type Output = Result<Answer>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Answer>> {
        self.task.place.poll(context, |answer| answer.clone().map_or(Err(Error::Aborted), unboxed))
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket({}{})", self.task.id, if self.is_done() { ", done" } else { "" })
    }
}
