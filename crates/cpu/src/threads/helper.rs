//! The life of a helper thread: a bed to sleep in enters; chunks of jobs run, and other sleepers are woken.

use super::board::{Bed, CHUNK, CHUNK_SHIFT, Job, RUNNING, SHUTDOWN, Shared};
use super::sync::{self, Idle, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many sleepers one thread wakes for a job. An unpark costs 10-18 us: on a large machine the caller would spend
/// a millisecond on it, so that those woken wake others in turn.
const FANOUT: usize = 2;

/// Waking helpers, which callers do and helpers pass on.
impl Shared {
    /// Wakes sleepers, at most `FANOUT` and at most until `wanted` helpers are awake.
    pub(super) fn wake(&self, wanted: usize) {
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
    pub(super) fn live(&self, index: usize) {
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
        loop {
            let state = self.look();
            if state & SHUTDOWN != 0 {
                return;
            }
            if self.help(state) {
                idle = Idle::default();
            } else if !idle.spin() {
                return;
            }
        }
    }

    /// The state word. The only helper of a pool asks for its line as if to write it: no other helper looks at it, and a job
    /// that is there can be claimed without asking for the line again.
    fn look(&self) -> u64 {
        let state = &self.board.state;
        if self.beds.len() > 1 {
            return state.load(Ordering::Relaxed);
        }
        // Zero for zero changes nothing, and is not taken for a load by compilers, as adding zero is.
        match state.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Acquire) {
            Ok(state) | Err(state) => state,
        }
    }

    /// Runs chunks of the job whose state was seen. False when there was none to claim.
    fn help(&self, state: u64) -> bool {
        if !self.claim_of(state, 1) {
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
                if !self.claim() {
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
