//! What can go wrong between recording a batch and holding its results.

use breakeven_ir::backend::RunError;
use breakeven_ir::{DType, Shape};
use std::time::Duration;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a batch has no result.
///
/// ```
/// use breakeven::{DType, Engine, Error, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::input("x", DType::F32, [3])?;
/// let program = engine.compile(&[&x], &[&x.exp()?])?;
/// let error = program.run(&[[1.0f32, 2.0].as_slice().into()]).unwrap_err();
/// assert!(matches!(error, Error::InputShape { .. }));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The expression was wrong.
    #[error(transparent)]
    Record(#[from] breakeven_ir::Error),
    /// The device could not run it.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Too many or too few values for a program's inputs or outputs.
    #[error("{found} {what} were given to a program that has {expected}")]
    Count {
        /// Inputs or outputs.
        what: &'static str,
        /// How many there were.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// A value that is not computed yet.
    #[error("the value for input `{name}` is an expression: compute it first (`Engine::run`), and give the result")]
    NoData {
        /// The input.
        name: String,
    },
    /// A value of the wrong dtype for an input.
    #[error("input `{name}` is {expected}, but {found} was given")]
    InputDType {
        /// The input.
        name: String,
        /// What it is.
        expected: DType,
        /// What was given.
        found: DType,
    },
    /// A value of the wrong size or shape for an input.
    #[error(
        "input `{name}` has shape {expected}, but a value of {found} was given; `run_many` takes tasks of other sizes"
    )]
    InputShape {
        /// The input.
        name: String,
        /// Its shape.
        expected: Shape,
        /// What was given.
        found: String,
    },
    /// A place of the wrong dtype for an output.
    #[error("output {number} is {expected}, but the place for it is {found}")]
    OutputDType {
        /// Which output.
        number: usize,
        /// What it is.
        expected: DType,
        /// What was given.
        found: DType,
    },
    /// A place of the wrong size for an output.
    #[error("output {number} has shape {expected} with {} elements, but the place for it holds {found}", expected.elems())]
    OutputSize {
        /// Which output.
        number: usize,
        /// Its shape.
        expected: Shape,
        /// How many elements fit.
        found: usize,
    },
    /// Memory that is not aligned for its dtype can't be borrowed as a slice of it.
    #[error("the bytes of this array are not aligned for {dtype}: copy them with `to_vec`")]
    Unaligned {
        /// The dtype.
        dtype: DType,
    },
    /// A setting that makes no sense.
    #[error("{name}={value}: expected {expected}")]
    Setting {
        /// The setting or environment variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A device was asked for that is not there.
    #[error("{wanted} is not there: {found} GPU{} found; {hint}", if *found == 1 { " was" } else { "s were" })]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// How many there are.
        found: usize,
        /// How to get one.
        hint: &'static str,
    },
    /// A device is there but can't be opened.
    #[error("{device} can't be opened: {why}")]
    OpenDevice {
        /// The device.
        device: String,
        /// What the driver said.
        why: String,
    },
    /// The only device that was allowed failed.
    #[error("{wish} was asked for, nothing else is allowed, and {why}")]
    Strict {
        /// What was asked for.
        wish: String,
        /// What went wrong there.
        why: Box<Error>,
    },
    /// The queue has no room, and waiting was not asked for, or not for this long.
    #[error("the queue is full ({capacity} jobs); there should be room in {} us", retry_after.as_micros())]
    QueueFull {
        /// How many jobs it holds.
        capacity: usize,
        /// When there should be room, by what jobs took lately.
        retry_after: Duration,
    },
    /// The queue takes no more jobs.
    #[error("the queue was closed: no more jobs are taken")]
    QueueClosed,
    /// The job would not be done in time, by prediction, and was refused at the door ([`Admit::Strict`](crate::Admit)).
    #[error(
        "the job would be done in {} us, by prediction, and its deadline is in {} us: submit it earlier, or without          `Admit::Strict`",
        predicted.as_micros(),
        deadline.as_micros()
    )]
    CantFinish {
        /// When it would be done.
        predicted: Duration,
        /// When it must be.
        deadline: Duration,
    },
    /// The job's deadline has passed.
    #[error("the deadline of {} us has passed", deadline.as_micros())]
    DeadlineExceeded {
        /// The time that it had.
        deadline: Duration,
    },
    /// The job was cancelled.
    #[error("the job was cancelled")]
    Cancelled,
    /// The queue was aborted before the job was done.
    #[error("the queue was aborted before the job was done")]
    Aborted,
    /// The job failed.
    #[error("the job failed: {why}")]
    Failed {
        /// What went wrong.
        why: Box<Error>,
    },
    /// Memory that a command names was freed.
    #[error("the memory was freed")]
    Freed,
    /// A command that makes no sense with the memory that it was given.
    #[error("{what}: {why}")]
    Command {
        /// The command.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A program of another engine was submitted.
    #[error("the program was compiled by another engine: two engines share nothing")]
    OtherEngine,
    /// A profile of this engine is being recorded, and there is one at a time.
    #[error("a profile of this engine is being recorded: finish its recorder first, or drop it")]
    Profiled,
    /// Threads could not be started.
    #[error("threads could not be started: {why}")]
    Threads {
        /// What the system said.
        why: String,
    },
}
