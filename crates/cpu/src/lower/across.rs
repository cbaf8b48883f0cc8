//! What lies across the lanes of a kernel: its loads enter, whether strips or blocks of rows bring them into tiles leaves.

use super::{Lowering, TILE};
use crate::program::{Access, Step};
use crate::shape::{Form, LINE};

/// Rows of a block are a multiple of this, so that cache lines across them are used whole.
const BLOCK_ROWS: usize = 16;
/// Rows that are shorter than this are not worth a strip.
const SHORTEST_ACROSS: usize = 4;

impl Lowering<'_> {
    /// Does a map read something along its rows that is contiguous from row to row: a transposed matrix? Or columns, which are
    /// short rows then, along their steps?
    pub(super) fn reads_across(&self) -> bool {
        let shape = &self.out.shape;
        let is_long = |&rows: &usize| rows >= if shape.form == Form::Map { LINE } else { SHORTEST_ACROSS };
        shape.lanes.len() == 1
            && shape.turns().last().is_some_and(is_long)
            && self.out.loads.iter().any(|load| self.lies_across(load))
    }

    /// Is it contiguous from one row of a tile of several rows to the next, and far apart along them?
    pub(super) fn is_block(&self, load: &Access) -> bool {
        let (shape, first) = (&self.out.shape, self.out.shape.first_lane());
        let coefficients = &load.place.coefficients;
        !self.ordered
            && shape.form == Form::Map
            && shape.lanes.len() == 2
            && load.width == 4
            && load.bounds.is_empty()
            && load.place.general.is_none()
            && coefficients[first] == 1
            && coefficients[first + 1].unsigned_abs() >= LINE as u64
    }

    pub(super) fn has_blocks(&self) -> bool {
        self.out.head.iter().any(|step| matches!(step, Step::Block { .. }))
    }

    /// Lanes of a tile of whole rows.
    pub(super) fn block_tile(&self) -> usize {
        let row = self.out.shape.lanes.last().copied().unwrap_or(1);
        let rows = (TILE / row).max(1);
        row * if rows > BLOCK_ROWS { rows / BLOCK_ROWS * BLOCK_ROWS } else { rows }
    }

    /// Is it contiguous along the last loop around the lanes, and far apart along them?
    pub(super) fn lies_across(&self, load: &Access) -> bool {
        let shape = &self.out.shape;
        let (Some(last), lane) = (shape.last_turn(), shape.first_lane()) else { return false };
        let apart = if shape.form == Form::Map { LINE } else { 2 };
        let coefficients = &load.place.coefficients;
        load.width == 4
            && load.bounds.is_empty()
            && load.place.general.is_none()
            && coefficients[lane].unsigned_abs() >= apart as u64
            && coefficients[last].abs() == 1
    }
}
