//! tokio's mpsc: requests enter a bounded channel, each answer leaves through a oneshot, as its documentation shows it.
//!
//! Without a runtime: the blocking halves park the thread, which is what callers of an engine do.

use ::tokio::sync::{mpsc, oneshot};

use crate::arm::Fallible;
use crate::pipe::{Pipe, start};
use crate::request::{Outcome, Refused, Request, Worker};

/// The channel.
pub struct Mpsc {
    requests: mpsc::Sender<(Request, oneshot::Sender<Outcome>)>,
}

impl Pipe for Mpsc {
    const NAME: &'static str = "tokio";
    type Reply = oneshot::Receiver<Outcome>;

    fn open(capacity: usize) -> Fallible<Mpsc> {
        let (requests, mut queue) = mpsc::channel::<(Request, oneshot::Sender<Outcome>)>(capacity);
        start(Self::NAME, move || {
            let mut worker = Worker::new();
            while let Some((request, reply)) = queue.blocking_recv() {
                // Nobody waits for an answer whose receiver is gone.
                let _ = reply.send(worker.answer(request));
            }
        })?;
        Ok(Mpsc { requests })
    }

    fn submit(&self, request: Request) -> oneshot::Receiver<Outcome> {
        let (reply, answer) = oneshot::channel();
        // A worker that is gone has dropped the reply, which the wait tells.
        let _ = self.requests.blocking_send((request, reply));
        answer
    }

    fn wait(answer: oneshot::Receiver<Outcome>) -> Outcome {
        answer.blocking_recv().unwrap_or_else(|_| Err(Refused::gone()))
    }
}
