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
//! short ones were there, while another is idle, and a product of 441 x 435 x 255 took 11.2 ms in two of four measurements, and 5.9 in the others.
//!
//! Threads begin with the name of the thread that starts them, and a driver may start some long after it was asked to: whoever
//! opens a device has a name of its own meanwhile, by which its threads are found from then on. Mesa's software GL starts its
//! threads when it is first asked for adapters, once in a process, and its owner computes with them while it submits.

/// The threads that a driver started for a device.
#[derive(Default)]
pub(crate) struct Followers {
    #[cfg(target_os = "linux")]
    found: Option<std::cell::RefCell<linux::Found>>,
}

impl Followers {
    /// Opens a device of a software driver, on the thread that will submit to it.
    pub(crate) fn of<T>(open: impl FnOnce() -> T) -> (T, Followers) {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: takes nothing and returns the calling thread's number.
            let name = format!("driver {}", unsafe { libc::gettid() });
            let opened = linux::called(&name, open);
            (opened, Followers { found: linux::Found::new(name, true).map(Into::into) })
        }
        #[cfg(not(target_os = "linux"))]
        (open(), Followers::default())
    }

    /// Asks GL for adapters: the threads that it starts can be found by [`Followers::of_gl`] from then on.
    pub(crate) fn mark<T>(ask: impl FnOnce() -> T) -> T {
        #[cfg(target_os = "linux")]
        return linux::called(linux::GL, ask);
        #[cfg(not(target_os = "linux"))]
        ask()
    }

    /// The threads of software GL.
    pub(crate) fn of_gl() -> Followers {
        #[cfg(target_os = "linux")]
        return Followers { found: linux::Found::new(linux::GL.to_owned(), false).map(Into::into) };
        #[cfg(not(target_os = "linux"))]
        Followers::default()
    }

    /// Among how many cores the next dispatch is shared, if that is known: the first part of it goes to the owner's, where the thread
    /// that hands dispatches out waits for the others from then on.
    pub(crate) fn sharers(&self, is_short: bool) -> Option<u64> {
        #[cfg(target_os = "linux")]
        return self.found.as_ref()?.borrow().sharers(is_short);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = is_short;
            None
        }
    }

    /// Called before a submission. What the system refuses stays as it is, which costs time and nothing else.
    pub(crate) fn follow(&self, is_short: bool) {
        #[cfg(target_os = "linux")]
        self.found.iter().for_each(|found| found.borrow_mut().follow(is_short));
        #[cfg(not(target_os = "linux"))]
        let _ = is_short;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The threads of this process.
    const THREADS: &str = "/proc/self/task";

    /// What the threads of software GL are called.
    pub(super) const GL: &str = "software gl";

    /// More threads than this are never on one core: all of them are woken for each dispatch, and would stand in line.
    const MOST: usize = 4;

    /// Threads are looked for before so many submissions: the first dispatch is not over before all of them are there.
    const LOOKS: u32 = 4;

    pub(super) struct Found {
        /// What its threads are called.
        name: String,
        /// Does the first of them take submissions? Else the owner does that itself.
        has_taker: bool,
        looks: u32,
        /// The thread that takes submissions, and those that compute; none of these if there are too many.
        taker: Option<libc::pid_t>,
        others: Vec<libc::pid_t>,
        /// Where they may be.
        cores: Vec<usize>,
        /// The core of the first, and whether the others are there as well.
        now: Option<(usize, bool)>,
    }

    /// Calls something under another name, which is that of all threads that it starts.
    pub(super) fn called<T>(name: &str, open: impl FnOnce() -> T) -> T {
        // SAFETY: takes nothing and returns the calling thread's number.
        let own = comm(unsafe { libc::gettid() });
        let before = fs::read_to_string(&own).ok().filter(|_| fs::write(&own, name).is_ok());
        let opened = open();
        // A name that can't be had back is one that nobody asks for.
        before.iter().for_each(|before| _ = fs::write(&own, before.trim_end()));
        opened
    }

    /// The file with a thread's name.
    fn comm(thread: libc::pid_t) -> PathBuf {
        Path::new(THREADS).join(thread.to_string()).join("comm")
    }

    /// The threads of that name, in the order in which they were started.
    fn named(name: &str) -> Vec<libc::pid_t> {
        let all = fs::read_dir(THREADS).into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_one =
            |thread: &libc::pid_t| fs::read_to_string(comm(*thread)).is_ok_and(|other| other.trim_end() == name);
        let mut found: Vec<libc::pid_t> = all.filter(is_one).collect();
        found.sort_unstable();
        found
    }

    impl Found {
        pub(super) fn new(name: String, has_taker: bool) -> Option<Found> {
            // SAFETY: a set of cores is plain bits, and zero is an empty one.
            let mut everywhere: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set is as large as said; 0 is the calling thread, which may be where those that it started may.
            let known = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut everywhere) } == 0;
            // SAFETY: numbers below the size of a set are bits of it.
            let may = |core: &usize| unsafe { libc::CPU_ISSET(*core, &everywhere) };
            let cores = (0..libc::CPU_SETSIZE as usize).filter(may).collect();
            let others = Vec::new();
            known.then_some(Found { name, has_taker, looks: 0, taker: None, others, cores, now: None })
        }

        /// Looks for threads, as long as some may not be there yet.
        fn look(&mut self) {
            self.looks += 1;
            let mut others = named(&self.name);
            // The one that takes submissions is there before those to which it hands dispatches.
            let taker = (self.has_taker && !others.is_empty()).then(|| others.remove(0));
            if others.len() > MOST {
                others.clear();
            }
            if (taker, &others) != (self.taker, &self.others) {
                (self.taker, self.others, self.now) = (taker, others, None);
            }
        }

        pub(super) fn sharers(&self, is_short: bool) -> Option<u64> {
            let threads = self.others.len();
            let known = self.has_taker && threads > 0 && threads <= self.cores.len();
            known.then_some(if is_short { 1 } else { threads as u64 })
        }

        pub(super) fn follow(&mut self, is_short: bool) {
            if self.looks < LOOKS {
                self.look();
            }
            // SAFETY: takes nothing and returns a number, or -1.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
            let before = self.now.replace((core, is_short));
            if before == Some((core, is_short)) {
                return;
            }
            if before.is_none_or(|(before, _)| before != core) {
                self.taker.iter().for_each(|taker| keep(*taker, &[core]));
            }
            if is_short {
                self.others.iter().for_each(|other| keep(*other, &[core]));
            } else if before.is_none_or(|(_, was_short)| was_short) {
                for (at, other) in self.others.iter().enumerate() {
                    // Of more threads than cores the scheduler knows better.
                    let is_room = self.others.len() <= self.cores.len();
                    keep(*other, if is_room { &self.cores[at..=at] } else { &self.cores });
                }
            }
        }
    }

    /// Keeps a thread on these cores.
    fn keep(thread: libc::pid_t, cores: &[usize]) {
        // SAFETY: a set of cores is plain bits, and zero is an empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let known = cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize);
        // SAFETY: numbers below the size of a set are bits of it.
        known.for_each(|core| unsafe { libc::CPU_SET(*core, &mut set) });
        // SAFETY: the set is as large as said, and the thread is one of this process for as long as its device is open.
        unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &set) };
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
