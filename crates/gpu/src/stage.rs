//! Stages: what a plan's kernels become for a GPU. `lower` writes them, `encode` dispatches them; both see plain data.
//!
//! A stage is one WGSL module, the buffers that it binds, and words of parameters. Sizes, strides, offsets and
//! constants are parameters, so that the module's text, which is the pipeline's key, depends on the kernel alone.
//!
//! ## How a module sees its parameters
//! The last binding of group 0 is `params: array<i32>`. Task `t = workgroup_id.y + workgroup_id.z * 65535` (tasks past
//! the count, which is word 0 of the buffer, do nothing) has the words from `1 + t * stride` on, where `stride` is
//! fixed by the module (the header and all payload words):
//!
//! | word | meaning |
//! |---|---|
//! | `0..bindings` | for each binding, the element at which this task's part begins (may be negative for a window) |
//! | `bindings` | the first unit of this dispatch |
//! | `bindings + 1` | the unit after the last |
//! | from `bindings + 2` on | [`Stage::params`] |
//!
//! Units are what a stage counts its work in: points, rows or tiles. `workgroup_id.x` takes units in steps of
//! `num_workgroups.x * group_units`.

use breakeven_ir::plan::{BufferId, Class};
use std::ops::Range;
use std::sync::Arc;

/// What a binding shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Slot {
    /// A buffer of the plan.
    Buffer(BufferId),
    /// Scratch memory of the lowering, by its number in [`Lowered::partials`].
    Partials(usize),
    /// Four words a task, zero before the batch: 1 if a gather failed, its index, its extent, unused.
    Status,
}

/// A binding of group 0, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Binding {
    pub(crate) slot: Slot,
    /// Is it `read_write`?
    pub(crate) writes: bool,
    /// Bytes of one element as indices count them: 1 for bools, else 4.
    pub(crate) element_bytes: usize,
    /// The elements of the slot that are bound; starts at a multiple of 256 bytes. All of it, unless the buffer is
    /// larger than the device can bind.
    pub(crate) window: Range<usize>,
}

/// One dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// The kernel of the plan that it belongs to.
    pub(crate) kernel: usize,
    pub(crate) class: Class,
    /// The WGSL module with entry point `main`.
    pub(crate) source: Arc<str>,
    pub(crate) bindings: Vec<Binding>,
    /// The payload words: extents, strides, offsets, constants.
    pub(crate) params: Vec<u32>,
    /// How many units there are; 0 means that nothing is dispatched.
    pub(crate) units: u64,
    /// Units that a workgroup takes at a time.
    pub(crate) group_units: u32,
    /// How that was chosen: many tasks of one dispatch choose together.
    pub(crate) turns: Turns,
    /// Elements (points, or multiply-adds of a contraction) behind all units: what time is predicted by.
    pub(crate) work: u64,
    /// The elements of a unit, if each element is computed from those at its own place of all buffers, which have as many: then
    /// several tasks side by side are one.
    pub(crate) run: Option<u32>,
}

impl Stage {
    /// Words of one task's parameters.
    pub(crate) fn stride(&self) -> usize {
        self.bindings.len() + 2 + self.params.len()
    }
}

/// How many units a workgroup takes at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turns {
    /// Units of one turn.
    pub(crate) units: u32,
    /// Turns at most: what an invocation reads beforehand is read once for all of them.
    pub(crate) most: u32,
    /// Workgroups that are left of a dispatch, so that each core of a device has some.
    pub(crate) groups: u32,
}

/// Workgroups of a dispatch from which on invocations take all of their turns, on devices of which nobody knows how many cores they
/// have.
const MANY_GROUPS: u32 = 1024;

impl Turns {
    /// So many turns at most, if so many workgroups are left.
    pub(crate) fn new(units: u32, most: u32, groups: Option<u32>) -> Turns {
        Turns { units, most, groups: groups.unwrap_or(MANY_GROUPS / most.max(1)) }
    }

    pub(crate) fn once(units: u32) -> Turns {
        Turns { units, most: 1, groups: 1 }
    }

    /// Units of a workgroup in a dispatch of so many.
    pub(crate) fn group_units(self, all: u64) -> u32 {
        let spare = all / (u64::from(self.groups.max(1)) * u64::from(self.units.max(1)));
        self.units * spare.clamp(1, u64::from(self.most.max(1))) as u32
    }
}

/// Elements of four bytes in the largest vector that is read and written at a time.
pub(crate) const WIDE: usize = 8;

/// A lowered plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) stages: Vec<Stage>,
    /// Bytes of each scratch memory beyond the plan's own; each is written before it is read.
    pub(crate) partials: Vec<usize>,
    /// Does a stage bind [`Slot::Status`]?
    pub(crate) status: bool,
}

/// What the device allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Bytes of one binding.
    pub(crate) binding_bytes: u64,
    /// Storage buffers of one stage, the parameters included.
    pub(crate) bindings: u32,
    /// Invocations of a workgroup.
    pub(crate) workgroup: u32,
    /// Bytes of workgroup memory.
    pub(crate) workgroup_bytes: u32,
    /// Loop iterations after which the driver silently stops an invocation; a quirk, found by the self-test.
    pub(crate) loop_cap: Option<u32>,
    /// Are there 64-bit integers?
    pub(crate) int64: bool,
    /// Workgroups that keep all cores of the device busy to the end, where that is known.
    pub(crate) groups: Option<u32>,
}

impl Default for Limits {
    /// What every WebGPU device has.
    fn default() -> Limits {
        Limits {
            binding_bytes: 128 << 20,
            bindings: 8,
            workgroup: 256,
            workgroup_bytes: 16 << 10,
            loop_cap: None,
            int64: false,
            groups: None,
        }
    }
}

/// The variants that measurement chooses from, one for each class of kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Variants {
    pub(crate) map: MapVariant,
    pub(crate) rows: RowsVariant,
    pub(crate) tile: TileVariant,
}

/// How a map is cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MapVariant {
    pub(crate) workgroup: u32,
    /// Points that an invocation takes at a time: 1, or 4 or 8 with vector loads where memory allows.
    pub(crate) points: u32,
    /// How often an invocation does that, at most: what it reads beforehand is read once.
    pub(crate) turns: u32,
}

/// How rows are cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct RowsVariant {
    pub(crate) workgroup: u32,
    /// The most invocations that share a row, unless rows are few: where barriers are dear, one is best.
    pub(crate) threads: u32,
}

/// How a matrix product is cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct TileVariant {
    /// Rows and columns of a workgroup's tile.
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    /// Rows and columns that an invocation keeps in registers.
    pub(crate) thread_rows: u32,
    pub(crate) thread_columns: u32,
    /// Steps along the summed axis that are staged in workgroup memory at a time; 0 reads the operands directly.
    pub(crate) depth: u32,
}

impl MapVariant {
    pub(crate) const ALL: &[MapVariant] = &[
        MapVariant { workgroup: 64, points: 4, turns: 1 },
        MapVariant { workgroup: 64, points: 4, turns: 16 },
        MapVariant { workgroup: 256, points: 4, turns: 4 },
        MapVariant { workgroup: 256, points: 4, turns: 1 },
        MapVariant { workgroup: 256, points: 1, turns: 1 },
        MapVariant { workgroup: 64, points: 8, turns: 16 },
    ];

    /// How often an invocation takes a unit.
    #[cfg(test)]
    pub(crate) fn turns(&self, units: u64, workgroup: u32) -> u32 {
        Turns::new(workgroup, self.turns, None).group_units(units) / workgroup
    }
}

impl RowsVariant {
    pub(crate) const ALL: &[RowsVariant] = &[
        RowsVariant { workgroup: 256, threads: 256 },
        RowsVariant { workgroup: 64, threads: 1 },
        RowsVariant { workgroup: 64, threads: 64 },
        RowsVariant { workgroup: 64, threads: 8 },
    ];
}

impl TileVariant {
    pub(crate) const ALL: &[TileVariant] = &[
        TileVariant { rows: 64, columns: 64, thread_rows: 4, thread_columns: 4, depth: 16 },
        TileVariant { rows: 64, columns: 64, thread_rows: 8, thread_columns: 8, depth: 0 },
        TileVariant { rows: 128, columns: 128, thread_rows: 8, thread_columns: 8, depth: 8 },
        TileVariant { rows: 32, columns: 64, thread_rows: 8, thread_columns: 16, depth: 0 },
        TileVariant { rows: 64, columns: 64, thread_rows: 8, thread_columns: 8, depth: 16 },
        TileVariant { rows: 32, columns: 64, thread_rows: 4, thread_columns: 4, depth: 0 },
    ];
}

impl Variants {
    /// What a device of this kind begins with, before anything was measured. Where workgroup memory is emulated, barriers
    /// only cost: software's compilers take up to 15 s for a staged tile. Software with 64-bit words computes eight points of an
    /// invocation in hardly more time than four: the one's instructions fill the gaps of the other's.
    pub(crate) fn starting(kind: crate::adapters::Kind, int64: bool) -> Variants {
        match kind {
            crate::adapters::Kind::Software => {
                let map = MapVariant::ALL[if int64 { 5 } else { 1 }];
                Variants { map, rows: RowsVariant::ALL[1], tile: TileVariant::ALL[1] }
            }
            _ => Variants::default(),
        }
    }
}

impl Default for Variants {
    fn default() -> Variants {
        Variants { map: MapVariant::ALL[0], rows: RowsVariant::ALL[0], tile: TileVariant::ALL[0] }
    }
}
