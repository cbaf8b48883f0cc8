//! A fork-join pool: the one hand-made synchronisation primitive of the project.
//!
//! In comes a number of chunks and a borrowed closure; the closure is called once for every chunk, by the caller and
//! by helper threads; out comes the caller, once the closure is no longer in use anywhere.
//!
//! Why not rayon: an empty two-way split costs 24-121 us there, which is more than most kernels take. Here a helper
//! spins for a while after its last chunk and finds the next job within a cache-line transfer, so that splitting
//! pays from about 2 us of work on. And the caller never depends on a helper: a chunk that nobody has claimed is the
//! caller's to take, so a helper that is asleep or late costs nothing.
//!
//! # The state word
//!
//! One `u64` carries the whole protocol, and every step is one atomic operation on it:
//!
//! | bits | meaning | changed by |
//! |---|---|---|
//! | 0-12 | `RUNNING`: helpers that have claimed a chunk and not yet left the job | each helper |
//! | 13 | `OWNED`: a caller is between taking and leaving the pool | that caller |
//! | 14 | `FAILED`: a chunk panicked, its payload is kept | whoever ran it |
//! | 15 | `SHUTDOWN`: the pool is being dropped | `drop` |
//! | 16-63 | chunks nobody has claimed yet | each claim |
//!
//! A helper's first claim takes a chunk *and* counts the helper in `RUNNING` in one compare-and-swap. Only then does
//! it read the job, and the caller waits for `RUNNING` to be zero before it returns: so no helper ever holds a job
//! that it has no chunk of, and none touches the closure after `run`. A stale compare-and-swap that succeeds because a
//! later job happens to show the same word is a valid claim on that later job, as nothing was read before it.
//!
//! Publishing is a release store, a claim an acquire read of it (all later writes are read-modify-writes and hence in
//! its release sequence); leaving is a release decrement, which the caller's waiting loop acquires.
//!
//! Sleep is separate, and only a matter of speed: a wake-up that is missed costs a job one helper, never its end.

use crate::cores::Helper;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[cfg(all(test, loom))]
use threads_loom::sync;

use sync::{AtomicBool, AtomicU64, AtomicUsize, Idle, JoinHandle, Ordering, Thread, UnsafeCell};

// The fields of the state word, as in the table above.
const RUNNING: u64 = (1 << 13) - 1;
const OWNED: u64 = 1 << 13;
const FAILED: u64 = 1 << 14;
const SHUTDOWN: u64 = 1 << 15;
const CHUNK_SHIFT: u32 = 16;
/// One unclaimed chunk.
const CHUNK: u64 = 1 << CHUNK_SHIFT;
const MAX_CHUNKS: u64 = u64::MAX >> CHUNK_SHIFT;
/// Far above any machine, far below what `RUNNING` can count.
const MAX_THREADS: usize = 4096;
/// How many sleepers one thread wakes for a job. An unpark costs 10-18 us: on a large machine the caller would spend
/// a millisecond on it, so that those woken wake others in turn.
const FANOUT: usize = 2;
/// How long the caller spins for a helper's last chunk before it offers its core: about 20 us. The helper may have
/// been descheduled in favour of this very thread.
const SPINS_BEFORE_YIELD: u32 = 1000;

/// The closure of a job, on the stack of the thread that called [`Pool::run`]. Valid while that thread is in `run`.
type Work = *const (dyn Fn(usize) + Sync + 'static);
type Payload = Box<dyn Any + Send>;

/// What a helper reads once it has claimed a chunk.
#[derive(Clone, Copy)]
struct Job {
    work: Work,
    chunks: usize,
}

/// The state word and the job it guards: in one cache line (two, as neighbouring lines are fetched in pairs), so that
/// a new job reaches a spinning helper in a single transfer.
#[repr(align(128))]
struct Board {
    state: AtomicU64,
    /// Chunks that helpers have begun; theirs are counted from the end.
    from_back: AtomicUsize,
    job: UnsafeCell<Job>,
}

/// How to wake one helper.
struct Bed {
    /// Raised by the helper when it lies down, lowered by whoever wakes it.
    asleep: AtomicBool,
    /// Set before [`Pool::new`] returns, and so before the first job.
    thread: OnceLock<Thread>,
    /// How the system knows it.
    helper: Helper,
}

struct Shared {
    board: Board,
    /// Helpers that spin, work, or have been sent a wake-up. At least `beds.len() - awake` flags are up, give or take
    /// wakers that have counted but not yet lowered one.
    awake: AtomicUsize,
    beds: Box<[Bed]>,
    /// The first panic of the current job. Locked only on the way of a panic.
    panic: Mutex<Option<Payload>>,
}

// SAFETY: all fields but `board.job` are `Sync`. That one is written only by the thread that holds `OWNED`, while
// `RUNNING` and the chunks are zero, and read only by helpers counted in `RUNNING`; the closure it leads to is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: the job's pointer is only followed while its caller is in `run`, from whatever thread; nothing else in here
// is tied to a thread.
unsafe impl Send for Shared {}

/// A set of helper threads that share the chunks of one job at a time with the thread that brings it.
///
/// Helpers spin for about 200 us after their last chunk, then sleep. Dropping the pool ends and joins them.
pub struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

// A panicking chunk leaves the pool as it was: the payload is taken out before `run` unwinds.
impl UnwindSafe for Pool {}
impl RefUnwindSafe for Pool {}

impl Pool {
    /// A pool of `threads` threads, the caller of [`run`](Self::run) included: `threads - 1` helpers are started (at
    /// once, but asleep). 0 counts as 1; more than 4096 as 4096.
    ///
    /// # Errors
    /// The operating system's, when it refuses a thread; those already started are ended.
    pub fn new(threads: usize) -> io::Result<Pool> {
        let helpers = threads.clamp(1, MAX_THREADS) - 1;
        let bed = || Bed { asleep: AtomicBool::new(true), thread: OnceLock::new(), helper: Helper::default() };
        let shared = Arc::new(Shared {
            board: Board {
                state: AtomicU64::new(0),
                from_back: AtomicUsize::new(0),
                job: UnsafeCell::new(Job { work: &|_| (), chunks: 0 }),
            },
            awake: AtomicUsize::new(0),
            beds: (0..helpers).map(|_| bed()).collect(),
            panic: Mutex::new(None),
        });
        // Grown thread by thread, so that an early return drops, and so ends, what is there.
        let mut pool = Pool { shared, helpers: Vec::with_capacity(helpers) };
        for index in 0..helpers {
            let shared = Arc::clone(&pool.shared);
            let name = format!("breakeven-cpu-{}", index + 1);
            let handle = sync::spawn(name, move || shared.live(index))?;
            pool.shared.beds[index].thread.get_or_init(|| handle.thread().clone());
            pool.helpers.push(handle);
        }
        Ok(pool)
    }

    /// How many threads can work on a job, the caller included.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Is a helper awake, so that a split costs less than 1 us rather than a wake-up of 60-120 us?
    ///
    /// An estimate: a helper counts from the moment it is sent a wake-up.
    pub fn awake(&self) -> bool {
        self.awake_helpers() > 0
    }

    /// How many helpers are awake: a job of up to that many chunks plus one wakes nobody.
    pub fn awake_helpers(&self) -> usize {
        self.shared.awake.load(Ordering::Relaxed)
    }

    /// Calls `work(chunk)` once for every chunk in `0..chunks`, on this thread and on helpers, and returns when all
    /// are done. Chunks are handed out one by one, to this thread from the front and to helpers from the back: called
    /// again, a job finds its data in the caches of the cores that had it before. Never allocates.
    ///
    /// When the pool is busy with another job, or `work` itself calls `run`, all chunks run on the calling thread.
    /// Chunks must not wait for each other: how many threads turn up is not promised.
    ///
    /// # Panics
    /// With the first panic of `work`, on whatever thread it came up, after all helpers have left the job. Chunks not
    /// yet claimed by then are skipped.
    pub fn run(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        let alone = chunks <= 1 || shared.beds.is_empty() || chunks as u64 > MAX_CHUNKS;
        if alone || !shared.take() {
            (0..chunks).for_each(work);
            return;
        }
        shared.publish(chunks, work);
        // From here to the end of `settle` nothing may unwind: helpers hold a borrow of this frame.
        shared.wake(chunks - 1);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            work(0);
            let mut next = 1;
            while shared.claim(0) {
                work(next);
                next += 1;
            }
        }));
        if let Err(payload) = outcome {
            shared.fail(payload);
        }
        if let Some(payload) = shared.settle() {
            resume_unwind(payload);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // `&mut self`: no job is under way. A helper that has checked this word before the store finds its park
        // token afterwards, and so checks again.
        self.shared.board.state.store(SHUTDOWN, Ordering::Release);
        for helper in &self.helpers {
            helper.thread().unpark();
        }
        for helper in self.helpers.drain(..) {
            // Helpers catch all panics of the work; there is no result to look at.
            let _ = helper.join();
        }
    }
}

/// The caller's half.
impl Shared {
    /// Makes the calling thread the pool's owner, unless there is one.
    fn take(&self) -> bool {
        let state = &self.board.state;
        state.compare_exchange(0, OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Offers all chunks but the first, which is the caller's own. Only for the owner, who must call `settle`
    /// before `work` ends.
    fn publish(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is changed, and the pointer is kept raw. It is followed by helpers counted in
        // `RUNNING`, and the owner waits for them in `settle` while `work` is still borrowed.
        let work: Work = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), Work>(work) };
        // SAFETY: this thread owns the pool and no chunk is on offer, so no helper can be counted in `RUNNING`;
        // earlier helpers have left before the earlier owner did (`settle`), which `take` has acquired.
        self.board.job.with_mut(|job| unsafe { *job = Job { work, chunks } });
        self.board.from_back.store(0, Ordering::Relaxed);
        self.board.state.store(OWNED | (chunks as u64 - 1) << CHUNK_SHIFT, Ordering::Release);
    }

    /// Waits until every helper has left the job, gives up the ownership and returns the job's panic, if any.
    fn settle(&self) -> Option<Payload> {
        let mut spins = 0;
        let state = loop {
            let state = self.board.state.load(Ordering::Acquire);
            if state & RUNNING == 0 {
                break state;
            }
            spins += 1;
            if spins < SPINS_BEFORE_YIELD { sync::spin_loop() } else { sync::yield_now() }
        };
        debug_assert!(state < CHUNK, "settled with chunks on offer");
        let panic = if state & FAILED == 0 { None } else { self.lock_panic().take() };
        self.board.state.store(0, Ordering::Release);
        panic
    }
}

/// What callers and helpers both do.
impl Shared {
    /// Claims a chunk, and adds `join` (0, or 1 for a helper's first) to `RUNNING`. False if none is left.
    fn claim(&self, join: u64) -> bool {
        let mut state = self.board.state.load(Ordering::Relaxed);
        while state >= CHUNK {
            let next = state - CHUNK + join;
            match self.board.state.compare_exchange_weak(state, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Keeps a panic for the caller, and withdraws the chunks that are left.
    fn fail(&self, payload: Payload) {
        let mut first = self.lock_panic();
        if first.is_none() {
            *first = Some(payload);
        } else {
            // Its destructor may panic as well, and nobody would be left to tell.
            std::mem::forget(payload);
        }
        drop(first);
        let withdraw = |state: u64| Some(state & (CHUNK - 1) | FAILED);
        // Relaxed: the payload is under its lock, and the helper's leaving is the release the caller waits for.
        let _ = self.board.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, withdraw);
    }

    fn lock_panic(&self) -> std::sync::MutexGuard<'_, Option<Payload>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes sleepers, at most `FANOUT` and at most until `wanted` helpers are awake.
    fn wake(&self, wanted: usize) {
        let wanted = wanted.min(self.beds.len());
        for _ in 0..FANOUT {
            // Counted first, so that concurrent wakers together do not exceed `wanted`. Acquire: the flags of those
            // not counted.
            let count = |awake: usize| (awake < wanted).then_some(awake + 1);
            if self.awake.fetch_update(Ordering::Acquire, Ordering::Relaxed, count).is_err() {
                return;
            }
            let up = |bed: &&Bed| bed.asleep.load(Ordering::Relaxed) && bed.asleep.swap(false, Ordering::AcqRel);
            let found = self.beds.iter().find(up);
            if let Some(bed) = found {
                bed.helper.keep_off_this_core();
            }
            match found.and_then(|bed| bed.thread.get()) {
                Some(thread) => thread.unpark(),
                // Another waker took the flag while one behind us went up.
                None => {
                    self.awake.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

/// The helper's half.
impl Shared {
    /// A helper's life: sleep, spin for jobs, sleep.
    fn live(&self, index: usize) {
        let bed = &self.beds[index];
        bed.helper.introduce();
        while self.sleep(bed) {
            // Passed on before the first claim: it takes long, and the caller would wait for the claimed chunk.
            // One helper for every open chunk and every helper that is busy: never more than the job had chunks.
            let state = self.board.state.load(Ordering::Relaxed);
            if state >= CHUNK {
                self.wake(((state >> CHUNK_SHIFT) + (state & RUNNING)) as usize);
            }
            self.serve();
            // The flag first: a waker who does not count this helper as awake shall find the flag.
            bed.asleep.store(true, Ordering::Release);
            self.awake.fetch_sub(1, Ordering::Release);
        }
    }

    /// Sleeps until the flag is lowered. False when the pool is being dropped.
    fn sleep(&self, bed: &Bed) -> bool {
        loop {
            if self.board.state.load(Ordering::Relaxed) & SHUTDOWN != 0 {
                return false;
            }
            if !bed.asleep.load(Ordering::Acquire) {
                return true;
            }
            sync::park();
        }
    }

    /// Helps with every job that comes, until none has for a while.
    fn serve(&self) {
        let mut idle = Idle::default();
        while self.board.state.load(Ordering::Relaxed) & SHUTDOWN == 0 {
            if self.help() {
                idle = Idle::default();
            } else if !idle.spin() {
                return;
            }
        }
    }

    /// Runs chunks of the current job. False when there was none to claim.
    fn help(&self) -> bool {
        if !self.claim(1) {
            return false;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: this helper is counted in `RUNNING`, so the owner does not write the job until it has left, and
            // the claim has acquired what the owner published.
            let Job { work, chunks } = self.board.job.with(|job| unsafe { *job });
            // SAFETY: for the same reason the owner is still in `run`, where the closure is borrowed.
            let work = unsafe { &*work };
            loop {
                // Relaxed: claims are counted exactly, so that every number is given out once, and the owner set it to
                // zero before it published the job.
                work(chunks - 1 - self.board.from_back.fetch_add(1, Ordering::Relaxed));
                if !self.claim(0) {
                    return;
                }
            }
        }));
        if let Err(payload) = outcome {
            self.fail(payload);
        }
        // The last touch of the job. Release: everything its chunks wrote.
        self.board.state.fetch_sub(1, Ordering::Release);
        true
    }
}

/// The standard library's primitives, under names for which the loom tests have stand-ins.
#[cfg(not(all(test, loom)))]
mod sync {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub use std::thread::{JoinHandle, Thread, park, yield_now};
    use std::time::{Duration, Instant};

    pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name).spawn(body)
    }

    /// `std::cell::UnsafeCell` with loom's accessors, which let loom see who reads and who writes.
    pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }
        pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }
        pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }

    /// Time since a helper's last chunk. The clock is first read when there is time for it.
    #[derive(Default)]
    pub struct Idle {
        since: Option<Instant>,
        spins: u32,
    }

    impl Idle {
        /// Between 100 and 400 us hardly matters; a wake-up costs 60-120.
        const PATIENCE: Duration = Duration::from_micros(200);
        /// About 5 us. The clock and the offer of the core cost a fraction of one.
        const SPINS_PER_LOOK: u32 = 256;

        /// Waits a moment. False when the helper has waited long enough.
        pub fn spin(&mut self) -> bool {
            spin_loop();
            self.spins += 1;
            if !self.spins.is_multiple_of(Self::SPINS_PER_LOOK) {
                return true;
            }
            // On a loaded machine a helper wakes up on its caller's core, and would keep it from the caller.
            yield_now();
            self.since.get_or_insert_with(Instant::now).elapsed() < Self::PATIENCE
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "threads_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "threads_loom_tests.rs"]
mod threads_loom;
