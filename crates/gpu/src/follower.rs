//! Keeps the threads of a software driver on their owner's core while work is short: the opening of a device enters, what it
//! returned leaves, with the threads that it started and that follow from then on.
//!
//! Mesa's software Vulkan hands each submission to a thread of its own, which hands dispatches to others and waits for them. If
//! the scheduler has put one of them on another core, it is woken through an interrupt, which takes 9 us on a virtual machine,
//! for whoever sends it and for whoever gets it; and since the scheduler likes to leave threads where they were, it stays so
//! for long. Submission of, and wait for, 256 elements took 32 us with all of them on the owner's core, else 33 to 77.
//!
//! The owner itself goes wherever the scheduler puts it. The thread that takes submissions is always on its core, where it
//! takes over when the owner waits; those that compute are there for work that is over before others have woken up.

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
        return linux::watch(open);
        #[cfg(not(target_os = "linux"))]
        (open(), Followers::default())
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
    use super::Followers;
    use std::cell::Cell;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The threads of this process.
    const THREADS: &str = "/proc/self/task";

    /// More threads than this are never on one core: all of them are woken for each dispatch, and would stand in line.
    const MOST: usize = 4;

    pub(super) struct Found {
        /// The thread that takes submissions.
        first: libc::pid_t,
        /// Those that compute; none if there are too many.
        others: Vec<libc::pid_t>,
        /// Where they may be if they do not follow.
        everywhere: libc::cpu_set_t,
        /// The core of the first, and whether the others are there as well.
        now: Cell<Option<(usize, bool)>>,
    }

    /// Threads begin with the name of the thread that starts them: under one that nobody else has, those that are started
    /// meanwhile can be told from all others.
    pub(super) fn watch<T>(open: impl FnOnce() -> T) -> (T, Followers) {
        // SAFETY: takes nothing and returns the calling thread's number.
        let own = unsafe { libc::gettid() };
        let (own_name, mark) = (Path::new(THREADS).join(own.to_string()).join("comm"), format!("opening {own}"));
        let Some(name) = fs::read_to_string(&own_name).ok().filter(|_| fs::write(&own_name, &mark).is_ok()) else {
            return (open(), Followers::default());
        };
        let opened = open();
        let is_marked = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|name| name.trim_end() == mark);
        let all = fs::read_dir(THREADS).into_iter().flatten().flatten().map(|entry| entry.path().join("comm"));
        let mut started: Vec<libc::pid_t> = Vec::new();
        for path in all.filter(is_marked) {
            let number: Option<libc::pid_t> =
                path.parent().and_then(|thread| thread.file_name()?.to_str()?.parse().ok());
            started.extend(number.filter(|number| *number != own));
            // Back to the name that it would have had. A thread that is gone needs none.
            let _ = fs::write(&path, name.trim_end());
        }
        (opened, Followers { found: Found::new(started) })
    }

    impl Found {
        fn new(mut started: Vec<libc::pid_t>) -> Option<Found> {
            // The one that takes submissions is there before those to which it hands dispatches.
            started.sort_unstable();
            let others = started.split_off(1.min(started.len()));
            let first = started.pop()?;
            // SAFETY: a set of cores is plain bits, and zero is an empty one.
            let mut everywhere: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set is as large as said; 0 is the calling thread, which may be where those that it started may.
            let known = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut everywhere) } == 0;
            let others = if others.len() <= MOST { others } else { Vec::new() };
            known.then_some(Found { first, others, everywhere, now: Cell::new(None) })
        }

        pub(super) fn follow(&self, is_short: bool) {
            // SAFETY: takes nothing and returns a number, or -1.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
            let before = self.now.replace(Some((core, is_short)));
            if core >= libc::CPU_SETSIZE as usize || before == Some((core, is_short)) {
                return;
            }
            // SAFETY: as above; the number was checked.
            let here = unsafe {
                let mut here: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(core, &mut here);
                here
            };
            if before.is_none_or(|(before, _)| before != core) {
                keep(self.first, &here);
            }
            let was_short = before.is_some_and(|(_, was_short)| was_short);
            if is_short || was_short {
                self.others.iter().for_each(|other| keep(*other, if is_short { &here } else { &self.everywhere }));
            }
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
