//! Where the buffers of a plan lie while it runs.
//!
//! Inputs are packed into one upload block. Outputs are packed into one block that is read back at once, the status
//! words first. wgpu allows no buffer to be read and written by the same dispatch, so whatever one stage writes and
//! another reads lies in a private block of its own: scratch and partials, which share a block when their lives don't
//! overlap, and outputs that a later stage reads, which are copied into the output block at the end. With `stay` every
//! output is private and is kept.

use crate::buffers::ALIGN;
use crate::stage::{Lowered, Slot, WIDE};
use breakeven_ir::plan::{BufferId, Place, Plan};
use std::collections::HashMap;

/// A part of a block, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Region {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What a binding shows, as places rather than as buffers of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Spot {
    /// An input, by its number.
    Input(usize),
    /// A part of the output block, by the output's number.
    Output(usize),
    /// A private block, by its number.
    Private(usize),
    /// The status words.
    Status,
}

/// Where everything lies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layout {
    /// The part of the upload of each input; `None` if no stage reads it.
    pub(crate) inputs: Vec<Option<Region>>,
    pub(crate) upload_bytes: u64,
    /// The part of the output block of each output, in the order of output buffers.
    pub(crate) outputs: Vec<Region>,
    pub(crate) status: Region,
    /// Bytes of the output block; 0 if nothing is read back.
    pub(crate) block_bytes: u64,
    /// Bytes of each private block.
    pub(crate) privates: Vec<u64>,
    /// Private outputs, by output and private block.
    pub(crate) private_outputs: Vec<(usize, usize)>,
    /// Are private outputs kept on the device, instead of copied into the output block?
    pub(crate) stay: bool,
    /// The spot of each binding of each stage.
    pub(crate) spots: Vec<Vec<Spot>>,
}

/// Hands out parts of a block.
#[derive(Default)]
pub(crate) struct Packer {
    pub(crate) end: u64,
}

impl Packer {
    pub(crate) fn add(&mut self, bytes: u64, align: u64) -> Region {
        let offset = self.end.next_multiple_of(align);
        // An empty binding is not allowed, so even nothing takes up some room.
        self.end = offset + bytes.next_multiple_of(VECTOR).max(VECTOR);
        Region { offset, bytes }
    }
}

/// Bytes of the largest vector that kernels read and write, also where a buffer ends in the middle of it.
pub(crate) const VECTOR: u64 = 4 * WIDE as u64;

/// Bytes of a task's status words.
pub(crate) const STATUS_BYTES: u64 = 16;

impl Layout {
    pub(crate) fn new(plan: &Plan, lowered: &Lowered, stay: bool) -> Layout {
        let bound = || lowered.stages.iter().enumerate().flat_map(|(n, s)| s.bindings.iter().map(move |b| (n, b)));
        let is_bound = |id: usize| bound().any(|(_, b)| b.slot == Slot::Buffer(BufferId(id as u32)));
        let read_again = |id: usize| bound().any(|(_, b)| !b.writes && b.slot == Slot::Buffer(BufferId(id as u32)));
        let mut layout = Layout { stay, ..Layout::default() };

        let mut upload = Packer::default();
        for (id, info) in plan.input_infos().iter().enumerate() {
            layout.inputs.push(is_bound(id).then(|| upload.add(info.bytes() as u64, ALIGN)));
        }
        layout.upload_bytes = upload.end;

        let mut block = Packer::default();
        if lowered.status {
            layout.status = block.add(STATUS_BYTES, ALIGN);
        }
        let mut spots: HashMap<Slot, Spot> = HashMap::from([(Slot::Status, Spot::Status)]);
        for (id, info) in plan.buffers.iter().enumerate() {
            let slot = Slot::Buffer(BufferId(id as u32));
            match info.place {
                Place::Input(number) => {
                    spots.insert(slot, Spot::Input(number));
                }
                Place::Output(_) => {
                    let number = layout.outputs.len();
                    let bytes = info.bytes() as u64;
                    layout.outputs.push(if stay { Region { offset: 0, bytes } } else { block.add(bytes, ALIGN) });
                    if stay || read_again(id) {
                        layout.private_outputs.push((number, layout.privates.len()));
                        spots.insert(slot, Spot::Private(layout.privates.len()));
                        layout.privates.push(bytes);
                    } else {
                        spots.insert(slot, Spot::Output(number));
                    }
                }
                Place::Scratch(_) => {}
            }
        }
        layout.block_bytes = block.end;
        layout.place_temporaries(plan, lowered, &mut spots);
        let spot = |slot: &Slot| spots.get(slot).copied().unwrap_or(Spot::Status);
        layout.spots = lowered.stages.iter().map(|s| s.bindings.iter().map(|b| spot(&b.slot)).collect()).collect();
        layout
    }

    /// Gives scratch and partials private blocks; those whose lives don't overlap share one.
    fn place_temporaries(&mut self, plan: &Plan, lowered: &Lowered, spots: &mut HashMap<Slot, Spot>) {
        let mut lives: Vec<(usize, usize, Slot)> = Vec::new();
        for (number, stage) in lowered.stages.iter().enumerate() {
            for binding in stage.bindings.iter().filter(|b| !spots.contains_key(&b.slot)) {
                match lives.iter_mut().find(|(_, _, slot)| *slot == binding.slot) {
                    Some((_, last, _)) => *last = number,
                    None => lives.push((number, number, binding.slot)),
                }
            }
        }
        let mut free_after: Vec<(usize, usize)> = Vec::new(); // last stage and private block
        for (first, last, slot) in lives {
            let bytes = match slot {
                Slot::Buffer(id) => plan.buffer(id).bytes() as u64,
                Slot::Partials(number) => lowered.partials[number] as u64,
                Slot::Status => continue,
            };
            // The closest in size of those that are free, so that a small value does not grow a large block's twin.
            let free = free_after.iter_mut().filter(|(until, _)| *until < first);
            let private = match free.min_by_key(|(_, private)| self.privates[*private].abs_diff(bytes)) {
                Some((until, private)) => {
                    *until = last;
                    self.privates[*private] = self.privates[*private].max(bytes);
                    *private
                }
                None => {
                    self.privates.push(bytes);
                    free_after.push((last, self.privates.len() - 1));
                    self.privates.len() - 1
                }
            };
            spots.insert(slot, Spot::Private(private));
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
