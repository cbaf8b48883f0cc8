//! Has inputs near where they are read: a batch that a software driver gets next enters, with the number of cores that share it;
//! what the owner's core reads of it, which is the first part, is in that core's caches when it leaves.
//!
//! Callers copy inputs on cores of their own. Where two cores share no cache, which is true of a virtual machine's at some times and
//! not at others, a line comes over after 200 to 300 ns, and a driver's kernel waits for each: it moves memory value by value, and
//! each time looks whether that lane takes part. Reading lines one after the other takes 1.5 ns each. At such times an add of 131,072
//! elements took 340 us and takes 211, a chain of ten operations 455 and takes 290; at others, when there is nothing to gain, both
//! take 2 to 5 % longer.

use crate::buffers::Upload;
use crate::job::Group;
use crate::layout::Spot;
use crate::stage::Stage;
use std::ops::Range;

/// Bytes that are read at most: a core's second-level cache holds about as much beside what is computed.
const MOST: u64 = 768 << 10;

/// Reads what the first of so many cores is given of the dispatches of these groups.
pub(crate) fn pull(upload: &mut Upload, groups: &[Group], cores: u64) {
    first_parts(groups, cores, |part| upload.read_lines(part.start as usize, (part.end - part.start) as usize));
}

/// Tells which bytes of the upload those are.
fn first_parts(groups: &[Group], cores: u64, mut tell: impl FnMut(Range<u64>)) {
    let mut left = MOST;
    for group in groups {
        for (number, stage) in group.core.lowered.stages.iter().enumerate() {
            let Some(run) = Run::of(group, stage, number) else { continue };
            for (binding, spot) in stage.bindings.iter().zip(&group.layout.spots[number]) {
                let Spot::Input(input) = *spot else { continue };
                let Some(begin) = begin(group, input) else { continue };
                let unit_bytes = run.unit_elems * binding.element_bytes as u64;
                for at in (0..run.units).step_by(run.turn as usize) {
                    let from = begin + at * unit_bytes;
                    let bytes = (run.turn.min(run.units - at) / cores * unit_bytes).min(left);
                    tell(from..from + bytes);
                    left -= bytes;
                }
            }
        }
    }
}

/// A dispatch that reads each element of its inputs once, in order.
struct Run {
    units: u64,
    unit_elems: u64,
    /// Units that all workgroups take together before each of them takes another.
    turn: u64,
}

impl Run {
    fn of(group: &Group, stage: &Stage, number: usize) -> Option<Run> {
        let unit_elems = u64::from(stage.run?);
        let (units, group_units) = match &group.many {
            None => (stage.units, stage.group_units),
            Some(many) if many.tasks == 1 => (many.units[number], many.group_units[number]),
            Some(_) => return None,
        };
        let turn = units.div_ceil(u64::from(group_units.max(1))) * u64::from(stage.turns.units);
        Some(Run { units, unit_elems, turn: turn.max(1) })
    }
}

/// The byte of the upload at which an input begins, unless it lies on the device.
fn begin(group: &Group, input: usize) -> Option<u64> {
    if group.residents.get(input).is_some_and(Option::is_some) {
        return None;
    }
    match &group.many {
        None => group.layout.inputs[input].map(|region| region.offset),
        Some(many) => many.inputs.get(input).copied(),
    }
}

#[cfg(test)]
#[path = "pull_tests.rs"]
mod tests;
