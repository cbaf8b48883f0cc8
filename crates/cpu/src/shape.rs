//! The loops of a kernel as the CPU runs them: which variables are lanes, which are loops around them.
//!
//! A kernel's variables enter; neighbours that every access walks as one are merged, and one of three forms is chosen:
//! a map (lanes over points), rows (lanes along what is reduced) or columns (lanes over points, a loop over what is
//! reduced). The choice depends on the shapes alone, never on the number of threads, so that results do not either.

use breakeven_ir::DType;
use breakeven_ir::expr::{Access, Body, Inst};
use breakeven_ir::merge::{Group, groups};
use breakeven_ir::plan::Loops;

/// The form of the loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Lanes over points, nothing is reduced.
    Map,
    /// Lanes along the reduced variables.
    Rows,
    /// Lanes over points, a loop over the reduced variables.
    Columns,
}

/// The lowered loops. Variables are renumbered: loops first, then steps, then lanes.
#[derive(Clone, Debug)]
pub(crate) struct LoopShape {
    pub(crate) form: Form,
    /// Extents of the loops around everything.
    pub(crate) loops: Vec<usize>,
    /// Extents of the loops over what is reduced, apart from the lanes.
    pub(crate) steps: Vec<usize>,
    /// Extents of the variables that lanes run over, flattened row-major.
    pub(crate) lanes: Vec<usize>,
    /// The new number of each old variable.
    pub(crate) names: Vec<usize>,
    /// Old variables whose dependence makes a value differ between lanes.
    pub(crate) lane_mask: u64,
    pub(crate) inner_mask: u64,
}

/// A row at least this long is cut into tiles of its own; shorter ones are filled into a tile several at a time, or
/// calling the kernels would cost more than they do (about 5 ns a call against 0.06 ns an element).
const LONG_ROW: usize = 256;
/// Reductions over fewer elements than this run as columns, many of them at a time.
const SHORT_REDUCTION: usize = 32;
/// The same where rows lie in memory so that strips bring them into lanes, and nothing or something is written along them. 10^6
/// elements in rows of 33, as rows and as columns: sum 1,046 and 263 us, var 2,708 and 635, argmax 2,046 and 381, softmax 4,416 and
/// 1,923; in rows of 128 sums are equal, in rows of 64 softmax takes 1,225 and 2,026.
const SHORT_ROW: usize = 160;
const SHORT_WRITTEN_ROW: usize = 56;

/// With fewer columns than this, calling kernels for each step costs more than reading rows with a stride. Plain sums
/// are the exception: they take many steps in one call.
const FEW_COLUMNS: usize = 24;

/// Elements of a cache line.
pub(crate) const LINE: usize = 16;

/// A row at least this long is worth a tile of its own if something lies across it and the rows beside it are not its neighbours.
const ROW_ACROSS: usize = 32;
/// Neighbouring rows from the first length on, and below the second, are turned into blocks of several rows: a transposed 33 x 30,000
/// takes 640 us row by row.
const BLOCK_ROW: usize = 4;
const LONG_BLOCK_ROW: usize = 128;

impl LoopShape {
    /// The loops of `kernel`; if it is `ordered`, points keep their order.
    pub(crate) fn new(kernel: &Loops, ordered: bool) -> LoopShape {
        let inner_mask = kernel.inner_mask();
        let outer = groups(kernel, false);
        let inner = groups(kernel, true);
        let size = |groups: &[Group]| groups.iter().map(|g| g.extent).product::<usize>();
        let form = if inner.is_empty() {
            Form::Map
        } else if size(&inner) < short_reduction(kernel, &outer, &inner) && size(&outer) > size(&inner) {
            Form::Columns
        } else if size(&outer) < FEW_COLUMNS && size(&inner) >= LONG_ROW && !is_plain_reduction(&kernel.body) {
            Form::Rows
        } else {
            choose(&outer, &inner, &kernel.body, kernel.vars.len())
        };
        let (mut loops, mut steps, mut lanes) = (vec![], vec![], vec![]);
        let mut split = |groups: Vec<Group>, rest: &mut Vec<Group>| {
            let long = groups.last().is_some_and(|g| g.extent >= LONG_ROW);
            let keep = if long { groups.len() - 1 } else { 0 };
            for (at, group) in groups.into_iter().enumerate() {
                if at < keep { rest.push(group) } else { lanes.push(group) }
            }
        };
        match form {
            Form::Map if !ordered => match across(&outer, &kernel.body, kernel.vars.len()) {
                Some(last) => {
                    let mut rest = outer;
                    lanes.extend(rest.pop());
                    let (neighbours, along) = (last + 1 == rest.len(), rest.remove(last));
                    if neighbours && lanes.iter().all(|row| row.extent < LONG_BLOCK_ROW) {
                        lanes.insert(0, along);
                    } else {
                        rest.push(along);
                    }
                    loops = rest;
                }
                None => split(outer, &mut loops),
            },
            Form::Map => split(outer, &mut loops),
            Form::Columns => {
                split(outer, &mut loops);
                steps = inner;
            }
            Form::Rows => {
                split(inner, &mut steps);
                loops = outer;
            }
        }
        let mut names = vec![0; kernel.vars.len()];
        for (number, group) in loops.iter().chain(&steps).chain(&lanes).enumerate() {
            group.vars.iter().for_each(|&v| names[v] = number);
        }
        let lane_mask = lanes.iter().flat_map(|g| &g.vars).fold(0, |mask, &v| mask | 1 << v);
        let extents = |groups: Vec<Group>| groups.into_iter().map(|g| g.extent).collect();
        LoopShape {
            form,
            loops: extents(loops),
            steps: extents(steps),
            lanes: extents(lanes),
            names,
            lane_mask,
            inner_mask,
        }
    }

    /// How many variables there are now.
    pub(crate) fn count(&self) -> usize {
        self.loops.len() + self.steps.len() + self.lanes.len()
    }

    /// The number of the loop that lanes go on along: the last one of a map, the last step of columns.
    pub(crate) fn last_turn(&self) -> Option<usize> {
        let before = if self.form == Form::Columns { self.loops.len() } else { 0 };
        (before + self.turns().len()).checked_sub(1)
    }

    /// The extents of these loops.
    pub(crate) fn turns(&self) -> &[usize] {
        if self.form == Form::Columns { &self.steps } else { &self.loops }
    }

    /// The number of the first lane variable.
    pub(crate) fn first_lane(&self) -> usize {
        self.loops.len() + self.steps.len()
    }
}

/// Below how many elements a reduction runs as columns.
fn short_reduction(kernel: &Loops, outer: &[Group], inner: &[Group]) -> usize {
    let (body, count) = (&kernel.body, kernel.vars.len());
    let last = |groups: &[Group]| groups.last().map(|group| group.vars[group.vars.len() - 1]);
    let (Some(lane), Some(step)) = (last(outer), last(inner)) else { return SHORT_REDUCTION };
    let is_plain = |(inst, dtype): (&Inst, &DType)| match inst {
        Inst::Load { access } => {
            let access = &body.accesses[*access as usize];
            let lies_well = |c: Vec<i64>| c[step].abs() == 1 || c[step] == 0 && c[lane].abs() <= 1;
            *dtype != DType::Bool && access.conditions.is_empty() && access.index.affine(count).is_some_and(lies_well)
        }
        Inst::Const(_) | Inst::Map { .. } | Inst::Reduce { .. } => true,
        _ => false,
    };
    let one_lane_variable = outer.len() == 1 || outer.last().is_some_and(|group| group.extent >= LONG_ROW);
    let writes_along = kernel.stores.iter().any(|store| store.index.vars() & kernel.inner_mask() != 0);
    match one_lane_variable && body.insts.iter().zip(&body.dtypes).all(is_plain) {
        true if writes_along => SHORT_WRITTEN_ROW,
        true => SHORT_ROW,
        false => SHORT_REDUCTION,
    }
}

/// Is the body one reduction of what is loaded?
fn is_plain_reduction(body: &Body) -> bool {
    matches!(body.insts[..], [Inst::Load { .. }, Inst::Reduce { .. }, ..])
        && body.insts.iter().filter(|inst| matches!(inst, Inst::Reduce { .. })).count() == 1
}

/// Rows or columns: along which of the two innermost variables memory is contiguous for more of the accesses.
fn choose(outer: &[Group], inner: &[Group], body: &Body, count: usize) -> Form {
    let Some(last_outer) = outer.last().map(|g| g.vars[g.vars.len() - 1]) else { return Form::Rows };
    let last_inner = inner.last().map_or(0, |g| g.vars[g.vars.len() - 1]);
    let contiguous =
        |var: usize| body.accesses.iter().filter(|a| a.index.affine(count).is_some_and(|c| c[var].abs() == 1)).count();
    if contiguous(last_outer) > contiguous(last_inner) { Form::Columns } else { Form::Rows }
}

/// The loop along which something is contiguous that lies across the rows of a map: it is walked inside, row by row.
fn across(outer: &[Group], body: &Body, count: usize) -> Option<usize> {
    let (row, rest) = outer.split_last()?;
    let var = |group: &Group| group.vars[group.vars.len() - 1];
    let lies_across = |access: &Access, group: &Group| {
        access.index.affine(count).is_some_and(|c| {
            access.conditions.is_empty() && c[var(row)].unsigned_abs() >= LINE as u64 && c[var(group)].abs() == 1
        })
    };
    let fits = |group: &Group| group.extent >= LINE && body.accesses.iter().any(|access| lies_across(access, group));
    let place = rest.iter().position(fits)?;
    let least = if place + 1 == rest.len() { BLOCK_ROW } else { ROW_ACROSS };
    (row.extent >= least).then_some(place)
}
