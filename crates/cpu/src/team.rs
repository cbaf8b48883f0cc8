//! Threads only where they pay: decided by how long the work takes and by whether the helpers are awake.

use crate::threads::Pool;
use breakeven_ir::backend::Stop;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work that is split among awake helpers from here on: 2.2 us of work take 1.4 us on two threads, 1 us takes no less.
const WARM_NS: u64 = 2_500;
/// Work for which it pays at once to wake a sleeping helper: the call costs 10-18 us, and it arrives after 40-125 us.
const COLD_NS: u64 = 80_000;
/// What sleeping helpers may have cost before they are woken for the work that keeps coming: about what waking costs.
const WAKE_NS: u64 = 40_000;
/// Calls further apart than this have nothing to do with each other: a helper would have gone back to sleep.
const LULL_NS: u64 = 500_000;
/// Chunks for each thread: enough to even out a core that is busy elsewhere, few enough to cost nothing. Handing one out is
/// a cache line that goes from core to core, so that short work has fewer.
const CHUNKS: usize = 8;
const FEWEST_CHUNKS: usize = 1;
const CHUNK_NS: u64 = 1_500;

/// The threads that one kernel may use.
#[derive(Clone, Copy)]
pub(crate) struct Team<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) parallel: bool,
    /// What the work takes on one thread.
    pub(crate) ns: u64,
    /// Who may tell them to stop. `None` is as quick as if there were no such thing.
    pub(crate) stop: Option<&'a Stop>,
}

impl Team<'_> {
    /// Do `ns` of work on one thread pay for more?
    pub(crate) fn pays(pool: &Pool, sleep: &Sleep, ns: u64) -> bool {
        ns > WARM_NS && pool.threads() > 1 && (pool.awake() || ns > COLD_NS || sleep.costs(ns))
    }

    /// Calls `work` with ranges that make up `0..count`, each at least `grain` long.
    pub(crate) fn over(&self, count: usize, grain: usize, work: impl Fn(Range<usize>) + Sync) {
        let threads = self.pool.threads();
        let each = (self.ns / threads as u64 / CHUNK_NS).clamp(FEWEST_CHUNKS as u64, CHUNKS as u64) as usize;
        let chunks = if self.parallel { (count / grain.max(1)).clamp(1, threads * each) } else { 1 };
        if chunks <= 1 {
            if count > 0 {
                work(0..count);
            }
            return;
        }
        // Everything by value: a helper fetches each line of this thread's memory from another core, one after the other where
        // one leads to the next.
        let stop = self.stop;
        self.pool.run(chunks, &move |chunk| {
            if !stop.is_some_and(Stop::is_told) {
                work(count * chunk / chunks..count * (chunk + 1) / chunks);
            }
        });
    }

    /// Is the work to stop? Then what it has made is of no use, and whatever is left may be skipped.
    #[inline(always)]
    pub(crate) fn is_told(&self) -> bool {
        self.stop.is_some_and(Stop::is_told)
    }

    /// Calls `work` with pieces that make up a range, in order, until it is told to stop. Without anyone who could tell
    /// there is one piece: loops that are too short to look in every turn pay nothing for it.
    #[inline(always)]
    pub(crate) fn pieces(&self, range: Range<usize>, each: usize, mut work: impl FnMut(Range<usize>)) {
        let Some(stop) = self.stop else { return work(range) };
        let mut at = range.start;
        while at < range.end && !stop.is_told() {
            let end = range.end.min(at + each.max(1));
            work(at..end);
            at = end;
        }
    }
}

/// What it has cost lately that helpers sleep. One call in a while is not worth waking them; a loop of calls is, and
/// it is known by what it has lost, as with skis that are rented until they might have been bought.
pub(crate) struct Sleep {
    start: Instant,
    last_ns: AtomicU64,
    lost_ns: AtomicU64,
}

impl Default for Sleep {
    fn default() -> Sleep {
        Sleep { start: Instant::now(), last_ns: AtomicU64::new(0), lost_ns: AtomicU64::new(0) }
    }
}

impl Sleep {
    /// Time has passed that does not count: calls before and after it follow one another.
    pub(crate) fn skip(&self, time: Duration) {
        self.last_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Counts `ns` of work that runs on one thread; true once enough was lost for helpers to be woken.
    fn costs(&self, ns: u64) -> bool {
        let now = self.start.elapsed().as_nanos() as u64;
        let lull = now.saturating_sub(self.last_ns.swap(now, Ordering::Relaxed)) > LULL_NS;
        let before = if lull { 0 } else { self.lost_ns.load(Ordering::Relaxed) };
        let lost = before + ns / 2;
        let wake = lost > WAKE_NS;
        self.lost_ns.store(if wake { 0 } else { lost }, Ordering::Relaxed);
        wake
    }
}

/// Work of which it is not plain whether more threads pay, even where helpers are awake: which memory it moves between which
/// caches counts for more than how much it is (the sum of 10^5 elements takes 2.0 us on one thread and 2.8 us on two, an add of two of
/// them 8.4 and 3.8). Both ways are measured.
const UNCLEAR_NS: Range<u64> = 1_000..50_000;
/// Runs that are timed one by one, both ways in turn where it is unclear; then one in so many is.
const FIRST_RUNS: u32 = 16;
const TIMED_RUNS: u32 = 64;
/// The other way is looked at again once in so many runs.
const OTHER_WAY_RUNS: u32 = 512;
/// A way is tried in so many runs one after the other, and only the later half of them counts: at first memory lies in the caches
/// of whoever had it the other way. The dot product of 10^5 elements takes 4.3 us on one thread and 2.9 us on two; when ways were
/// tried in single runs it ended up on one thread in two of two long benchmarks.
const TRIAL_RUNS: u32 = 4;

/// How long a kernel takes on one thread: estimated at first, then measured.
pub(crate) struct Work {
    ns: AtomicU64,
    runs: AtomicU32,
    /// What it takes alone and with helpers that are awake, at best and forgotten slowly: `u64::MAX` if that is not known.
    ways: [AtomicU64; 2],
}

impl Work {
    pub(crate) fn estimated(ns: u64) -> Work {
        let ways = [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)];
        Work { ns: AtomicU64::new(ns), runs: AtomicU32::new(0), ways }
    }

    pub(crate) fn ns(&self) -> u64 {
        self.ns.load(Ordering::Relaxed)
    }

    /// With helpers, where those are awake and it is unclear whether they pay?
    fn pays(&self, ns: u64, run: u32) -> bool {
        let [alone, together] = [0, 1].map(|way: usize| self.ways[way].load(Ordering::Relaxed));
        let is_known = alone != u64::MAX && together != u64::MAX;
        let pays = if is_known { together < alone } else { ns > WARM_NS };
        let trial = run / TRIAL_RUNS;
        let other_way =
            if run < FIRST_RUNS { trial % 2 == 1 } else { trial.is_multiple_of(OTHER_WAY_RUNS / TRIAL_RUNS) };
        pays != other_way
    }

    /// Has the way of this run been gone for long enough to say what it takes?
    fn is_settled(run: u32) -> bool {
        run % TRIAL_RUNS >= TRIAL_RUNS / 2
    }

    /// Runs `work` with as many threads as pay, and learns from it now and then: reading the clock costs 50 ns a run.
    pub(crate) fn run<R>(
        &self,
        pool: &Pool,
        sleep: &Sleep,
        threads: bool,
        stop: Option<&Stop>,
        work: impl FnOnce(Team<'_>) -> R,
    ) -> (R, bool) {
        let ns = self.ns();
        let run = self.runs.load(Ordering::Relaxed);
        let is_unclear = threads && UNCLEAR_NS.contains(&ns) && pool.awake();
        let parallel = if is_unclear { self.pays(ns, run) } else { threads && Team::pays(pool, sleep, ns) };
        let team = Team { pool, parallel, ns, stop };
        // Tasks that run side by side would fight for the counter's cache line.
        if run >= FIRST_RUNS && !threads {
            return (work(team), parallel);
        }
        // Two runs at once may count as one: it is only about how often to look at the clock.
        self.runs.store(run.wrapping_add(1), Ordering::Relaxed);
        if run >= FIRST_RUNS && run % TIMED_RUNS != TRIAL_RUNS - 1 {
            return (work(team), parallel);
        }
        let start = Instant::now();
        let result = work(team);
        let took = start.elapsed().as_nanos() as u64;
        if team.is_told() {
            // How long half of it took says nothing about the whole.
            return (result, parallel);
        }
        if is_unclear && Work::is_settled(run) {
            let way = &self.ways[usize::from(parallel)];
            let old = way.load(Ordering::Relaxed);
            way.store(took.min(old.saturating_add(old / 16)), Ordering::Relaxed);
        }
        // Two threads rarely halve the time; counting the elapsed time of each keeps work that pays in parallel there.
        let alone = if parallel { took * pool.threads().min(4) as u64 } else { took };
        // For the same reason it only counts if it was faster than the estimate.
        let new = if run == 0 { ns.min(alone.max(1)) } else { (3 * ns + alone) / 4 };
        self.ns.store(new, Ordering::Relaxed);
        (result, parallel)
    }
}
