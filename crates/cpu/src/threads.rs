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
//! The protocol is in `board`, a helper's life in `helper`. Sleep is separate, and only a matter of speed: a wake-up that is missed costs a job one helper, never its end.

mod board;
mod helper;
#[cfg(not(all(test, loom)))]
mod sync;

#[cfg(all(test, loom))]
use threads_loom::sync;

use board::{MAX_CHUNKS, SHUTDOWN, Shared};
use std::io;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use sync::{JoinHandle, Ordering};

/// Far above any machine, far below what `RUNNING` can count.
const MAX_THREADS: usize = 4096;

/// A set of helper threads that share the chunks of one job at a time with the thread that brings it.
///
/// Helpers spin for about 200 us after their last chunk, then sleep. Dropping the pool ends and joins them.
///
/// ```
/// use breakeven_cpu::threads::Pool;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let pool = Pool::new(2)?;
/// let sum = AtomicUsize::new(0);
/// pool.run(10, &|chunk| {
///     sum.fetch_add(chunk, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 45);
/// # Ok::<(), std::io::Error>(())
/// ```
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
        let shared = Arc::new(Shared::new(helpers));
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
            while shared.claim() {
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
        self.shared.board.state.fetch_or(SHUTDOWN, Ordering::Release);
        for helper in &self.helpers {
            helper.thread().unpark();
        }
        for helper in self.helpers.drain(..) {
            // Helpers catch all panics of the work; there is no result to look at.
            let _ = helper.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "threads_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "threads_loom_tests.rs"]
mod threads_loom;
