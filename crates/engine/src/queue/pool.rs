//! Places for jobs, used again: work and its terms enter, a job with a place leaves.
//!
//! A submission that allocates costs twice as much, and its memory would be freed on another thread. Each thread keeps some
//! places for itself, without any lock; what it has too many of, and what it is short of, goes by the dozen through a
//! store that all share. A place knows nothing of the queue that used it.

use super::job::{Terms, What};
use super::sync::expect;
use super::ticket::{LINES, Task};
use breakeven_cpu::held::{Held, Watching};
use std::cell::RefCell;
use std::ops::Deref;

/// Places that go through the store at once; a thread keeps up to twice as many.
const DOZEN: usize = 64;
/// Dozens in the store at most: 4 MB of places.
const STORED: usize = 256;
/// How often the owner of a ticket looks whether whoever answered has let go of the job: that is the next thing it does.
const LOOKS: u32 = 16;

/// What threads have too many of. An ordinary lock, once for a dozen.
static STORE: std::sync::Mutex<Vec<Vec<Held<Task>>>> = std::sync::Mutex::new(Vec::new());

thread_local! {
    /// Places that nobody uses, of this thread.
    static OWN: RefCell<Own> = const { RefCell::new(Own(Vec::new())) };
}

struct Own(Vec<Held<Task>>);

impl Drop for Own {
    /// The thread ends.
    fn drop(&mut self) {
        store(std::mem::take(&mut self.0));
    }
}

/// Puts places into the store; if there are enough they are given up.
fn store(dozen: Vec<Held<Task>>) {
    let mut store = stored();
    if !dozen.is_empty() && store.len() < STORED {
        store.push(dozen);
    }
}

fn stored() -> std::sync::MutexGuard<'static, Vec<Vec<Held<Task>>>> {
    STORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A place that nobody uses, if there is one.
#[inline]
fn kept() -> Option<Held<Task>> {
    // A thread that is about to end keeps none.
    OWN.try_with(|own| {
        let own = &mut own.try_borrow_mut().ok()?.0;
        let place = own.pop().or_else(|| {
            *own = stored().pop()?;
            own.pop()
        });
        // The next job's.
        own.last().into_iter().for_each(coming);
        place
    })
    .ok()?
}

/// A job, or a place for one, is about to be used: what all commands touch of it is asked for.
#[inline]
pub(super) fn coming(task: &Held<Task>) {
    expect(task.address(), 0..LINES);
}

/// Keeps a place that nobody uses.
#[inline]
fn keep(task: Held<Task>) {
    let surplus = OWN.try_with(|own| {
        let own = &mut own.try_borrow_mut().ok()?.0;
        own.push(task);
        (own.len() >= 2 * DOZEN).then(|| own.split_off(DOZEN))
    });
    if let Ok(Some(dozen)) = surplus {
        store(dozen);
    }
}

/// A job, held by one of those who have to do with it. The last of them gives its place back.
pub(crate) struct TaskRef {
    /// `None` when it was given back.
    task: Option<Held<Task>>,
}

impl TaskRef {
    /// A job takes a place.
    #[inline]
    pub(crate) fn new(id: u64, producer: u64, what: What, terms: &Terms, devices: u32, timed: bool) -> TaskRef {
        let mut task = kept().unwrap_or_else(|| Held::new(Task::default()));
        if let Some(place) = task.get_mut() {
            place.set(id, producer, what, terms, devices, timed);
            return TaskRef { task: Some(task) };
        }
        // Nobody else has a place that is kept; if somebody had, it would be left to him.
        let mut place = Task::default();
        place.set(id, producer, what, terms, devices, timed);
        TaskRef { task: Some(Held::new(place)) }
    }

    /// For its owner, and for a way on which pointers go.
    #[inline]
    pub(crate) fn twice(mut self) -> (TaskRef, Held<Task>) {
        let (one, other) = self.task.take().unwrap_or_else(|| Held::new(Task::default())).twice();
        (TaskRef { task: Some(one) }, other)
    }

    /// Its place is about to be used again.
    #[inline]
    pub(crate) fn coming(&self) {
        self.task.iter().for_each(coming);
    }

    /// For whoever has nothing to do with it once the others are done.
    pub(crate) fn watch(&self) -> Option<Watching<Task>> {
        self.task.as_ref().map(Held::watch)
    }

    /// Whoever answered is about to let go of it: the place is better kept by the thread that takes the next one.
    pub(crate) fn wait_alone(&self) {
        let Some(task) = &self.task else { return };
        for _ in 0..LOOKS {
            if task.holders() == 1 {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

impl From<Held<Task>> for TaskRef {
    fn from(task: Held<Task>) -> TaskRef {
        TaskRef { task: Some(task) }
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> TaskRef {
        TaskRef { task: self.task.clone() }
    }
}

impl Deref for TaskRef {
    type Target = Task;

    #[inline]
    fn deref(&self) -> &Task {
        match &self.task {
            Some(task) => task,
            None => unreachable!("a job that was given back is out of reach"),
        }
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        let Some(mut task) = self.task.take() else { return };
        if let Some(place) = task.get_mut() {
            place.reset();
            keep(task);
        }
    }
}
