//! The place of one answer: whoever answers first fills it, everyone who waits reads it.
//!
//! A value enters once, from any thread; later ones are refused. It leaves by waiting, by asking, or by a waker.

use super::seat::linger;
use super::sync::{AtomicBool, Condvar, Mutex, Ordering, lock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long a waiter looks before it sleeps: a thread that sleeps takes 20 to 50 us to wake, and as long again if
/// whoever answers has gone to sleep meanwhile.
const AWAKE: Duration = Duration::from_micros(if cfg!(all(test, loom)) { 0 } else { 60 });

/// A place for one value.
pub(crate) struct Place<T> {
    /// Shows from outside of the lock that the value is there.
    filled: AtomicBool,
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

struct Inner<T> {
    is_filled: bool,
    value: Option<T>,
    sleepers: u32,
    wakers: Vec<Waker>,
}

impl<T> Place<T> {
    pub(crate) fn new() -> Place<T> {
        let inner = Inner { is_filled: false, value: None, sleepers: 0, wakers: Vec::new() };
        Place { filled: AtomicBool::new(false), inner: Mutex::new(inner), changed: Condvar::new() }
    }

    /// Empties it for the next one.
    pub(crate) fn reset(&mut self) {
        *self = Place::new();
    }

    /// Fills the place, unless it was filled before: then the value comes back.
    pub(crate) fn fill(&self, value: T) -> Result<(), T> {
        self.fill_after(value, || ())
    }

    /// As [`Place::fill`]; whoever sees the value sees what `first` did, too, which is called for the first one alone.
    pub(crate) fn fill_after(&self, value: T, first: impl FnOnce()) -> Result<(), T> {
        let mut inner = lock(&self.inner);
        if inner.is_filled {
            return Err(value);
        }
        first();
        inner.is_filled = true;
        inner.value = Some(value);
        let (sleepers, wakers) = (inner.sleepers, std::mem::take(&mut inner.wakers));
        self.filled.store(true, Ordering::Release);
        drop(inner);
        if sleepers > 0 {
            self.changed.notify_all();
        }
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Was it filled?
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// Calls `read` with the value once it is there; `None` if that is not before `until`.
    pub(crate) fn wait<R>(&self, until: Option<Instant>, read: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        if !AWAKE.is_zero() && !self.is_filled() {
            let begun = Instant::now();
            let mut look = 0u32;
            while !self.is_filled() && (!look.is_multiple_of(16) || begun.elapsed() < AWAKE) {
                look += 1;
                linger(look);
            }
        }
        let mut inner = lock(&self.inner);
        inner.sleepers += 1;
        while !inner.is_filled {
            inner = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => {
                    self.changed.wait_timeout(inner, left).unwrap_or_else(std::sync::PoisonError::into_inner).0
                }
            };
        }
        inner.sleepers -= 1;
        inner.is_filled.then(|| read(&mut inner.value))
    }

    /// Calls `read` with the value if it is there; else the waker is woken when it is.
    pub(crate) fn poll<R>(&self, context: &Context<'_>, read: impl FnOnce(&mut Option<T>) -> R) -> Poll<R> {
        let mut inner = lock(&self.inner);
        if inner.is_filled {
            return Poll::Ready(read(&mut inner.value));
        }
        if !inner.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            inner.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(all(test, loom))]
#[path = "place_loom_tests.rs"]
mod loom_tests;
