//! Kernels over buffers that are larger than one binding may show: cut along the outermost variable, so that each part
//! reaches only as far as can be bound.

use super::{Target, Unsupported};
use crate::stage::{Slot, Stage};
use breakeven_ir::expr::{Condition, Inst};
use breakeven_ir::index::{Atom, Index};
use breakeven_ir::plan::Loops;

/// The parts of a kernel: itself, unless a buffer is too large.
pub(crate) fn parts(target: &Target<'_>, loops: &Loops) -> Result<Vec<Loops>, Unsupported> {
    let buffers = loops.body.accesses.iter().map(|a| a.buffer).chain(loops.stores.iter().map(|s| s.buffer));
    let limit = target.limits.binding_bytes;
    let Some(large) = buffers.map(|b| target.plan.buffer(b)).find(|b| b.bytes() as u64 > limit) else {
        return Ok(vec![loops.clone()]);
    };
    let refuse =
        || Unsupported(format!("a buffer of {} bytes is larger than the device binds ({limit})", large.bytes()));
    let Some(var) = loops.vars.iter().position(|v| !v.inner && v.extent > 1) else { return Err(refuse()) };
    let extent = loops.vars[var].extent;
    let mut count = 2;
    while count <= extent {
        let parts: Vec<Loops> =
            (0..count).map(|part| restrict(loops, var, extent * part / count..extent * (part + 1) / count)).collect();
        if parts.iter().all(|part| fits(target, part)) {
            return Ok(parts);
        }
        count *= 2;
    }
    Err(refuse())
}

/// Binds only what a kernel reaches of buffers that are too large to be bound whole.
pub(crate) fn narrow(target: &Target<'_>, loops: &Loops, stage: &mut Stage) {
    let extents: Vec<usize> = loops.vars.iter().map(|v| v.extent).collect();
    for binding in &mut stage.bindings {
        let Slot::Buffer(id) = binding.slot else { continue };
        let info = target.plan.buffer(id);
        if info.bytes() as u64 <= target.limits.binding_bytes {
            continue;
        }
        let reads = loops.body.accesses.iter().filter(|a| a.buffer == id).map(|a| &a.index);
        let writes = loops.stores.iter().filter(|s| s.buffer == id).map(|s| &s.index);
        let ranges = reads.chain(writes).map(|i| range(i, &extents, info.shape.elems(), info.dtype.size_bytes()));
        if let Some(window) = ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) {
            binding.window = window;
        }
    }
}

/// The elements from the first to the last that an index reaches, widened to what bindings may start at.
fn range(index: &Index, extents: &[usize], elems: usize, element_bytes: usize) -> std::ops::Range<usize> {
    let (low, high) = index.bounds(extents);
    let step = (256 / element_bytes) as i64;
    let low = low.clamp(0, elems as i64).div_euclid(step) * step;
    low as usize..(high + 1).clamp(low, elems as i64) as usize
}

fn fits(target: &Target<'_>, loops: &Loops) -> bool {
    let extents: Vec<usize> = loops.vars.iter().map(|v| v.extent).collect();
    let reads = loops.body.accesses.iter().map(|a| (a.buffer, &a.index));
    let writes = loops.stores.iter().map(|s| (s.buffer, &s.index));
    let gathers = loops.body.insts.iter().any(|i| matches!(i, Inst::Gather { .. }));
    !gathers
        && reads.chain(writes).all(|(buffer, index)| {
            let info = target.plan.buffer(buffer);
            let window = range(index, &extents, info.shape.elems(), info.dtype.size_bytes());
            ((window.len() + 64) * info.dtype.size_bytes()) as u64 <= target.limits.binding_bytes
        })
}

/// The kernel over a part of one variable's range.
fn restrict(loops: &Loops, var: usize, range: std::ops::Range<usize>) -> Loops {
    let mut part = loops.clone();
    part.vars[var].extent = range.len();
    let by = range.start as i64;
    let conditions = |list: &mut Vec<Condition>| list.iter_mut().for_each(|c| c.index = shifted(&c.index, var, by));
    for access in &mut part.body.accesses {
        access.index = shifted(&access.index, var, by);
        conditions(&mut access.conditions);
    }
    for inst in &mut part.body.insts {
        match inst {
            Inst::Arange { index, .. } => *index = shifted(index, var, by),
            Inst::Inside { conditions: list } => conditions(list),
            _ => {}
        }
    }
    part.stores.iter_mut().for_each(|s| s.index = shifted(&s.index, var, by));
    part
}

/// The index with `var + by` for `var`.
fn shifted(index: &Index, var: usize, by: i64) -> Index {
    let mut out = Index::constant(index.offset);
    for (atom, coefficient) in &index.terms {
        match atom {
            Atom::Var(v) if usize::from(*v) == var => {
                out = out.plus(&Index::var(*v), *coefficient).shift(coefficient * by);
            }
            Atom::Var(v) => out = out.plus(&Index::var(*v), *coefficient),
            Atom::Wrapped { index, divisor, modulus } => {
                let atom =
                    Atom::Wrapped { index: Box::new(shifted(index, var, by)), divisor: *divisor, modulus: *modulus };
                out = out.plus(&Index { offset: 0, terms: vec![(atom, 1)] }, *coefficient);
            }
        }
    }
    out
}
