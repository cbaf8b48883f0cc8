//! The place of one answer: whoever answers first fills it, everyone who waits reads it.
//!
//! A value enters once, from any thread; later ones are refused. It leaves by waiting, by asking, or by a waker. Most
//! commands are answered alike: that answer is one step on a word, without a lock. Other values lie under one, which
//! whoever fills the place holds from the step that shows it filled until the value is there. The word lies apart from
//! the rest, with what else of a job is always touched.

use super::seat::linger;
use super::sync::{AtomicU32, Condvar, Mutex, Ordering, expect, lock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long a waiter looks before it sleeps: a thread that sleeps takes 20 to 50 us to wake, and as long again if
/// whoever answers has gone to sleep meanwhile.
const AWAKE: Duration = Duration::from_micros(if cfg!(all(test, loom)) { 0 } else { 60 });
/// Looks before the clock is read for the first time.
const LOOKS: u32 = if cfg!(all(test, loom)) { 0 } else { 64 };

/// There is an answer.
const FILLED: u32 = 1;
/// It is a value, under the lock.
const VALUE: u32 = 2;
/// Somebody sleeps, or has left a waker.
const WAITED: u32 = 4;
/// Whoever filled it has left a mark.
const MARK: u32 = 8;

/// What has become of a place.
pub(crate) struct Word(AtomicU32);

/// Where a value lies and who waits for it.
pub(crate) struct Rest<T> {
    changed: Condvar,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    value: Option<T>,
    sleepers: u32,
    wakers: Vec<Waker>,
}

impl Word {
    pub(crate) fn new() -> Word {
        Word(AtomicU32::new(0))
    }

    /// Was the place filled?
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.0.load(Ordering::Acquire) & FILLED != 0
    }

    /// Is there a mark? Says so to whoever asks first.
    pub(crate) fn take_mark(&self) -> bool {
        self.0.load(Ordering::Acquire) & MARK != 0 && self.0.fetch_and(!MARK, Ordering::AcqRel) & MARK != 0
    }

    /// Shows the place filled, unless it was before; what was there.
    #[inline]
    fn claim(&self, bits: u32) -> Option<u32> {
        // To show what is shown already changes nothing.
        if bits == FILLED {
            let before = self.0.fetch_or(FILLED, Ordering::AcqRel);
            return (before & FILLED == 0).then_some(before);
        }
        // Nearly always there was nothing; looking first would fetch its cache line twice.
        let mut before = 0;
        loop {
            match self.0.compare_exchange_weak(before, before | bits, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(before),
                Err(now) if now & FILLED != 0 => return None,
                Err(now) => before = now,
            }
        }
    }
}

impl<T> Rest<T> {
    pub(crate) fn new() -> Rest<T> {
        let inner = Inner { value: None, sleepers: 0, wakers: Vec::new() };
        Rest { changed: Condvar::new(), inner: Mutex::new(inner) }
    }
}

/// Empties a place for the next one. Was it filled with the default?
pub(crate) fn reset<T>(word: &mut Word, rest: &mut Rest<T>) -> bool {
    let state = word.0.load(Ordering::Relaxed);
    if state & (VALUE | WAITED) != 0 {
        *rest = Rest::new();
    }
    word.0.store(0, Ordering::Relaxed);
    state & (FILLED | VALUE) == FILLED
}

/// A place for one value; the value's default is the one that needs no lock.
pub(crate) struct Place<'a, T> {
    pub(crate) word: &'a Word,
    pub(crate) rest: &'a Rest<T>,
}

impl<T: Default> Place<'_, T> {
    /// Fills the place with a value, unless it was filled before: then the value comes back.
    pub(crate) fn fill(&self, value: T) -> Result<(), T> {
        self.fill_with(value, FILLED | VALUE)
    }

    /// As [`Place::fill`], and leaves a mark that is there for whoever sees the value.
    pub(crate) fn fill_marked(&self, value: T) -> Result<(), T> {
        self.fill_with(value, FILLED | VALUE | MARK)
    }

    /// Fills the place with the default, unless it was filled before. Is it filled by this?
    #[inline]
    pub(crate) fn fill_default(&self) -> bool {
        let Some(before) = self.word.claim(FILLED) else { return false };
        if before & WAITED != 0 {
            // Whoever said so under the lock sleeps when it is released.
            let mut inner = lock(&self.rest.inner);
            let (sleepers, wakers) = (inner.sleepers, std::mem::take(&mut inner.wakers));
            drop(inner);
            self.wake(sleepers, wakers);
        }
        true
    }

    fn fill_with(&self, value: T, bits: u32) -> Result<(), T> {
        let mut inner = lock(&self.rest.inner);
        if self.word.claim(bits).is_none() {
            return Err(value);
        }
        inner.value = Some(value);
        let (sleepers, wakers) = (inner.sleepers, std::mem::take(&mut inner.wakers));
        drop(inner);
        self.wake(sleepers, wakers);
        Ok(())
    }

    fn wake(&self, sleepers: u32, wakers: Vec<Waker>) {
        if sleepers > 0 {
            self.rest.changed.notify_all();
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Calls `read` with the value once it is there; `None` if that is not before `until`.
    pub(crate) fn wait<R>(&self, until: Option<Instant>, read: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        let word = &self.word.0;
        // Most often it is there, and its owner is about to use the place again: asked for for writing it is not fetched twice.
        expect(word, 0..1);
        let mut state = word.load(Ordering::Acquire);
        let mut looks = 0;
        while state & FILLED == 0 && looks < LOOKS {
            linger(looks);
            looks += 1;
            state = word.load(Ordering::Acquire);
        }
        if state & FILLED == 0 && !AWAKE.is_zero() {
            let begun = Instant::now();
            while state & FILLED == 0 && begun.elapsed() < AWAKE {
                linger(looks);
                state = word.load(Ordering::Acquire);
            }
        }
        if state & FILLED == 0 {
            return self.sleep(until, read);
        }
        Some(self.read(state, read))
    }

    /// The value of a place that was seen filled.
    fn read<R>(&self, state: u32, read: impl FnOnce(&mut Option<T>) -> R) -> R {
        if state & VALUE != 0 { read(&mut lock(&self.rest.inner).value) } else { read(&mut Some(T::default())) }
    }

    #[cold]
    fn sleep<R>(&self, until: Option<Instant>, read: impl FnOnce(&mut Option<T>) -> R) -> Option<R> {
        let mut inner = lock(&self.rest.inner);
        // Said under the lock, which is released by sleeping: whoever fills it later comes and wakes.
        let mut state = self.word.0.fetch_or(WAITED, Ordering::AcqRel);
        inner.sleepers += 1;
        while state & FILLED == 0 {
            let changed = &self.rest.changed;
            inner = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => changed.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => changed.wait_timeout(inner, left).unwrap_or_else(std::sync::PoisonError::into_inner).0,
            };
            state = self.word.0.load(Ordering::Acquire);
        }
        inner.sleepers -= 1;
        drop(inner);
        (state & FILLED != 0).then(|| self.read(state, read))
    }

    /// Calls `read` with the value if it is there; else the waker is woken when it is.
    pub(crate) fn poll<R>(&self, context: &Context<'_>, read: impl FnOnce(&mut Option<T>) -> R) -> Poll<R> {
        let mut state = self.word.0.load(Ordering::Acquire);
        if state & FILLED == 0 {
            let mut inner = lock(&self.rest.inner);
            state = self.word.0.fetch_or(WAITED, Ordering::AcqRel);
            // Whoever fills it later finds this when the lock is released.
            if state & FILLED == 0 && !inner.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                inner.wakers.push(context.waker().clone());
            }
        }
        if state & FILLED != 0 { Poll::Ready(self.read(state, read)) } else { Poll::Pending }
    }
}

#[cfg(all(test, loom))]
#[path = "place_loom_tests.rs"]
mod loom_tests;
