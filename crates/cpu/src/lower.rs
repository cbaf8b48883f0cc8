//! Lowers a fused body to steps over tiles: every operand a pointer, every step a function that was chosen beforehand.
//!
//! A kernel of the plan enters, a [`TileProgram`] leaves, which `tile` runs. Contiguous inputs are read and outputs
//! written in place; only what lies between goes through slots in L1. Values that do not differ between lanes are
//! computed once and passed as scalars.

mod across;
mod emit;

use crate::kernels::reduce::{ReduceFns, row_deviation_at, row_dot_at};
use crate::level::Level;
use crate::moving::Levels;
use crate::peephole::{Deviation, Merged, Overlay, byte_loads, deviations, factors, is_all_bytes, merged, overlays};
use crate::place::{Bound, Place};
use crate::program::{Access, Phase, Ptr, Reduction, Step, Target, TileProgram};
use crate::shape::{Form, LoopShape};
use crate::slots;
use crate::stream::copy_at;
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::plan::{Loops, Plan, Store};

/// A whole row up to this many lanes stays in L1 and L2 while all phases pass over it.
const ROW_TILE: usize = 16_384;
/// Lanes of a tile with slots: 256 to 2,048 are within 6 %, 4,096 costs 12-28 % more.
const TILE: usize = 1024;
/// Lanes of a tile of column sums without slots: rows are read in long stretches, and 32 KiB of accumulators stay near.
const COLUMN_TILE: usize = 4096;
/// Lanes of a tile that reads across rows, each of which may be a page of its own: a transposed copy of 1000 x 1000 takes 600 us
/// with 64, 500 with 128 and with 256.
const ACROSS_TILE: usize = 128;
/// The same of columns, which are short rows then: calling kernels for each step counts for more.
const ACROSS_COLUMNS: usize = 256;
/// Lanes of a tile that needs no slot: only the cost of a call counts.
const WIDE_TILE: usize = 16_384;

/// How a program is to be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// As a whole, in any order.
    Whole,
    /// The same, and results go through a slot and past the caches.
    Streamed,
    /// Range by range of its points in their order.
    Parts,
}

/// Where a value is.
#[derive(Clone, Copy)]
struct Loc {
    ptr: Ptr,
    scalar: bool,
}

struct Lowering<'a> {
    kernel: &'a Loops,
    level: Level,
    /// Of what does little but move memory.
    moving: Level,
    /// Is it run range by range of its points?
    ordered: bool,
    masks: Vec<u64>,
    phase_of: Vec<usize>,
    locs: Vec<Option<Loc>>,
    out: TileProgram,
    /// The store that a value is written to in place, and its pointer.
    in_place: Vec<Option<u32>>,
    /// The two factors of a reduction that sums products.
    factors: Vec<Option<[Value; 2]>>,
    /// What a reduction sums the squares of, where nothing keeps it.
    deviations: Vec<Option<Deviation>>,
    /// The load of a reduction that takes bytes as they lie.
    bytes: Vec<Option<u32>>,
    /// Is everything bytes, which need not become lanes?
    all_bytes: bool,
    /// What takes in another value.
    merged: Vec<Option<Merged>>,
    /// What is laid over another value.
    overlays: Vec<Option<Overlay>>,
    /// Is it taken in by another value?
    taken: Vec<bool>,
}

impl TileProgram {
    /// Lowers `kernel` to be run in this manner.
    pub(crate) fn new(plan: &Plan, kernel: &Loops, levels: impl Into<Levels>, manner: Manner) -> TileProgram {
        let Levels { computing: level, moving } = levels.into();
        let shape = LoopShape::new(kernel, manner == Manner::Parts);
        let count = shape.count();
        let access =
            |buffer: breakeven_ir::plan::BufferId, index, conditions: &[breakeven_ir::expr::Condition]| Access {
                buffer: buffer.0 as usize,
                width: plan.buffer(buffer).dtype.size_bytes(),
                place: Place::new(index, &shape.names, count),
                bounds: conditions.iter().map(|c| Bound::new(c, &shape.names, count)).collect(),
            };
        let loads = kernel.body.accesses.iter().map(|a| access(a.buffer, &a.index, &a.conditions)).collect();
        let stores = kernel.stores.iter().map(|s| access(s.buffer, &s.index, &[])).collect();
        let out = TileProgram {
            tile: 0,
            lane_count: shape.lanes.iter().product(),
            step_count: shape.steps.iter().product(),
            loop_count: shape.loops.iter().product(),
            tiles_per_row: 0,
            frame_offsets: [0; 8],
            head: vec![],
            phases: vec![],
            targets: vec![],
            slot_offsets: vec![],
            slot_bytes: 0,
            consts: vec![],
            loads,
            stores,
            outer: vec![],
            inner: vec![],
            reductions: vec![],
            scans: vec![],
            stream: (manner == Manner::Streamed).then(|| copy_at(level)),
            across: false,
            strips: 0,
            estimate_ps: 0,
            shape,
        };
        let masks = kernel.body.var_masks(out.shape.inner_mask);
        let deviations = deviations(kernel, &out);
        let merged = merged(kernel, &out, &deviations);
        let mut taken = vec![false; kernel.body.insts.len()];
        merged.iter().flatten().for_each(|merged| taken[merged.taken as usize] = true);
        let overlays = overlays(kernel, &out);
        for (v, _) in overlays.iter().enumerate().filter(|(_, overlay)| overlay.is_some()) {
            let is_taken = |arg: &Value| !matches!(kernel.body.insts[*arg as usize], Inst::Const(_));
            kernel.body.insts[v].args().filter(is_taken).for_each(|arg| taken[arg as usize] = true);
        }
        let mut lowering = Lowering {
            kernel,
            level,
            moving,
            ordered: manner == Manner::Parts,
            phase_of: phases(kernel),
            locs: vec![None; kernel.body.insts.len()],
            in_place: vec![None; kernel.body.insts.len()],
            factors: factors(kernel, &out),
            deviations,
            bytes: byte_loads(kernel, &out),
            all_bytes: is_all_bytes(kernel, &out),
            merged,
            overlays,
            taken,
            masks,
            out,
        };
        lowering.out.across = match lowering.out.shape.form {
            Form::Map => manner != Manner::Parts && lowering.reads_across(),
            Form::Columns => lowering.reads_across(),
            Form::Rows => false,
        };
        lowering.run();
        lowering.out
    }

    /// Is every row one tile, so that values stay from phase to phase?
    pub(crate) fn whole_rows(&self) -> bool {
        self.shape.form == Form::Rows && self.shape.steps.is_empty() && self.lane_count <= ROW_TILE
    }
}

/// The phase in which each value is available: a reduction's result, one phase after its argument.
fn phases(kernel: &Loops) -> Vec<usize> {
    let mut phases: Vec<usize> = Vec::with_capacity(kernel.body.insts.len());
    for inst in &kernel.body.insts {
        let args = inst.args().map(|a| phases[a as usize]).max().unwrap_or(0);
        phases.push(args + usize::from(matches!(inst, Inst::Reduce { .. })));
    }
    phases
}

impl Lowering<'_> {
    fn run(&mut self) {
        let insts = &self.kernel.body.insts;
        let phase_count = insts
            .iter()
            .enumerate()
            .map(|(v, inst)| self.phase_of[v] + usize::from(self.is_inner(v) && !matches!(inst, Inst::Reduce { .. })))
            .max()
            .unwrap_or(0)
            .max(self.phase_of.iter().copied().max().unwrap_or(0));
        let stored = |store: &Store| self.phase_of[store.value as usize] + usize::from(self.store_is_inner(store));
        let phase_count = phase_count.max(self.kernel.stores.iter().map(stored).max().unwrap_or(0));
        let phase_count = if self.out.shape.form == Form::Map { 0 } else { phase_count };
        let whole = self.out.whole_rows();
        let mut head = Vec::new();
        self.outer_level(0, &mut head);
        self.out.head = head;
        for phase in 0..phase_count {
            if !whole {
                // Everything that differs along the row is computed again: only outer values were kept.
                for v in 0..insts.len() {
                    if self.is_inner(v) {
                        self.locs[v] = None;
                    }
                }
            }
            let mut body = Vec::new();
            let mut reduces = Vec::new();
            for v in self.needed_in(phase) {
                self.emit(v, &mut body);
            }
            for (v, inst) in insts.iter().enumerate() {
                if let Inst::Reduce { op, arg } = *inst
                    && self.phase_of[arg as usize] == phase
                {
                    let bytes = self.bytes[v].and_then(|access| Some((access, ReduceFns::of_bytes(op, self.level)?)));
                    let fns = match bytes {
                        Some((_, fns)) => fns,
                        None => ReduceFns::new(op, self.kernel.body.dtypes[arg as usize], self.level)
                            .over_rows_of(self.out.lane_count, self.moving),
                    };
                    let scalar = self.out.shape.form == Form::Rows;
                    let dst = self.ptr(if scalar { Target::Cell } else { Target::Slot });
                    let reduce = self.out.reductions.len() as u32;
                    self.out.reductions.push(Reduction { fns, dst });
                    let step = match (self.deviations[v], self.factors[v]) {
                        (Some(Deviation { of: [x, mean], .. }), _) => {
                            let (a, b) = (self.vector(x, &mut body), self.loc(mean).ptr);
                            Step::Dot { f: row_deviation_at(self.level), reduce, a, b }
                        }
                        (None, Some([a, b])) => {
                            let (a, b) = (self.vector(a, &mut body), self.vector(b, &mut body));
                            Step::Dot { f: row_dot_at(self.level, self.is_long(&[a, b])), reduce, a, b }
                        }
                        (None, None) => {
                            let src = match bytes {
                                Some((access, _)) => self.follow(self.out.loads[access as usize].clone(), true),
                                None => self.vector(arg, &mut body),
                            };
                            if self.is_long(&[src]) {
                                let fns = &mut self.out.reductions[reduce as usize].fns;
                                *fns = fns.over_long_rows(self.level);
                            }
                            Step::Reduce { reduce, src }
                        }
                    };
                    body.push(step);
                    reduces.push(reduce);
                    self.locs[v] = Some(Loc { ptr: dst, scalar });
                }
            }
            self.store_values(phase, true, &mut body);
            let mut after = Vec::new();
            self.outer_level(phase + 1, &mut after);
            let settles = self.settles(&body, &reduces);
            self.out.phases.push(Phase { body, reduces, settles, after });
        }
        self.go_past();
        // The result of a column reduction is a slot too, but it is written once.
        let writes_slot = |step: &Step| step.writes().is_some_and(|p| self.out.targets[p as usize] == Target::Slot);
        let slots_used = self.out.head.iter().chain(self.out.phases.iter().flat_map(|p| &p.body)).any(writes_slot);
        let lanes = self.out.lane_count;
        self.out.tile = match (whole, slots_used) {
            (true, _) => lanes.max(1),
            _ if self.out.across && self.out.shape.form == Form::Columns => ACROSS_COLUMNS.min(lanes.max(1)),
            _ if self.has_blocks() => self.block_tile().min(lanes.max(1)),
            _ if self.out.across => ACROSS_TILE.min(lanes.max(1)),
            (_, false) if self.out.shape.form == Form::Columns => COLUMN_TILE.min(lanes.max(1)),
            (_, false) => WIDE_TILE.min(lanes.max(1)),
            _ => TILE.min(lanes.max(1)),
        };
        self.out.tiles_per_row = lanes.div_ceil(self.out.tile);
        slots::assign(&mut self.out);
        self.out.frame_offsets = self.out.frame_layout();
        self.out.estimate_ps = self.estimate();
    }

    /// Makes one step of a map that is a kernel over memory whose results go past the caches, so that it needs no slot.
    fn go_past(&mut self) {
        let [Step::Map { f, dst, args, arity, one: false }, Step::Store { store, src, scalar: false }] =
            self.out.head[..]
        else {
            return;
        };
        let targets = |ptr: Ptr| self.out.targets[ptr as usize];
        let access = &self.out.stores[store as usize];
        let lies_in_lanes = access.width == 4 && self.out.contiguous(&access.place);
        let is_ready = args[..usize::from(arity)].iter().all(|&arg| targets(arg) != Target::Slot);
        if self.out.stream.is_none() || self.out.shape.form != Form::Map || src != dst || !lies_in_lanes || !is_ready {
            return;
        }
        let along = args.map(|arg| self.out.outer.iter().any(|f| f.ptr == arg && self.out.contiguous(&f.place)));
        self.out.targets[dst as usize] = Target::Memory;
        self.out.head = vec![Step::Past { f, args, arity, along, store }];
    }

    /// Is a phase done when its reductions have settled? Not if it writes, counts along, or may meet a wrong position.
    fn settles(&self, body: &[Step], reduces: &[u32]) -> bool {
        let leaves_nothing = |step: &Step| match step {
            Step::Store { .. } | Step::Scan { .. } | Step::Gather { .. } => false,
            step => step.writes().is_none_or(|ptr| self.out.targets[ptr as usize] != Target::Memory),
        };
        self.out.shape.form == Form::Rows
            && !reduces.is_empty()
            && reduces.iter().all(|&r| self.out.reductions[r as usize].fns.settles())
            && body.iter().all(leaves_nothing)
    }

    /// The values that computing `v` takes, and how many: also those of a value that it takes in.
    fn args(&self, v: usize) -> ([Value; 3], usize) {
        if let Some(merged) = self.merged[v] {
            return (merged.args, merged.arity);
        }
        if self.overlays[v].is_some() {
            return ([0; 3], 0);
        }
        let mut args = [0; 3];
        let count = self.kernel.body.insts[v].args().zip(&mut args).map(|(arg, slot)| *slot = arg).count();
        (args, count)
    }

    /// Does the value differ along what is reduced?
    fn is_inner(&self, v: usize) -> bool {
        self.masks[v] & self.out.shape.inner_mask != 0
    }

    /// Is the value the same in all lanes?
    fn is_scalar(&self, v: usize) -> bool {
        match self.out.shape.form {
            Form::Rows => !self.is_inner(v),
            // A reduction over columns has a result in every lane, even of an argument that is the same in all.
            _ => !self.depends_on_lanes(v),
        }
    }

    fn depends_on_lanes(&self, v: usize) -> bool {
        let inst = &self.kernel.body.insts[v];
        self.masks[v] & self.out.shape.lane_mask != 0
            || matches!(inst, Inst::Reduce { .. } | Inst::Scan { .. })
            || (matches!(inst, Inst::Map { .. } | Inst::Gather { .. })
                && inst.args().any(|a| self.depends_on_lanes_memo(a as usize)))
    }

    /// As above for an argument; a chain of any length must not recurse, so it looks at where the value already is.
    fn depends_on_lanes_memo(&self, v: usize) -> bool {
        match self.locs[v] {
            Some(loc) => !loc.scalar,
            None => self.masks[v] & self.out.shape.lane_mask != 0,
        }
    }

    /// The values that phase `phase` computes for each tile or step: what its reductions and stores need.
    fn needed_in(&self, phase: usize) -> Vec<usize> {
        let insts = &self.kernel.body.insts;
        let mut needed = vec![false; insts.len()];
        for (v, inst) in insts.iter().enumerate() {
            if let Inst::Reduce { arg, .. } = inst
                && self.phase_of[*arg as usize] == phase
                && self.bytes[v].is_none()
            {
                let args = self.deviations[v].map(|deviation| deviation.of).or(self.factors[v]).unwrap_or([*arg; 2]);
                args.iter().for_each(|&arg| needed[arg as usize] = true);
            }
        }
        for store in &self.kernel.stores {
            let v = store.value as usize;
            needed[v] |= self.is_inner(v) && self.phase_of[v] == phase;
        }
        for v in (0..insts.len()).rev() {
            needed[v] &= self.is_inner(v) && self.locs[v].is_none();
            if needed[v] {
                self.args(v).0.into_iter().take(self.args(v).1).for_each(|a| needed[a as usize] = true);
            }
        }
        (0..insts.len()).filter(|&v| needed[v]).collect()
    }

    /// Emits the values that do not differ along what is reduced and become available in `phase`, and stores them.
    fn outer_level(&mut self, phase: usize, steps: &mut Vec<Step>) {
        for v in 0..self.kernel.body.insts.len() {
            let reduce = matches!(self.kernel.body.insts[v], Inst::Reduce { .. });
            if self.phase_of[v] == phase && !self.is_inner(v) && !reduce && self.locs[v].is_none() && !self.taken[v] {
                self.emit(v, steps);
            }
        }
        self.store_values(phase, false, steps);
    }

    /// Does the store write along what is reduced? Its value may well be the same all along.
    fn store_is_inner(&self, store: &Store) -> bool {
        store.index.vars() & self.out.shape.inner_mask != 0
    }

    /// Picoseconds an element: the op table's costs at 40 ps an addition and 30 ps a lane moved, both measured with
    /// AVX2 in L1 on 3 GHz cores. It only has to be right within a factor of 3 until the first runs are measured.
    fn estimate(&self) -> u64 {
        let ops: u64 = self
            .kernel
            .body
            .insts
            .iter()
            .map(|inst| match inst {
                Inst::Map { op, .. } => u64::from(op.row().cost) * 40,
                Inst::Reduce { .. } => 40,
                Inst::Scan { .. } => 1500,
                Inst::Gather { .. } => 1000,
                _ => 0,
            })
            .sum();
        let fills = self.out.head.iter().chain(self.out.phases.iter().flat_map(|p| &p.body));
        let fills = fills.filter(|s| matches!(s, Step::Fill { one: false, .. } | Step::Store { .. })).count() as u64;
        ops + 100 * fills + 30 * (self.out.loads.len() + self.out.stores.len()) as u64
    }
}
