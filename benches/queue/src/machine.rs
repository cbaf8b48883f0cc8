//! Where a run took place: nothing enters, the CPU's name leaves, how far apart its cores are, and a warning where others were
//! busy on it.

use std::hint::spin_loop;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Instant;

/// Runnable processes over the last minute, before this run adds its own.
static LOAD: LazyLock<Option<f64>> =
    LazyLock::new(|| std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok());

/// Stores that are answered.
const STORES: u64 = 20_000;

/// The CPU and its threads.
pub fn description() -> String {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {threads} threads", breakeven::cpu_name())
}

/// Looks at the load: to be called before anything is measured.
pub fn note_load() {
    LazyLock::force(&LOAD);
}

/// What the reader must know about the load.
pub fn load_warning() -> Option<String> {
    let load = LOAD.filter(|&load| load > 0.5)?;
    Some(format!("the machine was busy when this run began (load {load:.1}): times are not to be quoted"))
}

/// Nanoseconds after which another thread sees a store, on average of many that go back and forth. A virtual machine's cores
/// share a cache at some times and at others they don't, and what passes between threads takes up to six times as long then.
pub fn store_ns() -> f64 {
    let word = AtomicU64::new(0);
    let wait_for = |value: u64| {
        while word.load(Acquire) != value {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..STORES {
                wait_for(2 * turn + 1);
                word.store(2 * turn + 2, Release);
            }
        });
        // Until the other thread runs.
        word.store(1, Release);
        wait_for(2);
        let begun = Instant::now();
        for turn in 1..STORES {
            word.store(2 * turn + 1, Release);
            wait_for(2 * turn + 2);
        }
        begun.elapsed().as_nanos() as f64 / (2 * (STORES - 1)) as f64
    })
}

/// How far apart the cores were at both ends of a run.
pub fn distance(before_ns: f64, after_ns: f64) -> String {
    format!(
        "another core saw a store after {before_ns:.0} ns when this run began, and after {after_ns:.0} ns when it ended"
    )
}
