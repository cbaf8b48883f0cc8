//! A batch on the owner thread: blocks for everything, one encoder, one pass, one submission. `cut` makes several of it
//! where one would take too long, `readback` is its end.

use crate::buffers::{Block, Role, Upload};
use crate::cut::Part;
use crate::encode::{Copy, Dispatch, Recording, grid};
use crate::groups::Bound;
use crate::health::Permit;
use crate::job::{Done, Group, Job};
use crate::layout::{Region, Spot, VECTOR};
use crate::lookout;
use crate::owner::Owner;
use crate::params;
use crate::pull;
use crate::session::check;
use crate::stage::Binding;
use crate::timing::STAMP_BYTES;
use breakeven_ir::backend::{RunError, Stop, Timings};
use crossbeam_channel::Sender;
use std::time::Instant;

/// The blocks of a batch.
#[derive(Default)]
pub(crate) struct Blocks {
    /// What the caller filled.
    pub(crate) upload: Option<Block>,
    /// Its copy on the device, if shaders can't read it in place.
    pub(crate) inputs: Option<Block>,
    /// What shaders write the outputs to.
    pub(crate) outputs: Option<Block>,
    /// Its copy for the host, if that can't read it in place.
    pub(crate) readback: Option<Block>,
    /// The private blocks of each group.
    pub(crate) privates: Vec<Vec<Block>>,
    /// Parameters of parts of stages.
    pub(crate) slices: Vec<Block>,
}

impl Blocks {
    fn bytes(&self) -> u64 {
        let single = [&self.upload, &self.inputs, &self.outputs, &self.readback].into_iter().flatten();
        single.chain(self.privates.iter().flatten()).chain(&self.slices).map(|block| block.buffer.size()).sum()
    }
}

/// A batch that the device works on.
pub(crate) struct InFlight {
    pub(crate) index: wgpu::SubmissionIndex,
    pub(crate) blocks: Blocks,
    pub(crate) groups: Vec<Group>,
    /// Where the timestamps are in the readback, and how many times lie between them.
    pub(crate) stamps: Option<(u64, u32)>,
    /// What the last submission consists of.
    pub(crate) parts: Vec<Part>,
    pub(crate) timings: Timings,
    pub(crate) begun: Instant,
    pub(crate) submitted: Instant,
    pub(crate) reply: Sender<Result<Done, RunError>>,
    /// Dropped when the batch is done.
    pub(crate) permit: Option<Permit>,
}

/// What is to be computed, and who may stop it before it is sent.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) groups: &'a [Group],
    pub(crate) stop: Option<&'a Stop>,
    /// Is it over in less time than it takes to wake a thread?
    pub(crate) is_short: bool,
}

/// A submission as it was sent.
struct Sent {
    index: wgpu::SubmissionIndex,
    stamps: Option<(u64, u32)>,
    parts: Vec<Part>,
    submitted: Instant,
}

impl Owner {
    /// Sends a batch to the device, or its caller an error.
    pub(crate) fn start(&mut self, job: Job) {
        let begun = Instant::now();
        let Job { groups, mut upload, upload_bytes, block_bytes, reply, permit, stop, sent } = job;
        self.driver.created = 0;
        let is_short = permit.as_ref().is_some_and(|permit| lookout::is_short(permit.predicted_ns()));
        let order = Order { groups: &groups, stop: stop.as_ref(), is_short };
        if let Err(error) = self.prepare(order) {
            // Back to where they were before the caller hears of it.
            drop((upload, permit));
            let _ = reply.send(Err(error));
            return;
        }
        // Before the device is done with another batch, nothing that is near now is near when it is read.
        if let Some(upload) = &mut upload
            && let Some(cores) = self.driver.followers.sharers(is_short)
            && self.driver.unified
            && self.in_flight.is_empty()
        {
            pull::pull(upload, &groups, cores);
        }
        let mut blocks = Blocks { upload: upload.and_then(Upload::into_block), ..Blocks::default() };
        let queue_ns = begun.saturating_duration_since(sent).as_nanos() as u64;
        let mut timings = Timings { upload_bytes, queue_ns, ..Timings::default() };
        let mut slices = Vec::new();
        let sent = self.send(order, &mut blocks, &mut slices, (upload_bytes, block_bytes), &mut timings);
        blocks.slices = slices;
        match sent {
            Ok(Sent { index, stamps, parts, submitted }) => {
                timings.created = self.driver.created;
                if permit.is_some() {
                    self.life.takes(blocks.bytes());
                }
                let flight =
                    InFlight { index, blocks, groups, stamps, parts, timings, begun, submitted, reply, permit };
                self.in_flight.push_back(flight);
            }
            Err(error) => {
                match error {
                    RunError::Stopped => self.reuse(blocks),
                    _ => self.discard(blocks),
                }
                drop(permit);
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Compiles what is needed. A batch may have waited behind others, or for its compiler: if nobody wants it any more,
    /// it is not sent.
    fn prepare(&mut self, order: Order<'_>) -> Result<(), RunError> {
        check(order.stop)?;
        order.groups.iter().try_for_each(|group| self.ready(&group.core))?;
        check(order.stop)
    }

    fn send(
        &mut self,
        order: Order<'_>,
        blocks: &mut Blocks,
        slices: &mut Vec<Block>,
        (upload_bytes, block_bytes): (u64, u64),
        timings: &mut Timings,
    ) -> Result<Sent, RunError> {
        let groups = order.groups;
        self.place(groups, blocks, upload_bytes, block_bytes)?;
        timings.uploads = u32::from(blocks.upload.is_some());
        timings.kernels = groups.iter().map(|group| group.core.plan.kernels.len() as u32).sum();
        let mut parts = self.parts(groups);
        let predicted_ns: f64 = parts.iter().map(|part| self.predict_ns(part)).sum();

        let mut recording = copies_in(groups, blocks, upload_bytes);
        if predicted_ns > self.dispatch_limit_ns {
            parts = self.run_parts(order, blocks, slices, parts, &mut recording, timings)?;
        }
        recording.dispatches = self.dispatches(groups, blocks, slices, &parts, timings)?;
        recording.after = copies_out(groups, blocks, block_bytes);
        recording.is_short = order.is_short;

        let read = blocks.readback.as_ref().or(blocks.outputs.as_ref());
        let timed = self.clock.as_mut().is_some_and(|clock| clock.wanted(predicted_ns));
        if let (Some(clock), Some(read), true) = (&self.clock, read, timed && !recording.dispatches.is_empty()) {
            recording.stamps = Some(clock.stamps(read, block_bytes, recording.dispatches.len()));
        }
        let stamps = recording.stamps.map(|stamps| (stamps.offset, stamps.intervals));
        let submitted = Instant::now();
        let index = self.submit(&recording)?;
        timings.submit_ns += submitted.elapsed().as_nanos() as u64;
        count(timings, &recording);
        if let Some(upload) = &blocks.upload {
            upload.buffer.map_async(wgpu::MapMode::Write, .., |_| {});
        }
        if let Some(read) = read {
            read.buffer.map_async(wgpu::MapMode::Read, .., |_| {});
            timings.readbacks = 1;
            timings.readback_bytes = block_bytes;
        }
        Ok(Sent { index, stamps, parts, submitted })
    }

    /// Takes blocks for everything that has no place yet.
    fn place(
        &mut self,
        groups: &[Group],
        blocks: &mut Blocks,
        upload_bytes: u64,
        block_bytes: u64,
    ) -> Result<(), RunError> {
        let unified = self.driver.unified;
        if let Some(upload) = &blocks.upload {
            upload.buffer.unmap();
            if !unified {
                blocks.inputs = Some(self.driver.block(Role::Device, upload_bytes)?);
            }
        }
        if block_bytes > 0 {
            // Room for timestamps is there in every run, or timed runs would need other buffers.
            let bytes = block_bytes + STAMP_BYTES;
            blocks.outputs = Some(self.driver.block(if unified { Role::Readback } else { Role::Device }, bytes)?);
            if !unified {
                blocks.readback = Some(self.driver.block(Role::Readback, bytes)?);
            }
        }
        blocks.privates.resize_with(groups.len(), Vec::new);
        for (group, privates) in groups.iter().zip(&mut blocks.privates) {
            for bytes in &group.layout.privates {
                privates.push(self.driver.block(Role::Device, *bytes)?);
            }
        }
        Ok(())
    }

    /// Every stage that has something to do, whole.
    fn parts(&self, groups: &[Group]) -> Vec<Part> {
        let mut parts = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let Some(state) = self.plans.get(&group.core.id) else { continue };
            for (index, stage) in group.core.lowered.stages.iter().enumerate() {
                let (units, work) = match &group.many {
                    Some(many) => (many.units[index], many.work[index]),
                    None => (stage.units, stage.work),
                };
                if units > 0 {
                    let pipeline = state.pipelines[index];
                    parts.push(Part { group: number, stage: index, pipeline, units: 0..units, work });
                }
            }
        }
        parts
    }

    pub(crate) fn predict_ns(&self, part: &Part) -> f64 {
        self.pipelines.get(part.pipeline).speed.predict_ns(part.work)
    }

    pub(crate) fn dispatches(
        &mut self,
        groups: &[Group],
        blocks: &Blocks,
        slices: &mut Vec<Block>,
        parts: &[Part],
        timings: &mut Timings,
    ) -> Result<Vec<Dispatch>, RunError> {
        timings.dispatches += parts.len() as u32;
        parts.iter().map(|part| self.dispatch(groups, blocks, slices, part)).collect()
    }

    fn dispatch(
        &mut self,
        groups: &[Group],
        blocks: &Blocks,
        slices: &mut Vec<Block>,
        part: &Part,
    ) -> Result<Dispatch, RunError> {
        let group = &groups[part.group];
        let stage = &group.core.lowered.stages[part.stage];
        let is_whole = group.many.is_some() || part.units == (0..stage.units);
        if !is_whole {
            let mut words = Vec::with_capacity(stage.stride() + 4);
            params::push_single(&mut words, stage, part.units.clone());
            let slice = self.driver.block(Role::Device, 4 * words.len() as u64 + VECTOR)?;
            self.driver.queue.write_buffer(&slice.buffer, 0, bytemuck::cast_slice(&words));
            slices.push(slice);
        }
        let missing = || RunError::Device { device: self.driver.info.id.clone(), message: "a block is missing".into() };
        let mut bounds: Vec<Bound<'_>> = Vec::with_capacity(stage.bindings.len() + 1);
        for (binding, spot) in stage.bindings.iter().zip(&group.layout.spots[part.stage]) {
            bounds.push(bind(group, blocks, part.group, binding, *spot).ok_or_else(missing)?);
        }
        let params = match (&group.many, self.plans.get(&group.core.id)) {
            _ if !is_whole => {
                slices.last().map(|block| (block, Region { offset: 0, bytes: 4 * (stage.stride() + 1) as u64 }))
            }
            (Some(many), _) => blocks.inputs.as_ref().or(blocks.upload.as_ref()).map(|b| (b, many.params[part.stage])),
            (None, Some(state)) => Some((&state.params, state.regions[part.stage])),
            (None, None) => None,
        };
        let (block, region) = params.ok_or_else(missing)?;
        bounds.push(Bound { block, offset: region.offset, bytes: padded(region.bytes) });
        let bind_group = self.pipelines.group(&mut self.driver, part.pipeline, &bounds);
        let many = group.many.as_ref().map(|many| (many.group_units[part.stage], many.tasks));
        let (group_units, tasks) = many.unwrap_or((stage.group_units, 1));
        Ok(Dispatch {
            pipeline: self.pipelines.get(part.pipeline).pipeline.clone(),
            group: bind_group,
            grid: grid(part.units.end - part.units.start, group_units, tasks),
        })
    }
}

/// The copies before the dispatches, and what begins as zeros.
fn copies_in<'a>(groups: &[Group], blocks: &'a Blocks, upload_bytes: u64) -> Recording<'a> {
    let mut recording = Recording::default();
    if let (Some(from), Some(to)) = (&blocks.upload, &blocks.inputs) {
        recording.before.push(Copy { from, from_offset: 0, to, to_offset: 0, bytes: upload_bytes });
    }
    if let Some(outputs) = &blocks.outputs {
        let with_status = groups.iter().filter(|group| group.core.lowered.status);
        recording.cleared.extend(with_status.map(|group| (outputs, group.layout.status)));
    }
    recording
}

/// The copies after the dispatches: private outputs into the output block, and that to where the host reads it.
fn copies_out<'a>(groups: &[Group], blocks: &'a Blocks, block_bytes: u64) -> Vec<Copy<'a>> {
    let mut copies = Vec::new();
    let Some(outputs) = &blocks.outputs else { return copies };
    for (group, privates) in groups.iter().zip(&blocks.privates).filter(|(group, _)| !group.layout.stay) {
        for (output, private) in &group.layout.private_outputs {
            let Region { offset: to_offset, bytes } = group.layout.outputs[*output];
            if bytes > 0 {
                copies.push(Copy { from: &privates[*private], from_offset: 0, to: outputs, to_offset, bytes });
            }
        }
    }
    if let Some(to) = &blocks.readback {
        copies.push(Copy { from: outputs, from_offset: 0, to, to_offset: 0, bytes: block_bytes });
    }
    copies
}

/// The part of a block that a binding shows.
fn bind<'a>(group: &'a Group, blocks: &'a Blocks, number: usize, binding: &Binding, spot: Spot) -> Option<Bound<'a>> {
    let layout = &group.layout;
    let (block, region) = match spot {
        Spot::Input(input) => match group.residents.get(input) {
            Some(Some(kept)) => (kept.block()?, Region { offset: 0, bytes: 0 }),
            _ => (blocks.inputs.as_ref().or(blocks.upload.as_ref())?, layout.inputs[input]?),
        },
        Spot::Output(output) => (blocks.outputs.as_ref()?, layout.outputs[output]),
        Spot::Private(private) => {
            (&blocks.privates[number][private], Region { offset: 0, bytes: layout.privates[private] })
        }
        Spot::Status => (blocks.outputs.as_ref()?, layout.status),
    };
    if group.many.is_some() {
        return Some(Bound { block, offset: region.offset, bytes: padded(region.bytes) });
    }
    let window = &binding.window;
    let offset = region.offset + (window.start * binding.element_bytes) as u64;
    Some(Bound { block, offset, bytes: padded((window.len() * binding.element_bytes) as u64) })
}

/// Bindings have at least one vector, and whole ones.
fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(VECTOR).max(VECTOR)
}

pub(crate) fn count(timings: &mut Timings, recording: &Recording<'_>) {
    timings.submits += 1;
    timings.passes += u32::from(!recording.dispatches.is_empty());
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
