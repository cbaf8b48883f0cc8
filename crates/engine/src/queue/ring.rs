//! What was submitted and not looked at yet: jobs enter from any thread, and leave in the order of their numbers.
//!
//! One counter does three things. It numbers the jobs; a number is room in the queue, and the place in the ring at the
//! same time, so that a submission counts once and exchanges once. Its uppermost bits say whether the queue is closed,
//! and at which doors somebody sleeps: whoever counts up learns from the same step whom he has to wake, and whoever is
//! about to sleep learns from the step by which he says so that he must not. No fence is needed for that.

use super::sync::{AtomicU64, Cell, Condvar, Mutex, Ordering, lock};
use crossbeam_utils::CachePadded;
use std::time::Instant;

/// No more jobs are taken.
const CLOSED: u64 = 1 << 63;
/// Sleepers at door 0; the other doors' follow.
const ASLEEP: u32 = 54;
/// Numbers of jobs lie below. A thousand million a second would last for half a year, a million for 570 years.
const NUMBERS: u64 = (1 << ASLEEP) - 1;

/// Why no number was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Full,
    Closed,
}

/// A job's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Number {
    /// From 1.
    pub(crate) id: u64,
    /// So many jobs are in the queue or fewer, by what was known of those that have left.
    pub(crate) at_most: u64,
    /// The doors, as bits, at which somebody slept when it was given.
    asleep: u32,
}

/// A ring whose places are given out by number.
pub(crate) struct Ring<T, const DOORS: usize> {
    /// Apart from what workers write: each would wait for the other's cache line.
    entry: CachePadded<Entry>,
    /// Jobs that have left the ring.
    out: CachePadded<AtomicU64>,
    places: Box<[Cell<T>]>,
    capacity: u64,
    doors: [Door; DOORS],
}

/// What producers write.
struct Entry {
    /// The number of the last job, and the bits above.
    last: AtomicU64,
    /// Jobs that were known to have left the queue: how many that are now need not be looked at while there is room by
    /// this.
    left: AtomicU64,
}

/// Where workers sleep.
struct Door {
    sleepers: Mutex<usize>,
    rung: Condvar,
}

impl<T, const DOORS: usize> Ring<T, DOORS> {
    pub(crate) fn new(capacity: usize) -> Ring<T, DOORS> {
        const { assert!(ASLEEP as usize + DOORS <= 63) };
        Ring {
            entry: CachePadded::new(Entry { last: AtomicU64::new(0), left: AtomicU64::new(0) }),
            out: CachePadded::new(AtomicU64::new(0)),
            places: (0..capacity.next_power_of_two()).map(|_| Cell::new()).collect(),
            capacity: capacity as u64,
            doors: std::array::from_fn(|_| Door { sleepers: Mutex::new(0), rung: Condvar::new() }),
        }
    }

    /// Jobs that were numbered.
    pub(crate) fn numbered(&self) -> u64 {
        self.entry.last.load(Ordering::Acquire) & NUMBERS
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.entry.last.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// No more numbers are given.
    pub(crate) fn close(&self) {
        self.entry.last.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// The next number, if there is room; `left` tells how many jobs have left the queue. Those were taken out of the ring
    /// before, so that the number's place is free.
    #[inline]
    pub(crate) fn number(&self, left: impl Fn() -> u64) -> Result<Number, Refused> {
        let mut last = self.exclusive();
        loop {
            if last & CLOSED != 0 {
                return Err(Refused::Closed);
            }
            let count = last & NUMBERS;
            // Acquire: what is known to have left has left its place for whoever knows.
            let mut known = self.entry.left.load(Ordering::Acquire);
            if count.saturating_sub(known) >= self.capacity {
                known = left();
                if count.saturating_sub(known) >= self.capacity {
                    return Err(Refused::Full);
                }
                self.note_left(known);
            }
            match self.entry.last.compare_exchange_weak(last, last + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let (id, asleep) = (count + 1, (last >> ASLEEP) as u32 & ((1 << DOORS) - 1));
                    return Ok(Number { id, at_most: id.saturating_sub(known), asleep });
                }
                Err(now) => last = now,
            }
        }
    }

    /// Reads the counter for writing: an exchange that always fails. A plain look at what another core has would fetch its
    /// cache line twice, for reading first.
    #[inline]
    fn exclusive(&self) -> u64 {
        let never = u64::MAX;
        match self.entry.last.compare_exchange(never, never, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(last) | Err(last) => last,
        }
    }

    /// So many jobs have left the queue.
    pub(crate) fn note_left(&self, left: u64) {
        self.entry.left.store(left, Ordering::Release);
    }

    /// The job of a number, and these doors, as bits, are where somebody can do it.
    #[inline]
    pub(crate) fn put(&self, number: Number, job: T, doors: u32) -> Option<T> {
        let before = self.places[self.place(number.id - 1)].swap(Some(job));
        if number.asleep & doors != 0 {
            self.wake(doors);
        }
        before
    }

    fn place(&self, at: u64) -> usize {
        at as usize & (self.places.len() - 1)
    }

    /// Is nothing in it, or on its way into it?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.out.load(Ordering::Acquire) == self.numbered()
    }

    /// Takes out what is there, up to the first one that is still on its way; before that, `first` is called. By one thread
    /// at a time. The counter is looked at once: each look takes it away from those who submit.
    pub(crate) fn drain(&self, first: impl FnOnce(), mut each: impl FnMut(T)) {
        let begin = self.out.load(Ordering::Relaxed);
        let end = self.numbered();
        if begin == end {
            return;
        }
        first();
        let mut at = begin;
        while at < end {
            let Some(job) = self.places[self.place(at)].swap(None) else { break };
            each(job);
            at += 1;
        }
        if at != begin {
            self.out.store(at, Ordering::Release);
        }
    }

    /// There is something to do behind these doors, as bits. Whoever is about to sleep there sees what was done before.
    pub(crate) fn ring(&self, doors: u32) {
        let doors = doors & ((1 << DOORS) - 1);
        // A step on the counter, also if nobody sleeps: that is how sleepers see what came before it.
        let last = self.entry.last.fetch_or(0, Ordering::AcqRel);
        if (last >> ASLEEP) as u32 & doors != 0 {
            self.wake(doors);
        }
    }

    #[cold]
    fn wake(&self, doors: u32) {
        for (at, door) in self.doors.iter().enumerate().filter(|(at, _)| doors >> at & 1 == 1) {
            // Whoever holds the lock has looked already and sleeps when it is released.
            let sleepers = lock(&door.sleepers);
            if *sleepers > 0 {
                door.rung.notify_all();
                // Waking takes a while: those who submit meanwhile have nothing to do with it.
                self.entry.last.fetch_and(!(1 << (ASLEEP + at as u32)), Ordering::AcqRel);
            }
        }
    }

    /// Sleeps at a door until the condition gives something, or until that time has come.
    pub(crate) fn sleep<R>(
        &self,
        at: usize,
        until: Option<Instant>,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let bit = 1 << (ASLEEP + at as u32);
        let door = &self.doors[at];
        let mut sleepers = lock(&door.sleepers);
        *sleepers += 1;
        let found = loop {
            // Before looking: whoever takes a number later sees it, and numbers that were taken before are seen here.
            self.entry.last.fetch_or(bit, Ordering::AcqRel);
            if let Some(found) = ready() {
                break Some(found);
            }
            let Some(until) = until else {
                sleepers = door.rung.wait(sleepers).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break None;
            }
            sleepers = door.rung.wait_timeout(sleepers, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        };
        *sleepers -= 1;
        if *sleepers == 0 {
            self.entry.last.fetch_and(!bit, Ordering::AcqRel);
        }
        found
    }
}

#[cfg(all(test, loom))]
#[path = "ring_loom_tests.rs"]
mod loom_tests;
