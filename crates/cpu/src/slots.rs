//! Gives slots their bytes: two values that are never needed at once share a slot, so that the tile stays in L1.

use crate::program::{Ptr, Step, Target, TileProgram};

/// Slots are apart by this much more than their size, so that they do not all fall on the same cache sets.
const PADDING: usize = 64;

/// Assigns every slot pointer its offset, first fit in the order in which values are made.
pub(crate) fn assign(program: &mut TileProgram) {
    let lives = lifetimes(program);
    let slot_size = program.tile * 4 + PADDING;
    let mut order: Vec<Ptr> =
        (0..program.targets.len() as Ptr).filter(|&p| program.targets[p as usize] == Target::Slot).collect();
    order.sort_by_key(|&p| lives[p as usize].0);
    program.slot_offsets = vec![0; program.targets.len()];
    // The end of the life of each slot's present value.
    let mut busy_until: Vec<usize> = Vec::new();
    for ptr in order {
        let (from, to) = lives[ptr as usize];
        // A value may take the slot of an argument that ends where it begins: kernels work in place.
        let free = busy_until.iter().position(|&end| end <= from);
        let slot = free.unwrap_or_else(|| {
            busy_until.push(0);
            busy_until.len() - 1
        });
        busy_until[slot] = to;
        program.slot_offsets[ptr as usize] = (slot * slot_size) as u32;
    }
    program.slot_bytes = busy_until.len() * slot_size;
}

/// The first and last position at which each pointer is needed, counting steps through all segments. What a loop
/// needs from before it is needed until the loop ends.
fn lifetimes(program: &TileProgram) -> Vec<(usize, usize)> {
    let mut segments: Vec<(&[Step], bool)> = vec![(&program.head, false)];
    for phase in &program.phases {
        segments.push((&phase.body, true));
        segments.push((&phase.after, false));
    }
    let mut lives = vec![(usize::MAX, 0); program.targets.len()];
    let mut at = 0;
    let mut phase = 0;
    for (steps, looped) in segments {
        let (begin, end) = (at, at + steps.len());
        for step in steps {
            for ptr in step.reads() {
                let life = &mut lives[ptr as usize];
                life.1 = life.1.max(if looped && life.0 < begin { end } else { at });
            }
            if let Some(ptr) = step.writes() {
                let life = &mut lives[ptr as usize];
                *life = (life.0.min(at), life.1.max(at));
            }
            at += 1;
        }
        if looped {
            // Results of the phase's reductions begin when its loop is done.
            for &reduce in &program.phases[phase].reduces {
                let life = &mut lives[program.reductions[reduce as usize].dst as usize];
                *life = (life.0.min(end), life.1.max(end));
            }
            phase += 1;
            at += 1;
        }
    }
    lives
}
