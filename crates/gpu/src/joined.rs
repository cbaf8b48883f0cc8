//! Tasks that are one run: tasks whose every element is computed from those at the same place of their inputs enter, laid out
//! so that one task over all of their memory computes them leaves.
//!
//! A workgroup of its own for each task is dear where tasks are small, and another dispatch where their sizes differ. Elements
//! that follow one another in every buffer do not need to know which task is theirs.

use crate::buffers::ALIGN;
use crate::job::{Core, Many};
use crate::layout::{Packer, Region};
use crate::mixed::{Entry, Laid, Places};
use breakeven_ir::backend::RESULT_ALIGN;
use breakeven_ir::plan::BufferInfo;
use std::sync::Arc;

/// What tasks must have in common to be one run, besides their kernels: the constants of those.
pub(crate) type Constants<'a> = Vec<&'a [u32]>;

/// The constants of a plan; `None` if its tasks can't be one run.
pub(crate) fn constants(core: &Core) -> Option<Constants<'_>> {
    let stages = &core.lowered.stages;
    let elems = stages.first()?.work;
    let is_run = stages.iter().all(|stage| stage.run.is_some() && stage.work == elems);
    (is_run && !core.lowered.status && core.layout.privates.is_empty())
        .then(|| stages.iter().map(|stage| &stage.params[..]).collect())
}

/// Lays tasks out, of which [`constants`] are the same: each begins at the same element of every buffer.
pub(crate) fn lay_out(tasks: &[Entry<'_>], members: Vec<usize>, upload: &mut Packer, block: &mut Packer) -> Laid {
    let leader = &tasks[members[0]].plan.core;
    let stages = &leader.lowered.stages;
    let width = |info: &BufferInfo| info.dtype.size_bytes() as u64;
    let input_widths: Vec<u64> = leader.plan.input_infos().iter().map(width).collect();
    let output_widths: Vec<u64> = leader.plan.output_buffers().map(width).collect();
    // Every task begins with a cache line, whatever its elements.
    let narrowest = input_widths.iter().chain(&output_widths).min().map_or(1, |width| (*width).max(1));
    let align = RESULT_ALIGN as u64 / narrowest;

    let mut elems = 0;
    let mut starts = Vec::with_capacity(members.len());
    for member in &members {
        starts.push(elems);
        elems += tasks[*member].plan.core.lowered.stages[0].work.next_multiple_of(align);
    }
    let mut layout = (*leader.layout).clone();
    let mut place = |(region, width): (&Option<Region>, &u64)| {
        (region.map_or(0, |_| upload.add(elems * width, ALIGN).offset), *width)
    };
    let begins: Vec<(u64, u64)> = layout.inputs.iter().zip(&input_widths).map(&mut place).collect();
    let mut inputs = Vec::with_capacity(starts.len() * begins.len());
    starts.iter().for_each(|start| inputs.extend(begins.iter().map(|(begin, width)| begin + start * width)));
    let mut places = Places { inputs, outputs: vec![], privates: vec![] };
    for (region, width) in layout.outputs.iter_mut().zip(&output_widths) {
        *region = block.add(elems * width, ALIGN);
        places.outputs.extend(starts.iter().map(|start| start * width));
    }
    let units: Vec<u64> = stages.iter().map(|stage| elems.div_ceil(stage.run.map_or(1, u64::from))).collect();
    let many = Many {
        tasks: 1,
        params: stages.iter().map(|stage| upload.add(4 * (1 + stage.stride()) as u64, ALIGN)).collect(),
        group_units: stages.iter().zip(&units).map(|(stage, units)| stage.turns.group_units(*units)).collect(),
        work: vec![elems; stages.len()],
        inputs: begins.iter().map(|(begin, _)| *begin).collect(),
        units,
    };
    Laid { members, layout: Arc::new(layout), places, many }
}
