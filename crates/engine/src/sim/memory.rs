//! The memory of a simulated device: bytes enter and leave, each way at its price. They lie in blocks of the CPU's pool.

use super::device::Simulated;
use breakeven_cpu::Block;
use breakeven_ir::backend::{Resident, RunError};
use breakeven_ir::{Buffer, HostBytes};
use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A value that counts as being on the device, or memory that a caller manages.
pub(super) struct SimResident {
    pub(super) device: Arc<Simulated>,
    generation: u64,
    len_bytes: usize,
    /// Does a caller write it himself? Values don't change.
    is_memory: bool,
    data: Mutex<Arc<Block>>,
}

impl SimResident {
    /// A value.
    pub(super) fn value(device: &Arc<Simulated>, generation: u64, block: Block) -> SimResident {
        let (device, len_bytes) = (device.clone(), block.as_bytes().len());
        SimResident { device, generation, len_bytes, is_memory: false, data: Mutex::new(Arc::new(block)) }
    }

    /// Memory for a caller, all 0.
    pub(super) fn memory(device: &Arc<Simulated>, bytes: usize) -> Result<SimResident, RunError> {
        let generation = device.faults.life(&device.id)?.generation();
        // More than any machine has; size classes are not made for it.
        if bytes > isize::MAX as usize {
            return Err(RunError::OutOfMemory { bytes });
        }
        let mut block = device.cpu.blocks().take(bytes)?;
        block.as_mut_bytes().fill(0);
        Ok(SimResident { is_memory: true, ..SimResident::value(device, generation, block) })
    }

    /// The value behind a trait object, if it lies here.
    pub(super) fn of<'a>(device: &Arc<Simulated>, value: &'a Arc<dyn Resident>) -> Option<&'a SimResident> {
        let value = value.as_any().downcast_ref::<SimResident>()?;
        Arc::ptr_eq(&value.device, device).then_some(value)
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Block>> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds now: later writes don't change it.
    pub(super) fn contents(&self) -> Result<Buffer, RunError> {
        match self.is_current() {
            true => Ok(Buffer::new(self.lock().clone() as Arc<dyn HostBytes>)),
            false => Err(RunError::Stale { device: self.device.id.clone() }),
        }
    }

    fn range(&self, offset: usize, bytes: usize) -> Result<Range<usize>, RunError> {
        let size = self.len_bytes;
        let end = offset.checked_add(bytes).filter(|end| *end <= size);
        end.map(|end| offset..end).ok_or(RunError::OutOfRange { offset, bytes, size })
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), RunError> {
        if !self.is_memory {
            let why = "values that were uploaded or computed don't change: allocate memory to write to".into();
            return Err(RunError::Unsupported { device: self.device.id.clone(), why });
        }
        let range = self.range(offset, bytes.len())?;
        if !self.is_current() {
            return Err(RunError::Stale { device: self.device.id.clone() });
        }
        let passage = self.device.begin_upload(bytes.len())?;
        {
            let mut data = self.lock();
            if Arc::get_mut(&mut data).is_none() {
                // Somebody reads what lies here now.
                let mut copy = self.device.cpu.blocks().take(self.len_bytes)?;
                copy.as_mut_bytes().copy_from_slice(data.as_bytes());
                *data = Arc::new(copy);
            }
            if let Some(block) = Arc::get_mut(&mut data) {
                block.as_mut_bytes()[range].copy_from_slice(bytes);
            }
        }
        passage.end(None).map(|_| ())
    }

    pub(super) fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), RunError> {
        let range = self.range(offset, into.len())?;
        let contents = self.contents()?;
        let passage = self.device.begin_readback(into.len())?;
        into.copy_from_slice(&contents.as_bytes()[range]);
        passage.end(None).map(|_| ())
    }
}

impl Resident for SimResident {
    fn device(&self) -> &str {
        &self.device.id
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_current(&self) -> bool {
        self.generation == self.device.faults.generation()
    }

    fn fetch(&self) -> Result<Buffer, RunError> {
        let contents = self.contents()?;
        self.device.begin_readback(self.len_bytes)?.end(None)?;
        Ok(contents)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
