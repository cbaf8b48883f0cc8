//! What was submitted and not looked at yet: jobs enter from any thread, and leave in the order of their numbers.
//!
//! One counter does three things. It numbers the jobs; a number is room in the queue, and the place in the ring at the
//! same time, so that a submission counts once and exchanges once. Its uppermost bits say whether the queue is closed,
//! and at which doors somebody sleeps: whoever counts up learns from the same step whom he has to wake, and whoever is
//! about to sleep learns from the step by which he says so that he must not. No fence is needed for that.

use super::sync::{AtomicU64, Cell, Condvar, Mutex, Ordering, expect, lock};
use crossbeam_utils::CachePadded;
use std::time::Instant;

/// No more jobs are taken.
const CLOSED: u64 = 1 << 63;
/// Sleepers at door 0; the other doors' follow.
const ASLEEP: u32 = 54;
/// Numbers of jobs lie below. A thousand million a second would last for half a year, a million for 570 years.
const NUMBERS: u64 = (1 << ASLEEP) - 1;

/// So many places before its turn comes one is asked for: two cache lines of them, which take as long to come as several
/// submissions last.
const SOON: u64 = 8;
/// So many jobs are on their way to whoever takes them out of the ring.
const COMING: usize = 8;

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

std::thread_local! {
    /// The number that this thread was given last, by whichever ring.
    static LAST: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A ring whose places are given out by number.
pub(crate) struct Ring<T, const DOORS: usize> {
    /// Apart from what workers write: each would wait for the other's cache line.
    entry: CachePadded<Entry>,
    /// Jobs that have left the ring.
    out: CachePadded<AtomicU64>,
    places: Box<[Place<T>]>,
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

/// A place in the ring.
#[repr(align(16))]
struct Place<T> {
    job: Cell<T>,
    /// The number of the job that was put here last. Whoever looks out for the next one looks here: that takes nothing away
    /// from those who submit until it is there.
    number: AtomicU64,
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
            places: (0..capacity.next_power_of_two())
                .map(|_| Place { job: Cell::new(), number: AtomicU64::new(0) })
                .collect(),
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
        let mut last = self.entry.last.load(Ordering::Relaxed);
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
                    expect(self.place(id), 0..1);
                    return Ok(Number { id, at_most: id.saturating_sub(known), asleep });
                }
                Err(now) => last = now,
            }
        }
    }

    /// For whoever is about to take a number: has the counter come for writing. A plain look at what another core has would
    /// fetch its cache line twice, for reading first.
    #[inline]
    pub(crate) fn coming(&self) {
        expect(&raw const *self.entry, 0..1);
    }

    /// So many jobs have left the queue.
    pub(crate) fn note_left(&self, left: u64) {
        self.entry.left.store(left, Ordering::Release);
    }

    /// The job of a number, and these doors, as bits, are where somebody can do it.
    #[inline]
    pub(crate) fn put(&self, number: Number, job: T, doors: u32) -> Option<T> {
        let place = self.place(number.id);
        let before = place.job.swap(Some(job));
        place.number.store(number.id, Ordering::Release);
        // Where several submit at once, the place will be another one's: it would come to the wrong core.
        if LAST.replace(number.id) + 1 == number.id {
            expect(self.place(number.id + SOON), 0..1);
        }
        if number.asleep & doors != 0 {
            self.wake(doors);
        }
        before
    }

    /// The place of a job's number.
    fn place(&self, number: u64) -> &Place<T> {
        &self.places[(number - 1) as usize & (self.places.len() - 1)]
    }

    /// Is nothing in it, or on its way into it?
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.out.load(Ordering::Acquire) == self.numbered()
    }

    /// Is the next job there? Unlike [`Ring::is_empty`] it leaves the counter to those who submit.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.has(self.out.load(Ordering::Acquire) + 1)
    }

    fn has(&self, number: u64) -> bool {
        self.place(number).number.load(Ordering::Acquire) == number
    }

    /// Takes out what is there, up to the first one that is still on its way; before that, `first` is called. By one thread
    /// at a time. The counter is looked at once if there are several: each look takes it away from those who submit. What a
    /// job consists of is asked for by `coming` some jobs before its turn.
    pub(crate) fn drain(&self, first: impl FnOnce(), coming: impl Fn(&T), mut each: impl FnMut(T)) {
        let begin = self.out.load(Ordering::Relaxed) + 1;
        if !self.has(begin) {
            return;
        }
        first();
        let last = if self.has(begin + 1) { self.numbered() } else { begin };
        let mut number = begin;
        let mut ahead: [Option<T>; COMING] = std::array::from_fn(|_| None);
        while number <= last && self.has(number) {
            let Some(job) = self.place(number).job.swap(None) else { break };
            if number + SOON <= last {
                expect(self.place(number + SOON), 0..1);
            }
            coming(&job);
            ahead[number as usize % COMING].replace(job).into_iter().for_each(&mut each);
            number += 1;
        }
        for left in number..number + COMING as u64 {
            ahead[left as usize % COMING].take().into_iter().for_each(&mut each);
        }
        self.out.store(number - 1, Ordering::Release);
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
