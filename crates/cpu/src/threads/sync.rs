//! The standard library's primitives, under names for which the loom tests have stand-ins. What the pool asks for
//! enters (a thread, a cell, a moment's wait); what the system gives leaves.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(super) use std::thread::{JoinHandle, Thread, park, yield_now};
use std::time::{Duration, Instant};

pub(super) fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(body)
}

/// `std::cell::UnsafeCell` with loom's accessors, which let loom see who reads and who writes.
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Time since a helper's last chunk. The clock is first read when there is time for it.
#[derive(Default)]
pub(super) struct Idle {
    since: Option<Instant>,
    spins: u32,
}

impl Idle {
    /// Between 100 and 400 us hardly matters; a wake-up costs 60-120.
    const PATIENCE: Duration = Duration::from_micros(200);
    /// About 5 us. The clock and the offer of the core cost a fraction of one.
    const SPINS_PER_LOOK: u32 = 256;

    /// Waits a moment. False when the helper has waited long enough.
    pub fn spin(&mut self) -> bool {
        spin_loop();
        self.spins += 1;
        if !self.spins.is_multiple_of(Self::SPINS_PER_LOOK) {
            return true;
        }
        // On a loaded machine a helper wakes up on its caller's core, and would keep it from the caller.
        yield_now();
        self.since.get_or_insert_with(Instant::now).elapsed() < Self::PATIENCE
    }
}
