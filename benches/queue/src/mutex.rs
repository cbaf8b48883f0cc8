//! The pattern that a queue replaces: requests enter a `Mutex<VecDeque>` with a `Condvar`, each answer leaves through a
//! slot of its own.
//!
//! The plain arm is how it is written most often. The one called awake wakes only those who sleep, and looks for work and
//! for answers as long as our queue does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::arm::Fallible;
use crate::channel::LOOKS;
use crate::pipe::{AWAKE, Pipe, start};
use crate::reply::{Reply, look};
use crate::request::{Outcome, Request, Worker};

/// The queue.
pub struct MutexQueue<R: Reply, const LOOKING: bool> {
    shared: Arc<Shared<R::Giver>>,
}

struct Shared<G> {
    state: Mutex<State<G>>,
    /// Requests in the queue, for those who look without the lock.
    waiting: AtomicUsize,
    filled: Condvar,
    drained: Condvar,
    capacity: usize,
}

struct State<G> {
    requests: VecDeque<(Request, G)>,
    /// Is the worker asleep, and how many senders are?
    asleep: (bool, usize),
    closed: bool,
}

impl<R: Reply, const LOOKING: bool> Pipe for MutexQueue<R, LOOKING> {
    const NAME: &'static str = "mutex";
    const VARIANT: &'static str = if LOOKING { AWAKE } else { "" };
    type Reply = R::Taker;

    fn open(capacity: usize) -> Fallible<Self> {
        let requests = VecDeque::with_capacity(capacity);
        let state = Mutex::new(State { requests, asleep: (false, 0), closed: false });
        let (waiting, filled, drained) = (AtomicUsize::new(0), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state, waiting, filled, drained, capacity });
        let queue = shared.clone();
        start(Self::NAME, move || {
            let mut worker = Worker::new();
            while let Some((request, giver)) = queue.take(LOOKING) {
                R::give(giver, worker.answer(request));
            }
        })?;
        Ok(MutexQueue { shared })
    }

    fn submit(&self, request: Request) -> R::Taker {
        let (giver, taker) = R::pair();
        let shared = &*self.shared;
        let mut state = lock(&shared.state);
        while state.requests.len() >= shared.capacity {
            state.asleep.1 += 1;
            state = shared.drained.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep.1 -= 1;
        }
        state.requests.push_back((request, giver));
        shared.waiting.store(state.requests.len(), Relaxed);
        let wake = !LOOKING || state.asleep.0;
        drop(state);
        if wake {
            shared.filled.notify_one();
        }
        taker
    }

    fn wait(taker: R::Taker) -> Outcome {
        R::wait(taker)
    }
}

impl<G> Shared<G> {
    fn take(&self, looking: bool) -> Option<(Request, G)> {
        if looking {
            look(LOOKS, || (self.waiting.load(Relaxed) > 0).then_some(()));
        }
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.requests.pop_front() {
                self.waiting.store(state.requests.len(), Relaxed);
                let wake = !looking || state.asleep.1 > 0;
                drop(state);
                if wake {
                    self.drained.notify_one();
                }
                return Some(next);
            }
            if state.closed {
                return None;
            }
            state.asleep.0 = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep.0 = false;
        }
    }
}

impl<R: Reply, const LOOKING: bool> Drop for MutexQueue<R, LOOKING> {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.filled.notify_all();
    }
}

/// Nothing panics while it holds a lock here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
