//! The pool under loom, which runs every interleaving and every value a weak memory model lets a load return.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p breakeven-cpu --lib threads_loom`
//!
//! What a job writes and what the caller reads afterwards goes through loom's cells without further
//! synchronisation, so that a chunk run twice, a chunk lost, and a chunk still running after `run` all come out as a
//! race or a wrong value. That the pool can be dropped at the end, with helpers in any state, is part of every model.

use super::Pool;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Loom's stand-ins for the pool's primitives. A helper does not spin: to loom, that is the same as sleep.
pub(super) mod sync {
    pub use loom::cell::UnsafeCell;
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub use loom::thread::{JoinHandle, Thread, park, yield_now};

    pub fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
        loom::thread::Builder::new().name(name).spawn(body)
    }

    #[derive(Default)]
    pub struct Idle;

    impl Idle {
        pub fn spin(&mut self) -> bool {
            false
        }
    }
}

/// One cell a chunk, written without synchronisation.
struct Cells(Vec<UnsafeCell<usize>>);

// SAFETY: not claimed but tested: loom reports every access that the pool leaves unordered.
unsafe impl Sync for Cells {}

impl Cells {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| UnsafeCell::new(0)).collect())
    }
    fn bump(&self, chunk: usize) {
        // SAFETY: loom has checked that no other access is concurrent before it hands out the pointer.
        self.0[chunk].with_mut(|cell| unsafe { *cell += 1 });
    }
    fn assert_all(&self, value: usize) {
        for cell in &self.0 {
            // SAFETY: as in `bump`.
            assert_eq!(cell.with(|cell| unsafe { *cell }), value);
        }
    }
}

/// All interleavings with at most `preemptions` unforced switches; `None` for all there are.
fn model(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(body);
}

/// Runs a job of `chunks` whose cells live on this stack frame only, as the closures of real callers do.
fn run_once(pool: &Pool, chunks: usize) {
    let cells = Cells::new(chunks);
    pool.run(chunks, &|chunk| cells.bump(chunk));
    cells.assert_all(1);
}

#[test]
fn one_helper_one_job() {
    model(None, || run_once(&Pool::new(2).unwrap(), 2));
}

#[test]
fn one_helper_three_chunks() {
    model(None, || run_once(&Pool::new(2).unwrap(), 3));
}

#[test]
fn two_jobs_in_a_row() {
    model(Some(3), || {
        let pool = Pool::new(2).unwrap();
        run_once(&pool, 2);
        run_once(&pool, 2);
    });
}

#[test]
fn jobs_on_the_same_cells_are_ordered() {
    model(Some(3), || {
        let pool = Pool::new(2).unwrap();
        let cells = Cells::new(2);
        pool.run(2, &|chunk| cells.bump(chunk));
        pool.run(2, &|chunk| cells.bump(1 - chunk));
        cells.assert_all(2);
    });
}

#[test]
fn two_helpers() {
    model(Some(2), || run_once(&Pool::new(3).unwrap(), 3));
}

#[test]
fn two_callers() {
    model(Some(2), || {
        let pool = Arc::new(Pool::new(2).unwrap());
        let other = {
            let pool = Arc::clone(&pool);
            loom::thread::spawn(move || run_once(&pool, 2))
        };
        run_once(&pool, 2);
        other.join().unwrap();
    });
}

#[test]
fn a_panic_waits_for_the_others() {
    model(Some(3), || {
        let pool = Pool::new(2).unwrap();
        let cells = Cells::new(2);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(2, &|chunk| {
                cells.bump(chunk);
                // resume_unwind: a panic without the message, which loom would print a thousand times.
                if chunk == 0 {
                    std::panic::resume_unwind(Box::new("chunk 0"));
                }
            })
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"chunk 0"));
        // Whether the helper got to chunk 1 or not, it must have left it.
        for chunk in 0..2 {
            cells.bump(chunk);
        }
        run_once(&pool, 2);
    });
}

#[test]
fn a_panic_of_a_helper_reaches_the_caller() {
    model(Some(3), || {
        let pool = Pool::new(2).unwrap();
        let cells = Cells::new(3);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(3, &|chunk| {
                cells.bump(chunk);
                if chunk == 1 {
                    std::panic::resume_unwind(Box::new("chunk 1"));
                }
            })
        }));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"chunk 1"));
        for chunk in 0..3 {
            cells.bump(chunk);
        }
    });
}
