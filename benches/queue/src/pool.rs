//! Device memory on the CPU: sizes enter, memory that can be written and read leaves, until a limit is reached.
//!
//! Beside the queue's commands stand plain allocation and the pool that everybody writes first, a list behind a mutex.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::arm::Fallible;
use crate::case::Case;
use crate::request::Refused;

/// Hands out memory.
pub trait Pool: Sized + 'static {
    /// The arm's name.
    const NAME: &'static str;
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
    /// So many bytes from its start.
    fn read(&self, memory: &Self::Memory, bytes: usize) -> Result<Bytes, Refused>;
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
    cases.push(experiment.case::<crate::ours::OursPool>()?);
    cases.extend([experiment.case::<VecPool>()?, experiment.case::<MutexPool>()?]);
    Ok(cases)
}

/// What is out, and how much may be.
struct Account {
    used: AtomicUsize,
    limit: usize,
}

impl Account {
    fn new(limit: usize) -> Account {
        Account { used: AtomicUsize::new(0), limit }
    }

    fn take(&self, bytes: usize) -> Result<(), Refused> {
        if self.used.fetch_add(bytes, Relaxed) + bytes <= self.limit {
            return Ok(());
        }
        self.used.fetch_sub(bytes, Relaxed);
        Err(Refused(format!("{bytes} bytes more would exceed the pool's limit of {}", self.limit)))
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

fn write(memory: &mut [u8], data: &[u8]) -> Result<(), Refused> {
    let there = memory.len();
    let place = memory.get_mut(..data.len());
    place.ok_or_else(|| Refused(format!("{} bytes into memory of {there}", data.len())))?.copy_from_slice(data);
    Ok(())
}

fn read(memory: &[u8], bytes: usize) -> Result<Bytes, Refused> {
    let place = memory.get(..bytes);
    let place = place.ok_or_else(|| Refused(format!("{bytes} bytes from memory of {}", memory.len())))?;
    Ok(Bytes::copy_from_slice(place))
}

/// The allocator, each time anew. It clears memory that is not new from the system: a `Vec` of safe code has contents.
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

    fn read(&self, memory: &Vec<u8>, bytes: usize) -> Result<Bytes, Refused> {
        read(memory, bytes)
    }
}

/// A list of what came back, behind a mutex.
pub struct MutexPool {
    account: Account,
    free: Mutex<Vec<Vec<u8>>>,
}

impl Pool for MutexPool {
    const NAME: &'static str = "mutex";
    type Memory = Vec<u8>;

    fn open(limit_bytes: usize) -> Fallible<MutexPool> {
        Ok(MutexPool { account: Account::new(limit_bytes), free: Mutex::default() })
    }

    fn allocate(&self, bytes: usize) -> Result<Vec<u8>, Refused> {
        self.account.take(bytes)?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        match free.iter().rposition(|memory| memory.len() == bytes) {
            Some(at) => Ok(free.swap_remove(at)),
            None => {
                drop(free);
                Ok(vec![0; bytes])
            }
        }
    }

    fn free(&self, memory: Vec<u8>) -> Result<(), Refused> {
        self.account.give(memory.len());
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        Ok(())
    }

    fn write(&self, memory: &mut Vec<u8>, data: &Bytes) -> Result<(), Refused> {
        write(memory, data)
    }

    fn read(&self, memory: &Vec<u8>, bytes: usize) -> Result<Bytes, Refused> {
        read(memory, bytes)
    }
}
