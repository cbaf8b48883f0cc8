//! Runs a contraction: operands in place or packed from their fused expressions, GEMM by row panels, and the fused end
//! on each panel while it is in cache.

use crate::kernels::contract::{Gemm, Matrix, SMALL, Way, gemm, gemm_until};
use crate::kernels::packed::Maker;
use crate::level::Level;
use crate::lower::Manner;
use crate::program::TileProgram;
use crate::schedule::{Buffers, Run};
use breakeven_ir::index::Index;
use breakeven_ir::plan::{BufferId, BufferInfo, Contract, Factor, Loops, Place as MemoryPlace, Plan, Store, Var};
use breakeven_ir::{DType, Shape};
use std::ops::Range;

/// A contraction made ready.
pub(crate) struct Product {
    batch: Vec<usize>,
    m: usize,
    n: usize,
    k: usize,
    left: Operand,
    right: Operand,
    /// The buffer of the result.
    dst: usize,
    /// `None` if the product is the result.
    end: Option<TileProgram>,
    level: Level,
}

enum Operand {
    /// Read where it is: buffer, offset, and strides of the batch axes, rows and columns.
    Direct { buffer: usize, offset: i64, batch: Vec<i64>, row: i64, column: i64 },
    /// Computed into scratch, row-major.
    Packed(Box<TileProgram>),
}

/// Rows of a panel at least: GEMM packs its right operand again for each panel, which fewer rows would not make up for.
/// Each element is summed along k in the same order whatever the panel, so that their number does not change results: which
/// kernel does it is decided for the whole product, and no panel is so narrow that GEMM would go in other steps.
const PANEL: usize = 48;
/// The same for products that are not packed.
const SMALL_PANEL: usize = 16;
/// With so many rows for each thread the rows are split, otherwise the columns if the product is the result.
const ROWS: usize = 2 * PANEL;
/// Columns of a panel at least, where the columns are split because there are few rows.
const COLUMN_PANEL: usize = 64;

impl Product {
    pub(crate) fn new(plan: &Plan, contract: &Contract, level: Level) -> Product {
        let end = &contract.end;
        let plain = end.body.insts.len() == 1 && end.stores.len() == 1;
        Product {
            batch: contract.batch.clone(),
            m: contract.m,
            n: contract.n,
            k: contract.k,
            left: Operand::new(plan, &contract.left, level),
            right: Operand::new(plan, &contract.right, level),
            dst: end.stores[0].buffer.0 as usize,
            end: (!plain).then(|| TileProgram::new(plan, end, level, Manner::Parts)),
            level,
        }
    }

    /// Estimated time on one thread: 40 flops a nanosecond, and what packing and the end take.
    pub(crate) fn estimate_ns(&self) -> u64 {
        let programs = [self.left.program(), self.right.program(), self.end.as_ref()];
        let around: u64 = programs.into_iter().flatten().map(|p| p.points() * p.estimate_ps / 1000).sum();
        self.points() * self.k as u64 / 20 + around
    }

    fn batches(&self) -> usize {
        self.batch.iter().product()
    }

    fn points(&self) -> u64 {
        (self.batches() * self.m * self.n) as u64
    }

    /// # Safety
    /// As for [`TileProgram::run`].
    pub(crate) unsafe fn run(&self, run: &Run<'_>) {
        let batches = self.batches();
        // Many small products: whole ones for each thread. Few large ones: their rows are split.
        let threads = run.team.pool.threads();
        let multiply_adds = self.m * self.n * self.k;
        let maker = Maker::of(self.level, multiply_adds);
        let column_panel = COLUMN_PANEL.max(maker.least_side(self.m, self.k));
        let columns = (self.n / column_panel).min(threads);
        let few_rows = self.m < threads * ROWS;
        let by_columns = self.m < 2 * PANEL || (self.end.is_none() && few_rows && self.n >= self.m);
        if run.team.parallel && batches < threads && by_columns && columns > 1 {
            // SAFETY: passed on.
            unsafe { self.run_columns(run, columns) };
            return;
        }
        let panel = if multiply_adds <= SMALL { SMALL_PANEL } else { PANEL };
        if batches >= 2 * threads || !run.team.parallel || self.m < 2 * panel {
            run.team.over(batches, 1, |part| {
                for batch in part {
                    if run.team.is_told() {
                        return;
                    }
                    // SAFETY: passed on; batches write disjoint parts of the result.
                    unsafe { self.packed_right(run, batch, |right| self.panel(run, batch, right, 0, self.m)) };
                }
            });
            return;
        }
        let panels = (self.m / panel.max(maker.least_side(self.n, self.k))).clamp(1, threads);
        for batch in 0..batches {
            // SAFETY: passed on; panels write disjoint rows of the result.
            unsafe {
                self.packed_right(run, batch, |right| {
                    let right = SharedMatrix(right);
                    run.team.over(panels, 1, |part| {
                        let rows = self.m * part.start / panels..self.m * part.end / panels;
                        self.panel(run, batch, right.get(), rows.start, rows.len());
                    });
                });
            }
        }
    }

    /// Few rows and many columns: the columns are split, and the end follows when all are there.
    unsafe fn run_columns(&self, run: &Run<'_>, panels: usize) {
        for batch in 0..self.batches() {
            // SAFETY: passed on; panels write disjoint columns of the result.
            unsafe {
                self.packed_right(run, batch, |right| {
                    let right = SharedMatrix(right);
                    run.team.over(panels, 1, |part| {
                        let columns = self.n * part.start / panels..self.n * part.end / panels;
                        self.block(run, batch, right.get(), 0, self.m, columns);
                    });
                });
                if let Some(end) = &self.end {
                    let start = batch * self.m * self.n;
                    run.team.over(self.m, 1, |rows| {
                        end.run_part(run, start + rows.start * self.n..start + rows.end * self.n);
                    });
                }
            }
        }
    }

    /// The right operand of one batch, packed if it has to be.
    unsafe fn packed_right(&self, run: &Run<'_>, batch: usize, work: impl FnOnce(Matrix)) {
        // SAFETY: passed on.
        unsafe { self.right.matrix(run, batch, &self.batch, 0, self.k, self.n, work) }
    }

    /// Rows `first..first + rows` of one batch, and their end.
    unsafe fn panel(&self, run: &Run<'_>, batch: usize, right: Matrix, first: usize, rows: usize) {
        let start = (batch * self.m + first) * self.n;
        // SAFETY: the rows are inside the result.
        unsafe {
            self.block(run, batch, right, first, rows, 0..self.n);
            if let Some(end) = &self.end {
                end.run_part(run, start..start + rows * self.n);
            }
        }
    }

    /// The product of some rows and columns of one batch.
    unsafe fn block(
        &self,
        run: &Run<'_>,
        batch: usize,
        right: Matrix,
        first: usize,
        rows: usize,
        columns: Range<usize>,
    ) {
        let start = (batch * self.m + first) * self.n + columns.start;
        // SAFETY: the rows and columns are inside the result.
        unsafe {
            let dst = run.buffers.base(self.dst).cast::<f32>().add(start);
            let right = Matrix { base: right.base.offset(columns.start as isize * right.column), ..right };
            self.left.matrix(run, batch, &self.batch, first, rows, self.k, |left| {
                let (m, n, k) = (rows, columns.len(), self.k);
                let way = Way::of(self.level, self.m, self.n, k, &left, &right);
                let product = Gemm { m, n, k, left, right, dst, dst_row: self.n as isize, way };
                match run.team.stop {
                    None => gemm(self.level, &product),
                    Some(stop) => gemm_until(self.level, &product, stop),
                }
            });
        }
    }
}

/// A packed operand that the threads of one product read.
#[derive(Clone, Copy)]
struct SharedMatrix(Matrix);
// SAFETY: it is only read while it is shared.
unsafe impl Sync for SharedMatrix {}
impl SharedMatrix {
    fn get(&self) -> Matrix {
        self.0
    }
}

impl Operand {
    fn new(plan: &Plan, factor: &Factor, level: Level) -> Operand {
        if let Some((access, strides)) = factor.strides() {
            let [batch @ .., row, column] = &strides[..] else { unreachable!("an operand has rows and columns") };
            return Operand::Direct {
                buffer: access.buffer.0 as usize,
                offset: access.index.offset,
                batch: batch.to_vec(),
                row: *row,
                column: *column,
            };
        }
        // A map over (batch.., row, column) into a buffer of its own, behind the plan's.
        let extents = factor.extents();
        let index = extents
            .iter()
            .enumerate()
            .fold(Index::default(), |sum, (var, &extent)| sum.times(extent as i64).plus(&Index::var(var as u8), 1));
        let buffer = BufferId(plan.buffers.len() as u32);
        let loops = Loops {
            vars: extents.iter().map(|&extent| Var { extent, inner: false }).collect(),
            body: factor.body.clone(),
            stores: vec![Store { buffer, index, value: factor.body.insts.len() as u32 - 1 }],
        };
        let mut wider = plan.clone();
        wider.buffers.push(BufferInfo { dtype: DType::F32, shape: Shape::SCALAR, place: MemoryPlace::Scratch(0) });
        Operand::Packed(Box::new(TileProgram::new(&wider, &loops, level, Manner::Parts)))
    }

    fn program(&self) -> Option<&TileProgram> {
        match self {
            Operand::Direct { .. } => None,
            Operand::Packed(program) => Some(program),
        }
    }

    /// Rows `first..first + rows` of one batch as a matrix.
    #[allow(clippy::too_many_arguments, reason = "the extents of a block in a batch")]
    unsafe fn matrix(
        &self,
        run: &Run<'_>,
        batch: usize,
        extents: &[usize],
        first: usize,
        rows: usize,
        columns: usize,
        work: impl FnOnce(Matrix),
    ) {
        match self {
            Operand::Direct { buffer, offset, batch: strides, row, column } => {
                let mut at = offset + row * first as i64;
                let mut rest = batch;
                for (&extent, &stride) in extents.iter().zip(strides).rev() {
                    at += stride * (rest % extent) as i64;
                    rest /= extent;
                }
                // SAFETY: the plan's accesses stay inside their buffers.
                let base = unsafe { run.buffers.base(*buffer).cast_const().cast::<f32>().offset(at as isize) };
                work(Matrix { base, row: *row as isize, column: *column as isize });
            }
            Operand::Packed(program) => {
                let all = program.points() as usize / extents.iter().product::<usize>().max(1);
                let start = batch * all + first * columns;
                run.scratches.with(rows * columns * 4, |packed| {
                    // The program writes element `start` first: the base it sees lies that far before the block.
                    // SAFETY: the addresses are there while the product runs.
                    let bases = unsafe { run.buffers.and(packed.wrapping_sub(start * 4)) };
                    let buffers = Buffers::new(&bases);
                    let own = Run { buffers, scratches: run.scratches, team: run.team, wrong: run.wrong };
                    // SAFETY: the block holds every element of the range.
                    unsafe { program.run_part(&own, start..start + rows * columns) };
                    work(Matrix { base: packed.cast(), row: columns as isize, column: 1 });
                });
            }
        }
    }
}

#[cfg(test)]
#[path = "product_tests.rs"]
mod tests;
