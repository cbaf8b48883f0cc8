//! The pool on real threads: every chunk once, whatever the callers, panics and core counts do. What must hold in
//! every interleaving is in `threads_loom_tests.rs`.

use super::Pool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `chunks` on the pool and asserts that each came exactly once.
fn check_once(pool: &Pool, chunks: usize) {
    let seen: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(chunks, &|chunk| {
        seen[chunk].fetch_add(1, Ordering::Relaxed);
    });
    for (chunk, count) in seen.iter().enumerate() {
        assert_eq!(count.load(Ordering::Relaxed), 1, "chunk {chunk} of {chunks}");
    }
}

/// Waits until `done` holds; a test that never gets there fails rather than hangs.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        thread::yield_now();
    }
}

/// The message of the panic that `body` ends with.
fn panic_message(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).expect_err("must panic");
    payload.downcast_ref::<&str>().map(|text| text.to_string()).unwrap_or_else(|| *payload.downcast().unwrap())
}

#[test]
fn pool_is_send_and_sync() {
    fn check<T: Send + Sync + std::panic::RefUnwindSafe>() {}
    check::<Pool>();
}

#[test]
fn every_chunk_exactly_once() {
    for threads in [0, 1, 2, 3, 8] {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads.max(1));
        for chunks in (0..70).chain([127, 128, 1000, 4096, 65_537]) {
            check_once(&pool, chunks);
        }
    }
}

#[test]
fn one_thread_runs_in_order_on_the_caller() {
    let pool = Pool::new(1).unwrap();
    let caller = thread::current().id();
    let order = Mutex::new(Vec::new());
    pool.run(5, &|chunk| order.lock().unwrap().push((chunk, thread::current().id())));
    assert_eq!(order.into_inner().unwrap(), (0..5).map(|chunk| (chunk, caller)).collect::<Vec<_>>());
    assert!(!pool.awake());
}

#[test]
fn helpers_take_part_and_have_names() {
    let pool = Pool::new(3).unwrap();
    let names = Mutex::new(Vec::new());
    // Three chunks that all wait for each other need three threads.
    let barrier = Barrier::new(3);
    pool.run(3, &|_| {
        names.lock().unwrap().push(thread::current().name().unwrap_or("").to_string());
        barrier.wait();
    });
    let names = names.into_inner().unwrap();
    assert!(names.contains(&"breakeven-cpu-1".to_string()), "{names:?}");
    assert!(names.contains(&"breakeven-cpu-2".to_string()), "{names:?}");
}

#[test]
fn woken_helpers_wake_the_others() {
    // More than the caller wakes itself: the barrier opens only if the wake-up is passed on to all.
    let pool = Pool::new(12).unwrap();
    for _ in 0..3 {
        let barrier = Barrier::new(12);
        pool.run(12, &|_| {
            barrier.wait();
        });
        wait_until("asleep", || !pool.awake());
    }
}

#[test]
fn no_more_helpers_are_woken_than_chunks_need() {
    let pool = Pool::new(8).unwrap();
    pool.run(1, &|_| ());
    assert_eq!(pool.awake_helpers(), 0);
    pool.run(2, &|_| assert!(pool.awake_helpers() <= 1));
    wait_until("asleep", || !pool.awake());
    pool.run(4, &|_| {
        thread::sleep(Duration::from_millis(2));
        assert!(pool.awake_helpers() <= 3);
    });
}

#[test]
fn the_caller_takes_back_what_a_late_helper_left() {
    let pool = Pool::new(2).unwrap();
    let caller = thread::current().id();
    let (held, taken) = (AtomicBool::new(false), AtomicUsize::new(0));
    // The helper is stuck in the one chunk it got until the caller has done all the others.
    pool.run(100, &|_| {
        if thread::current().id() == caller {
            taken.fetch_add(1, Ordering::SeqCst);
            wait_until("a claim by the helper", || held.load(Ordering::SeqCst));
        } else {
            held.store(true, Ordering::SeqCst);
            wait_until("the caller's 99 chunks", || taken.load(Ordering::SeqCst) == 99);
        }
    });
    assert_eq!(taken.load(Ordering::SeqCst), 99);
}

#[test]
fn nested_runs_stay_on_their_thread() {
    let pool = Pool::new(4).unwrap();
    let count = AtomicUsize::new(0);
    pool.run(20, &|_| {
        let outer = thread::current().id();
        pool.run(30, &|_| {
            assert_eq!(thread::current().id(), outer);
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(count.load(Ordering::Relaxed), 600);
}

#[test]
fn concurrent_callers_all_finish() {
    let pool = Pool::new(3).unwrap();
    thread::scope(|scope| {
        for caller in 0..4 {
            let pool = &pool;
            scope.spawn(move || (0..2000).for_each(|round| check_once(pool, (round + caller) % 17)));
        }
    });
}

#[test]
fn writes_of_chunks_are_seen_after_the_run() {
    let pool = Pool::new(2).unwrap();
    let mut data = vec![0u64; 64];
    for round in 1..5000 {
        let cells: Vec<Mutex<&mut [u64]>> = data.chunks_mut(8).map(Mutex::new).collect();
        pool.run(cells.len(), &|chunk| cells[chunk].lock().unwrap().fill(round));
        drop(cells);
        assert!(data.iter().all(|&value| value == round));
    }
}

#[test]
fn a_panic_on_the_caller_comes_out() {
    let pool = Pool::new(2).unwrap();
    let caller = thread::current().id();
    for _ in 0..50 {
        let message = panic_message(|| {
            pool.run(8, &|_| {
                if thread::current().id() == caller {
                    panic!("on the caller");
                }
            })
        });
        assert_eq!(message, "on the caller");
        check_once(&pool, 9);
    }
}

#[test]
fn a_panic_on_a_helper_comes_out_after_all_have_left() {
    let pool = Pool::new(3).unwrap();
    let caller = thread::current().id();
    for round in 0..50 {
        let (entered, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Only from sleep do all helpers surely come, as the barrier needs.
        wait_until("asleep", || !pool.awake());
        let barrier = Barrier::new(3);
        let message = panic_message(|| {
            pool.run(100, &|chunk| {
                entered.fetch_add(1, Ordering::SeqCst);
                if chunk < 3 {
                    barrier.wait();
                }
                if thread::current().id() != caller && chunk < 3 {
                    left.fetch_add(1, Ordering::SeqCst);
                    panic!("on a helper in round {round}");
                }
                left.fetch_add(1, Ordering::SeqCst);
            })
        });
        assert_eq!(message, format!("on a helper in round {round}"));
        assert_eq!(entered.load(Ordering::SeqCst), left.load(Ordering::SeqCst));
        check_once(&pool, 10);
    }
}

#[test]
fn a_panic_everywhere_comes_out_once() {
    let pool = Pool::new(4).unwrap();
    for _ in 0..50 {
        assert_eq!(panic_message(|| pool.run(64, &|_| panic!("everywhere"))), "everywhere");
    }
    check_once(&pool, 100);
}

#[test]
fn a_panic_in_an_inline_run_comes_out() {
    let pool = Pool::new(2).unwrap();
    assert_eq!(panic_message(|| pool.run(1, &|_| panic!("inline"))), "inline");
    assert_eq!(panic_message(|| pool.run(4, &|_| pool.run(4, &|_| panic!("nested")))), "nested");
    check_once(&pool, 10);
}

#[test]
fn dropped_at_any_time() {
    for threads in [1, 2, 5] {
        // Never used.
        drop(Pool::new(threads).unwrap());
        // Spinning.
        let pool = Pool::new(threads).unwrap();
        check_once(&pool, 10);
        drop(pool);
        // Asleep again.
        let pool = Pool::new(threads).unwrap();
        check_once(&pool, 10);
        wait_until("asleep", || !pool.awake());
        thread::sleep(Duration::from_millis(5));
        drop(pool);
    }
}

#[test]
fn helpers_wake_and_fall_asleep_again() {
    let pool = Pool::new(2).unwrap();
    assert!(!pool.awake());
    for _ in 0..5 {
        check_once(&pool, 2);
        wait_until("asleep", || !pool.awake());
    }
}

#[test]
fn a_hundred_thousand_tiny_jobs() {
    let pool = Pool::new(2).unwrap();
    let count = AtomicUsize::new(0);
    for _ in 0..100_000 {
        pool.run(3, &|chunk| {
            count.fetch_add(chunk + 1, Ordering::Relaxed);
        });
    }
    assert_eq!(count.into_inner(), 600_000);
}

#[test]
fn more_threads_than_cores() {
    let pool = Pool::new(8).unwrap();
    let count = AtomicUsize::new(0);
    for _ in 0..2000 {
        pool.run(16, &|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    assert_eq!(count.into_inner(), 32_000);
}
