//! Memory that its caller manages: a size, or bytes and their place in it, enter; memory of zeros, or bytes, leave.
//!
//! Devices copy whole words. What begins or ends inside of one is written together with the bytes around it, which the
//! owner thread reads first: it does one thing after the other, so that nobody writes in between.

use crate::buffers::{Kept, Role, Upload};
use crate::encode::{Copy, Recording};
use crate::job::Command;
use crate::layout::Region;
use crate::owner::{Handle, Owner};
use crate::prepared::DeviceBuffer;
use crate::session::Session;
use breakeven_ir::backend::{Resident, RunError};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What devices copy: wgpu refuses other offsets and lengths.
const WORD: u64 = wgpu::COPY_BUFFER_ALIGNMENT;

/// Bytes of memory as whole words, of which there is at least one: nothing can't be bound.
pub(crate) fn whole(bytes: usize) -> Option<u64> {
    (bytes.max(1) as u64).checked_next_multiple_of(WORD)
}

/// Memory of zeros.
pub(crate) fn allocate(session: &Arc<Session>, bytes: usize) -> Result<Arc<dyn Resident>, RunError> {
    let handle = session.handle()?;
    let size = whole(bytes).filter(|size| *size <= session.info.limits.buffer_bytes);
    let size = size.ok_or(RunError::OutOfMemory { bytes })?;
    let kept = session.ask(&handle, || 0, None, Command::work(move |owner| owner.zeroed(size)))?;
    let generation = handle.life.generation;
    Ok(Arc::new(DeviceBuffer { session: session.clone(), kept: Arc::new(kept), bytes, generation }))
}

/// Writes bytes from the memory's byte `offset` on.
pub(crate) fn write(
    session: &Arc<Session>,
    to: &Arc<dyn Resident>,
    offset: usize,
    bytes: &[u8],
) -> Result<(), RunError> {
    let handle = session.handle()?;
    let value = own(session, &handle, to)?;
    let span = Span::new(value, offset, bytes.len())?;
    if bytes.is_empty() {
        return Ok(());
    }
    let (mut upload, _) = session.upload(&handle, span.words.bytes, None)?;
    upload.write(span.lead, bytes);
    let kept = value.kept.clone();
    session.ask(&handle, || 0, None, Command::work(move |owner| owner.write(&kept, span, upload)))
}

/// Reads bytes from the memory's byte `offset` on.
pub(crate) fn read(
    session: &Arc<Session>,
    from: &Arc<dyn Resident>,
    offset: usize,
    into: &mut [u8],
) -> Result<(), RunError> {
    let handle = session.handle()?;
    let value = own(session, &handle, from)?;
    let Span { words, lead, .. } = Span::new(value, offset, into.len())?;
    if into.is_empty() {
        return Ok(());
    }
    let kept = value.kept.clone();
    let fetch = move |owner: &mut Owner| owner.fetch(&kept, words.offset, words.bytes);
    let read = session.ask(&handle, || 0, None, Command::work(fetch))?;
    let bytes = read.bytes().get(lead..lead + into.len());
    into.copy_from_slice(bytes.ok_or(RunError::OutOfMemory { bytes: into.len() })?);
    Ok(())
}

/// A value as what it is here, if it lies on this device and the device is still the same.
pub(crate) fn own<'a>(
    session: &Arc<Session>,
    handle: &Handle,
    value: &'a Arc<dyn Resident>,
) -> Result<&'a DeviceBuffer, RunError> {
    let device = || session.info.id.clone();
    let here = value.as_any().downcast_ref::<DeviceBuffer>().filter(|value| Arc::ptr_eq(&value.session, session));
    let Some(here) = here else {
        let why = format!("the memory belongs to another device, {}: copy it through the host", value.device());
        return Err(RunError::Unsupported { device: device(), why });
    };
    if here.generation != handle.life.generation {
        return Err(RunError::Stale { device: device() });
    }
    Ok(here)
}

/// Bytes of memory, and the words that have them.
#[derive(Clone, Copy)]
struct Span {
    words: Region,
    /// Bytes of the first word before them, and of the last word after them.
    lead: usize,
    tail: usize,
}

impl Span {
    fn new(value: &DeviceBuffer, offset: usize, bytes: usize) -> Result<Span, RunError> {
        let size = value.bytes;
        let end = offset.checked_add(bytes).filter(|end| *end <= size);
        let end = end.ok_or(RunError::OutOfRange { offset, bytes, size })? as u64;
        let from = offset as u64 / WORD * WORD;
        // Memory ends with a whole word, so this one is inside of it.
        let until = end.next_multiple_of(WORD);
        let words = Region { offset: from, bytes: until.saturating_sub(from) };
        Ok(Span { words, lead: (offset as u64 - from) as usize, tail: (until - end) as usize })
    }
}

impl Owner {
    /// A block of zeros, whatever it held before.
    fn zeroed(&mut self, bytes: u64) -> Result<Kept, RunError> {
        let kept = Kept::new(self.driver.block(Role::Device, bytes)?, &self.driver.pool);
        let cleared = kept.block().map(|block| (block, Region { offset: 0, bytes })).into_iter().collect();
        let index = self.submit(&Recording { cleared, ..Recording::default() })?;
        self.wait(&index)?;
        Ok(kept)
    }

    /// Writes what a caller filled in, and around it what was there.
    fn write(&mut self, kept: &Kept, span: Span, mut upload: Upload) -> Result<(), RunError> {
        let Span { words: Region { offset, bytes }, lead, tail } = span;
        if lead > 0 {
            let read = self.fetch(kept, offset, WORD)?;
            upload.write(0, read.bytes().get(..lead).unwrap_or(&[]));
        }
        if tail > 0 {
            self.driver.reclaim();
            let read = self.fetch(kept, offset + bytes - WORD, WORD)?;
            let word = read.bytes().get(..WORD as usize).unwrap_or(&[]);
            upload.write(bytes as usize - tail, word.get(WORD as usize - tail..).unwrap_or(&[]));
        }
        let short = RunError::OutOfMemory { bytes: bytes as usize };
        let to = kept.block().ok_or(short.clone())?;
        let from = upload.into_block().ok_or(short)?;
        from.buffer.unmap();
        let copy = Copy { from: &from, from_offset: 0, to, to_offset: offset, bytes };
        let copied = self.copy_part(copy, || from.buffer.map_async(wgpu::MapMode::Write, .., |_| {}));
        // An upload that was not mapped again is forgotten by this.
        self.give_upload(from);
        self.driver.tally.uploads.fetch_add(1, Relaxed);
        copied
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(crate) mod tests;
