//! Where the queue's hand-made synchronisation gets its parts from: the standard library's, or loom's when it is proved.

#[cfg(not(all(test, loom)))]
use breakeven_cpu::ahead::{LINE, fetch_for_writing};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// A panic elsewhere leaves nothing half-done under any of the queue's locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Has the cache lines of something come here while other things are done: it is about to be written.
#[inline(always)]
pub(crate) fn expect<T>(at: *const T, lines: std::ops::Range<isize>) {
    #[cfg(not(all(test, loom)))]
    for line in lines {
        fetch_for_writing(at.cast::<u8>().wrapping_offset(line * LINE as isize));
    }
    #[cfg(all(test, loom))]
    let _ = (at, lines);
}

/// A place in a ring, for a pointer: put and taken by one exchange.
#[cfg(not(all(test, loom)))]
pub(crate) struct Cell<T>(crossbeam_utils::atomic::AtomicCell<Option<T>>);

#[cfg(not(all(test, loom)))]
impl<T> Cell<T> {
    pub(crate) fn new() -> Cell<T> {
        Cell(crossbeam_utils::atomic::AtomicCell::new(None))
    }

    pub(crate) fn swap(&self, value: Option<T>) -> Option<T> {
        self.0.swap(value)
    }
}

/// The same exchange under a lock that loom knows; an exchange synchronises as that does.
#[cfg(all(test, loom))]
pub(crate) struct Cell<T>(Mutex<Option<T>>);

#[cfg(all(test, loom))]
impl<T> Cell<T> {
    pub(crate) fn new() -> Cell<T> {
        Cell(Mutex::new(None))
    }

    pub(crate) fn swap(&self, value: Option<T>) -> Option<T> {
        std::mem::replace(&mut *lock(&self.0), value)
    }
}
