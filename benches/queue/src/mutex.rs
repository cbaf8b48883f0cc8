//! The pattern that a queue replaces: requests enter a `Mutex<VecDeque>` with a `Condvar`, each answer leaves through a
//! slot of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::arm::Fallible;
use crate::pipe::{Pipe, start};
use crate::request::{Outcome, Request, Worker};

/// The queue.
pub struct MutexQueue {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    filled: Condvar,
    drained: Condvar,
    capacity: usize,
}

struct State {
    requests: VecDeque<(Request, Arc<Slot>)>,
    closed: bool,
}

/// Where one answer is put.
#[derive(Default)]
pub struct Slot {
    outcome: Mutex<Option<Outcome>>,
    there: Condvar,
}

impl Pipe for MutexQueue {
    const NAME: &'static str = "mutex";
    type Reply = Arc<Slot>;

    fn open(capacity: usize) -> Fallible<MutexQueue> {
        let state = Mutex::new(State { requests: VecDeque::with_capacity(capacity), closed: false });
        let shared = Arc::new(Shared { state, filled: Condvar::new(), drained: Condvar::new(), capacity });
        let queue = shared.clone();
        start(Self::NAME, move || {
            let mut worker = Worker::new();
            while let Some((request, slot)) = queue.take() {
                let outcome = worker.answer(request);
                *lock(&slot.outcome) = Some(outcome);
                slot.there.notify_one();
            }
        })?;
        Ok(MutexQueue { shared })
    }

    fn submit(&self, request: Request) -> Arc<Slot> {
        let slot = Arc::new(Slot::default());
        let shared = &*self.shared;
        let mut state = lock(&shared.state);
        while state.requests.len() >= shared.capacity {
            state = shared.drained.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.requests.push_back((request, slot.clone()));
        drop(state);
        shared.filled.notify_one();
        slot
    }

    fn wait(slot: Arc<Slot>) -> Outcome {
        let mut outcome = lock(&slot.outcome);
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => outcome = slot.there.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Shared {
    fn take(&self) -> Option<(Request, Arc<Slot>)> {
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = state.requests.pop_front() {
                drop(state);
                self.drained.notify_one();
                return Some(next);
            }
            if state.closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for MutexQueue {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.filled.notify_all();
    }
}

/// Nothing panics while it holds a lock here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
