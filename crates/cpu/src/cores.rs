//! Keeps helpers off their waker's core.
//!
//! A thread that is woken may be put on its waker's own core: the scheduler looks for an idle one and does not always
//! find it. The two would then take turns there for milliseconds, which is longer than most kernels run.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// A helper as the system knows it, and the core that it stays off.
#[derive(Default)]
pub(crate) struct Helper {
    /// The thread's number; 0 before it has told.
    number: AtomicI32,
    /// The core it stays off, counted from 1; 0 for none.
    off: AtomicUsize,
}

impl Helper {
    /// Called by the helper itself, once.
    pub(crate) fn introduce(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: takes nothing and returns the calling thread's number.
        self.number.store(unsafe { libc::gettid() }, Ordering::Relaxed);
    }

    /// Called by whoever is about to wake it: it will not run on the caller's present core. A refusal of the system
    /// leaves it where it may be, which costs time and nothing else.
    pub(crate) fn keep_off_this_core(&self) {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: takes nothing and returns a number, or -1.
            let Ok(core) = usize::try_from(unsafe { libc::sched_getcpu() }) else { return };
            let number = self.number.load(Ordering::Relaxed);
            if number == 0
                || core >= libc::CPU_SETSIZE as usize
                || self.off.swap(core + 1, Ordering::Relaxed) == core + 1
            {
                return;
            }
            // SAFETY: a set of cores is plain bits, and zero is an empty one.
            let mut others: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::cpu_set_t>();
            // SAFETY: the set is as large as said; 0 is the calling thread, and the helper is one of this process.
            unsafe {
                if libc::sched_getaffinity(0, size, &mut others) == 0 {
                    libc::CPU_CLR(core, &mut others);
                    if libc::CPU_COUNT(&others) > 0 {
                        libc::sched_setaffinity(number, size, &others);
                    }
                }
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (&self.number, &self.off, Ordering::Relaxed);
    }
}
