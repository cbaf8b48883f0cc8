//! Runs a lowered kernel: tile after tile through slots in L1, over as many threads as pay.
//!
//! A [`TileProgram`] and the plan's buffers enter, written outputs leave. Work is cut into chunks whose borders depend
//! on the shapes alone, and partial results are joined in order, so that the number of threads changes nothing.

use crate::fill::{self, Lanes, Positions};
use crate::kernels::reduce::Acc;
use crate::lower::{Follow, Ptr, Step, Target, TileProgram};
use crate::scratch::Scratches;
use crate::shape::Form;
use crate::stream;
use crate::team::Team;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

/// The base address of each of the plan's buffers. Raw, because a run over many tasks moves them from task to task.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    bases: *const *mut u8,
    count: usize,
}
// SAFETY: the threads of one run write disjoint elements, and read only what no thread of the same kernel writes
// (or the very elements that they write themselves).
unsafe impl Sync for Buffers {}
// SAFETY: as above.
unsafe impl Send for Buffers {}

impl Buffers {
    /// The caller keeps `bases` alive while anything runs with these buffers.
    pub(crate) fn new(bases: &[*mut u8]) -> Buffers {
        Buffers { bases: bases.as_ptr(), count: bases.len() }
    }

    /// # Safety
    /// `buffer` is one of the plan's, and the addresses are still there.
    #[inline(always)]
    pub(crate) unsafe fn base(&self, buffer: usize) -> *mut u8 {
        debug_assert!(buffer < self.count);
        // SAFETY: the caller vouches for it.
        unsafe { *self.bases.add(buffer) }
    }

    /// All addresses and one more.
    ///
    /// # Safety
    /// The addresses are still there.
    pub(crate) unsafe fn and(&self, base: *mut u8) -> Vec<*mut u8> {
        // SAFETY: the caller vouches for it.
        let mut bases = unsafe { std::slice::from_raw_parts(self.bases, self.count) }.to_vec();
        bases.push(base);
        bases
    }
}

/// Elements of a chunk of one long row: each gets an accumulator of its own.
const ROW_CHUNK: usize = 65_536;
/// Steps of a chunk of columns whose reduction is split.
const STEP_CHUNK: usize = 512;
/// Most variables of a lowered kernel: eight axes, each cut a few times.
const MAX_VARS: usize = 32;

/// What a run of a kernel needs besides its program.
pub(crate) struct Run<'a> {
    pub(crate) buffers: Buffers,
    pub(crate) scratches: &'a Scratches,
    pub(crate) team: Team<'a>,
    /// The first position outside its axis that a gather met: `i64::MAX` for none, else extent << 32 | position bits.
    pub(crate) wrong: &'a AtomicI64,
}

/// The working memory of one thread: pointer table, cells, slots and accumulators.
struct Frame<'a> {
    program: &'a TileProgram,
    run: &'a Run<'a>,
    ptrs: *mut *mut u8,
    cells: *mut u32,
    accs: *mut Acc,
    columns: *mut u64,
    carries: *mut u64,
    point: [usize; MAX_VARS],
    /// The first lane of the tile, and how many there are.
    first: usize,
    n: usize,
    /// The place of the tile's first lane (rows) or of the step (columns) in what is reduced.
    position: usize,
}

impl TileProgram {
    /// Bytes of a frame: pointers, cells, accumulators, slots.
    pub(crate) fn frame_layout(&self) -> [usize; 7] {
        let line = |bytes: usize| bytes.next_multiple_of(64);
        let lanes = if self.shape.form == Form::Columns { self.tile } else { 1 };
        let sizes = [
            line(self.targets.len() * size_of::<*mut u8>()),
            line(self.targets.len() * 4),
            line(self.reductions.len() * size_of::<Acc>()),
            line(if self.shape.form == Form::Columns { self.reductions.len() * lanes * 8 } else { 0 }),
            line(self.scans.len() * lanes * 8),
            line(self.slot_bytes),
        ];
        let mut offsets = [0; 7];
        for (at, size) in sizes.iter().enumerate() {
            offsets[at + 1] = offsets[at] + size;
        }
        offsets
    }

    /// How many threads' worth of pieces the work can be cut into, and the estimated time of all of it.
    pub(crate) fn points(&self) -> u64 {
        (self.loop_count as u64) * (self.step_count as u64) * (self.lane_count as u64)
    }

    /// Runs the whole kernel.
    ///
    /// # Safety
    /// The buffers are those of the plan that the program was lowered from: large enough, inputs readable, outputs and
    /// scratch writable and not used by anyone else.
    pub(crate) unsafe fn run(&self, run: &Run<'_>) {
        // SAFETY: passed on.
        unsafe {
            match self.shape.form {
                Form::Map => self.run_tiles(run, 0..self.loop_count * self.tiles_per_row),
                Form::Columns if self.splits_steps() => self.run_split_columns(run),
                Form::Columns => self.run_tiles(run, 0..self.loop_count * self.tiles_per_row),
                Form::Rows if self.splits_rows() => self.run_split_rows(run),
                Form::Rows => {
                    run.team.over(self.loop_count, 1, |rows| self.frame(run, |frame| frame.rows(rows)));
                }
            }
        }
    }

    /// Runs a whole map once for each task, on this thread; `next(task)` moves the buffers to the task's.
    ///
    /// # Safety
    /// As for [`TileProgram::run`], for every task.
    pub(crate) unsafe fn run_tasks(&self, run: &Run<'_>, tasks: usize, mut next: impl FnMut(usize)) {
        // SAFETY: passed on.
        unsafe {
            self.frame(run, |frame| {
                for task in 0..tasks {
                    next(task);
                    for row in 0..self.loop_count {
                        frame.set_loops(row);
                        let mut first = 0;
                        while first < self.lane_count {
                            let n = self.tile.min(self.lane_count - first);
                            frame.lanes(first, n);
                            frame.tile(0..self.step_count);
                            first += n;
                        }
                    }
                }
            });
        }
    }

    /// Runs the elements `range` of a map whose lanes are all of its points: a part of a matrix product's end.
    ///
    /// # Safety
    /// As for [`TileProgram::run`].
    pub(crate) unsafe fn run_part(&self, run: &Run<'_>, range: Range<usize>) {
        // Whole tiles only: parts are cut at rows, and rows at tiles, unless lanes run over everything.
        let lanes = self.lane_count;
        // SAFETY: passed on.
        unsafe {
            self.frame(run, |frame| {
                let mut at = range.start;
                while at < range.end {
                    let (row, first) = (at / lanes, at % lanes);
                    let n = self.tile.min(lanes - first).min(range.end - at);
                    frame.set_loops(row);
                    frame.lanes(first, n);
                    frame.follow(&self.outer);
                    frame.steps(&self.head);
                    at += n;
                }
            });
        }
    }

    /// Runs tiles of a map or of columns.
    unsafe fn run_tiles(&self, run: &Run<'_>, tiles: Range<usize>) {
        let per_row = self.tiles_per_row;
        run.team.over(tiles.len(), 1, |part| {
            // SAFETY: as for `run`; tiles write disjoint elements.
            unsafe {
                self.frame(run, |frame| {
                    // Counted along rather than divided: a division costs as much as a small tile.
                    let (mut row, mut at) =
                        if part.start == 0 { (0, 0) } else { (part.start / per_row, part.start % per_row) };
                    for _ in part {
                        frame.set_loops(row);
                        let first = at * self.tile;
                        frame.lanes(first, self.tile.min(self.lane_count - first));
                        frame.tile(0..self.step_count);
                        at += 1;
                        if at == per_row {
                            (row, at) = (row + 1, 0);
                        }
                    }
                });
            }
        });
    }

    /// Is a row long enough to be split between threads? A scan needs its row in order.
    fn splits_rows(&self) -> bool {
        let row = self.lane_count * self.step_count;
        row >= 2 * ROW_CHUNK && self.scans.is_empty() && !self.whole_rows()
    }

    /// Are there too few columns to keep threads busy, and enough steps to split? Only what has one phase and writes
    /// nothing in it.
    fn splits_steps(&self) -> bool {
        let tiles = self.loop_count * self.tiles_per_row;
        let [phase] = &self.phases[..] else { return false };
        let stores = phase.body.iter().any(|s| matches!(s, Step::Store { .. })) || !self.writes_outer_only();
        tiles < 64 && self.step_count >= 4 * STEP_CHUNK && self.scans.is_empty() && !stores
    }

    /// Does the loop over steps leave memory alone?
    fn writes_outer_only(&self) -> bool {
        let followed = |ptr: Ptr| self.inner.iter().any(|f| f.ptr == ptr);
        self.phases.iter().all(|p| p.body.iter().all(|s| s.writes().is_none_or(|ptr| !followed(ptr))))
    }

    /// Long rows: every phase is cut into chunks with accumulators of their own, joined in order.
    unsafe fn run_split_rows(&self, run: &Run<'_>) {
        let per_row = self.tiles_per_row;
        let tiles = per_row * self.step_count;
        let per_chunk = (ROW_CHUNK / self.tile).max(1);
        let chunks = tiles.div_ceil(per_chunk);
        let accs_bytes = chunks * self.reductions.len() * size_of::<Acc>();
        // SAFETY: as for `run`; chunks write disjoint elements and accumulators.
        unsafe {
            self.frame(run, |main| {
                for row in 0..self.loop_count {
                    main.set_loops(row);
                    main.lanes(0, 1);
                    main.follow(&self.outer);
                    main.steps(&self.head);
                    for phase in &self.phases {
                        let cells = Shared(main.cells);
                        run.scratches.with(accs_bytes.max(1), |partial| {
                            let partial = Shared(partial.cast::<Acc>());
                            run.team.over(chunks, 1, |part| {
                                self.frame(run, |frame| {
                                    frame.set_loops(row);
                                    frame.follow(&self.outer);
                                    std::ptr::copy_nonoverlapping(cells.get(), frame.cells, self.targets.len());
                                    for chunk in part {
                                        frame.start(phase);
                                        let range = chunk * per_chunk..((chunk + 1) * per_chunk).min(tiles);
                                        frame.row_tiles(&phase.body, range);
                                        for &r in &phase.reduces {
                                            let at = chunk * self.reductions.len() + r as usize;
                                            partial.get().add(at).write(*frame.accs.add(r as usize));
                                        }
                                    }
                                });
                            });
                            for &r in &phase.reduces {
                                let fns = &self.reductions[r as usize].fns;
                                let mut acc = fns.start();
                                for chunk in 0..chunks {
                                    fns.combine(
                                        &mut acc,
                                        &*partial.get().add(chunk * self.reductions.len() + r as usize),
                                    );
                                }
                                main.accs.add(r as usize).write(acc);
                            }
                        });
                        main.lanes(0, 1);
                        main.finish_rows(&phase.reduces);
                        main.steps(&phase.after);
                    }
                }
            });
        }
    }

    /// Few long columns: chunks of steps with accumulators of their own, joined in order.
    unsafe fn run_split_columns(&self, run: &Run<'_>) {
        let per_row = self.tiles_per_row;
        let steps = self.step_count;
        let chunks = steps.div_ceil(STEP_CHUNK);
        let words = self.reductions.len() * self.tile;
        let phase = &self.phases[0];
        for tile in 0..self.loop_count * per_row {
            let first = tile % per_row * self.tile;
            let n = self.tile.min(self.lane_count - first);
            run.scratches.with((chunks * words * 8).max(1), |partial| {
                let partial = Shared(partial.cast::<u64>());
                run.team.over(chunks, 1, |part| {
                    // SAFETY: as for `run`; chunks write disjoint accumulators.
                    unsafe {
                        self.frame(run, |frame| {
                            for chunk in part {
                                frame.begin_tile(tile / per_row, first, n);
                                frame.start(phase);
                                let end = ((chunk + 1) * STEP_CHUNK).min(steps);
                                frame.column_steps(&phase.body, chunk * STEP_CHUNK..end);
                                std::ptr::copy_nonoverlapping(frame.columns, partial.get().add(chunk * words), words);
                            }
                        });
                    }
                });
                // SAFETY: as for `run`.
                unsafe {
                    self.frame(run, |frame| {
                        frame.begin_tile(tile / per_row, first, n);
                        frame.start(phase);
                        for chunk in 0..chunks {
                            for &r in &phase.reduces {
                                let at = r as usize * self.tile;
                                let later = partial.get().add(chunk * words + at);
                                self.reductions[r as usize].fns.combine_cols(frame.columns.add(at), later, n);
                            }
                        }
                        frame.finish_columns(&phase.reduces);
                        frame.steps(&phase.after);
                    });
                }
            });
        }
    }

    /// Runs `work` with a frame of this program.
    unsafe fn frame(&self, run: &Run<'_>, work: impl FnOnce(&mut Frame<'_>)) {
        debug_assert!(self.shape.count() <= MAX_VARS);
        let offsets = &self.frame_offsets;
        run.scratches.with(offsets[6], |base| {
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
                    point: [0; MAX_VARS],
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
                work(&mut frame);
            }
        });
    }
}

/// A pointer that threads of one run share.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: what is behind it is written by one thread at a time, in disjoint parts.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}
impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// All methods: the frame's pointers are valid (see [`TileProgram::frame`]), and the buffers are the plan's.
impl Frame<'_> {
    /// Sets the loop variables to point number `index`.
    fn set_loops(&mut self, index: usize) {
        set_point(&mut self.point[..self.program.shape.loops.len()], &self.program.shape.loops, index);
    }

    fn set_steps(&mut self, index: usize) {
        let from = self.program.shape.loops.len();
        set_point(&mut self.point[from..], &self.program.shape.steps, index);
    }

    fn lanes(&mut self, first: usize, n: usize) {
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

    /// Moves pointers to the present point.
    unsafe fn follow(&mut self, list: &[Follow]) {
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

    unsafe fn begin_tile(&mut self, loops: usize, first: usize, n: usize) {
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
    unsafe fn tile(&mut self, steps: Range<usize>) {
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

    unsafe fn column_steps(&mut self, body: &[Step], steps: Range<usize>) {
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
    unsafe fn rows(&mut self, rows: Range<usize>) {
        let program = self.program;
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
                    self.row_tiles(&phase.body, 0..tiles);
                    self.lanes(0, 1);
                    self.finish_rows(&phase.reduces);
                    self.steps(&phase.after);
                }
            }
        }
    }

    unsafe fn row_tiles(&mut self, body: &[Step], tiles: Range<usize>) {
        let program = self.program;
        let (per_row, lanes) = (program.tiles_per_row, program.lane_count);
        for tile in tiles {
            let (step, first) = (tile / per_row, tile % per_row * program.tile);
            self.set_steps(step);
            self.lanes(first, program.tile.min(lanes - first));
            self.position = step * lanes + first;
            // SAFETY: see the impl.
            unsafe {
                self.follow(&program.inner);
                self.steps(body);
            }
        }
    }

    /// Empties what the phase accumulates.
    unsafe fn start(&mut self, phase: &crate::lower::Phase) {
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

    unsafe fn finish_rows(&mut self, reduces: &[u32]) {
        for &r in reduces {
            let reduction = &self.program.reductions[r as usize];
            // SAFETY: see the impl; the result is a cell.
            unsafe { self.ptr(reduction.dst).write(reduction.fns.finish(&*self.accs.add(r as usize))) };
        }
    }

    unsafe fn finish_columns(&mut self, reduces: &[u32]) {
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
    unsafe fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            // SAFETY: see the impl.
            unsafe {
                match step {
                    Step::Map { f, dst, args: [a, b, c], one, .. } => {
                        let n = if *one { 1 } else { self.n };
                        f(self.ptr(*dst), self.ptr(*a), self.ptr(*b), self.ptr(*c), n);
                    }
                    Step::Reduce { reduce, src } => self.reduce(*reduce, *src),
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

    unsafe fn rare_step(&mut self, step: &Step) {
        let program = self.program;
        // SAFETY: see the impl.
        unsafe {
            match step {
                Step::Map { .. } | Step::Reduce { .. } => unreachable!("handled by the caller"),
                Step::Fill { load, dst, one } => {
                    let access = &program.loads[*load as usize];
                    let (base, dst) = (self.run.buffers.base(access.buffer), self.ptr(*dst));
                    self.with_lanes(*one, |lanes| fill::load(lanes, access, base, dst));
                }
                Step::Arange { place, start, step, dst, one } => {
                    let dst = self.ptr(*dst);
                    self.with_lanes(*one, |lanes| fill::arange(lanes, place, *start, *step, dst));
                }
                Step::Inside { bounds, dst, one } => {
                    let dst = self.ptr(*dst);
                    self.with_lanes(*one, |lanes| fill::bounds_hold(lanes, bounds, dst));
                }
                Step::Gather { load, position, scalar, stride, extent, dst, one } => {
                    let access = &program.loads[*load as usize];
                    let (base, dst) = (self.run.buffers.base(access.buffer), self.ptr(*dst));
                    let at = self.ptr(*position);
                    let positions = Positions { at, scalar: *scalar, stride: *stride, extent: *extent };
                    let wrong = self.with_lanes(*one, |lanes| fill::gather(lanes, access, base, &positions, dst));
                    if let Some(index) = wrong {
                        let packed = (*extent as i64) << 32 | i64::from(index as u32);
                        let _ = self.run.wrong.compare_exchange(i64::MAX, packed, Ordering::Relaxed, Ordering::Relaxed);
                    }
                }
                Step::Scan { scan, src, dst } => {
                    let fns = &program.scans[*scan as usize];
                    let (src, dst) = (self.ptr(*src), self.ptr(*dst));
                    if program.shape.form == Form::Columns {
                        fns.col(src, dst, self.n, self.carries.add(*scan as usize * program.tile));
                    } else {
                        fns.row(src, dst, self.n, &mut *self.carries.add(*scan as usize));
                    }
                }
                Step::Store { store, src, scalar } => {
                    let access = &program.stores[*store as usize];
                    let (base, src) = (self.run.buffers.base(access.buffer), self.ptr(*src));
                    if program.stream && !scalar && access.width == 4 && program.contiguous(access) {
                        let at = access.place.at(&self.point[..program.shape.count()]) as usize;
                        stream::copy(base.cast::<u32>().add(at), src, self.n);
                    } else {
                        let one = self.stores_one(access);
                        self.with_lanes(one, |lanes| fill::store(lanes, access, base, src, *scalar));
                    }
                }
            }
        }
    }

    /// In rows, what does not depend on the lanes is stored once.
    fn stores_one(&self, access: &crate::lower::Access) -> bool {
        let first = self.program.shape.first_lane();
        self.program.shape.form == Form::Rows && access.place.coefficients[first..].iter().all(|&c| c == 0)
    }

    fn with_lanes<R>(&mut self, one: bool, work: impl FnOnce(&mut Lanes<'_>) -> R) -> R {
        let (count, shape) = (self.program.shape.count(), &self.program.shape);
        let saved = self.point;
        let (first, n) = if one { (self.first, 1) } else { (self.first, self.n) };
        let mut lanes = Lanes { point: &mut self.point[..count], extents: &shape.lanes, first, n };
        let result = work(&mut lanes);
        self.point = saved;
        result
    }
}

impl TileProgram {
    fn contiguous(&self, access: &crate::lower::Access) -> bool {
        let first = self.shape.first_lane();
        let mut stride = 1;
        for (at, &extent) in self.shape.lanes.iter().enumerate().rev() {
            if access.place.coefficients[first + at] != stride {
                return false;
            }
            stride *= extent as i64;
        }
        true
    }
}

/// Point number `index` of row-major loops.
fn set_point(point: &mut [usize], extents: &[usize], mut index: usize) {
    for (value, &extent) in point.iter_mut().zip(extents).rev() {
        *value = index % extent;
        index /= extent;
    }
}
