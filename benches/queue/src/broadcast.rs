//! tokio's broadcast: one command enters, every worker gets it, one answer of each leaves.
//!
//! It fits where all devices do the same, and where a send alone is timed. It is no [`crate::pipe::Pipe`]: a queue that
//! is full loses its oldest commands instead of making the sender wait.

use ::tokio::sync::broadcast::{self, error::RecvError};
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::arm::Fallible;
use crate::pipe::start;
use crate::request::{Outcome, Refused, Request, Worker};

/// The channel and its workers.
pub struct Broadcast {
    requests: broadcast::Sender<(Request, Sender<Outcome>)>,
    workers: usize,
}

impl Broadcast {
    /// The library's name.
    pub const NAME: &'static str = "tokio-broadcast";

    /// Starts the workers. They end when this is dropped.
    pub fn open(capacity: usize, workers: usize) -> Fallible<Broadcast> {
        let (requests, _) = broadcast::channel::<(Request, Sender<Outcome>)>(capacity);
        for _ in 0..workers {
            let mut queue = requests.subscribe();
            start(Self::NAME, move || {
                let mut worker = Worker::new();
                loop {
                    match queue.blocking_recv() {
                        Ok((request, reply)) => {
                            // Nobody waits for an answer whose receiver is gone.
                            let _ = reply.send(worker.answer(request));
                        }
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => break,
                    }
                }
            })?;
        }
        Ok(Broadcast { requests, workers })
    }

    /// A command to all workers. There must be room for it, or older ones are lost.
    pub fn submit(&self, request: Request) -> Receiver<Outcome> {
        let (reply, answers) = unbounded();
        // Without workers the reply is dropped, which the wait tells.
        let _ = self.requests.send((request, reply));
        answers
    }

    /// Blocks until every worker has answered.
    pub fn wait(&self, answers: Receiver<Outcome>) -> Result<(), Refused> {
        for _ in 0..self.workers {
            answers.recv().unwrap_or_else(|_| Err(Refused::Gone))?;
        }
        Ok(())
    }
}
