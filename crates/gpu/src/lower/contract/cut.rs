//! How a product is cut into units of work, and the part of the depth that a stage sums.

use crate::stage::TileVariant;
use breakeven_ir::plan::Contract;
use std::ops::Range;

/// How a product is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cut {
    /// A workgroup takes a tile.
    Tile(TileVariant),
    /// An invocation takes a block; its sides are 1 or multiples of 4.
    Blocks { rows: usize, columns: usize },
    /// `slices` invocations share a block of (1 or 4) x (1 or 4), each with every so many steps along the depth.
    Shared { rows: usize, columns: usize, slices: usize },
}

/// The part of the depth that a stage sums. All but the last leave their sums in scratch memory `sums`.
pub(super) struct Part {
    pub(super) depth: Range<usize>,
    pub(super) whole: usize,
    pub(super) sums: usize,
}

/// Invocations of a workgroup of blocks.
pub(super) const BLOCKS_GROUP: usize = 64;
/// Invocations of a workgroup in which blocks are shared.
pub(super) const SHARED_GROUP: usize = 64;

impl Cut {
    /// Rows and columns that one load of an operand serves: what fused operands are computed again by.
    pub(super) fn reuse(&self) -> (usize, usize) {
        match self {
            Cut::Tile(t) if t.depth > 0 => (t.rows as usize, t.columns as usize),
            Cut::Tile(t) => (t.thread_rows as usize, t.thread_columns as usize),
            Cut::Blocks { rows, columns } | Cut::Shared { rows, columns, .. } => (*rows, *columns),
        }
    }

    /// Rows and columns of a unit.
    pub(super) fn unit(&self) -> (usize, usize) {
        match self {
            Cut::Tile(t) => (t.rows as usize, t.columns as usize),
            Cut::Blocks { rows, columns } | Cut::Shared { rows, columns, .. } => (*rows, *columns),
        }
    }

    /// How many units there are, and how many a workgroup takes at a time.
    pub(super) fn units(&self, contract: &Contract) -> (u64, u32) {
        let (rows, columns) = self.unit();
        let batches: usize = contract.batch.iter().product();
        let units = batches * contract.m.div_ceil(rows) * contract.n.div_ceil(columns);
        let group = match self {
            Cut::Tile(_) => 1,
            Cut::Blocks { .. } => BLOCKS_GROUP,
            Cut::Shared { slices, .. } => SHARED_GROUP / slices,
        };
        (units as u64, group as u32)
    }

    /// The steps along the depth that one loop iteration of one invocation stands for.
    pub(super) fn steps_an_iteration(&self) -> usize {
        match self {
            Cut::Tile(t) if t.depth > 0 => 2,
            Cut::Shared { slices, .. } => *slices,
            _ => 1,
        }
    }
}
