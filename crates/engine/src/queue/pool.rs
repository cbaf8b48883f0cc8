//! Places for jobs, used again: work and its terms enter, a job with a place leaves.
//!
//! A submission that allocates costs twice as much, and its memory would be freed on another thread.

use super::job::{Terms, What};
use super::ticket::Task;
use crossbeam_queue::ArrayQueue;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Places that are kept at most: 4 MB of them.
const MOST: usize = 16_384;

/// Places that nobody uses.
pub(crate) struct Pool {
    free: ArrayQueue<Arc<Task>>,
    closed: AtomicBool,
}

impl Pool {
    /// For a queue of this capacity.
    pub(crate) fn new(capacity: usize) -> Arc<Pool> {
        Arc::new(Pool { free: ArrayQueue::new(capacity.clamp(1, MOST)), closed: AtomicBool::new(false) })
    }

    /// A job takes a place.
    pub(crate) fn take(
        self: &Arc<Pool>,
        id: u64,
        producer: u64,
        what: What,
        terms: Terms,
        devices: u32,
        timed: bool,
    ) -> TaskRef {
        let mut task = self.free.pop().unwrap_or_else(|| Arc::new(Task::empty(self.clone())));
        if Arc::get_mut(&mut task).is_none() {
            // Whoever gave it back is about to let go of it.
            task = Arc::new(Task::empty(self.clone()));
        }
        if let Some(task) = Arc::get_mut(&mut task) {
            task.set(id, producer, what, terms, devices, timed);
        }
        TaskRef { task }
    }

    /// No more places are kept: each of them knows the pool, and they would keep one another.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        while self.free.pop().is_some() {}
    }

    fn give_back(&self, task: &Arc<Task>) {
        // If there are enough, it is one too many.
        let _ = self.free.push(task.clone());
        if self.closed.load(Ordering::SeqCst) {
            while self.free.pop().is_some() {}
        }
    }
}

/// A job, held by one of those who have to do with it. The last of them gives its place back.
pub(crate) struct TaskRef {
    task: Arc<Task>,
}

impl TaskRef {
    /// For whoever has nothing to do with it once the others are done.
    pub(crate) fn downgrade(&self) -> Weak<Task> {
        Arc::downgrade(&self.task)
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> TaskRef {
        TaskRef { task: self.task.clone() }
    }
}

impl Deref for TaskRef {
    type Target = Task;

    fn deref(&self) -> &Task {
        &self.task
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        // Looking is cheaper than trying.
        if Arc::strong_count(&self.task) == 1
            && let Some(task) = Arc::get_mut(&mut self.task)
        {
            task.reset();
            self.task.home.give_back(&self.task);
        }
    }
}
