//! What is submitted: work and its terms.

use super::command::{Command, Order};
use crate::config::Device;
use crate::program::Program;
use breakeven_ir::Tensor;
use smallvec::SmallVec;
use std::time::Duration;

/// How urgent a job is. Within one urgency producers take turns; a job that has been overtaken by enough newer ones
/// goes before them, so that nothing starves ([`QueueConfig::ageing`](crate::QueueConfig::ageing)).
///
/// ```
/// use breakeven::Priority;
/// assert!(Priority::Interactive < Priority::Bulk);   // in the order in which they are served
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Priority {
    /// Somebody waits for it.
    Interactive,
    /// As most are.
    #[default]
    Normal,
    /// Whenever there is time.
    Bulk,
}

/// Whether a job that can't be done in time is taken.
///
/// ```
/// assert_eq!(breakeven::Admit::default(), breakeven::Admit::Always);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Admit {
    /// It is taken, and answered when its deadline has passed.
    #[default]
    Always,
    /// It is refused at the door if it can't be done in time, by prediction.
    Strict,
}

/// Work for the queue, and on what terms.
///
/// ```
/// use breakeven::{DType, Engine, Job, Priority, Tensor};
/// use std::time::Duration;
/// let engine = Engine::new()?;
/// let x = Tensor::input("x", DType::F32, [3])?;
/// let program = engine.compile(&[&x], &[&x.square()?])?;
/// let job = Job::program(&program, [Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?]);
/// let ticket = engine.submit(job.priority(Priority::Interactive).deadline(Duration::from_secs(5)))?;
/// assert_eq!(ticket.arrays()?[0].as_slice::<f32>()?, [1.0, 4.0, 9.0]);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) what: What,
    pub(crate) terms: Terms,
}

/// The work itself.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Program { program: Program, inputs: Inputs },
    Batch(Vec<Tensor>),
    Command(Order),
}

/// A program's inputs; few have more than two.
pub(crate) type Inputs = SmallVec<[Tensor; 2]>;

/// On what terms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) priority: Priority,
    pub(crate) deadline: Option<Duration>,
    pub(crate) admit: Admit,
    pub(crate) producer: Option<u64>,
    pub(crate) device: Option<Device>,
    pub(crate) explained: bool,
    pub(crate) alone: bool,
}

impl Job {
    fn new(what: What) -> Job {
        Job { what, terms: Terms::default() }
    }

    /// A program with its inputs, in their order. Tensors share their data: nothing is copied.
    pub fn program(program: &Program, inputs: impl IntoIterator<Item = Tensor>) -> Job {
        Job::new(What::Program { program: program.clone(), inputs: inputs.into_iter().collect() })
    }

    /// Recorded tensors, computed as one batch: what [`Engine::run`](crate::Engine::run) does.
    pub fn batch(outputs: &[&Tensor]) -> Job {
        Job::new(What::Batch(outputs.iter().map(|tensor| (*tensor).clone()).collect()))
    }

    /// A command for those who drive a device themselves.
    pub fn command(command: Command) -> Job {
        Job::new(What::Command(command.into()))
    }

    /// How urgent it is.
    pub fn priority(mut self, priority: Priority) -> Job {
        self.terms.priority = priority;
        self
    }

    /// It is worth nothing after this time, counted from when it is submitted: then it is answered
    /// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded), and what is left of it is not computed.
    pub fn deadline(mut self, deadline: Duration) -> Job {
        self.terms.deadline = Some(deadline);
        self
    }

    /// Whether it is taken if it can't be done in time.
    pub fn admit(mut self, admit: Admit) -> Job {
        self.terms.admit = admit;
        self
    }

    /// Who submits it: producers of one urgency take turns. By default that is the submitting thread.
    pub fn producer(mut self, producer: u64) -> Job {
        self.terms.producer = Some(producer);
        self
    }

    /// Where it runs; by default wherever the queue finds best.
    pub fn device(mut self, device: Device) -> Job {
        self.terms.device = Some(device);
        self
    }

    /// It is never gathered with others of its program into one batch.
    pub fn alone(mut self) -> Job {
        self.terms.alone = true;
        self
    }

    /// Answers with the record of where it ran and why, which takes a few microseconds to put together.
    pub fn explained(mut self) -> Job {
        self.terms.explained = true;
        self
    }
}
