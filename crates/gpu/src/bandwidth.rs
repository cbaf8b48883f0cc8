//! How long bytes take to the device and back: a number of bytes enters, nanoseconds of each way leave.
//!
//! Every sample is a command of its own on the owner thread: its wait is bounded like that of every other, and batches go
//! in between. It runs from bytes in ordinary host memory to the device's word that it is done, or from the first call to
//! bytes in ordinary host memory; each has one submission and one wait in it, also where nothing but a mapping is to be
//! done, so that they can be compared. Buffers are those of the pool, and were there before the clock starts.
//!
//! | | upload | readback |
//! |---|---|---|
//! | pageable | `write_buffer`, an empty submit, the wait | wgpu has no call for that |
//! | staged | the copy into mapped memory, a copy on the device, the wait | that copy, mapping, the copy to the host |
//! | mapped | the copy into mapped memory that kernels read, an empty submit, the wait | mapping, the copy to the host |
//!
//! Staging memory is mapped before the clock starts, and asked for again while the device works, as batches do it: what
//! that takes is in the wait, theirs and this one. Kernels read and write mapped memory only where the device is opened
//! with wgpu's `MAPPABLE_PRIMARY_BUFFERS`: elsewhere there is no such way.

use crate::buffers::{Block, Kept, Role, Upload};
use crate::job::Command;
use crate::monitor;
use crate::owner::Owner;
use crate::session::Session;
use breakeven_ir::backend::{Direction, RunError, Transfer, Way};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// What is moved differs from one such piece to the next, so that one in the wrong place is noticed.
const PIECE: usize = 4096;

/// Copies of the bytes that there are at once, on a device that shares the host's memory: two of the host's, the device's
/// own, mapped memory and what the driver's interface stages.
const COPIES: u64 = 5;

/// Host memory that goes to the owner with a sample and comes back with it: nothing is borrowed.
struct Host {
    sent: Vec<u8>,
    back: Vec<u8>,
}

impl Host {
    fn new(bytes: usize) -> Result<Host, RunError> {
        let mut host = Host { sent: Vec::new(), back: Vec::new() };
        for memory in [&mut host.sent, &mut host.back] {
            memory.try_reserve_exact(bytes).map_err(|_| RunError::OutOfMemory { bytes })?;
            // Written to, so that no page is missing when the clock runs.
            memory.resize(bytes, 0);
        }
        Ok(host)
    }

    /// Bytes that no other transfer sent before.
    fn stamp(&mut self, number: u32) {
        for (place, piece) in (0u32..).zip(self.sent.chunks_mut(PIECE)) {
            piece.fill(number as u8);
            // Pieces are multiples of 4, as is what is sent.
            piece[..4].copy_from_slice(&place.wrapping_mul(8).wrapping_add(number).to_le_bytes());
        }
        self.back.fill(0);
    }
}

/// Times transfers in every way that the device has, in turn, so that a slow moment hits all of them. The first round
/// warms up, and in it everything that was sent is looked at where it arrives.
pub(crate) fn measure(session: &Arc<Session>, bytes: usize, samples: usize) -> Result<Vec<Transfer>, RunError> {
    let handle = session.handle()?;
    let short = RunError::OutOfMemory { bytes };
    let bytes = bytes.max(1).checked_next_multiple_of(4).ok_or(short.clone())?;
    let needed = (bytes as u64).saturating_mul(COPIES);
    if bytes as u64 > session.info.limits.buffer_bytes
        || monitor::system_memory().is_some_and(|memory| needed > memory.available_bytes)
    {
        return Err(short);
    }
    let mut host = Host::new(bytes)?;
    let all = Direction::ALL.into_iter().flat_map(|direction| Way::ALL.map(|way| (direction, way)));
    let mut found: Vec<Transfer> =
        all.map(|(direction, way)| Transfer { direction, way, bytes, samples_ns: Vec::new() }).collect();
    for round in 0..samples.saturating_add(1) {
        let mut missing = Vec::new();
        for (number, transfer) in (1u32..).zip(&mut found) {
            let (direction, way, is_first) = (transfer.direction, transfer.way, round == 0);
            if is_first {
                host.stamp(number);
            }
            let mut moved = std::mem::replace(&mut host, Host { sent: Vec::new(), back: Vec::new() });
            let sample = move |owner: &mut Owner| {
                owner.drain();
                let ns = owner.transfer(direction, way, &mut moved, is_first)?;
                owner.driver.trim(false);
                Ok((moved, ns))
            };
            let command = |reply: crossbeam_channel::Sender<_>| {
                Command::Do(Box::new(move |owner: &mut Owner| drop(reply.send(sample(owner)))))
            };
            let (moved, ns) = session.ask(&handle, || 0, None, command)?;
            host = moved;
            match ns {
                None => missing.push((direction, way)),
                Some(_) if is_first => {}
                // Nothing takes no time; a clock that says so is too coarse.
                Some(ns) => transfer.samples_ns.push(ns.max(1)),
            }
        }
        found.retain(|transfer| !missing.contains(&(transfer.direction, transfer.way)));
    }
    Ok(found)
}

impl Owner {
    /// One transfer, and what it took; `None` if there is no such way here.
    fn transfer(
        &mut self,
        direction: Direction,
        way: Way,
        host: &mut Host,
        check: bool,
    ) -> Result<Option<u64>, RunError> {
        let ns = match (direction, way) {
            (Direction::Readback, Way::Pageable) => return Ok(None),
            (_, Way::Mapped) if !self.driver.unified => return Ok(None),
            (Direction::Upload, Way::Mapped) => self.upload_mapped(&host.sent, check)?,
            (Direction::Upload, Way::Pageable | Way::Staged) => {
                let (kept, ns) = if way == Way::Staged {
                    self.upload_staged(&host.sent)?
                } else {
                    self.upload_pageable(&host.sent)?
                };
                if check {
                    self.arrived(&kept, &host.sent)?;
                }
                ns
            }
            (Direction::Readback, Way::Staged | Way::Mapped) => {
                let (kept, _) = self.upload_pageable(&host.sent)?;
                let ns = if way == Way::Staged {
                    self.readback_staged(&kept, &mut host.back)?
                } else {
                    self.readback_mapped(&kept, &mut host.back)?
                };
                if check {
                    self.same(&host.back, &host.sent)?;
                }
                ns
            }
        };
        Ok(Some(ns))
    }

    fn upload_pageable(&mut self, sent: &[u8]) -> Result<(Kept, u64), RunError> {
        let kept = Kept::new(self.driver.block(Role::Device, sent.len() as u64)?, &self.driver.pool);
        let begun = Instant::now();
        if let Some(block) = kept.block() {
            self.driver.queue.write_buffer(&block.buffer, 0, sent);
        }
        let index = self.flush()?;
        self.wait(&index)?;
        Ok((kept, nanoseconds(begun)))
    }

    fn upload_staged(&mut self, sent: &[u8]) -> Result<(Kept, u64), RunError> {
        let mut upload = self.mapped(sent.len() as u64)?;
        let begun = Instant::now();
        upload.write(0, sent);
        let kept = self.keep(upload, sent.len() as u64)?;
        Ok((kept, nanoseconds(begun)))
    }

    fn upload_mapped(&mut self, sent: &[u8], check: bool) -> Result<u64, RunError> {
        let short = RunError::OutOfMemory { bytes: sent.len() };
        let mut upload = self.mapped(sent.len() as u64)?;
        let begun = Instant::now();
        upload.write(0, sent);
        let block = upload.into_block().ok_or(short)?;
        block.buffer.unmap();
        let mut done = self.map_now(&block, wgpu::MapMode::Write);
        let ns = nanoseconds(begun);
        if check && done.is_ok() {
            // The host can't look at memory that is mapped for writing: the device copies it.
            block.buffer.unmap();
            let map = || block.buffer.map_async(wgpu::MapMode::Write, .., |_| {});
            done = self.driver.block(Role::Device, sent.len() as u64).and_then(|to| {
                let kept = Kept::new(to, &self.driver.pool);
                self.copy(Some(&block), kept.block(), sent.len() as u64, map)?;
                self.arrived(&kept, sent)
            });
        }
        // One that was not mapped again is forgotten by this.
        self.give_upload(block);
        done.map(|()| ns)
    }

    fn readback_staged(&mut self, kept: &Kept, back: &mut [u8]) -> Result<u64, RunError> {
        let begun = Instant::now();
        let read = self.fetch(kept, 0, back.len() as u64)?;
        self.copy_out(read.bytes(), back)?;
        Ok(nanoseconds(begun))
    }

    fn readback_mapped(&mut self, kept: &Kept, back: &mut [u8]) -> Result<u64, RunError> {
        let block = self.driver.block(Role::Readback, back.len() as u64)?;
        // The device writes it, as a kernel would.
        if let Err(error) = self.copy(kept.block(), Some(&block), back.len() as u64, || {}) {
            self.driver.pool.forget(block);
            return Err(error);
        }
        let begun = Instant::now();
        let mapped = self.map_now(&block, wgpu::MapMode::Read);
        // One that was not mapped is forgotten by this.
        let read = self.read(block);
        mapped?;
        self.copy_out(read?.bytes(), back)?;
        Ok(nanoseconds(begun))
    }

    /// Mapped memory to fill.
    fn mapped(&mut self, bytes: u64) -> Result<Upload, RunError> {
        match self.driver.pool.take_upload(bytes) {
            Some(upload) => Ok(upload),
            None => self.driver.upload(bytes),
        }
    }

    /// An empty submission, after everything that was written.
    fn flush(&self) -> Result<wgpu::SubmissionIndex, RunError> {
        let index = self.driver.queue.submit([]);
        self.driver.tally.submits.fetch_add(1, Relaxed);
        self.driver.check(0).map_err(|error| self.lost_or(error))?;
        Ok(index)
    }

    /// Maps a block that nothing is in flight for.
    fn map_now(&self, block: &Block, mode: wgpu::MapMode) -> Result<(), RunError> {
        let index = self.flush()?;
        block.buffer.map_async(mode, .., |_| {});
        self.wait(&index)
    }

    fn copy_out(&self, mapped: &[u8], back: &mut [u8]) -> Result<(), RunError> {
        let bytes = mapped.get(..back.len()).ok_or(RunError::OutOfMemory { bytes: back.len() })?;
        back.copy_from_slice(bytes);
        Ok(())
    }

    /// Are these bytes on the device?
    fn arrived(&mut self, kept: &Kept, sent: &[u8]) -> Result<(), RunError> {
        let read = self.fetch(kept, 0, sent.len() as u64)?;
        self.same(read.bytes().get(..sent.len()).unwrap_or(&[]), sent)
    }

    fn same(&self, arrived: &[u8], sent: &[u8]) -> Result<(), RunError> {
        if arrived == sent {
            return Ok(());
        }
        let message = format!("{} bytes were moved and arrived changed", sent.len());
        Err(RunError::Device { device: self.driver.info.id.clone(), message })
    }
}

fn nanoseconds(begun: Instant) -> u64 {
    begun.elapsed().as_nanos() as u64
}

#[cfg(test)]
#[path = "bandwidth_tests.rs"]
mod tests;
