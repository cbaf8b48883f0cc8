//! What the threads of a pool share: the state word and the job it guards. Chunks and a borrowed closure enter from
//! the caller; claims leave, to the caller and to helpers, each chunk once.
//!
//! # The state word
//!
//! One `u64` carries what callers and helpers tell each other, and every step is one atomic operation on it:
//!
//! | bits | meaning | changed by |
//! |---|---|---|
//! | 0-12 | `RUNNING`: helpers that have claimed a chunk and not yet left the job | each helper |
//! | 14 | `FAILED`: a chunk panicked, its payload is kept | whoever ran it |
//! | 15 | `SHUTDOWN`: the pool is being dropped | `drop` |
//! | 16-63 | chunks nobody has claimed yet | each claim |
//!
//! Which caller owns the pool is a word of its own, which helpers never look at: a new job is then one exchange in the line
//! that they watch, and not a line that comes back from them first. What a step costs is that line on its way between two
//! cores: on the two-core machine where it was measured a store is seen by the other core after 265 ns, and a job of two chunks
//! took 850 ns more than its longer half when the word was in the same line and the helper fetched it twice (once to look, once to
//! claim), and 650 since, in the better one of two runs.
//!
//! A helper's first claim takes a chunk *and* counts the helper in `RUNNING` in one compare-and-swap. Only then does
//! it read the job, and the caller waits for `RUNNING` to be zero before it returns: so no helper ever holds a job
//! that it has no chunk of, and none touches the closure after `run`. A stale compare-and-swap that succeeds because a
//! later job happens to show the same word is a valid claim on that later job, as nothing was read before it.
//!
//! Publishing is a release store, a claim an acquire read of it (all later writes are read-modify-writes and hence in
//! its release sequence); leaving is a release decrement, which the caller's waiting loop acquires.

use super::sync::{self, AtomicBool, AtomicU64, AtomicUsize, Ordering, Thread, UnsafeCell};
use crate::cores::Helper;
use std::any::Any;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

// The fields of the state word, as in the table above.
pub(super) const RUNNING: u64 = (1 << 13) - 1;
const FAILED: u64 = 1 << 14;
pub(super) const SHUTDOWN: u64 = 1 << 15;
pub(super) const CHUNK_SHIFT: u32 = 16;
/// One unclaimed chunk.
pub(super) const CHUNK: u64 = 1 << CHUNK_SHIFT;
pub(super) const MAX_CHUNKS: u64 = u64::MAX >> CHUNK_SHIFT;
/// How long the caller spins for a helper's last chunk before it offers its core: about 20 us. The helper may have
/// been descheduled in favour of this very thread.
const SPINS_BEFORE_YIELD: u32 = 1000;

/// The closure of a job, on the stack of the thread that called [`Pool::run`]. Valid while that thread is in `run`.
type Work = *const (dyn Fn(usize) + Sync + 'static);
type Payload = Box<dyn Any + Send>;

/// What a helper reads once it has claimed a chunk.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) chunks: usize,
}

/// The state word and the job it guards: in one cache line (two, as neighbouring lines are fetched in pairs), so that
/// a new job reaches a spinning helper in a single transfer.
#[repr(align(128))]
pub(super) struct Board {
    pub(super) state: AtomicU64,
    /// Chunks that helpers have begun; theirs are counted from the end.
    pub(super) from_back: AtomicUsize,
    pub(super) job: UnsafeCell<Job>,
}

/// Is a caller between taking and leaving the pool? In a line of its own.
#[repr(align(128))]
struct Owner(AtomicBool);

/// How to wake one helper.
pub(super) struct Bed {
    /// Raised by the helper when it lies down, lowered by whoever wakes it.
    pub(super) asleep: AtomicBool,
    /// Set before [`Pool::new`] returns, and so before the first job.
    pub(super) thread: OnceLock<Thread>,
    /// How the system knows it.
    pub(super) helper: Helper,
}

pub(super) struct Shared {
    pub(super) board: Board,
    owner: Owner,
    /// Helpers that spin, work, or have been sent a wake-up. At least `beds.len() - awake` flags are up, give or take
    /// wakers that have counted but not yet lowered one.
    pub(super) awake: AtomicUsize,
    pub(super) beds: Box<[Bed]>,
    /// The first panic of the current job. Locked only on the way of a panic.
    panic: Mutex<Option<Payload>>,
}

// SAFETY: all fields but `board.job` are `Sync`. That one is written only by the thread that has raised `owner`, while
// `RUNNING` and the chunks are zero, and read only by helpers counted in `RUNNING`; the closure it leads to is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: the job's pointer is only followed while its caller is in `run`, from whatever thread; nothing else in here
// is tied to a thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Nothing to do, and `helpers` beds with somebody asleep in each.
    pub(super) fn new(helpers: usize) -> Shared {
        let bed = || Bed { asleep: AtomicBool::new(true), thread: OnceLock::new(), helper: Helper::default() };
        Shared {
            board: Board {
                state: AtomicU64::new(0),
                from_back: AtomicUsize::new(0),
                job: UnsafeCell::new(Job { work: &|_| (), chunks: 0 }),
            },
            owner: Owner(AtomicBool::new(false)),
            awake: AtomicUsize::new(0),
            beds: (0..helpers).map(|_| bed()).collect(),
            panic: Mutex::new(None),
        }
    }
}

/// The caller's half.
impl Shared {
    /// Makes the calling thread the pool's owner, unless there is one.
    pub(super) fn take(&self) -> bool {
        let Owner(owner) = &self.owner;
        owner.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Offers all chunks but the first, which is the caller's own. Only for the owner, who must call `settle`
    /// before `work` ends.
    pub(super) fn publish(&self, chunks: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is changed, and the pointer is kept raw. It is followed by helpers counted in
        // `RUNNING`, and the owner waits for them in `settle` while `work` is still borrowed.
        let work: Work = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), Work>(work) };
        // SAFETY: this thread owns the pool and no chunk is on offer, so no helper can be counted in `RUNNING`;
        // earlier helpers have left before the earlier owner did (`settle`), which `take` has acquired.
        self.board.job.with_mut(|job| unsafe { *job = Job { work, chunks } });
        self.board.from_back.store(0, Ordering::Relaxed);
        // What it replaces is zero: the last owner has left it so. Not a plain store: loom does not order those with a
        // helper's look, which is a write, and whoever waits for the line is not who comes last.
        self.board.state.swap((chunks as u64 - 1) << CHUNK_SHIFT, Ordering::Release);
    }

    /// Waits until every helper has left the job, gives up the ownership and returns the job's panic, if any.
    pub(super) fn settle(&self) -> Option<Payload> {
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
        let panic = (state & FAILED != 0).then(|| {
            self.board.state.swap(0, Ordering::Relaxed);
            self.lock_panic().take()
        });
        // Release: all that was said of this job.
        self.owner.0.store(false, Ordering::Release);
        panic.flatten()
    }
}

/// What callers and helpers both do.
impl Shared {
    /// Claims a chunk. False if none is left.
    pub(super) fn claim(&self) -> bool {
        self.claim_of(self.board.state.load(Ordering::Relaxed), 0)
    }

    /// Claims a chunk where `state` was seen, and adds `join` (0, or 1 for a helper's first) to `RUNNING`. False if none is left.
    pub(super) fn claim_of(&self, mut state: u64, join: u64) -> bool {
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
    pub(super) fn fail(&self, payload: Payload) {
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

    fn lock_panic(&self) -> MutexGuard<'_, Option<Payload>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
