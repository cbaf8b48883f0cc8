//! A plan on a device: what callers do before and after the owner thread has its turn.
//!
//! Inputs are copied by the caller into mapped memory of the pool, so no borrowed memory ever leaves it. Results are
//! copied out of mapped memory, or left there and handed over as they are.

use crate::buffers::{Kept, Readback, Upload};
use crate::copies::{self, Hands, PART};
use crate::health::lock;
use crate::job::{Command, Core, Done, Group, Job};
use crate::layout::{Layout, Packer};
use crate::mixed;
use crate::owner::Handle;
use crate::session::{Session, check};
use breakeven_ir::backend::{Made, Prepared, Resident, RunError, Source, Stop, Timings};
use breakeven_ir::plan::Plan;
use breakeven_ir::{Buffer, HostBytes};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// A plan on a device.
pub(crate) struct GpuPlan {
    pub(crate) core: Arc<Core>,
    pub(crate) session: Arc<Session>,
}

impl Drop for GpuPlan {
    fn drop(&mut self) {
        // What is not heard is forgotten with the device.
        let _ = self.session.current().commands.try_send(Command::Forget(self.core.id));
    }
}

impl GpuPlan {
    /// Runs one batch; the results are still in the device's hands.
    fn execute(&self, inputs: &[Source<'_>], stay: bool, stop: Option<&Stop>) -> Result<(Arc<Layout>, Done), RunError> {
        let begun = Instant::now();
        check(stop)?;
        let (session, core) = (&self.session, &self.core);
        let mut layout = if stay { core.stay_layout() } else { &core.layout }.clone();
        let nothing_to_do = core.lowered.stages.iter().all(|stage| stage.units == 0);
        if nothing_to_do && !stay {
            return Ok((layout, Done { read: None, kept: Vec::new(), timings: Timings::default(), finished: begun }));
        }
        let handle = session.handle()?;
        let residents = self.residents(inputs)?;
        if !residents.is_empty() {
            layout = Arc::new(without(&layout, &residents));
        }
        let predicted_ns = || core.estimate_ns.load(Relaxed);
        let permit = self.session.enter(&handle, predicted_ns(), begun, stop)?;
        let entered = Instant::now();
        let (mut upload, mut created) = (None, false);
        if layout.upload_bytes > 0 {
            let (mut block, is_new) = session.upload(&handle, layout.upload_bytes, stop)?;
            let mut pieces = Vec::with_capacity(inputs.len());
            for (region, source) in layout.inputs.iter().zip(inputs) {
                if let Some(region) = region {
                    pieces.push((region.offset as usize, source.try_bytes()?));
                }
            }
            copy_in(&mut block, &pieces, stop)?;
            (upload, created) = (Some(block), is_new);
        }
        let group = Group { core: core.clone(), layout: layout.clone(), residents, many: None };
        let (upload_bytes, block_bytes) = (layout.upload_bytes, layout.block_bytes);
        let (groups, permit, kept) = (vec![group], Some(permit), stop.cloned());
        let sent = Instant::now();
        let job = |reply| Job { groups, upload, upload_bytes, block_bytes, reply, permit, stop: kept, sent };
        let mut done = session.ask(&handle, predicted_ns, stop, |reply| Command::Run(Box::new(job(reply))))?;
        done.timings.created += u32::from(created);
        done.timings.upload_ns = between_ns(entered, sent);
        done.timings.queue_ns += between_ns(begun, entered);
        let end = Instant::now();
        done.timings.readback_ns = between_ns(done.finished, end);
        done.timings.total_ns = between_ns(begun, end);
        if core.lowered.status
            && let Some(read) = &done.read
        {
            mixed::check_status(read.bytes(), layout.status.offset as usize)?;
        }
        Ok((layout, done))
    }

    /// Inputs that lie on this device; empty if none does.
    fn residents(&self, inputs: &[Source<'_>]) -> Result<Vec<Option<Arc<Kept>>>, RunError> {
        let mut residents = Vec::new();
        for (number, source) in inputs.iter().enumerate() {
            let Source::Shared(buffer) = source else { continue };
            let Some(value) = buffer.resident().and_then(|r| r.as_any().downcast_ref::<DeviceBuffer>()) else {
                continue;
            };
            if !Arc::ptr_eq(&value.session, &self.session) {
                continue;
            }
            if !value.is_current() {
                return Err(RunError::Stale { device: self.session.info.id.clone() });
            }
            residents.resize_with(inputs.len(), || None);
            residents[number] = Some(value.kept.clone());
        }
        Ok(residents)
    }

    /// Runs one batch into the caller's memory.
    fn run_into(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], stop: Option<&Stop>) -> Result<Timings, RunError> {
        let begun = Instant::now();
        let sources: Vec<Source<'_>> = inputs.iter().map(|bytes| Source::Bytes(bytes)).collect();
        let (layout, done) = self.execute(&sources, false, stop)?;
        let mut timings = done.timings;
        if let Some(read) = &done.read {
            for (region, output) in layout.outputs.iter().zip(outputs) {
                let from = region.offset as usize;
                copy_out(&read.bytes()[from..from + region.bytes as usize], output, stop)?;
            }
        }
        if done.read.is_some() {
            timings.readback_ns = between_ns(done.finished, Instant::now());
        }
        timings.total_ns = begun.elapsed().as_nanos() as u64;
        Ok(timings)
    }

    /// Runs one batch; its results are handed over where they are.
    fn make(&self, inputs: &[Source<'_>], stay: bool, stop: Option<&Stop>) -> Result<(Vec<Made>, Timings), RunError> {
        let generation = self.session.generation();
        let (layout, done) = self.execute(inputs, stay, stop)?;
        let sizes = layout.outputs.iter().map(|region| region.bytes as usize);
        let made = match done.read {
            _ if stay => {
                let session = &self.session;
                let value = |(kept, bytes): (Kept, usize)| DeviceBuffer {
                    session: session.clone(),
                    kept: Arc::new(kept),
                    bytes,
                    generation,
                };
                done.kept.into_iter().zip(sizes).map(|pair| Made::Resident(Arc::new(value(pair)))).collect()
            }
            // Nothing was run: there is nothing in the results.
            None => sizes.map(|bytes| Made::Host(zeros(bytes))).collect(),
            Some(read) => {
                let whole = host(read, lock(&self.session.quirks).slow_mapped_reads);
                let part = |region: &crate::layout::Region| {
                    let from = region.offset as usize;
                    Made::Host(whole.slice(from..from + region.bytes as usize).unwrap_or_else(|| zeros(0)))
                };
                layout.outputs.iter().map(part).collect()
            }
        };
        Ok((made, done.timings))
    }
}

/// Nanoseconds from one moment to a later one.
pub(crate) fn between_ns(from: Instant, to: Instant) -> u64 {
    to.saturating_duration_since(from).as_nanos() as u64
}

/// Bytes that are copied between two looks at a stop: about 1 ms.
const COPIED: usize = 4 << 20;

/// Copies inputs to where the device finds them, whose offsets ascend.
fn copy_in(block: &mut Upload, pieces: &[(usize, &[u8])], stop: Option<&Stop>) -> Result<(), RunError> {
    if stop.is_none() {
        block.write_all(Hands::Helped, pieces.iter().copied());
        return Ok(());
    }
    for (offset, bytes) in pieces {
        for (number, piece) in bytes.chunks(COPIED).enumerate() {
            check(stop)?;
            block.write(offset + number * COPIED, piece);
        }
    }
    Ok(())
}

/// Copies a result to its caller.
fn copy_out(from: &[u8], to: &mut [u8], stop: Option<&Stop>) -> Result<(), RunError> {
    assert_eq!(from.len(), to.len(), "an output's size was not checked");
    if stop.is_none() {
        let parts = to.chunks_mut(PART).zip(from.chunks(PART));
        let mut copies: Vec<_> = parts.map(|(to, from)| (from.len(), Some((to, from)))).collect();
        copies::run(Hands::Helped, &mut copies, |(to, from)| to.copy_from_slice(from));
        return Ok(());
    }
    for (from, to) in from.chunks(COPIED).zip(to.chunks_mut(COPIED)) {
        check(stop)?;
        to.copy_from_slice(from);
    }
    Ok(())
}

/// The layout without room for inputs that lie on the device.
fn without(layout: &Layout, residents: &[Option<Arc<Kept>>]) -> Layout {
    let mut layout = layout.clone();
    let mut upload = Packer::default();
    for (region, resident) in layout.inputs.iter_mut().zip(residents) {
        *region = region.filter(|_| resident.is_none()).map(|region| upload.add(region.bytes, crate::buffers::ALIGN));
    }
    layout.upload_bytes = upload.end;
    layout
}

impl Session {
    /// A place among the pending batches.
    pub(crate) fn enter(
        self: &Arc<Session>,
        handle: &Handle,
        predicted_ns: u64,
        begun: Instant,
        stop: Option<&Stop>,
    ) -> Result<crate::health::Permit, RunError> {
        let (life, config) = (&handle.life, &self.config);
        let limit = || life.pending_limit(config.max_pending, config.sync_timeout);
        let permit = life.enter(limit, predicted_ns, begun + config.sync_timeout, stop);
        permit.ok_or_else(|| check(stop).err().unwrap_or_else(|| self.gave_up(handle, begun)))
    }
}

impl Prepared for GpuPlan {
    fn plan(&self) -> &Arc<Plan> {
        &self.core.plan
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], _threads: bool) -> Result<Timings, RunError> {
        self.run_into(inputs, outputs, None)
    }

    fn run_until(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        _threads: bool,
        stop: &Stop,
    ) -> Result<Timings, RunError> {
        self.run_into(inputs, outputs, Some(stop))
    }

    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    ) {
        let each = self.core.plan.inputs;
        let tasks: Vec<mixed::Entry<'_>> = (0..tasks)
            .map(|t| mixed::Entry { plan: self, inputs: &inputs[t * each..(t + 1) * each], offset: t * stride })
            .collect();
        if let Err(error) = mixed::run(&self.session, &tasks, &mut mixed::Ends { results, failed, left: None }) {
            (0..tasks.len()).for_each(|task| failed(task, error.clone()));
        }
    }

    fn estimate_ns(&self) -> u64 {
        self.core.estimate_ns.load(Relaxed)
    }

    fn kernel_ns(&self) -> Vec<u64> {
        self.core.kernel_ns()
    }

    fn run_batch(&self, inputs: &[Source<'_>], stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        self.make(inputs, stay, None)
    }

    fn run_batch_until(
        &self,
        inputs: &[Source<'_>],
        stay: bool,
        stop: &Stop,
    ) -> Result<(Vec<Made>, Timings), RunError> {
        self.make(inputs, stay, Some(stop))
    }

    fn is_ready(&self) -> bool {
        let ready = self.core.is_ready(self.session.generation());
        if !ready {
            // A rebuilt device knows nothing of the plans of the one before.
            self.core.warm(&self.session.current());
        }
        ready
    }
}

pub(crate) fn zeros(bytes: usize) -> Buffer {
    let words = Buffer::from_vec(vec![0u32; bytes.div_ceil(4)]);
    words.slice(0..bytes).unwrap_or(words)
}

/// Read memory as it lies, or a copy where reading it again and again would be slow.
pub(crate) fn host(read: Readback, copied: bool) -> Buffer {
    if copied {
        // At once, and in large steps: memory that is not cached has its price for each access.
        let mut words = vec![0u32; read.bytes().len().div_ceil(4)];
        bytemuck::cast_slice_mut(&mut words)[..read.bytes().len()].copy_from_slice(read.bytes());
        return Buffer::new(Arc::new(Copied(words)));
    }
    Buffer::new(Arc::new(Mapped(read)))
}

/// Results in the memory that the device wrote them to.
struct Mapped(Readback);
impl HostBytes for Mapped {
    fn as_bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

struct Copied(Vec<u32>);
impl HostBytes for Copied {
    fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A value that lies on a device.
pub(crate) struct DeviceBuffer {
    pub(crate) session: Arc<Session>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) bytes: usize,
    pub(crate) generation: u64,
}

impl Resident for DeviceBuffer {
    fn device(&self) -> &str {
        &self.session.info.id
    }

    fn len_bytes(&self) -> usize {
        self.bytes
    }

    fn is_current(&self) -> bool {
        self.generation == self.session.generation()
    }

    fn fetch(&self) -> Result<Buffer, RunError> {
        if !self.is_current() {
            return Err(RunError::Stale { device: self.session.info.id.clone() });
        }
        let handle = self.session.handle()?;
        let (kept, bytes) = (self.kept.clone(), self.bytes as u64);
        let read = self.session.ask(&handle, || 0, None, |reply| Command::Fetch { kept, bytes, reply })?;
        let whole = host(read, lock(&self.session.quirks).slow_mapped_reads);
        Ok(whole.slice(0..self.bytes).unwrap_or(whole))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
