//! What goes through a pipe: a command enters, the worker's answer leaves.
//!
//! The worker has one block of memory and does what the engine's queue does for the same command on the CPU, and nothing
//! else: what is compared is the way there and back.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// The worker's memory: as much as the largest payload.
pub const MEMORY_BYTES: usize = 1 << 20;

/// A command.
#[derive(Clone)]
pub enum Request {
    /// Answered at once: a command without a payload.
    Synchronize,
    /// Copies the payload to the start of the worker's memory.
    Write(Bytes),
    /// Gives so many bytes from the start of the worker's memory.
    Read(usize),
    /// Runs a kernel.
    Launch(Kernel),
    /// Can't be done: the error path.
    Fail,
}

/// Something that a worker runs.
pub type Kernel = Arc<dyn Fn() -> Outcome + Send + Sync>;

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The bytes that were asked for.
    Data(Bytes),
}

/// Why a command was not done. Typed, as the engine's errors are: a text is made when somebody wants to read it.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// Beyond the memory, or the pool.
    TooLarge {
        /// What was asked for.
        bytes: usize,
        /// What there is.
        there: usize,
    },
    /// The other end is gone.
    Gone,
    /// The engine's own error.
    Engine(Box<breakeven::Error>),
    /// An answer of the wrong kind.
    Unexpected(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::TooLarge { bytes, there } => write!(f, "{bytes} bytes are more than the {there} that there are"),
            Refused::Gone => f.write_str("the worker is gone"),
            Refused::Engine(error) => error.fmt(f),
            Refused::Unexpected(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Refused {}

impl From<breakeven::Error> for Refused {
    fn from(error: breakeven::Error) -> Refused {
        Refused::Engine(Box::new(error))
    }
}

/// An answer, or why there is none.
pub type Outcome = Result<Answer, Refused>;

/// Answers requests.
pub struct Worker {
    memory: Vec<u8>,
}

impl Worker {
    /// A worker whose memory is touched, so that no first write pays for pages.
    pub fn new() -> Worker {
        Worker { memory: vec![1; MEMORY_BYTES] }
    }

    /// Does what is asked.
    pub fn answer(&mut self, request: Request) -> Outcome {
        match request {
            Request::Synchronize => Ok(Answer::Done),
            Request::Write(data) => {
                let place = self.memory.get_mut(..data.len()).ok_or_else(|| too_large(data.len()))?;
                place.copy_from_slice(&data);
                Ok(Answer::Done)
            }
            Request::Read(bytes) => {
                let place = self.memory.get(..bytes).ok_or_else(|| too_large(bytes))?;
                Ok(Answer::Data(Bytes::copy_from_slice(place)))
            }
            Request::Launch(kernel) => kernel(),
            Request::Fail => Err(too_large(MEMORY_BYTES + 1)),
        }
    }
}

impl Default for Worker {
    fn default() -> Worker {
        Worker::new()
    }
}

#[cold]
fn too_large(bytes: usize) -> Refused {
    Refused::TooLarge { bytes, there: MEMORY_BYTES }
}

/// A payload that takes a worker about so long to write. No command just waits, so that copying has to do.
pub fn write_of(time: Duration) -> Bytes {
    let (from, mut to) = (vec![7u8; MEMORY_BYTES], vec![1u8; MEMORY_BYTES]);
    let mut bytes = MEMORY_BYTES;
    // Smaller ones come from nearer caches: the size is found in steps.
    for _ in 0..4 {
        let mut best = Duration::MAX;
        for _ in 0..25 {
            let start = Instant::now();
            black_box(&mut to[..bytes]).copy_from_slice(black_box(&from[..bytes]));
            best = best.min(start.elapsed());
        }
        let share = time.as_secs_f64() / best.as_secs_f64().max(1e-9);
        bytes = ((bytes as f64 * share) as usize).clamp(1, MEMORY_BYTES);
    }
    Bytes::from(vec![7; bytes])
}
