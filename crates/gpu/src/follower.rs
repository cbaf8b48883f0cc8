//! Keeps the threads of a software driver on their owner's core while work is short, and apart while it is not: the opening of
//! a device enters, what it returned leaves, with the threads that it started and that follow from then on.
//!
//! Mesa's software Vulkan hands each submission to a thread of its own, which hands dispatches to others and waits for them. If
//! the scheduler has put one of them on another core, it is woken through an interrupt, which takes 9 us on a virtual machine,
//! for whoever sends it and for whoever gets it; and since the scheduler likes to leave threads where they were, it stays so
//! for long. Submission of, and wait for, 256 elements took 32 us with all of them on the owner's core, else 33 to 77.
//!
//! The owner itself goes wherever the scheduler puts it. The thread that takes submissions is always on its core, where it
//! takes over when the owner waits; those that compute are there for work that is over before others have woken up. For longer
//! work each of them has a core to itself: threads that may be anywhere stay together on one for hundreds of batches after
//! short ones were there, while another is idle, and a product of 441 x 435 x 255 took 11.2 ms as often as 5.9.
//!
//! Mesa's software GL starts its threads when it is first asked for adapters, once in a process, and its owner computes with
//! them while it submits. They keep a name of their own, by which every device that is opened later finds them.

/// The threads that a driver started while a device was opened.
#[derive(Default)]
pub(crate) struct Followers {
    #[cfg(target_os = "linux")]
    found: Option<linux::Found>,
}

impl Followers {
    /// Opens a device of a software driver, on the thread that will submit to it.
    pub(crate) fn of<T>(open: impl FnOnce() -> T) -> (T, Followers) {
        #[cfg(target_os = "linux")]
        {
            let (opened, mut started) = linux::watch(open, None);
            // The one that takes submissions is there before those to which it hands dispatches.
            started.sort_unstable();
            let others = started.split_off(1.min(started.len()));
            let found = started.pop().and_then(|first| linux::Found::new(Some(first), others));
            (opened, Followers { found })
        }
        #[cfg(not(target_os = "linux"))]
        (open(), Followers::default())
    }

    /// Asks GL for adapters: the threads that it starts can be found by [`Followers::of_gl`] from then on.
    pub(crate) fn mark<T>(ask: impl FnOnce() -> T) -> T {
        #[cfg(target_os = "linux")]
        return linux::watch(ask, Some(linux::GL)).0;
        #[cfg(not(target_os = "linux"))]
        ask()
    }

    /// The threads of software GL.
    pub(crate) fn of_gl() -> Followers {
        #[cfg(target_os = "linux")]
        return Followers { found: linux::Found::new(None, linux::named(linux::GL)) };
        #[cfg(not(target_os = "linux"))]
        Followers::default()
    }

    /// Called before a submission. What the system refuses stays as it is, which costs time and nothing else.
    pub(crate) fn follow(&self, is_short: bool) {
        #[cfg(target_os = "linux")]
        self.found.iter().for_each(|found| found.follow(is_short));
        #[cfg(not(target_os = "linux"))]
        let _ = is_short;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::Cell;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The threads of this process.
    const THREADS: &str = "/proc/self/task";

    /// What the threads of software GL are called.
    pub(super) const GL: &str = "software gl";

    /// More threads than this are never on one core: all of them are woken for each dispatch, and would stand in line.
    const MOST: usize = 4;

    pub(super) struct Found {
        /// The thread that takes submissions, if the owner does not do that itself.
        first: Option<libc::pid_t>,
        /// Those that compute; none if there are too many.
        others: Vec<libc::pid_t>,
        /// Where each of those is if they do not follow.
        apart: Vec<libc::cpu_set_t>,
        /// The core of the first, and whether the others are there as well.
        now: Cell<Option<(usize, bool)>>,
    }

    /// Threads begin with the name of the thread that starts them: under one that nobody else has, those that are started
    /// meanwhile can be told from all others. They get `name`, or the one that they would have had.
    pub(super) fn watch<T>(open: impl FnOnce() -> T, name: Option<&str>) -> (T, Vec<libc::pid_t>) {
        // SAFETY: takes nothing and returns the calling thread's number.
        let own = unsafe { libc::gettid() };
        let mark = format!("opening {own}");
        let Some(before) = fs::read_to_string(comm(own)).ok().filter(|_| fs::write(comm(own), &mark).is_ok()) else {
            return (open(), Vec::new());
        };
        let opened = open();
        let mut started = named(&mark);
        started.retain(|thread| *thread != own);
        // A thread that is gone needs none.
        let call = |thread, name: &str| _ = fs::write(comm(thread), name);
        started.iter().for_each(|thread| call(*thread, name.unwrap_or(before.trim_end())));
        call(own, before.trim_end());
        (opened, started)
    }

    /// The file with a thread's name.
    fn comm(thread: libc::pid_t) -> PathBuf {
        Path::new(THREADS).join(thread.to_string()).join("comm")
    }

    /// The threads of that name.
    pub(super) fn named(name: &str) -> Vec<libc::pid_t> {
        let all = fs::read_dir(THREADS).into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        all.filter(|thread| fs::read_to_string(comm(*thread)).is_ok_and(|other| other.trim_end() == name)).collect()
    }

    impl Found {
        pub(super) fn new(first: Option<libc::pid_t>, others: Vec<libc::pid_t>) -> Option<Found> {
            // SAFETY: a set of cores is plain bits, and zero is an empty one.
            let mut everywhere: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set is as large as said; 0 is the calling thread, which may be where those that it started may.
            let known = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut everywhere) } == 0;
            let others = if others.len() <= MOST { others } else { Vec::new() };
            let cores: Vec<usize> = cores(&everywhere).collect();
            // More threads than cores: the scheduler knows better.
            let apart = |at: usize| if others.len() <= cores.len() { only(cores[at]) } else { everywhere };
            let apart = (0..others.len()).map(apart).collect();
            let found = Found { first, others, apart, now: Cell::new(None) };
            (known && (first.is_some() || !found.others.is_empty())).then_some(found)
        }

        pub(super) fn follow(&self, is_short: bool) {
            // SAFETY: takes nothing and returns a number, or -1.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
            let before = self.now.replace(Some((core, is_short)));
            if core >= libc::CPU_SETSIZE as usize || before == Some((core, is_short)) {
                return;
            }
            let here = only(core);
            if before.is_none_or(|(before, _)| before != core) {
                self.first.iter().for_each(|first| keep(*first, &here));
            }
            if is_short || before.is_none_or(|(_, was_short)| was_short) {
                let places = self.others.iter().zip(&self.apart);
                places.for_each(|(other, apart)| keep(*other, if is_short { &here } else { apart }));
            }
        }
    }

    /// The cores of a set.
    fn cores(set: &libc::cpu_set_t) -> impl Iterator<Item = usize> {
        // SAFETY: numbers below the size of a set are bits of it.
        (0..libc::CPU_SETSIZE as usize).filter(|core| unsafe { libc::CPU_ISSET(*core, set) })
    }

    /// This core alone; nothing if it is beyond what a set can have.
    fn only(core: usize) -> libc::cpu_set_t {
        // SAFETY: a set of cores is plain bits, and zero is an empty one; `CPU_SET` leaves out what lies beyond it.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            set
        }
    }

    /// Keeps a thread on these cores.
    fn keep(thread: libc::pid_t, cores: &libc::cpu_set_t) {
        // SAFETY: the set is as large as said, and the thread is one of this process for as long as its device is open.
        unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), cores) };
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
