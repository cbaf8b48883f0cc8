//! A job on its way, and the ticket that its answer is collected with.

use super::command::{Memory, Order};
use super::job::{Inputs, Priority, Terms, What};
use super::place::{self, Place, Rest, Word};
use super::pool::TaskRef;
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
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
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
///
/// In this order, so that what every command touches lies in two cache lines, how many have it included, and what it carries
/// in one of them: each of them travels from its producer to its worker and back.
#[repr(C)]
pub(crate) struct Task {
    word: Word,
    /// The devices, as bits, on which it may run; those that failed are gone from it.
    pub(crate) devices: AtomicU32,
    /// In the order of submission, from 1.
    pub(crate) id: u64,
    pub(crate) producer: u64,
    /// Not all are timed: see [`sampled`](super::sampled).
    pub(crate) submitted: Option<Instant>,
    priority: Priority,
    pub(crate) is_command: bool,
    pub(crate) is_explained: bool,
    /// Did its owner say where it runs?
    pub(crate) is_told: bool,
    /// The address of its program, if it may be gathered with others; else 0.
    pub(crate) program: usize,
    /// It stays until nobody has anything to do with the job any more: whoever runs it only reads it.
    pub(crate) order: Option<Order>,
    pub(crate) stop: Stop,
    rest: Rest<Outcome>,
    deadline: Option<Duration>,
    /// Other work. Taken by whoever runs it, so that its inputs are free when it is done.
    what: Mutex<Option<What>>,
    /// What it is expected to take on each device: 0 where it can't run.
    pub(crate) expected_ns: OnceLock<[u64; DEVICES]>,
}

/// Cache lines that every command touches.
pub(super) const LINES: isize = 2;

// The second cache line: eight bytes of the first one tell who has it.
#[cfg(all(target_pointer_width = "64", not(all(test, loom))))]
const _: () = assert!(std::mem::offset_of!(Task, order) == 56 && std::mem::offset_of!(Task, rest) <= 120);

/// What a job is answered with. Errors are large and rare.
#[derive(Clone)]
struct Outcome(Result<Answer, Box<Error>>);

impl Default for Outcome {
    /// What most commands are answered with.
    fn default() -> Outcome {
        Outcome(Ok(Answer::Done))
    }
}

impl From<Outcome> for Result<Answer> {
    fn from(outcome: Outcome) -> Result<Answer> {
        outcome.0.map_err(|error| *error)
    }
}

impl Default for Task {
    /// A place for jobs.
    fn default() -> Task {
        Task {
            word: Word::new(),
            devices: AtomicU32::new(0),
            id: 0,
            producer: 0,
            submitted: None,
            priority: Priority::Normal,
            is_command: false,
            is_explained: false,
            is_told: false,
            program: 0,
            order: None,
            stop: Stop::new(),
            rest: Rest::new(),
            deadline: None,
            what: Mutex::new(None),
            expected_ns: OnceLock::new(),
        }
    }
}

impl Task {
    /// A job takes its place.
    #[inline]
    pub(super) fn set(&mut self, id: u64, producer: u64, what: What, terms: &Terms, devices: u32, timed: bool) {
        self.id = id;
        self.producer = producer;
        self.submitted = (timed || terms.deadline.is_some()).then(Instant::now);
        self.devices = AtomicU32::new(devices);
        self.priority = terms.priority;
        self.is_explained = terms.explained;
        self.is_told = terms.device.is_some();
        if terms.deadline.is_some() {
            self.deadline = terms.deadline;
        }
        match what {
            What::Command(order) => {
                self.is_command = true;
                self.program = 0;
                self.order = Some(order);
            }
            what => {
                self.is_command = false;
                self.program = match &what {
                    What::Program { program, .. } if !terms.explained && !terms.alone => {
                        Arc::as_ptr(&program.inner) as usize
                    }
                    _ => 0,
                };
                self.what = Mutex::new(Some(what));
            }
        }
    }

    /// Nobody has anything to do with it any more. What was not used is not written: its cache lines stay where they are.
    pub(super) fn reset(&mut self) {
        let is_launch = matches!(self.order, Some(Order::Launch(_)));
        if self.is_command {
            self.order = None;
        } else {
            self.what = Mutex::new(None);
            self.expected_ns = OnceLock::new();
        }
        if self.deadline.is_some() {
            self.deadline = None;
        }
        let is_done = place::reset(&mut self.word, &mut self.rest);
        // A command that was done was not stopped, and nobody but a launch asks whether it is.
        if !is_done || !self.is_command || is_launch {
            self.stop.renew();
        }
    }

    fn place(&self) -> Place<'_, Outcome> {
        Place { word: &self.word, rest: &self.rest }
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.submitted?.checked_add(self.deadline?)
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
        self.word.is_filled()
    }

    /// Answers it, unless it was answered before.
    pub(super) fn answer(&self, answer: Result<Answer>) -> bool {
        match answer {
            Ok(Answer::Done) => self.answer_done(),
            answer => self.place().fill(Outcome(answer.map_err(Box::new))).is_ok(),
        }
    }

    /// Answers it: it is done. Unless it was answered before.
    #[inline]
    pub(super) fn answer_done(&self) -> bool {
        self.place().fill_default()
    }

    /// Answers it as cancelled, unless it was answered before, and stops its work. Whoever of the queue meets it next counts
    /// it.
    pub(super) fn cancel(&self) -> bool {
        let first = self.place().fill_marked(Outcome(Err(Box::new(Error::Cancelled)))).is_ok();
        if first {
            self.stop.stop();
        }
        first
    }

    /// Was it cancelled? Says so to whoever asks first: its owner may have taken the answer with him.
    pub(super) fn take_cancelled(&self) -> bool {
        self.word.take_mark()
    }

    pub(super) fn late(&self) -> Error {
        Error::DeadlineExceeded { deadline: self.deadline.unwrap_or_default() }
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
        let answer = self.task.place().wait(None, Option::take).flatten();
        self.task.coming();
        answer.map_or(Err(Error::Aborted), Outcome::into)
    }

    /// Waits for the answer, but not for longer than this; it can be asked for again.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<Answer>> {
        // A time that can't be told is never.
        let until = Instant::now().checked_add(timeout);
        let _idle = self.idle();
        self.task.place().wait(until, |answer| answer.clone()).flatten().map(Outcome::into)
    }

    /// Whoever waits has nothing else to do, unless the answer is there.
    fn idle(&self) -> Option<profile::Entered> {
        (profile::is_joined() && !self.is_done())
            .then(|| profile::enter(FrameKind::Idle, || "waiting for a ticket".into()))
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

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.is_done() {
            self.task.wait_alone();
        }
    }
}

impl Future for Ticket {
    type Output = Result<Answer>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Answer>> {
        self.task.place().poll(context, |answer| answer.clone().map_or(Err(Error::Aborted), Outcome::into))
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket({}{})", self.task.id, if self.is_done() { ", done" } else { "" })
    }
}
