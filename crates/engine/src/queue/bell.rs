//! Waits for something to become true that others make true: a condition enters, what it gives leaves.
//!
//! Whoever changes what is waited for rings; that costs two instructions while nobody waits. The condition is looked at
//! again after a waiter has said that it waits, and a ringer looks for waiters after its change, so that one of them
//! always sees the other.

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock};
use std::time::Instant;

/// A bell that is rung after each change of what its waiters wait for.
pub(crate) struct Bell {
    sleepers: AtomicUsize,
    mutex: Mutex<()>,
    rung: Condvar,
}

impl Default for Bell {
    fn default() -> Bell {
        Bell { sleepers: AtomicUsize::new(0), mutex: Mutex::new(()), rung: Condvar::new() }
    }
}

impl Bell {
    /// Wakes all who wait.
    #[inline]
    pub(crate) fn ring(&self) {
        // Pairs with the one in `wait`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // A waiter that holds the lock has looked already, or will be asleep when it is released.
        drop(lock(&self.mutex));
        self.rung.notify_all();
    }

    /// Sleeps until the condition gives something, or until that time has come.
    pub(crate) fn wait<T>(&self, until: Option<Instant>, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        if let Some(found) = ready() {
            return Some(found);
        }
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut guard = lock(&self.mutex);
        let found = loop {
            if let Some(found) = ready() {
                break Some(found);
            }
            let Some(until) = until else {
                guard = self.rung.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break None;
            }
            guard = self.rung.wait_timeout(guard, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        };
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        found
    }
}

#[cfg(all(test, loom))]
#[path = "bell_loom_tests.rs"]
mod loom_tests;
