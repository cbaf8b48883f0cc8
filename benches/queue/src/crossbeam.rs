//! crossbeam-channel: requests enter a bounded channel, each answer leaves through one of capacity 1.

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::arm::Fallible;
use crate::pipe::{Pipe, start};
use crate::request::{Outcome, Refused, Request, Worker};

/// The channel.
pub struct Crossbeam {
    requests: Sender<(Request, Sender<Outcome>)>,
}

impl Pipe for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Reply = Receiver<Outcome>;

    fn open(capacity: usize) -> Fallible<Crossbeam> {
        let (requests, queue) = bounded::<(Request, Sender<Outcome>)>(capacity);
        start(Self::NAME, move || {
            let mut worker = Worker::new();
            while let Ok((request, reply)) = queue.recv() {
                // Nobody waits for an answer whose receiver is gone.
                let _ = reply.send(worker.answer(request));
            }
        })?;
        Ok(Crossbeam { requests })
    }

    fn submit(&self, request: Request) -> Receiver<Outcome> {
        let (reply, answer) = bounded(1);
        // A worker that is gone has dropped the reply, which the wait tells.
        let _ = self.requests.send((request, reply));
        answer
    }

    fn wait(answer: Receiver<Outcome>) -> Outcome {
        answer.recv().unwrap_or_else(|_| Err(Refused::gone()))
    }
}
