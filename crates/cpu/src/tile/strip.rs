//! Strips: what is read across the rows of a map or the steps of columns, for the next ones at once, so that a cache line that is
//! there is used whole.
//!
//! A load and the frame of a tile enter; the lanes of the tile's row leave, from the strip if an earlier row has filled it. Where
//! they are wanted in memory and nothing else is, blocks of rows go there without a strip.

use super::Frame;
use crate::kernels::across::{AcrossFn, ROWS};
use crate::program::{Access, Follow, Ptr, Step, Target, TileProgram};
use crate::shape::Form;

/// What a strip holds: rows from `row` on, at these lanes of this buffer, at this point of the loops around columns. Behind it are
/// the lanes, a row of the tile's size each.
#[derive(Clone, Copy)]
struct Held {
    around: usize,
    row: usize,
    rows: usize,
    first: usize,
    lanes: usize,
    base: *mut u8,
}

/// Bytes before the lanes: they begin on a cache line.
const HEAD: usize = size_of::<Held>().next_multiple_of(64);

/// A map that does nothing but move what lies across its rows.
#[derive(Clone, Copy)]
pub(crate) struct Transposition<'a> {
    f: AcrossFn,
    load: &'a Access,
    to: &'a Follow,
    /// The loop along which the load is contiguous.
    along: usize,
}

impl TileProgram {
    /// What it moves, if it does nothing else.
    pub(crate) fn transposition(&self) -> Option<Transposition<'_>> {
        let [Step::Across { f, load, dst, .. }] = self.head[..] else { return None };
        let (load, along) = (&self.loads[load as usize], self.shape.last_turn()?);
        let to = self.outer.iter().find(|follow| follow.ptr == dst)?;
        let fits = self.shape.form == Form::Map
            && self.phases.is_empty()
            && self.targets[dst as usize] == Target::Memory
            && load.place.coefficients[along] == 1
            && to.place.coefficients[along] > 0;
        fits.then_some(Transposition { f, load, to, along })
    }

    pub(super) fn strip_bytes(&self) -> usize {
        HEAD + (ROWS * self.tile * 4).next_multiple_of(64)
    }
}

/// As for the other methods: the frame's pointers are valid, and the buffers are the plan's.
impl Frame<'_> {
    /// Nothing is held: at the beginning, and when buffers have other contents.
    pub(crate) unsafe fn forget_strips(&mut self) {
        for strip in 0..self.program.strips {
            let held = Held { around: 0, row: 0, rows: 0, first: 0, lanes: 0, base: std::ptr::null_mut() };
            // SAFETY: see the impl.
            unsafe { self.strips.add(strip * self.program.strip_bytes()).cast::<Held>().write(held) };
        }
    }

    /// The tile's rows of `load`: whole ones, as tiles of blocks are.
    pub(super) unsafe fn block(&mut self, f: AcrossFn, load: &Access, dst: Ptr) {
        let shape = &self.program.shape;
        let row = shape.lanes[1];
        debug_assert!(self.first.is_multiple_of(row) && self.n.is_multiple_of(row));
        // SAFETY: see the impl; the load has every element of the tile.
        unsafe {
            let at = load.place.at(&self.point[..shape.count()]) as isize;
            let src = self.run.buffers.base(load.buffer).cast::<u32>().offset(at);
            let stride = load.place.coefficients[shape.first_lane() + 1] as isize;
            f(src, stride, row, self.n / row, self.ptr(dst), row);
        }
    }

    /// Moves the tile's lanes of up to `most` rows, from the present one on, and says of how many.
    pub(crate) unsafe fn transpose(&mut self, moved: Transposition<'_>, most: usize) -> usize {
        let Transposition { f, load, to, along } = moved;
        let shape = &self.program.shape;
        let point = &self.point[..shape.count()];
        let rows = ROWS.min(most).min(shape.loops[along] - point[along]);
        // SAFETY: see the impl; both have every element of the loops and lanes.
        unsafe {
            let src = self.run.buffers.base(load.buffer).cast::<u32>().offset(load.place.at(point) as isize);
            let dst = self.run.buffers.base(to.buffer).cast::<u32>().offset(to.place.at(point) as isize);
            let stride = load.place.coefficients[shape.first_lane()] as isize;
            f(src, stride, self.n, rows, dst, to.place.coefficients[along] as usize);
        }
        rows
    }

    /// The tile's lanes of `load`.
    pub(super) unsafe fn across(&mut self, f: AcrossFn, load: &Access, strip: u32, dst: Ptr) {
        let program = self.program;
        let shape = &program.shape;
        let lane = shape.first_lane();
        let (Some(along), Some(extent)) = (shape.last_turn(), shape.turns().last()) else {
            unreachable!("what is read across the lanes has a loop along which it lies")
        };
        let (around, now) = if shape.form == Form::Columns { (self.row, self.position) } else { (0, self.row) };
        let forward = load.place.coefficients[along] > 0;
        // SAFETY: see the impl; the load has every element of the loops and lanes, so those of the next rows, too.
        unsafe {
            let strip = self.strips.add(strip as usize * program.strip_bytes());
            let (held, lanes) = (&mut *strip.cast::<Held>(), strip.add(HEAD).cast::<u32>());
            let base = self.run.buffers.base(load.buffer);
            let is_here = now.wrapping_sub(held.row) < held.rows
                && (held.around, held.first, held.lanes, held.base) == (around, self.first, self.n, base);
            if !is_here {
                let rows = ROWS.min(extent - self.point[along]);
                *held = Held { around, row: now, rows, first: self.first, lanes: self.n, base };
                let here = load.place.at(&self.point[..shape.count()]);
                let lowest = if forward { here } else { here - (rows as i64 - 1) };
                let src = base.cast::<u32>().offset(lowest as isize);
                f(src, load.place.coefficients[lane] as isize, self.n, rows, lanes, program.tile);
            }
            let ahead = now - held.row;
            let row = lanes.add(program.tile * if forward { ahead } else { held.rows - 1 - ahead });
            if program.targets[dst as usize] == Target::Memory {
                std::ptr::copy_nonoverlapping(row.cast::<u8>(), self.ptr(dst).cast::<u8>(), self.n * 4);
            } else {
                // The strip is as good a slot as the tile's own.
                self.ptrs.add(dst as usize).write(row.cast());
            }
        }
    }
}
