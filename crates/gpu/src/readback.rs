//! The end of a batch: waiting for it, handing its results to the caller, and its blocks back to the pool.

use crate::batch::{Blocks, InFlight};
use crate::buffers::{Block, Kept, Readback, Role};
use crate::health::Permit;
use crate::job::Done;
use crate::lookout::{self, LINGER};
use crate::owner::Owner;
use breakeven_ir::backend::RunError;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// How long the owner stays inside of one poll: after this it looks whether it was told to stop.
const POLL_SLICE: Duration = Duration::from_millis(20);

impl Owner {
    /// Waits for a submission, however long it takes, unless the device is given up meanwhile.
    pub(crate) fn wait(&self, index: &wgpu::SubmissionIndex) -> Result<(), RunError> {
        self.wait_for(index, 0)
    }

    /// The same for one that is predicted to take so long: it is looked out for, if that is not much longer than waking up takes.
    pub(crate) fn wait_for(&self, index: &wgpu::SubmissionIndex, predicted_ns: u64) -> Result<(), RunError> {
        let mut awake_until = lookout::awake_until(predicted_ns);
        loop {
            if self.is_destroyed() {
                return Err(self.lost_error());
            }
            awake_until = awake_until.filter(|until| Instant::now() < *until);
            let timeout = Some(if awake_until.is_some() { Duration::ZERO } else { POLL_SLICE });
            let poll = wgpu::PollType::Wait { submission_index: Some(index.clone()), timeout };
            let polled = self.driver.device.poll(poll);
            if let Some(why) = self.driver.lost() {
                self.lose(&why);
            }
            if self.life.is_lost() {
                return Err(self.lost_error());
            }
            match polled {
                Ok(_) => return Ok(()),
                Err(wgpu::PollError::Timeout) if awake_until.is_some() => yield_now(),
                Err(wgpu::PollError::Timeout) => {}
                Err(error) => {
                    return Err(RunError::Device { device: self.driver.info.id.clone(), message: error.to_string() });
                }
            }
        }
    }

    /// Waits for the oldest batch and answers its caller.
    pub(crate) fn finish_oldest(&mut self) {
        let Some(flight) = self.in_flight.pop_front() else { return };
        let InFlight { index, blocks, groups, stamps, parts, mut timings, begun, submitted, reply, permit } = flight;
        // What such batches took; for trials, which nobody has measured yet, what they should take.
        let modelled_ns = || parts.iter().map(|part| self.predict_ns(part)).sum::<f64>() as u64;
        let predicted_ns = permit.as_ref().map_or_else(modelled_ns, Permit::predicted_ns);
        if let Err(error) = self.wait_for(&index, predicted_ns) {
            self.discard(blocks);
            let _ = reply.send(Err(error));
            return;
        }
        let finished = Instant::now();
        let wall_ns = finished.saturating_duration_since(submitted).as_nanos() as u64;
        if permit.is_some() {
            self.life.progress(wall_ns);
        }
        let Blocks { upload, inputs, outputs, readback, privates, slices } = blocks;
        if let Some(upload) = upload {
            self.give_upload(upload);
            self.driver.tally.uploads.fetch_add(1, Relaxed);
        }
        let pool = &self.driver.pool;
        let mut kept = Vec::new();
        for (group, privates) in groups.iter().zip(privates) {
            for (number, block) in privates.into_iter().enumerate() {
                if group.layout.stay && group.layout.private_outputs.iter().any(|(_, private)| *private == number) {
                    kept.push(Kept::new(block, pool));
                } else {
                    pool.give(block, None);
                }
            }
        }
        let (mapped, device) = if readback.is_some() { (readback, outputs) } else { (outputs, None) };
        slices.into_iter().chain(inputs).chain(device).for_each(|block| pool.give(block, None));
        let read = match mapped.map(|block| self.read(block)).transpose() {
            Ok(read) => read,
            Err(error) => return drop(reply.send(Err(error))),
        };
        let mut intervals = Vec::new();
        if let (Some(clock), Some(read), Some((at, count))) = (&self.clock, &read, stamps) {
            intervals = clock.intervals_ns(&read.bytes()[at as usize..], count as usize);
            timings.device_ns = intervals.iter().sum();
        }
        self.driver.tally.readbacks.fetch_add(u64::from(timings.readbacks), Relaxed);
        timings.total_ns = begun.elapsed().as_nanos() as u64;
        if let [group] = &groups[..]
            && group.many.is_none()
        {
            group.core.learn(timings.total_ns);
            if timings.submits == 1 && intervals.len() == parts.len() {
                group.core.learn_kernels(parts.iter().map(|part| part.stage).zip(intervals.iter().copied()));
            }
        }
        drop(permit);
        let _ = reply.send(Ok(Done { read, kept, timings, finished }));
        self.linger_until = Instant::now() + LINGER;
        if intervals.len() == parts.len() && timings.device_ns > 0 {
            parts.iter().zip(intervals).for_each(|(part, ns)| self.learn(std::slice::from_ref(part), ns));
        } else {
            self.learn(&parts, if timings.device_ns > 0 { timings.device_ns } else { wall_ns });
        }
    }

    /// Blocks of a batch that failed. Those that the host sees are in no known state and go; the others stay.
    pub(crate) fn discard(&self, blocks: Blocks) {
        let pool = &self.driver.pool;
        [blocks.upload, blocks.readback].into_iter().flatten().for_each(|block| pool.forget(block));
        let rest = blocks.privates.into_iter().flatten().chain(blocks.slices).chain(blocks.inputs);
        rest.for_each(|block| pool.give(block, None));
        match blocks.outputs {
            Some(block) if block.role == Role::Readback => pool.forget(block),
            Some(block) => pool.give(block, None),
            None => {}
        }
    }

    /// Blocks of a batch that was stopped between submissions: the device has done with all of them, and they serve again.
    pub(crate) fn reuse(&self, blocks: Blocks) {
        let Blocks { upload, inputs, outputs, readback, privates, slices } = blocks;
        if let Some(upload) = upload {
            upload.buffer.map_async(wgpu::MapMode::Write, .., |_| {});
            let mapped = self.wait(&self.driver.queue.submit([]));
            match mapped {
                Ok(()) => self.give_upload(upload),
                Err(_) => self.driver.pool.forget(upload),
            }
        }
        let rest = privates.into_iter().flatten().chain(slices).chain(inputs).chain(outputs).chain(readback);
        rest.for_each(|block| self.driver.pool.give(block, None));
    }

    /// An upload that the device is done with waits, mapped, for the next caller.
    pub(crate) fn give_upload(&self, block: Block) {
        match block.buffer.get_mapped_range_mut(..) {
            Ok(view) => self.driver.pool.give(block, Some(view)),
            Err(_) => self.driver.pool.forget(block),
        }
    }

    /// A mapped block for its reader.
    pub(crate) fn read(&self, block: Block) -> Result<Readback, RunError> {
        match block.buffer.get_mapped_range(..) {
            Ok(view) => Ok(Readback::new(block, view, &self.driver.pool)),
            Err(error) => {
                self.driver.pool.forget(block);
                Err(RunError::Device { device: self.driver.info.id.clone(), message: error.to_string() })
            }
        }
    }
}
