//! Device memory on the CPU: sizes enter, memory that can be written and read leaves, until a limit is reached.
//!
//! Beside the engine's memory stand plain allocation and the pool that everybody writes first, a list behind a mutex. The
//! limit is the callers' affair in all of them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::arm::Fallible;
use crate::case::Case;
use crate::request::Refused;

/// Hands out memory.
pub trait Pool: Sized + 'static {
    /// The arm's name.
    const NAME: &'static str;
    /// How it is used; empty for the plain way.
    const VARIANT: &'static str = "";
    /// A piece of memory. It goes back by [`Pool::free`], not by being dropped.
    type Memory;

    /// A pool that hands out at most so many bytes at a time.
    fn open(limit_bytes: usize) -> Fallible<Self>;
    /// Memory of this size; its contents are anything.
    fn allocate(&self, bytes: usize) -> Result<Self::Memory, Refused>;
    /// Gives it back.
    fn free(&self, memory: Self::Memory) -> Result<(), Refused>;
    /// Copies the data to its start.
    fn write(&self, memory: &mut Self::Memory, data: &Bytes) -> Result<(), Refused>;
    /// Copies from its start until `into` is full.
    fn read(&self, memory: &Self::Memory, into: &mut [u8]) -> Result<(), Refused>;
}

/// Something that is tried with every pool.
pub trait PoolExperiment {
    /// The case of one pool.
    fn case<P: Pool>(&self) -> Fallible<Case>;
}

/// The experiment with every pool.
pub fn with_every_pool(experiment: &impl PoolExperiment) -> Fallible<Vec<Case>> {
    let mut cases = Vec::new();
    #[cfg(feature = "ours")]
    cases.extend([experiment.case::<crate::ours::pool::Direct>()?, experiment.case::<crate::ours::pool::Queued>()?]);
    cases.extend([experiment.case::<VecPool>()?, experiment.case::<MutexPool>()?]);
    Ok(cases)
}

/// The experiment with the one pool that keeps statistics, asked for them each time.
#[cfg(feature = "ours")]
pub fn with_statistics(experiment: &impl PoolExperiment) -> Fallible<Vec<Case>> {
    Ok(vec![experiment.case::<crate::ours::pool::Told>()?])
}

/// None keeps any.
#[cfg(not(feature = "ours"))]
pub fn with_statistics(_: &impl PoolExperiment) -> Fallible<Vec<Case>> {
    Ok(Vec::new())
}

/// What is out, and how much may be.
pub(crate) struct Account {
    used: AtomicUsize,
    limit: usize,
}

impl Account {
    pub(crate) fn new(limit: usize) -> Account {
        Account { used: AtomicUsize::new(0), limit }
    }

    pub(crate) fn take(&self, bytes: usize) -> Result<(), Refused> {
        if self.used.fetch_add(bytes, Relaxed) + bytes <= self.limit {
            return Ok(());
        }
        self.used.fetch_sub(bytes, Relaxed);
        Err(Refused::TooLarge { bytes, there: self.limit })
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

fn write(memory: &mut [u8], data: &[u8]) -> Result<(), Refused> {
    let there = memory.len();
    let place = memory.get_mut(..data.len()).ok_or(Refused::TooLarge { bytes: data.len(), there })?;
    place.copy_from_slice(data);
    Ok(())
}

fn read(memory: &[u8], into: &mut [u8]) -> Result<(), Refused> {
    let place = memory.get(..into.len()).ok_or(Refused::TooLarge { bytes: into.len(), there: memory.len() })?;
    into.copy_from_slice(place);
    Ok(())
}

/// The allocator, each time anew, and one owner: no lock. It clears memory that is not new from the system: a `Vec` of
/// safe code has contents.
pub struct VecPool(Account);

impl Pool for VecPool {
    const NAME: &'static str = "vec";
    type Memory = Vec<u8>;

    fn open(limit_bytes: usize) -> Fallible<VecPool> {
        Ok(VecPool(Account::new(limit_bytes)))
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, Refused> {
        self.0.take(bytes)?;
        Ok(vec![0; bytes])
    }

    fn free(&self, memory: Vec<u8>) -> Result<(), Refused> {
        self.0.give(memory.len());
        Ok(())
    }

    fn write(&self, memory: &mut Vec<u8>, data: &Bytes) -> Result<(), Refused> {
        write(memory, data)
    }

    fn read(&self, memory: &Vec<u8>, into: &mut [u8]) -> Result<(), Refused> {
        read(memory, into)
    }
}

/// Memory that several threads may have, as the engine's is.
type Shared = Arc<Mutex<Vec<u8>>>;

/// A list of what came back, behind a mutex. Memory is not cleared: it has what its last owner left there.
pub struct MutexPool {
    account: Account,
    free: Mutex<Vec<Shared>>,
}

impl Pool for MutexPool {
    const NAME: &'static str = "mutex";
    type Memory = Shared;

    fn open(limit_bytes: usize) -> Fallible<MutexPool> {
        Ok(MutexPool { account: Account::new(limit_bytes), free: Mutex::default() })
    }

    fn allocate(&self, bytes: usize) -> Result<Shared, Refused> {
        self.account.take(bytes)?;
        let mut free = lock(&self.free);
        match free.iter().rposition(|memory| lock(memory).len() == bytes) {
            Some(at) => Ok(free.swap_remove(at)),
            None => {
                drop(free);
                Ok(Arc::new(Mutex::new(vec![0; bytes])))
            }
        }
    }

    fn free(&self, memory: Shared) -> Result<(), Refused> {
        self.account.give(lock(&memory).len());
        lock(&self.free).push(memory);
        Ok(())
    }

    fn write(&self, memory: &mut Shared, data: &Bytes) -> Result<(), Refused> {
        write(&mut lock(memory), data)
    }

    fn read(&self, memory: &Shared, into: &mut [u8]) -> Result<(), Refused> {
        read(&lock(memory), into)
    }
}

/// Nothing panics while it holds a lock here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
