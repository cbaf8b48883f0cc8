//! Lays the temporaries of a plan out in one scratch block: two that are never alive at once share bytes.

use crate::plan::{Kernel, Place, Plan};

/// Every temporary starts on a cache line.
const ALIGN: usize = 64;

/// Gives each temporary its offset, largest first at the lowest place that is free while it lives.
pub(crate) fn lay_out(plan: &mut Plan) {
    let lives = lifetimes(plan);
    let mut temporaries: Vec<usize> =
        (0..plan.buffers.len()).filter(|&id| matches!(plan.buffers[id].place, Place::Scratch(_))).collect();
    temporaries.sort_by_key(|&id| (std::cmp::Reverse(plan.buffers[id].bytes()), id));
    let mut placed: Vec<(usize, usize, usize)> = Vec::new(); // (buffer, first byte, end)
    for id in temporaries {
        let size = plan.buffers[id].bytes().next_multiple_of(ALIGN);
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|(other, ..)| lives[id].0 <= lives[*other].1 && lives[*other].0 <= lives[id].1)
            .map(|&(_, start, end)| (start, end))
            .collect();
        taken.sort_unstable();
        let mut at = 0;
        for (start, end) in taken {
            if at + size <= start {
                break;
            }
            at = at.max(end);
        }
        plan.buffers[id].place = Place::Scratch(at);
        placed.push((id, at, at + size));
    }
    plan.scratch_bytes = placed.iter().map(|&(.., end)| end).max().unwrap_or(0);
}

/// The first and last kernel that touch each buffer.
pub(crate) fn lifetimes(plan: &Plan) -> Vec<(usize, usize)> {
    let mut lives = vec![(usize::MAX, 0); plan.buffers.len()];
    for (at, kernel) in plan.kernels.iter().enumerate() {
        let mut touch = |buffer: crate::plan::BufferId| {
            let life = &mut lives[buffer.0 as usize];
            *life = (life.0.min(at), life.1.max(at));
        };
        for body in Kernel::bodies(kernel) {
            body.accesses.iter().for_each(|a| touch(a.buffer));
        }
        kernel.end().stores.iter().for_each(|s| touch(s.buffer));
    }
    lives
}
