//! The CPU as a device: its threads, its working memory, and plans made ready for it.

use crate::blocks::Blocks;
use crate::level::Level;
use crate::moving::Levels;
use crate::prepared::{PreparedPlan, Shared};
use crate::scratch::Scratches;
use crate::team::{Sleep, Team};
use crate::threads::Pool;
use breakeven_ir::backend::{Backend, Prepared, RunError};
use breakeven_ir::plan::Plan;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// The CPU, with its threads, its working memory and its memory pool.
///
/// ```
/// use breakeven_cpu::Cpu;
/// use breakeven_ir::backend::Backend;
/// use breakeven_ir::{Plan, Tensor};
///
/// let x = Tensor::from_slice(&[1.0f32, 4.0], [2])?;
/// let prepared = Cpu::new(1)?.prepare(&Plan::new(&[&x.sqrt()?])?.into())?;
/// let (input, mut output) = ([1.0f32, 4.0].map(f32::to_ne_bytes).concat(), [0u8; 8]);
/// prepared.run(&[&input], &mut [&mut output], false)?;
/// assert_eq!(output[4..], 2.0f32.to_ne_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cpu {
    shared: Arc<Shared>,
    name: String,
}

impl Cpu {
    /// The CPU with that many threads at the best SIMD level.
    pub fn new(threads: usize) -> std::io::Result<Cpu> {
        Cpu::with_level(threads, Level::detect())
    }

    /// The CPU at a given level: tests run them all.
    pub fn with_level(threads: usize, level: Level) -> std::io::Result<Cpu> {
        let pool = Pool::new(threads)?;
        let name = format!("{} threads, {}", pool.threads(), level.name());
        let levels = Levels::measured(level);
        let shared =
            Shared { pool, sleep: Sleep::default(), levels, scratches: Scratches::default(), blocks: Arc::default() };
        Ok(Cpu { shared: Arc::new(shared), name })
    }

    /// The pool that outputs come from.
    pub fn blocks(&self) -> &Arc<Blocks> {
        &self.shared.blocks
    }

    /// Waits, on every thread that is awake, as if the work that was just done took until then. Threads that wait as long without
    /// work would fall asleep, or not be woken for work that comes so seldom, and it would take up to twice as long.
    pub fn wait_until(&self, until: Instant) {
        let Shared { pool, sleep, .. } = &*self.shared;
        sleep.skip(until.saturating_duration_since(Instant::now()));
        pool.run(pool.awake_helpers() + 1, &|_| {
            while Instant::now() < until {
                spin_loop();
            }
        });
    }

    /// Cuts `bytes` at `offsets`, which ascend from 0, into as many ranges of parts as threads pay for `ns` of work on
    /// one thread, and calls `work(range, bytes)` once for each, with the bytes of all its parts.
    pub fn for_each_range(
        &self,
        bytes: &mut [u8],
        offsets: &[usize],
        ns: u64,
        work: impl Fn(Range<usize>, &mut [u8]) + Sync,
    ) {
        assert!(
            offsets.is_sorted() && offsets.last().is_none_or(|&last| last <= bytes.len()),
            "parts must be in order"
        );
        let end = bytes.len();
        let at = |part: usize| offsets.get(part).copied().unwrap_or(end);
        // SAFETY: the offsets ascend and stay inside.
        unsafe { self.over_ranges(bytes, offsets.len(), at, ns, work) };
    }

    /// As [`Cpu::for_each_range`] for `count` parts of `stride` bytes each, which need no list of offsets.
    pub fn for_each_stride(
        &self,
        bytes: &mut [u8],
        count: usize,
        stride: usize,
        ns: u64,
        work: impl Fn(Range<usize>, &mut [u8]) + Sync,
    ) {
        assert!(count.checked_mul(stride).is_some_and(|end| end <= bytes.len()), "parts must lie inside");
        // SAFETY: multiples of the stride ascend, and the last was checked to stay inside.
        unsafe { self.over_ranges(bytes, count, |part| part * stride, ns, work) };
    }

    /// # Safety
    /// `offset` ascends over `0..=count` and stays inside `bytes`.
    unsafe fn over_ranges(
        &self,
        bytes: &mut [u8],
        count: usize,
        offset: impl Fn(usize) -> usize + Sync,
        ns: u64,
        work: impl Fn(Range<usize>, &mut [u8]) + Sync,
    ) {
        let base = Base(bytes.as_mut_ptr());
        let pool = &self.shared.pool;
        let parallel = Team::pays(pool, &self.shared.sleep, ns);
        Team { pool, parallel, ns, stop: None }.over(count, 1, |part| {
            let (from, to) = (offset(part.start), offset(part.end));
            // SAFETY: the offsets ascend and stay inside, so that ranges are disjoint; each is visited once.
            let bytes = unsafe { std::slice::from_raw_parts_mut(base.get().add(from), to - from) };
            work(part, bytes);
        });
    }
}

/// The start of memory whose parts several threads write.
struct Base(*mut u8);
// SAFETY: see `over_ranges`: every byte is written by one thread.
unsafe impl Sync for Base {}
impl Base {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

impl Backend for Cpu {
    fn id(&self) -> &str {
        "cpu"
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Ok(Arc::new(PreparedPlan::new(plan, &self.shared)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn threads_that_were_awake_are_so_after_waiting_and_others_are_not() {
        let cpu = Cpu::new(2).unwrap();
        let (pool, long) = (&cpu.shared.pool, Duration::from_millis(3));
        cpu.wait_until(Instant::now() + long);
        assert!(!pool.awake(), "nobody was");
        // A system that is busy elsewhere may lay a thread to rest at any time.
        let stays_awake = (0..50).any(|_| {
            pool.run(2, &|_| sleep(Duration::from_micros(500)));
            cpu.wait_until(Instant::now() + long);
            pool.awake()
        });
        assert!(stays_awake);
        sleep(20 * long);
        assert!(!pool.awake(), "without work");
    }
}
