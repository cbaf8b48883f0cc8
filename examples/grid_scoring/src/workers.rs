//! Threads that share the work of a run: each has a core of its own, takes part in the profile, and ends with the run.

use breakeven::profile::Handle;
use breakeven::span;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// Workers, the calling thread among them, and the profile that they are seen in.
pub struct Workers {
    /// All others; none if the calling thread is the only one.
    others: Option<ThreadPool>,
    profile: Option<Handle>,
    _place: cores::Place,
}

impl Workers {
    /// Starts so many, of which the calling thread is one.
    pub fn start(count: usize, profile: Option<Handle>) -> breakeven::Result<Workers> {
        let cores = cores::from_this();
        let here = cores.clone();
        let others = (count > 1).then(|| {
            let builder = ThreadPoolBuilder::new().num_threads(count - 1);
            builder.start_handler(move |number| cores::stay(&cores, number + 1)).build()
        });
        let others = others.transpose().map_err(|why| breakeven::Error::Threads { why: why.to_string() })?;
        // Nothing is done before each is where it stays: one that is behind this thread waits for its turn there.
        others.as_ref().map(|others| others.broadcast(|_| ()));
        Ok(Workers { others, profile, _place: cores::Place::of(&here, 0) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + self.others.as_ref().map_or(0, ThreadPool::current_num_threads)
    }

    /// Does `work` on every worker, the calling thread included, and waits for all. Each is told its number.
    pub fn all(&self, what: &str, work: impl Fn(usize) + Sync) {
        let Some(others) = &self.others else { return work(0) };
        let work = &work;
        let _waiting = others.in_place_scope(|scope| {
            scope.spawn_broadcast(move |_, worker| {
                let number = worker.index() + 1;
                let _joined = self.profile.as_ref().map(|profile| profile.join(format!("{what} {number}")));
                work(number);
            });
            work(0);
            span!(wait "the other workers")
        });
    }
}

/// A core for each worker. A new thread is often put on the core of the one that has started it, although others are idle: the two
/// then take turns of 4 ms there, which is a quarter of a run.
#[cfg(target_os = "linux")]
mod cores {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// Keeps a thread on one core for as long as this is there.
    pub struct Place(Option<CpuSet>);

    impl Place {
        /// The calling thread, on the core of its number.
        pub fn of(cores: &[usize], number: usize) -> Place {
            let before = sched_getaffinity(None).ok();
            stay(cores, number);
            Place(before)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            // A refusal leaves the thread where it is, which costs time and nothing else; so does one below.
            let _ = self.0.map(|before| sched_setaffinity(None, &before));
        }
    }

    /// The cores that this process may use, the calling thread's first; none where the system does not tell.
    pub fn from_this() -> Vec<usize> {
        let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
        let here = sched_getcpu();
        let others = (0..CpuSet::MAX_CPU).filter(|core| *core != here && allowed.is_set(*core));
        std::iter::once(here).chain(others).collect()
    }

    /// Keeps the calling thread on the core of its number, if there is one.
    pub fn stay(cores: &[usize], number: usize) {
        if let Some(core) = cores.get(number) {
            let mut own = CpuSet::new();
            own.set(*core);
            let _ = sched_setaffinity(None, &own);
        }
    }
}

/// Elsewhere threads run wherever they are put.
#[cfg(not(target_os = "linux"))]
mod cores {
    pub struct Place;

    impl Place {
        pub fn of(_: &[usize], _: usize) -> Place {
            Place
        }
    }

    pub fn from_this() -> Vec<usize> {
        Vec::new()
    }

    pub fn stay(_: &[usize], _: usize) {}
}
