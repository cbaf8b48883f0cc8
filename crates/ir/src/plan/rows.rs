//! A plan whose rows are computed independently, so that some can run on one device while others run elsewhere.
//!
//! A plan enters. If every row of its outputs needs one row of some inputs, and all of the others, then which inputs are
//! cut and which are whole leaves, and the same plan for fewer rows. Rows are counted along the first axis that is longer
//! than 1. Demand is followed from the outputs backwards: who is asked for rows must run over them, and what it reads at
//! its own row is asked for rows in turn; whatever it reads apart from them is asked for as a whole. What is not plain to
//! see is refused.

use super::{Contract, Kernel, Loops, Place, Plan};
use crate::check;
use crate::expr::{Access, Body, Inst};
use crate::index::{Atom, Index};
use crate::memory;
use crate::shape::Shape;

/// How a plan is divided by rows: see [`Plan::rows`].
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let (x, w) = (Tensor::input("x", DType::F32, [100, 8])?, Tensor::input("w", DType::F32, [8, 4])?);
/// let plan = Plan::new(&[&x.matmul(&w)?.softmax(-1)?])?;
/// let rows = plan.rows().expect("each row of the product needs one of x and all of w");
/// assert_eq!((rows.count, &rows.cut_inputs[..]), (100, &[true, false][..]));
/// let part = plan.of_rows(&rows, 30).expect("as many as there are, or fewer");
/// assert_eq!(part.buffer(part.outputs[0]).shape.dims(), [30, 4]);
/// assert!(Plan::new(&[&x.sum(&[0], false)?])?.rows().is_none());
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// How many rows there are.
    pub count: usize,
    /// For each input: is a row of it enough for a row of the outputs? Else all of it is needed.
    pub cut_inputs: Vec<bool>,
    /// For each buffer, the same.
    cut: Vec<bool>,
    /// For each kernel, the variable that runs over rows; `None` for one that is computed for all of them at once.
    along: Vec<Option<Along>>,
}

/// A loop over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Along {
    var: usize,
    /// Values of the variable for each row.
    each: usize,
    /// For a product: which of its axes, batch axes first and then the rows of the left side.
    axis: usize,
}

/// What is asked of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Demand {
    Rows,
    Whole,
}

/// Of all points of the loops this share may be computed on both sides.
const TWICE: f64 = 0.1;
/// A reduction that is this long and runs across memory may be summed in another order if there are fewer rows: CPUs split
/// it where there are few columns.
const LONG_COLUMN: usize = 1024;

impl Plan {
    /// How the plan can be divided by rows. `None` if it can't, or if that is not plain to see: a row that needs
    /// another one, an element that depends on the number of its row, a place that is looked up; and if too much would
    /// be computed on both sides.
    pub fn rows(&self) -> Option<Rows> {
        let leading = |info: &super::BufferInfo| info.shape.iter().copied().find(|&dim| dim != 1);
        let count = self.output_buffers().map(leading).min()??;
        if count < 2 {
            return None;
        }
        let mut demands: Vec<Option<Demand>> = vec![None; self.buffers.len()];
        for (id, _) in self.buffers.iter().enumerate().filter(|(_, b)| matches!(b.place, Place::Output(_))) {
            demands[id] = Some(Demand::Rows);
        }
        let mut along: Vec<Option<Along>> = vec![None; self.kernels.len()];
        let (mut points, mut twice) = (0.0, 0.0);
        for (at, kernel) in self.kernels.iter().enumerate().rev() {
            let mut asked = kernel.end().stores.iter().filter_map(|store| demands[store.buffer.0 as usize]);
            let first = asked.next()?;
            if asked.any(|other| other != first) {
                return None;
            }
            let work = work_of(kernel);
            points += work;
            let mut ask = Ask { plan: self, count, demands: &mut demands };
            along[at] = match first {
                Demand::Rows => Some(ask.of_kernel(kernel)?),
                Demand::Whole => {
                    twice += work;
                    ask.all_of(kernel)?;
                    None
                }
            };
        }
        if twice > points * TWICE {
            return None;
        }
        let cut: Vec<bool> = demands.iter().map(|demand| *demand == Some(Demand::Rows)).collect();
        let divides = |(cut, info): (&bool, &super::BufferInfo)| !cut || leading_axis(info.shape, count).is_some();
        if !cut.iter().zip(&self.buffers).all(divides) {
            return None;
        }
        Some(Rows { count, cut_inputs: cut[..self.inputs].to_vec(), cut, along })
    }

    /// The same plan for `count` rows, which may be any that follow each other. `None` if there are not so many, or
    /// fewer than two.
    pub fn of_rows(&self, rows: &Rows, count: usize) -> Option<Plan> {
        if count < 2 || count > rows.count || rows.cut.len() != self.buffers.len() {
            return None;
        }
        let mut plan = self.clone();
        for (info, _) in plan.buffers.iter_mut().zip(&rows.cut).filter(|(_, cut)| **cut) {
            let axis = leading_axis(info.shape, rows.count)?;
            info.shape = info.shape.with(axis, info.shape[axis] / rows.count * count);
        }
        for (kernel, along) in plan.kernels.iter_mut().zip(&rows.along) {
            let Some(Along { var, each, axis }) = *along else { continue };
            let end = match kernel {
                Kernel::Loops(loops) => loops,
                Kernel::Contract(contract) => {
                    shorten(contract, axis, rows.count, count);
                    &mut contract.end
                }
            };
            end.vars[var].extent = each * count;
        }
        check::plan(&plan);
        memory::lay_out(&mut plan);
        check::memory(&plan);
        Some(plan)
    }
}

/// The axis along which rows lie, if they are so many or each has as much of it.
fn leading_axis(shape: Shape, count: usize) -> Option<usize> {
    let axis = shape.iter().position(|&dim| dim != 1)?;
    (shape[axis] > 0 && shape[axis].is_multiple_of(count)).then_some(axis)
}

/// Makes one axis of a product as long as so many of all its rows.
fn shorten(contract: &mut Contract, axis: usize, of: usize, count: usize) {
    let is_rows = axis == contract.batch.len();
    let extent = if is_rows { &mut contract.m } else { &mut contract.batch[axis] };
    *extent = *extent / of * count;
    // The right side has other rows, but the same batches.
    let right = (!is_rows).then_some(&mut contract.right);
    for factor in [Some(&mut contract.left), right].into_iter().flatten() {
        if let Some(outermost) = factor.axes[axis].first_mut() {
            *outermost = *outermost / of * count;
        }
    }
}

/// Steps of the loops.
fn work_of(kernel: &Kernel) -> f64 {
    let points = kernel.end().points() as f64;
    match kernel {
        Kernel::Loops(_) => points,
        Kernel::Contract(contract) => points * contract.k.max(1) as f64,
    }
}

/// What has been asked so far.
struct Ask<'a> {
    plan: &'a Plan,
    count: usize,
    demands: &'a mut [Option<Demand>],
}

impl Ask<'_> {
    /// Elements of each row of a buffer.
    fn row_elems(&self, buffer: super::BufferId) -> Option<i64> {
        let elems = self.plan.buffer(buffer).shape.elems();
        (elems > 0 && elems.is_multiple_of(self.count)).then_some((elems / self.count) as i64)
    }

    fn ask(&mut self, buffer: super::BufferId, demand: Demand) -> Option<()> {
        let asked = &mut self.demands[buffer.0 as usize];
        (*asked.get_or_insert(demand) == demand).then_some(())
    }

    /// Asks for everything that a kernel reads as a whole.
    fn all_of(&mut self, kernel: &Kernel) -> Option<()> {
        let product = match kernel {
            Kernel::Contract(_) => Some(kernel.end().stores[0].buffer),
            Kernel::Loops(_) => None,
        };
        for body in kernel.bodies() {
            for access in body.accesses.iter().filter(|access| Some(access.buffer) != product) {
                self.ask(access.buffer, Demand::Whole)?;
            }
        }
        Some(())
    }

    /// The loop over rows of a kernel that writes rows, and asks for what it reads.
    fn of_kernel(&mut self, kernel: &Kernel) -> Option<Along> {
        let end = kernel.end();
        let mut along = self.stored_along(end)?;
        if may_sum_otherwise(end) {
            return None;
        }
        let Kernel::Contract(contract) = kernel else {
            self.reads(&end.body, Some(along), None)?;
            return Some(along);
        };
        // The product is read where it was written: at the row at hand, in an axis that has all rows.
        let axes: Vec<usize> = contract.batch.iter().copied().chain([contract.m]).collect();
        along.axis = axes.iter().position(|&extent| extent != 1)?;
        let elems = axes.iter().product::<usize>().checked_mul(contract.n)?;
        if !axes[along.axis].is_multiple_of(self.count) || elems != self.plan.buffer(end.stores[0].buffer).shape.elems()
        {
            return None;
        }
        let product = &end.body.accesses[contract.product as usize];
        if !self.is_own_row(product, along) {
            return None;
        }
        self.reads(&end.body, Some(along), Some(contract.product))?;
        for (factor, has_rows) in [(&contract.left, true), (&contract.right, along.axis < contract.batch.len())] {
            let own = if has_rows {
                let outermost = *factor.axes[along.axis].first()?;
                let var = factor.axes[..along.axis].iter().map(Vec::len).sum();
                (outermost % self.count == 0).then_some(Some(Along { var, each: outermost / self.count, axis: 0 }))?
            } else {
                None
            };
            self.reads(&factor.body, own, None)?;
        }
        Some(along)
    }

    /// The variable with which every store goes from row to row.
    fn stored_along(&self, loops: &Loops) -> Option<Along> {
        let along = |var: usize| Along { var, each: loops.vars[var].extent / self.count, axis: 0 };
        let runs_over_rows = |&var: &usize| {
            let super::Var { extent, inner } = loops.vars[var];
            let goes_on = |store: &super::Store| self.goes_on(store.buffer, &store.index, along(var));
            !inner && extent > 0 && extent.is_multiple_of(self.count) && loops.stores.iter().all(goes_on)
        };
        (0..loops.vars.len()).find(runs_over_rows).map(along)
    }

    /// Asks for what a body reads, whose rows run along a variable, or which has none; `product` is not asked for.
    fn reads(&mut self, body: &Body, along: Option<Along>, product: Option<u32>) -> Option<()> {
        let rows = along.map_or(0, |along| 1u64 << along.var);
        for inst in &body.insts {
            let numbered = match inst {
                // A position outside its axis is told of by its element, of whatever row.
                Inst::Gather { .. } => return None,
                Inst::Arange { index, .. } => index.vars(),
                Inst::Inside { conditions } => conditions.iter().fold(0, |vars, c| vars | c.index.vars()),
                _ => 0,
            };
            if numbered & rows != 0 {
                return None;
            }
        }
        for (number, access) in body.accesses.iter().enumerate() {
            if Some(number as u32) == product {
                continue;
            }
            let vars = access.conditions.iter().fold(access.index.vars(), |vars, c| vars | c.index.vars());
            let demand = match along.filter(|_| vars & rows != 0) {
                None => Demand::Whole,
                Some(along) if self.is_own_row(access, along) => Demand::Rows,
                Some(_) => return None,
            };
            self.ask(access.buffer, demand)?;
        }
        Some(())
    }

    /// Does an access read the row at hand, and nothing of others?
    fn is_own_row(&self, access: &Access, along: Along) -> bool {
        let is_numbered = access.conditions.iter().any(|c| c.index.vars() >> along.var & 1 == 1);
        !is_numbered && self.goes_on(access.buffer, &access.index, along)
    }

    /// Does an index go on by a row of the buffer for each row? Then it stays in its own: where it is apart from that is
    /// the same for all rows, and it leaves the buffer neither in the first row nor in the last.
    fn goes_on(&self, buffer: super::BufferId, index: &Index, along: Along) -> bool {
        let (row, factor) = (self.row_elems(buffer), coefficient(index, along.var));
        row.is_some() && factor.and_then(|factor| factor.checked_mul(along.each as i64)) == row
    }
}

/// The factor of a variable in an index, unless it is used inside a division.
fn coefficient(index: &Index, var: usize) -> Option<i64> {
    let mut found = 0;
    for (atom, factor) in &index.terms {
        match atom {
            Atom::Var(other) if usize::from(*other) == var => found = *factor,
            Atom::Wrapped { index, .. } if index.vars() >> var & 1 == 1 => return None,
            _ => {}
        }
    }
    Some(found)
}

/// Could a reduction be summed in another order if there were fewer rows? One across memory, and long.
fn may_sum_otherwise(loops: &Loops) -> bool {
    let inner: usize = loops.vars.iter().filter(|var| var.inner).map(|var| var.extent).product();
    let last = |inner: bool| loops.vars.iter().rposition(|var| var.inner == inner);
    let (Some(last_outer), Some(last_inner)) = (last(false), last(true)) else { return false };
    let contiguous = |var: usize| {
        let along = |access: &&Access| coefficient(&access.index, var).is_some_and(|factor| factor.abs() == 1);
        loops.body.accesses.iter().filter(along).count()
    };
    inner >= LONG_COLUMN && contiguous(last_outer) > contiguous(last_inner)
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
