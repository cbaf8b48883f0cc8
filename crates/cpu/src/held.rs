//! Something that several threads hold, used again and again: a value enters, handles of it leave, and the last handle drops it.
//!
//! As `std::sync::Arc`, with two differences that count where a line travels between two cores for each use. The number of
//! holders lies in the first cache line of the value, and not in one of its own before it. And whether somebody is the only
//! holder is one look at one word, where `Arc` has to lock its other counter for that.

#[cfg(not(all(test, loom)))]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicU64, Ordering};

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// One that holds the value; their number is the lower half of the word.
const HOLDER: u64 = 1;
/// One that only knows where it was; their number is the upper half. All holders together count as one of them, so that the
/// memory stays until the last holder has dropped the value.
const WATCHER: u64 = 1 << 32;
/// One holder and nobody else.
const ALONE: u64 = WATCHER + HOLDER;
/// More of either are a leak, which ends the process before a counter runs over.
const MOST: u64 = 1 << 31;

/// At the beginning of a cache line, with as much of the value as has room in it.
#[repr(C, align(64))]
struct Shared<T> {
    count: AtomicU64,
    value: ManuallyDrop<T>,
}

/// Holds a value together with others.
///
/// ```
/// use breakeven_cpu::held::Held;
/// let mut one = Held::new(vec![1, 2]);
/// one.get_mut().expect("nobody else has it").push(3);
/// let (mut one, other) = one.twice();
/// assert!(one.get_mut().is_none());
/// drop(other);
/// assert_eq!((one.holders(), one.get_mut()), (1, Some(&mut vec![1, 2, 3])));
/// ```
pub struct Held<T> {
    shared: NonNull<Shared<T>>,
}

/// Knows where a value is as long as somebody holds it.
///
/// ```
/// let held = breakeven_cpu::held::Held::new(7);
/// let watching = held.watch();
/// assert_eq!(watching.hold().as_deref(), Some(&7));
/// drop(held);
/// assert!(watching.hold().is_none());
/// ```
pub struct Watching<T> {
    shared: NonNull<Shared<T>>,
}

// SAFETY: handles on several threads give `&T` to each of them, and the last one drops `T` on its own.
unsafe impl<T: Send + Sync> Send for Held<T> {}
// SAFETY: as above; a `&Held` can be made a `Held`.
unsafe impl<T: Send + Sync> Sync for Held<T> {}
// SAFETY: as for `Held`, which it can be made.
unsafe impl<T: Send + Sync> Send for Watching<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Watching<T> {}

impl<T> Held<T> {
    /// A value with one holder.
    pub fn new(value: T) -> Held<T> {
        let shared = Box::new(Shared { count: AtomicU64::new(ALONE), value: ManuallyDrop::new(value) });
        Held { shared: NonNull::from(Box::leak(shared)) }
    }

    fn shared(&self) -> &Shared<T> {
        // SAFETY: the memory stays at least as long as there are holders, of which this is one; nobody has a `&mut` to it while
        // there is another handle, and who has one through this handle has borrowed it.
        unsafe { self.shared.as_ref() }
    }

    /// Where it begins: at a cache line.
    #[inline]
    pub fn address(&self) -> *const u8 {
        self.shared.as_ptr().cast_const().cast()
    }

    /// How many hold it. What those who do not any more have done to it has been seen by who finds fewer.
    #[inline]
    pub fn holders(&self) -> u32 {
        self.shared().count.load(Ordering::Acquire) as u32
    }

    /// The value for writing, if nobody else holds or watches it.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // Acquire: pairs with the step by which the others let go.
        if self.shared().count.load(Ordering::Acquire) != ALONE {
            return None;
        }
        // SAFETY: this is the only handle of any kind, and it is borrowed for as long as the reference lives.
        Some(unsafe { &mut (*self.shared.as_ptr()).value })
    }

    /// Two handles. It costs nothing while this is the only one.
    #[inline]
    pub fn twice(self) -> (Held<T>, Held<T>) {
        if self.shared().count.load(Ordering::Acquire) != ALONE {
            let other = self.clone();
            return (self, other);
        }
        // Nobody else has a handle, so that nobody else counts.
        self.shared().count.store(ALONE + HOLDER, Ordering::Relaxed);
        let other = Held { shared: self.shared };
        (self, other)
    }

    /// Does not keep it.
    pub fn watch(&self) -> Watching<T> {
        let before = self.shared().count.fetch_add(WATCHER, Ordering::Relaxed);
        guard(before / WATCHER);
        Watching { shared: self.shared }
    }
}

/// Ends the process before a counter runs over into the other one, as `Arc` does.
#[inline]
fn guard(count: u64) {
    if count >= MOST {
        std::process::abort();
    }
}

impl<T> Clone for Held<T> {
    #[inline]
    fn clone(&self) -> Held<T> {
        // Relaxed: who has a handle has seen the value.
        let before = self.shared().count.fetch_add(HOLDER, Ordering::Relaxed);
        guard(before % WATCHER);
        Held { shared: self.shared }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.shared().value
    }
}

impl<T> Drop for Held<T> {
    #[inline]
    fn drop(&mut self) {
        // Release: whoever is the last has seen all that was done to the value. Acquire: that may be this one.
        let before = self.shared().count.fetch_sub(HOLDER, Ordering::AcqRel);
        if before % WATCHER == HOLDER {
            // SAFETY: there is no other holder, and there will be none: a watcher makes no holder out of none, and looks at the count
            // only. It is dropped once.
            unsafe { ManuallyDrop::drop(&mut (*self.shared.as_ptr()).value) };
            forget(self.shared);
        }
    }
}

impl<T> Watching<T> {
    /// Holds it, if anybody does.
    pub fn hold(&self) -> Option<Held<T>> {
        // SAFETY: the memory stays as long as somebody watches. Nobody has a `&mut` to it: watched, it is not given out.
        let count = unsafe { &(*self.shared.as_ptr()).count };
        let mut before = count.load(Ordering::Relaxed);
        while before % WATCHER != 0 {
            guard(before % WATCHER);
            // Acquire: what was done to the value before has been seen.
            match count.compare_exchange_weak(before, before + HOLDER, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Held { shared: self.shared }),
                Err(now) => before = now,
            }
        }
        None
    }
}

impl<T> Drop for Watching<T> {
    fn drop(&mut self) {
        forget(self.shared);
    }
}

/// One watcher less; the last one frees the memory.
fn forget<T>(shared: NonNull<Shared<T>>) {
    // SAFETY: the memory stays as long as somebody watches, and whoever calls this does.
    let before = unsafe { (*shared.as_ptr()).count.fetch_sub(WATCHER, Ordering::AcqRel) };
    if before / WATCHER == 1 {
        // SAFETY: it came from a box, nobody knows it any more, and the value in it was dropped: the holders, who watch together,
        // have let go.
        drop(unsafe { Box::from_raw(shared.as_ptr()) });
    }
}

#[cfg(all(test, not(loom)))]
#[path = "held_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "held_loom_tests.rs"]
mod held_loom;
