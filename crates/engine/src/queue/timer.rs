//! Deadlines: tasks with a time enter, and are answered when it has come, whatever the workers do.
//!
//! A thread of its own, which sleeps until the next deadline and does nothing but answer.

use super::Core;
use super::pool::TaskRef;
use super::sync::{Condvar, Mutex, lock};
use super::ticket::Task;
use breakeven_cpu::held::Watching;
use std::collections::BinaryHeap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A task is forgotten when it is answered; until its time comes only this much is kept of it.
struct Due {
    at: Instant,
    id: u64,
    task: Option<Watching<Task>>,
}

impl Due {
    /// The task, if anybody has to do with it.
    fn task(&self) -> Option<TaskRef> {
        self.task.as_ref()?.hold().map(TaskRef::from)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        (self.at, self.id) == (other.at, other.id)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    /// The earliest is the greatest: a heap gives that one first.
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (other.at, other.id).cmp(&(self.at, self.id))
    }
}

/// Deadlines to come.
pub(crate) struct Timer {
    due: Mutex<Heap>,
    earlier: Condvar,
    ended: AtomicBool,
}

struct Heap {
    due: BinaryHeap<Due>,
    /// At this length it is time to forget those that were answered.
    sweep_at: usize,
}

/// Deadlines that are kept without a look whether they still matter.
const FEW: usize = 1024;

impl Default for Timer {
    fn default() -> Timer {
        let due = Heap { due: BinaryHeap::new(), sweep_at: FEW };
        Timer { due: Mutex::new(due), earlier: Condvar::new(), ended: AtomicBool::new(false) }
    }
}

impl Timer {
    /// Answers the task at that time, unless it was answered before.
    pub(crate) fn at(&self, at: Instant, task: &TaskRef) {
        let mut heap = lock(&self.due);
        let is_next = heap.due.peek().is_none_or(|next| at < next.at);
        heap.due.push(Due { at, id: task.id, task: task.watch() });
        if heap.due.len() >= heap.sweep_at {
            heap.due.retain(|due| due.task().is_some_and(|task| !task.is_answered()));
            heap.sweep_at = FEW.max(2 * heap.due.len());
        }
        drop(heap);
        if is_next {
            self.earlier.notify_one();
        }
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        drop(lock(&self.due));
        self.earlier.notify_one();
    }

    /// The life of the timer's thread.
    pub(crate) fn run(&self, core: &Core) {
        let mut due = lock(&self.due);
        while !self.ended.load(Ordering::Relaxed) {
            let now = Instant::now();
            match due.due.peek() {
                None => due = self.earlier.wait(due).unwrap_or_else(PoisonError::into_inner),
                Some(next) if next.at > now => {
                    let left = next.at - now;
                    due = self.earlier.wait_timeout(due, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    let next = due.due.pop();
                    drop(due);
                    if let Some(task) = next.and_then(|next| next.task()) {
                        core.end(&task, task.late());
                    }
                    due = lock(&self.due);
                }
            }
        }
    }
}
