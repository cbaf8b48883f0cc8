//! Values to and from the device outside of batches: uploaded bytes enter and stay, kept ones leave.

use crate::buffers::{Block, Kept, Readback, Role, Upload};
use crate::encode::{Copy, Recording};
use crate::owner::Owner;
use breakeven_ir::backend::RunError;
use std::sync::atomic::Ordering::Relaxed;

impl Owner {
    /// Uploaded bytes stay on the device.
    pub(crate) fn keep(&mut self, upload: Upload, bytes: u64) -> Result<Kept, RunError> {
        let from = upload.into_block().ok_or(RunError::OutOfMemory { bytes: bytes as usize })?;
        from.buffer.unmap();
        let kept = self.driver.block(Role::Device, bytes).and_then(|to| {
            let to = Kept::new(to, &self.driver.pool);
            self.copy(Some(&from), to.block(), bytes, || from.buffer.map_async(wgpu::MapMode::Write, .., |_| {}))?;
            Ok(to)
        });
        // An upload that was not mapped again is forgotten by this.
        self.give_upload(from);
        self.driver.tally.uploads.fetch_add(1, Relaxed);
        kept
    }

    /// Kept bytes come back, from `from_offset` on.
    pub(crate) fn fetch(&mut self, kept: &Kept, from_offset: u64, bytes: u64) -> Result<Readback, RunError> {
        let from = kept.block().ok_or(RunError::OutOfMemory { bytes: bytes as usize })?;
        let to = self.driver.block(Role::Readback, bytes)?;
        let copy = Copy { from, from_offset, to: &to, to_offset: 0, bytes };
        let copied = self.copy_part(copy, || to.buffer.map_async(wgpu::MapMode::Read, .., |_| {}));
        self.driver.tally.readbacks.fetch_add(1, Relaxed);
        // A block that was not mapped is forgotten by this.
        let read = self.read(to);
        copied.and(read)
    }

    /// Copies between blocks; `map` asks for what is to be mapped after it.
    pub(crate) fn copy(
        &self,
        from: Option<&Block>,
        to: Option<&Block>,
        bytes: u64,
        map: impl FnOnce(),
    ) -> Result<(), RunError> {
        let (Some(from), Some(to)) = (from, to) else { return Err(RunError::OutOfMemory { bytes: bytes as usize }) };
        self.copy_part(Copy { from, from_offset: 0, to, to_offset: 0, bytes }, map)
    }

    /// Copies a part of one block to a place in another.
    pub(crate) fn copy_part(&self, copy: Copy<'_>, map: impl FnOnce()) -> Result<(), RunError> {
        let index = self.submit(&Recording { before: vec![copy], ..Recording::default() })?;
        map();
        self.wait(&index)
    }
}
