//! Parameter words, laid out as `stage` says.

use crate::buffers::ALIGN;
use crate::layout::{Packer, Region, VECTOR};
use crate::stage::{Lowered, Stage};
use std::ops::Range;

/// Appends one task's words. `bases` tells the element at which each binding begins.
pub(crate) fn push_task(words: &mut Vec<u32>, stage: &Stage, bases: impl Iterator<Item = i64>, units: Range<u64>) {
    words.extend(bases.map(|base| base as i32 as u32));
    words.extend([units.start as u32, units.end as u32]);
    words.extend_from_slice(&stage.params);
}

/// A single task's words: bindings begin where their windows do.
pub(crate) fn push_single(words: &mut Vec<u32>, stage: &Stage, units: Range<u64>) {
    words.push(1);
    push_task(words, stage, stage.bindings.iter().map(|binding| -(binding.window.start as i64)), units);
}

/// The words of all stages for a single task, and where each stage's lie.
pub(crate) fn single(lowered: &Lowered) -> (Vec<u32>, Vec<Region>) {
    let (mut words, mut packer) = (Vec::new(), Packer::default());
    let mut regions = Vec::with_capacity(lowered.stages.len());
    for stage in &lowered.stages {
        let region = packer.add(4 * (1 + stage.stride()) as u64, ALIGN);
        words.resize(region.offset as usize / 4, 0);
        push_single(&mut words, stage, 0..stage.units);
        regions.push(region);
    }
    // Bindings end with whole vectors.
    words.resize((packer.end.max(VECTOR) / 4) as usize, 0);
    (words, regions)
}
