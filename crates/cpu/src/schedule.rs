//! Runs a lowered kernel over as many threads as pay.
//!
//! A [`TileProgram`] and the plan's buffers enter, written outputs leave. Work is cut into chunks whose borders depend
//! on the shapes alone, and partial results are joined in order, so that the number of threads changes nothing.

use crate::kernels::reduce::{Acc, GROUP};
use crate::program::{Phase, Ptr, Step, TileProgram};
use crate::scratch::Scratches;
use crate::shape::Form;
use crate::team::Team;
use crate::tile::Frame;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

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
const ROW_CHUNK: usize = GROUP;
/// Steps of a chunk of columns whose reduction is split.
const STEP_CHUNK: usize = 512;
/// Accesses whose offsets are kept while tasks of one tile run.
const FOLLOWED: usize = 8;

/// What a run of a kernel needs besides its program. Threads get copies: what lies on another core is fetched line by line.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) buffers: Buffers,
    pub(crate) scratches: &'a Scratches,
    pub(crate) team: Team<'a>,
    /// The first position outside its axis that a gather met: `i64::MAX` for none, else extent << 32 | position bits.
    pub(crate) wrong: &'a AtomicI64,
}

impl TileProgram {
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
                    let run = *run;
                    run.team.over(self.loop_count, 1, move |rows| self.frame(&run, |frame| frame.rows(rows)));
                }
            }
        }
    }

    /// Runs a whole map once for each task, on this thread; `next(task)` moves the buffers to the task's.
    ///
    /// # Safety
    /// As for [`TileProgram::run`], for every task.
    pub(crate) unsafe fn run_tasks(&self, run: &Run<'_>, tasks: usize, mut next: impl FnMut(usize)) {
        let single = self.loop_count == 1 && self.tiles_per_row == 1 && self.outer.len() <= FOLLOWED;
        // SAFETY: passed on.
        unsafe {
            self.frame(run, |frame| {
                frame.set_loops(0);
                frame.lanes(0, self.lane_count.min(self.tile));
                // A task of one tile is found by its addresses alone: where they point within it is worked out once.
                let mut offsets = [0; FOLLOWED];
                for (offset, follow) in offsets.iter_mut().zip(&self.outer) {
                    *offset = frame.offset(follow);
                }
                for task in 0..tasks {
                    next(task);
                    if single {
                        for (follow, offset) in self.outer.iter().zip(offsets) {
                            frame.point_to(follow, run.buffers.base(follow.buffer).add(offset));
                        }
                        frame.steps(&self.head);
                        continue;
                    }
                    frame.forget_strips();
                    self.tiles(frame, 0..self.loop_count * self.tiles_per_row);
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
                while at < range.end && !run.team.is_told() {
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
        let run = *run;
        run.team.over(tiles.len(), 1, move |part| {
            // SAFETY: as for `run`; tiles write disjoint elements.
            unsafe { self.frame(&run, |frame| self.tiles(frame, part)) };
        });
    }

    /// Some tiles of a map or of columns, one after the other.
    unsafe fn tiles(&self, frame: &mut Frame<'_>, part: Range<usize>) {
        // Counted along rather than divided: a division costs as much as a small tile.
        let across = self.across && self.shape.form == Form::Map;
        let inner = if across { self.loop_count } else { self.tiles_per_row };
        let (mut slow, mut fast) = if part.start == 0 { (0, 0) } else { (part.start / inner, part.start % inner) };
        let moved = self.transposition().filter(|_| across);
        let mut left = part.len();
        while left > 0 {
            if frame.is_told() {
                return;
            }
            let (row, at) = if across { (fast, slow) } else { (slow, fast) };
            frame.set_loops(row);
            let first = at * self.tile;
            frame.lanes(first, self.tile.min(self.lane_count - first));
            // SAFETY: passed on.
            let done = unsafe {
                match moved {
                    Some(moved) => frame.transpose(moved, left.min(inner - fast)),
                    None => {
                        frame.tile(0..self.step_count);
                        1
                    }
                }
            };
            left -= done;
            fast += done;
            if fast == inner {
                (slow, fast) = (slow + 1, 0);
            }
        }
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
        let chunks = self.row_tile_count().div_ceil(self.tiles_per_chunk());
        // SAFETY: as for `run`.
        unsafe {
            self.frame(run, |main| {
                for row in 0..self.loop_count {
                    main.set_loops(row);
                    main.lanes(0, 1);
                    main.follow(&self.outer);
                    main.steps(&self.head);
                    for phase in &self.phases {
                        let is_whole = match run.team.parallel {
                            true => self.chunks_shared(run, main, phase, row, chunks),
                            false => self.chunks_alone(run, main, phase, chunks),
                        };
                        if !is_whole {
                            return;
                        }
                        main.lanes(0, 1);
                        main.finish_rows(&phase.reduces);
                        main.steps(&phase.after);
                    }
                }
            });
        }
    }

    /// Tiles of a row, over all of its steps.
    fn row_tile_count(&self) -> usize {
        self.tiles_per_row * self.step_count
    }

    /// Tiles of a chunk of one long row.
    fn tiles_per_chunk(&self) -> usize {
        (ROW_CHUNK / self.tile).max(1)
    }

    /// The tiles of a chunk of a row.
    fn chunk_tiles(&self, chunk: usize) -> Range<usize> {
        let each = self.tiles_per_chunk();
        chunk * each..((chunk + 1) * each).min(self.row_tile_count())
    }

    /// The chunks of a phase by all threads, joined in order. False if they were told to stop.
    unsafe fn chunks_shared(
        &self,
        run: &Run<'_>,
        main: &mut Frame<'_>,
        phase: &Phase,
        row: usize,
        chunks: usize,
    ) -> bool {
        let each = self.reductions.len();
        let cells = Shared(main.cells);
        run.scratches.with((chunks * each * size_of::<Acc>()).max(1), |partial| {
            let partial = Shared(partial.cast::<Acc>());
            let (run, settled) = (*run, AtomicBool::new(false));
            let settled = &settled;
            run.team.over(chunks, 1, move |part| {
                // SAFETY: as for `run`; chunks write disjoint elements and accumulators.
                unsafe {
                    self.frame(&run, |frame| {
                        frame.set_loops(row);
                        frame.follow(&self.outer);
                        std::ptr::copy_nonoverlapping(cells.get(), frame.cells, self.targets.len());
                        for chunk in part {
                            if run.team.is_told() {
                                return;
                            }
                            frame.start(phase);
                            // What one chunk has settled the others need not look at: they add nothing.
                            if !settled.load(Ordering::Relaxed) {
                                frame.row_tiles(phase, self.chunk_tiles(chunk));
                                if phase.settles && frame.is_settled(phase) {
                                    settled.store(true, Ordering::Relaxed);
                                }
                            }
                            for &r in &phase.reduces {
                                partial.get().add(chunk * each + r as usize).write(*frame.accs.add(r as usize));
                            }
                        }
                    });
                }
            });
            // Chunks that were skipped have left nothing that could be joined.
            if run.team.is_told() {
                return false;
            }
            for &r in &phase.reduces {
                let fns = &self.reductions[r as usize].fns;
                let mut acc = fns.start();
                // SAFETY: every chunk has left its accumulators.
                unsafe {
                    (0..chunks).for_each(|chunk| fns.combine(&mut acc, &*partial.get().add(chunk * each + r as usize)));
                    main.accs.add(r as usize).write(acc);
                }
            }
            true
        })
    }

    /// The same on this thread: they are joined as they come, which is the same order.
    unsafe fn chunks_alone(&self, run: &Run<'_>, frame: &mut Frame<'_>, phase: &Phase, chunks: usize) -> bool {
        if self.is_plain_row_sum(phase) {
            // SAFETY: as for `run`.
            unsafe { frame.plain_row_sum(phase) };
            return !run.team.is_told();
        }
        run.scratches.with(self.reductions.len() * size_of::<Acc>(), |joined| {
            let joined = joined.cast::<Acc>();
            let reductions = || phase.reduces.iter().map(|&r| (r as usize, &self.reductions[r as usize].fns));
            // SAFETY: as for `run`; there is an accumulator for each reduction in both places.
            unsafe {
                reductions().for_each(|(r, fns)| joined.add(r).write(fns.start()));
                for chunk in 0..chunks {
                    if run.team.is_told() {
                        return false;
                    }
                    frame.start(phase);
                    frame.row_tiles(phase, self.chunk_tiles(chunk));
                    reductions().for_each(|(r, fns)| fns.combine(&mut *joined.add(r), &*frame.accs.add(r)));
                    if phase.settles && frame.is_settled(phase) {
                        break;
                    }
                }
                reductions().for_each(|(r, _)| frame.accs.add(r).write(*joined.add(r)));
            }
            !run.team.is_told()
        })
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
                                if run.team.is_told() {
                                    return;
                                }
                                frame.begin_tile(tile / per_row, first, n);
                                frame.start(phase);
                                let end = ((chunk + 1) * STEP_CHUNK).min(steps);
                                frame.column_steps(&phase.body, chunk * STEP_CHUNK..end);
                                std::ptr::copy_nonoverlapping(frame.columns, partial.get().add(chunk * words), words);
                            }
                        });
                    }
                });
                // Chunks that were skipped have left nothing that could be joined.
                if run.team.is_told() {
                    return;
                }
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
