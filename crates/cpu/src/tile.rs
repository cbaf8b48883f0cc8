//! Runs tiles: one thread's frame of slots, cells and accumulators, and the steps over it.
//!
//! A lowered program and a range of its work enter from `schedule`; the plan's buffers are written.

mod rare;
mod strip;
mod whole_rows;

use crate::kernels::reduce::{Acc, ColRowsFn, GROUP};
use crate::place::Place;
use crate::program::{Follow, Phase, Ptr, Step, Target, TileProgram};
use crate::schedule::Run;
use crate::shape::Form;
use crate::stream;
use std::ops::Range;

/// Most variables of a lowered kernel: eight axes, each cut a few times.
const MAX_VARS: usize = 32;

/// Elements between two looks whether the work is to stop, where a tile or a row is too short to look each time: 1 ms at
/// most, with a body of the dearest functions.
const LOOK_ELEMS: usize = 4 * GROUP;

/// The working memory of one thread: pointer table, cells, slots and accumulators.
pub(crate) struct Frame<'a> {
    program: &'a TileProgram,
    run: &'a Run<'a>,
    ptrs: *mut *mut u8,
    pub(crate) cells: *mut u32,
    pub(crate) accs: *mut Acc,
    pub(crate) columns: *mut u64,
    carries: *mut u64,
    strips: *mut u8,
    point: [usize; MAX_VARS],
    /// The number of the loops' point.
    row: usize,
    /// The first lane of the tile, and how many there are.
    first: usize,
    n: usize,
    /// The place of the tile's first lane (rows) or of the step (columns) in what is reduced.
    position: usize,
}

impl TileProgram {
    /// Bytes of a frame: pointers, cells, accumulators, slots, strips.
    pub(crate) fn frame_layout(&self) -> [usize; 8] {
        let line = |bytes: usize| bytes.next_multiple_of(64);
        let lanes = if self.shape.form == Form::Columns { self.tile } else { 1 };
        let sizes = [
            line(self.targets.len() * size_of::<*mut u8>()),
            line(self.targets.len() * 4),
            line(self.reductions.len() * size_of::<Acc>()),
            line(if self.shape.form == Form::Columns { self.reductions.len() * lanes * 8 } else { 0 }),
            line(self.scans.len() * lanes * 8),
            line(self.slot_bytes),
            self.strips * self.strip_bytes(),
        ];
        let mut offsets = [0; 8];
        for (at, size) in sizes.iter().enumerate() {
            offsets[at + 1] = offsets[at] + size;
        }
        offsets
    }

    /// Runs `work` with a frame of this program.
    pub(crate) unsafe fn frame(&self, run: &Run<'_>, work: impl FnOnce(&mut Frame<'_>)) {
        debug_assert!(self.shape.count() <= MAX_VARS);
        let offsets = &self.frame_offsets;
        run.scratches.with(offsets[7], |base| {
            // SAFETY: the block is as large as the layout says, and every part is aligned to a cache line.
            unsafe {
                let mut frame = Frame {
                    program: self,
                    run,
                    ptrs: base.add(offsets[0]).cast(),
                    cells: base.add(offsets[1]).cast(),
                    accs: base.add(offsets[2]).cast(),
                    columns: base.add(offsets[3]).cast(),
                    carries: base.add(offsets[4]).cast(),
                    strips: base.add(offsets[6]),
                    point: [0; MAX_VARS],
                    row: 0,
                    first: 0,
                    n: 0,
                    position: 0,
                };
                let slots = base.add(offsets[5]);
                for (at, target) in self.targets.iter().enumerate() {
                    let ptr = match target {
                        Target::Slot => slots.add(self.slot_offsets[at] as usize),
                        Target::Cell => frame.cells.add(at).cast(),
                        Target::Const(i) => self.consts.as_ptr().add(*i as usize).cast_mut().cast(),
                        Target::Memory => std::ptr::null_mut(),
                    };
                    frame.ptrs.add(at).write(ptr);
                }
                frame.forget_strips();
                work(&mut frame);
                if self.stream.is_some() {
                    stream::fence();
                }
            }
        });
    }
}

/// All methods: the frame's pointers are valid (see [`TileProgram::frame`]), and the buffers are the plan's.
impl Frame<'_> {
    /// Is the work to stop?
    pub(crate) fn is_told(&self) -> bool {
        self.run.team.is_told()
    }

    /// Sets the loop variables to point number `index`.
    pub(crate) fn set_loops(&mut self, index: usize) {
        self.row = index;
        set_point(&mut self.point[..self.program.shape.loops.len()], &self.program.shape.loops, index);
    }

    pub(crate) fn set_steps(&mut self, index: usize) {
        let from = self.program.shape.loops.len();
        set_point(&mut self.point[from..], &self.program.shape.steps, index);
    }

    pub(crate) fn lanes(&mut self, first: usize, n: usize) {
        (self.first, self.n) = (first, n);
        // Contiguous accesses take the first lane as if the last variable went on; others walk it themselves.
        let shape = &self.program.shape;
        let at = shape.first_lane();
        if shape.lanes.len() == 1 {
            self.point[at] = first;
        } else {
            set_point(&mut self.point[at..], &shape.lanes, first);
        }
    }

    /// The element that an access points to at the present point, in bytes.
    pub(crate) fn offset(&self, follow: &Follow) -> usize {
        follow.place.at(&self.point[..self.program.shape.count()]) as usize * follow.width
    }

    /// Points an access to an address.
    ///
    /// # Safety
    /// See the impl; the address is the access' element.
    pub(crate) unsafe fn point_to(&mut self, follow: &Follow, address: *mut u8) {
        // SAFETY: pointers are numbered by the program's table.
        unsafe { self.ptrs.add(follow.ptr as usize).write(address) };
    }

    /// Moves pointers to the present point.
    pub(crate) unsafe fn follow(&mut self, list: &[Follow]) {
        let point = &self.point[..self.program.shape.count()];
        for follow in list {
            let offset = follow.place.at(point) as usize * follow.width;
            // SAFETY: the plan's accesses stay inside their buffers.
            unsafe {
                let base = self.run.buffers.base(follow.buffer);
                self.ptrs.add(follow.ptr as usize).write(base.add(offset));
            }
        }
    }

    pub(crate) unsafe fn begin_tile(&mut self, loops: usize, first: usize, n: usize) {
        self.set_loops(loops);
        self.set_steps(0);
        self.lanes(first, n);
        // SAFETY: see the impl.
        unsafe {
            self.follow(&self.program.outer);
            self.steps(&self.program.head);
        }
    }

    /// One tile of a map or of columns, whose loops and lanes are set.
    pub(crate) unsafe fn tile(&mut self, steps: Range<usize>) {
        let program = self.program;
        // SAFETY: see the impl.
        unsafe {
            self.set_steps(0);
            self.follow(&program.outer);
            self.steps(&program.head);
            for phase in &program.phases {
                self.start(phase);
                self.column_steps(&phase.body, steps.clone());
                self.finish_columns(&phase.reduces);
                self.steps(&phase.after);
            }
        }
    }

    pub(crate) unsafe fn column_steps(&mut self, body: &[Step], steps: Range<usize>) {
        // Plain sums take four steps at once: the same ones whatever the pieces.
        let each = (LOOK_ELEMS / self.n.max(1)).next_multiple_of(4).max(4);
        // SAFETY: see the impl.
        self.run.team.pieces(steps, each, |steps| unsafe { self.column_piece(body, steps) });
    }

    unsafe fn column_piece(&mut self, body: &[Step], steps: Range<usize>) {
        if let Some((rows, reduce, follow)) = self.program.plain_column_sum(body) {
            self.set_steps(steps.start);
            let stride = follow.place.coefficients[self.program.shape.loops.len()] as isize;
            // SAFETY: see the impl; the steps are rows of the access, that far apart.
            unsafe {
                self.follow(std::slice::from_ref(follow));
                let columns = self.columns.add(reduce as usize * self.program.tile);
                rows(self.ptr(follow.ptr), stride, steps.len(), self.n, columns);
            }
            return;
        }
        for step in steps {
            self.set_steps(step);
            self.position = step;
            // SAFETY: see the impl.
            unsafe {
                self.follow(&self.program.inner);
                self.steps(body);
            }
        }
    }

    /// Whole rows.
    pub(crate) unsafe fn rows(&mut self, rows: Range<usize>) {
        let program = self.program;
        if program.whole_rows() {
            let each = LOOK_ELEMS / program.lane_count.max(1);
            // SAFETY: see the impl.
            return self.run.team.pieces(rows, each, |rows| unsafe { self.single_tile_rows(rows) });
        }
        let tiles = program.tiles_per_row * program.step_count;
        for row in rows {
            self.set_loops(row);
            self.set_steps(0);
            self.lanes(0, 1);
            // SAFETY: see the impl.
            unsafe {
                self.follow(&program.outer);
                self.steps(&program.head);
                for phase in &program.phases {
                    self.start(phase);
                    self.row_tiles(phase, 0..tiles);
                    self.lanes(0, 1);
                    self.finish_rows(&phase.reduces);
                    self.steps(&phase.after);
                }
            }
        }
    }

    /// Some tiles of a row, or as many as decide its reductions.
    pub(crate) unsafe fn row_tiles(&mut self, phase: &Phase, tiles: Range<usize>) {
        let program = self.program;
        let (per_row, lanes) = (program.tiles_per_row, program.lane_count);
        // Counted along rather than divided: two divisions cost as much as a short row.
        let (mut step, mut at) = if tiles.start == 0 { (0, 0) } else { (tiles.start / per_row, tiles.start % per_row) };
        for _ in tiles {
            if self.run.team.is_told() {
                return;
            }
            let first = at * program.tile;
            self.set_steps(step);
            self.lanes(first, program.tile.min(lanes - first));
            self.position = step * lanes + first;
            // SAFETY: see the impl.
            unsafe {
                self.follow(&program.inner);
                self.steps(&phase.body);
                if phase.settles && self.is_settled(phase) {
                    return;
                }
            }
            at += 1;
            if at == per_row {
                (step, at) = (step + 1, 0);
            }
        }
    }

    /// A row that is nothing but summed up, in one call: 10^5 elements are seven chunks, which cost 15 ns each.
    pub(crate) unsafe fn plain_row_sum(&mut self, phase: &Phase) {
        let lanes = 0..self.program.lane_count;
        // SAFETY: see the impl; pieces are whole groups.
        unsafe {
            self.set_steps(0);
            self.start(phase);
            self.run.team.pieces(lanes, LOOK_ELEMS, |lanes| {
                self.lanes(lanes.start, lanes.len());
                self.position = lanes.start;
                self.follow(&self.program.inner);
                self.steps(&phase.body);
            });
        }
    }

    /// Are the results of all the phase's reductions known?
    pub(crate) unsafe fn is_settled(&self, phase: &Phase) -> bool {
        // SAFETY: see the impl.
        let settled =
            |r: u32| unsafe { self.program.reductions[r as usize].fns.is_settled(&*self.accs.add(r as usize)) };
        phase.reduces.iter().all(|&r| settled(r))
    }

    /// Empties what the phase accumulates.
    pub(crate) unsafe fn start(&mut self, phase: &Phase) {
        let columns = self.program.shape.form == Form::Columns;
        let lanes = if columns { self.program.tile } else { 1 };
        // SAFETY: see the impl.
        unsafe {
            for &r in &phase.reduces {
                let fns = &self.program.reductions[r as usize].fns;
                if columns {
                    fns.start_cols(self.columns.add(r as usize * lanes), self.n);
                } else {
                    self.accs.add(r as usize).write(fns.start());
                }
            }
            for (at, scan) in self.program.scans.iter().enumerate() {
                let n = if columns { self.n } else { 1 };
                std::slice::from_raw_parts_mut(self.carries.add(at * lanes), n).fill(scan.start());
            }
        }
    }

    pub(crate) unsafe fn finish_rows(&mut self, reduces: &[u32]) {
        for &r in reduces {
            let reduction = &self.program.reductions[r as usize];
            // SAFETY: see the impl; the result is a cell.
            unsafe { self.ptr(reduction.dst).write(reduction.fns.finish(&*self.accs.add(r as usize))) };
        }
    }

    pub(crate) unsafe fn finish_columns(&mut self, reduces: &[u32]) {
        for &r in reduces {
            let reduction = &self.program.reductions[r as usize];
            let columns = r as usize * self.program.tile;
            // SAFETY: see the impl; the result is a slot.
            unsafe { reduction.fns.finish_cols(self.columns.add(columns), self.ptr(reduction.dst), self.n) };
        }
    }

    #[inline(always)]
    unsafe fn ptr(&self, ptr: Ptr) -> *mut u32 {
        // SAFETY: pointers are numbered by the program's table.
        unsafe { (*self.ptrs.add(ptr as usize)).cast() }
    }

    /// Runs steps on the present tile.
    #[inline(always)]
    pub(crate) unsafe fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            // SAFETY: see the impl.
            unsafe {
                match step {
                    Step::Map { f, dst, args: [a, b, c], one, .. } => {
                        let n = if *one { 1 } else { self.n };
                        f(self.ptr(*dst), self.ptr(*a), self.ptr(*b), self.ptr(*c), n);
                    }
                    Step::Reduce { reduce, src } => self.reduce(*reduce, *src),
                    Step::Dot { f, reduce, a, b } => {
                        f(self.ptr(*a), self.ptr(*b), self.n, self.accs.add(*reduce as usize));
                    }
                    _ => self.rare_step(step),
                }
            }
        }
    }

    unsafe fn reduce(&mut self, reduce: u32, src: Ptr) {
        let program = self.program;
        let fns = &program.reductions[reduce as usize].fns;
        // SAFETY: see the impl.
        unsafe {
            if program.shape.form == Form::Columns {
                let columns = self.columns.add(reduce as usize * program.tile);
                (fns.col)(self.ptr(src), self.n, columns, self.position);
            } else {
                (fns.row)(self.ptr(src), self.n, self.accs.add(reduce as usize), self.position);
            }
        }
    }
}

impl TileProgram {
    /// Is a phase nothing but sums of memory as it lies? Then lanes of a row need no chunks.
    pub(crate) fn is_plain_row_sum(&self, phase: &Phase) -> bool {
        let is_sum = |step: &Step| match step {
            Step::Reduce { reduce, .. } | Step::Dot { reduce, .. } => {
                self.reductions[*reduce as usize].fns.is_grouped()
            }
            _ => false,
        };
        self.step_count == 1 && self.slot_bytes == 0 && phase.body.iter().all(is_sum)
    }

    /// Is `body` nothing but a sum of contiguous memory over one loop of steps? Then all of them are one call.
    fn plain_column_sum(&self, body: &[Step]) -> Option<(ColRowsFn, u32, &Follow)> {
        let [Step::Reduce { reduce, src }] = body else { return None };
        let rows = self.reductions[*reduce as usize].fns.col_rows?;
        let follow = self.inner.iter().find(|f| f.ptr == *src)?;
        (self.shape.steps.len() == 1 && follow.place.general.is_none()).then_some((rows, *reduce, follow))
    }

    /// Do neighbouring lanes lie side by side?
    pub(crate) fn contiguous(&self, place: &Place) -> bool {
        let first = self.shape.first_lane();
        let mut stride = 1;
        for (at, &extent) in self.shape.lanes.iter().enumerate().rev() {
            if place.coefficients[first + at] != stride {
                return false;
            }
            stride *= extent as i64;
        }
        place.general.is_none()
    }
}

/// Point number `index` of row-major loops.
#[inline(always)]
fn set_point(point: &mut [usize], extents: &[usize], mut index: usize) {
    // One loop is the common case, and a division costs as much as a short row.
    if let ([_], [only, ..]) = (extents, &mut *point) {
        *only = index;
        return;
    }
    for (value, &extent) in point.iter_mut().zip(extents).rev() {
        *value = index % extent;
        index /= extent;
    }
}
