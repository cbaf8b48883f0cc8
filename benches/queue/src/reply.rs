//! The way back: a worker's answer enters, whoever waits for it has it leave. A new one for each request.
//!
//! The plain ways are those of each library's own documentation. [`Awake`] looks for a moment before it sleeps, as our
//! queue does: the fastest of those tried here with every library.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ::tokio::sync::oneshot;

use crate::channel::Channel;
use crate::request::{Outcome, Refused};

/// As long as our queue looks for an answer.
const LOOKS: Duration = Duration::from_micros(60);

/// A place for one answer, with two ends.
pub trait Reply: 'static {
    /// The worker's end.
    type Giver: Send + 'static;
    /// The end of whoever waits.
    type Taker: Send;

    /// Both ends.
    fn pair() -> (Self::Giver, Self::Taker);
    /// Answers. Nobody waits for an answer whose other end is gone.
    fn give(giver: Self::Giver, outcome: Outcome);
    /// Blocks until the answer is there.
    fn wait(taker: Self::Taker) -> Outcome;
}

/// A channel of capacity 1, of the library that carries the requests.
pub struct Own<C>(C);

impl<C: Channel> Reply for Own<C> {
    type Giver = C::Sender<Outcome>;
    type Taker = C::Receiver<Outcome>;

    fn pair() -> (Self::Giver, Self::Taker) {
        C::bounded(1)
    }

    fn give(giver: Self::Giver, outcome: Outcome) {
        C::send(&giver, outcome);
    }

    fn wait(mut taker: Self::Taker) -> Outcome {
        C::recv(&mut taker).unwrap_or(Err(Refused::Gone))
    }
}

/// tokio's oneshot.
pub struct Oneshot;

impl Reply for Oneshot {
    type Giver = oneshot::Sender<Outcome>;
    type Taker = oneshot::Receiver<Outcome>;

    fn pair() -> (Self::Giver, Self::Taker) {
        oneshot::channel()
    }

    fn give(giver: Self::Giver, outcome: Outcome) {
        let _ = giver.send(outcome);
    }

    fn wait(taker: Self::Taker) -> Outcome {
        taker.blocking_recv().unwrap_or(Err(Refused::Gone))
    }
}

/// A mutex and a condvar.
pub struct Asleep;

/// Where [`Asleep`] puts an answer.
#[derive(Default)]
pub struct Slot {
    outcome: Mutex<Option<Outcome>>,
    there: Condvar,
}

impl Reply for Asleep {
    type Giver = Arc<Slot>;
    type Taker = Arc<Slot>;

    fn pair() -> (Arc<Slot>, Arc<Slot>) {
        let slot = Arc::<Slot>::default();
        (slot.clone(), slot)
    }

    fn give(slot: Arc<Slot>, outcome: Outcome) {
        *slot.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        slot.there.notify_one();
    }

    fn wait(slot: Arc<Slot>) -> Outcome {
        let mut outcome = slot.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => outcome = slot.there.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// A cell that is looked at without a lock, for a moment, before its waiter sleeps.
pub struct Awake;

impl Reply for Awake {
    type Giver = Arc<OnceLock<Outcome>>;
    type Taker = Arc<OnceLock<Outcome>>;

    fn pair() -> (Self::Giver, Self::Taker) {
        let cell = Arc::<OnceLock<Outcome>>::default();
        (cell.clone(), cell)
    }

    fn give(cell: Self::Giver, outcome: Outcome) {
        let _ = cell.set(outcome);
    }

    fn wait(cell: Self::Taker) -> Outcome {
        // Cloned, as the worker may not have let go of it yet; no answer is dear to clone.
        look(LOOKS, || cell.get().cloned()).unwrap_or_else(|| cell.wait().clone())
    }
}

/// Looks again and again for so long. After a while others may have the core in between: where there are fewer cores than
/// threads, whoever is waited for may be one of them.
pub fn look<T>(time: Duration, mut there: impl FnMut() -> Option<T>) -> Option<T> {
    // About 2 us.
    for _ in 0..64 {
        if let Some(found) = there() {
            return Some(found);
        }
        std::hint::spin_loop();
    }
    let begun = Instant::now();
    while begun.elapsed() < time {
        if let Some(found) = there() {
            return Some(found);
        }
        std::thread::yield_now();
    }
    None
}
