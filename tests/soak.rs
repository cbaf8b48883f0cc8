//! The queue under load for as long as one likes: a time enters, a line every so often and a verdict leave.

use crate::mix::{Mix, Tally};
use breakeven::{DType, Job, QueueStats, Tensor};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Producers of jobs of all kinds; one more streams.
const PRODUCERS: u64 = 3;
/// What a process may grow by in the end: a share of what it has after settling, and what allocators keep.
const GROWTH: (f64, u64) = (0.05, 8 << 20);
/// Memory counts from here on; a shorter soak settles in its first half.
const SETTLED: Duration = Duration::from_secs(60);

/// How it goes.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Since the line before.
    pub jobs_per_s: f64,
    /// Resident memory of the process; 0 where that can't be told.
    pub resident_bytes: u64,
    /// The queue's counters.
    pub stats: QueueStats,
}

/// Runs for this long and tells every `every`. What went wrong is an error: an answer, a counter, or memory that grows.
pub fn soak(time: Duration, every: Duration, mut tell: impl FnMut(&Line)) -> Result<Tally, String> {
    let mix = Mix::new().map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let (running, failed) = (AtomicBool::new(true), AtomicBool::new(false));
    let (streamed, tallies) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let settled_at = SETTLED.min(time / 2);
    let mut settled_bytes = 0;
    std::thread::scope(|scope| {
        let (mix, running, failed, tallies, streamed) = (&mix, &running, &failed, &tallies, &streamed);
        let note = move |result: Result<Tally, String>| {
            failed.fetch_or(result.is_err(), Relaxed);
            tallies.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(result);
        };
        scope.spawn(|| mix.disturb(running));
        for producer in 0..PRODUCERS {
            scope.spawn(move || note(mix.produce(producer, || running.load(Relaxed))));
        }
        scope.spawn(move || note(stream(mix, running, streamed)));
        scope.spawn(move || note(begin_and_end(running)));
        let (mut last, mut last_jobs) = (begun, 0);
        while begun.elapsed() < time && !failed.load(Relaxed) {
            let next = every.min(time.saturating_sub(begun.elapsed())).min(Duration::from_millis(100));
            std::thread::sleep(next);
            if settled_bytes == 0 && begun.elapsed() >= settled_at {
                settled_bytes = resident_bytes();
            }
            if last.elapsed() >= every {
                let stats = mix.engine.queue_stats();
                let jobs_per_s = (stats.submitted - last_jobs) as f64 / last.elapsed().as_secs_f64();
                tell(&Line { elapsed: begun.elapsed(), jobs_per_s, resident_bytes: resident_bytes(), stats });
                (last, last_jobs) = (Instant::now(), stats.submitted);
            }
        }
        running.store(false, Relaxed);
        if failed.load(Relaxed) {
            // So that nobody waits for an answer that does not come.
            mix.engine.abort();
        }
    });
    let end_bytes = resident_bytes();
    let mut tally = Tally::default();
    for part in tallies.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        tally.add(part?);
    }
    tally.right += streamed.into_inner();
    mix.engine.close();
    agree(&mix.engine.queue_stats(), &tally)?;
    let allowed = settled_bytes + (settled_bytes as f64 * GROWTH.0) as u64 + GROWTH.1;
    if end_bytes > allowed {
        return Err(format!("memory has grown from {settled_bytes} to {end_bytes} bytes; {allowed} are allowed"));
    }
    Ok(tally)
}

/// Do the queue's counters say what its callers saw?
pub fn agree(stats: &QueueStats, tally: &Tally) -> Result<(), String> {
    let found = [stats.submitted, stats.completed, stats.cancelled, stats.late, stats.failed, stats.aborted];
    let right = [tally.total(), tally.right, tally.cancelled, tally.late, 0, 0];
    if (found, stats.queued) == (right, 0) { Ok(()) } else { Err(format!("{stats:?} does not agree with {tally:?}")) }
}

/// Streams through the same queue, again and again.
fn stream(mix: &Mix, running: &AtomicBool, streamed: &AtomicU64) -> Result<Tally, String> {
    let wrong = |error: breakeven::Error| error.to_string();
    let x = Tensor::input("x", DType::F32, [16]).map_err(|error| error.to_string())?;
    let halves = (&x * 0.5).map_err(|error| error.to_string())?;
    let program = mix.engine.compile(&[&x], &[&halves]).map_err(wrong)?;
    while running.load(Relaxed) {
        let inputs = (0..1000).map(|i| Tensor::from_vec(vec![i as f32; 16], [16]).map(|tensor| [tensor]));
        for (i, outputs) in program.stream(inputs.map_while(Result::ok)).enumerate() {
            let outputs = outputs.map_err(wrong)?;
            if outputs[0].as_slice::<f32>().map_err(wrong)? != [i as f32 * 0.5; 16] {
                return Err(format!("element {i} of a stream is {:?}", outputs[0]));
            }
            streamed.fetch_add(1, Relaxed);
        }
    }
    Ok(Tally::default())
}

/// Queues that begin, are given work and end with it in flight, by all ways to end. They count for themselves.
fn begin_and_end(running: &AtomicBool) -> Result<Tally, String> {
    let mut round = 0u64;
    while running.load(Relaxed) {
        let mix = Mix::new().map_err(|error| error.to_string())?;
        let x = Tensor::from_vec(vec![3.0f32; 8], [8]).map_err(|error| error.to_string())?;
        let square = x.square().map_err(|error| error.to_string())?;
        let submit = |_| mix.engine.submit(Job::batch(&[&square]));
        let tickets = (0..20).map(submit).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        match round % 3 {
            0 => mix.engine.close(),
            1 => mix.engine.abort(),
            _ => {}
        }
        drop(mix);
        for ticket in tickets {
            match ticket.wait_timeout(Duration::from_secs(60)) {
                Some(Ok(_)) => {}
                Some(Err(breakeven::Error::Aborted)) if !round.is_multiple_of(3) => {}
                other => return Err(format!("a queue that ended answered {other:?}")),
            }
        }
        round += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(Tally::default())
}

/// Resident memory of this process; 0 where the system does not tell.
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    // Pages of 4 KiB, or more of them where they are larger: the ratio is what counts.
    pages.unwrap_or(0) * 4096
}
