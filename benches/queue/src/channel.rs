//! General channels: requests enter a bounded one, their answers leave by a way of their own. One row of impls a library.
//!
//! Each library has two arms. The plain one is what its documentation shows: a worker that blocks, and its own smallest
//! channel for the answer. The one called awake looks for work and for answers as long as our queue does before it
//! sleeps, which crossbeam and kanal do by themselves, but for less long. With threads enough for all, looking wins;
//! without, blocking does: the better of both is what a library can do.

use std::time::Duration;

use ::tokio::sync::mpsc;

use crate::arm::Fallible;
use crate::pipe::{AWAKE, Pipe, start};
use crate::reply::{Reply, look};
use crate::request::{Outcome, Request, Worker};

/// As long as our queue's worker looks for more.
pub const LOOKS: Duration = Duration::from_micros(200);

/// A library's bounded channel.
pub trait Channel: 'static {
    /// The library's name.
    const NAME: &'static str;
    /// The end that sends.
    type Sender<T: Send + 'static>: Send + Sync + 'static;
    /// The end that receives.
    type Receiver<T: Send + 'static>: Send + 'static;

    /// Both ends of one that holds so many.
    fn bounded<T: Send + 'static>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    /// Sends; blocks while it is full. What nobody will receive is dropped.
    fn send<T: Send + 'static>(sender: &Self::Sender<T>, value: T);
    /// Blocks until there is something, or the other end is gone.
    fn recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T>;
    /// What is there now.
    fn try_recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T>;
}

/// crossbeam-channel.
pub struct Crossbeam;

impl Channel for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Sender<T: Send + 'static> = crossbeam_channel::Sender<T>;
    type Receiver<T: Send + 'static> = crossbeam_channel::Receiver<T>;

    fn bounded<T: Send + 'static>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        crossbeam_channel::bounded(capacity)
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, value: T) {
        let _ = sender.send(value);
    }

    fn recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().ok()
    }

    fn try_recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// flume.
pub struct Flume;

impl Channel for Flume {
    const NAME: &'static str = "flume";
    type Sender<T: Send + 'static> = flume::Sender<T>;
    type Receiver<T: Send + 'static> = flume::Receiver<T>;

    fn bounded<T: Send + 'static>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        flume::bounded(capacity)
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, value: T) {
        let _ = sender.send(value);
    }

    fn recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().ok()
    }

    fn try_recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// kanal.
pub struct Kanal;

impl Channel for Kanal {
    const NAME: &'static str = "kanal";
    type Sender<T: Send + 'static> = kanal::Sender<T>;
    type Receiver<T: Send + 'static> = kanal::Receiver<T>;

    fn bounded<T: Send + 'static>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        kanal::bounded(capacity)
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, value: T) {
        let _ = sender.send(value);
    }

    fn recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().ok()
    }

    fn try_recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok().flatten()
    }
}

/// tokio's mpsc without a runtime: its blocking halves park the thread, which is what callers of an engine do.
pub struct Tokio;

impl Channel for Tokio {
    const NAME: &'static str = "tokio";
    type Sender<T: Send + 'static> = mpsc::Sender<T>;
    type Receiver<T: Send + 'static> = mpsc::Receiver<T>;

    fn bounded<T: Send + 'static>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        mpsc::channel(capacity)
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, value: T) {
        // The blocking send sets up a future's waker first, which is in vain while there is room.
        if let Err(mpsc::error::TrySendError::Full(value)) = sender.try_send(value) {
            let _ = sender.blocking_send(value);
        }
    }

    fn recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.blocking_recv()
    }

    fn try_recv<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// Requests through a channel, answers by a [`Reply`]; the worker looks for more before it blocks, or does not.
pub struct Through<C: Channel, R: Reply, const LOOKING: bool> {
    requests: C::Sender<(Request, R::Giver)>,
}

impl<C: Channel, R: Reply, const LOOKING: bool> Pipe for Through<C, R, LOOKING> {
    const NAME: &'static str = C::NAME;
    const VARIANT: &'static str = if LOOKING { AWAKE } else { "" };
    type Reply = R::Taker;

    fn open(capacity: usize) -> Fallible<Self> {
        let (requests, mut queue) = C::bounded::<(Request, R::Giver)>(capacity);
        start(C::NAME, move || {
            let mut worker = Worker::new();
            let mut next = || {
                let found = if LOOKING { look(LOOKS, || C::try_recv(&mut queue)) } else { None };
                found.or_else(|| C::recv(&mut queue))
            };
            while let Some((request, giver)) = next() {
                R::give(giver, worker.answer(request));
            }
        })?;
        Ok(Through { requests })
    }

    fn submit(&self, request: Request) -> R::Taker {
        let (giver, taker) = R::pair();
        C::send(&self.requests, (request, giver));
        taker
    }

    fn wait(taker: R::Taker) -> Outcome {
        R::wait(taker)
    }
}
