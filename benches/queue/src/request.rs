//! What goes through a pipe: a command enters, the worker's answer leaves.
//!
//! The worker has one block of memory and does what the engine's queue does for the same command on the CPU, and nothing
//! else: what is compared is the way there and back.

use std::fmt;
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
    /// Keeps the worker busy for so long.
    Busy(Duration),
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

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// The other end is gone.
    pub fn gone() -> Refused {
        Refused("the worker is gone".to_owned())
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
            Request::Busy(time) => {
                let start = Instant::now();
                while start.elapsed() < time {
                    std::hint::spin_loop();
                }
                Ok(Answer::Done)
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

/// With its numbers in it, as an error that helps has.
#[cold]
fn too_large(bytes: usize) -> Refused {
    Refused(format!("{bytes} bytes are more than the memory's {MEMORY_BYTES}"))
}
