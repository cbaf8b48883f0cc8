//! The product template: a batched matrix product with fused operands and a fused end.
//!
//! A contract enters; one stage leaves, or several where an operand is dearer to compute again for each tile than to
//! store (a map into scratch memory goes first), or where the summed axis is longer than the driver loops.

mod cut;
mod end;
mod side;
mod staged;
mod tile;

use super::{MOST_POINTS, Target, Unsupported, map};
use crate::stage::{Lowered, Slot, Stage, TileVariant};
use breakeven_ir::expr::{Access, Body, Inst};
use breakeven_ir::index::Index;
use breakeven_ir::plan::{BufferId, BufferInfo, Contract, Factor, Loops, Place, Plan, Store, Var};
use breakeven_ir::{DType, Shape};
use cut::{Cut, Part, SHARED_GROUP};
use side::LANES;
use std::ops::Range;

/// Computing an operand again and again may cost so many additions an element before it is stored instead.
const RECOMPUTED: u64 = 24;
/// And each time it may cost one addition for so many uses.
const USES: u64 = 8;
/// The most bytes of a stored operand.
const MOST_STORED: usize = 64 << 20;
/// Outputs of a block are shared by several invocations where the depth is at least this.
const SHARED_DEPTH: usize = 64;
/// Blocks from which on a device is busy with one invocation each.
const MANY_BLOCKS: usize = 1024;
/// Groups of one dispatch.
const MOST_GROUPS: u64 = 65_535;

/// A product as stages.
pub(crate) fn lower(
    target: &Target<'_>,
    number: usize,
    contract: &Contract,
    lowered: &mut Lowered,
) -> Result<(), Unsupported> {
    let outputs = (contract.batch.iter()).fold(contract.m.saturating_mul(contract.n), |all, &b| all.saturating_mul(b));
    if outputs as u64 > MOST_POINTS || contract.k as u64 > MOST_POINTS {
        return Err(Unsupported(format!("kernel {number} has {outputs} results, more than indices count")));
    }
    if outputs == 0 {
        return Ok(());
    }
    bindable(target, contract)?;
    let cut = cut(target, contract);
    let mut contract = contract.clone();
    let mut wider = target.plan.clone();
    let mut stored = Vec::new();
    let reuse = cut.reuse();
    for (right, extent, uses) in [(false, contract.n, reuse.1), (true, contract.m, reuse.0)] {
        let factor = if right { &contract.right } else { &contract.left };
        let again = extent.div_ceil(uses) as u64 - 1;
        let cost = side::cost(factor);
        if cost * again <= RECOMPUTED || cost * USES < uses as u64 {
            continue;
        }
        if let Some(map) = Stored::new(&wider, factor, target.limits.binding_bytes) {
            wider.buffers.push(map.info);
            let within = Target { plan: &wider, limits: target.limits, variants: target.variants };
            let partials = lowered.partials.len();
            lowered.partials.push(map.info.bytes());
            stored.push((map.buffer, partials));
            let mut stage = map::lower(&within, number, &map.loops);
            redirect(&mut stage, &stored);
            lowered.stages.push(stage);
            *(if right { &mut contract.right } else { &mut contract.left }) = map.factor;
        }
    }
    let within = Target { plan: &wider, limits: target.limits, variants: target.variants };
    let parts = parts(target, &contract, cut);
    let sums = lowered.partials.len();
    if parts.len() > 1 {
        lowered.partials.push(outputs * 4);
    }
    for depth in parts {
        let part = Part { depth, whole: contract.k, sums };
        let mut stage = tile::stage(&within, number, &contract, cut, &part);
        redirect(&mut stage, &stored);
        lowered.stages.push(stage);
    }
    Ok(())
}

/// Bindings of buffers that only this lowering knows become scratch memory.
fn redirect(stage: &mut Stage, stored: &[(BufferId, usize)]) {
    for binding in &mut stage.bindings {
        if let Some((_, partials)) = stored.iter().find(|(buffer, _)| binding.slot == Slot::Buffer(*buffer)) {
            binding.slot = Slot::Partials(*partials);
        }
    }
}

fn bindable(target: &Target<'_>, contract: &Contract) -> Result<(), Unsupported> {
    let bodies = [&contract.left.body, &contract.right.body, &contract.end.body];
    let reads = bodies.iter().flat_map(|body| &body.accesses).map(|a| a.buffer);
    let limit = target.limits.binding_bytes;
    for buffer in reads.chain(contract.end.stores.iter().map(|s| s.buffer)) {
        let bytes = target.plan.buffer(buffer).bytes();
        if bytes as u64 > limit {
            return Err(Unsupported(format!(
                "a matrix product over a buffer of {bytes} bytes, and the device binds {limit}: cut it along its batch"
            )));
        }
    }
    Ok(())
}

/// Which template serves the shape.
fn cut(target: &Target<'_>, contract: &Contract) -> Cut {
    let (m, n, k) = (contract.m, contract.n, contract.k);
    let batches: usize = contract.batch.iter().product();
    let tile = fitting(target);
    // Measurement chooses direct tiles where barriers and workgroup memory are slow: blocks then stand for themselves.
    let direct = tile.depth == 0 || k == 0;
    let (rows, columns) = if direct {
        (side_of_block(m, tile.thread_rows as usize), side_of_block(n, tile.thread_columns as usize))
    } else {
        (side_of_block(m, LANES), side_of_block(n, LANES))
    };
    let blocks = |rows: usize, columns: usize| batches * m.div_ceil(rows) * n.div_ceil(columns);
    let narrow = (m == 1 || n == 1) && k >= SHARED_DEPTH;
    let deep = k >= 8 * SHARED_DEPTH && blocks(rows, columns) < SHARED_GROUP;
    if !direct && (narrow || deep) && target.limits.workgroup as usize >= SHARED_GROUP {
        // Four rows a block make sense only where enough blocks are left.
        let rows = if blocks(rows, columns) >= MANY_BLOCKS { rows } else { 1 };
        let slices = if blocks(rows, columns) < SHARED_GROUP { SHARED_GROUP } else { 16 };
        return Cut::Shared { rows, columns, slices };
    }
    let wasteful = m <= tile.rows as usize / 2 || n <= tile.columns as usize / 2;
    if k == 0 || wasteful { Cut::Blocks { rows, columns } } else { Cut::Tile(tile) }
}

/// Rows or columns of a block: as many as a tile's invocation has, unless a quarter would lie beyond the extent.
fn side_of_block(extent: usize, most: usize) -> usize {
    let fits = |side: &usize| *side <= most && *side <= extent;
    let full = |side: &usize| *side <= LANES || extent.next_multiple_of(*side) * 4 <= extent * 5;
    [16, 8, LANES].into_iter().find(|side| fits(side) && full(side)).unwrap_or(1)
}

/// The tile that was asked for, or one that the device can hold.
fn fitting(target: &Target<'_>) -> TileVariant {
    let fits = |t: &TileVariant| {
        let workgroup = (t.rows / t.thread_rows) * (t.columns / t.thread_columns);
        let bytes = t.depth * (t.rows + t.columns + 2 * LANES as u32) * 4;
        workgroup <= target.limits.workgroup && bytes <= target.limits.workgroup_bytes
    };
    let asked = target.variants.tile;
    if fits(&asked) {
        return asked;
    }
    let smaller = TileVariant { rows: 32, columns: 32, thread_rows: 4, thread_columns: 4, depth: 0 };
    TileVariant::ALL.iter().copied().find(|t| fits(t)).unwrap_or(smaller)
}

/// The depth in parts that an invocation loops over without being stopped.
fn parts(target: &Target<'_>, contract: &Contract, cut: Cut) -> Vec<Range<usize>> {
    let k = contract.k;
    let most = match target.limits.loop_cap {
        None => k.max(1),
        Some(cap) => {
            let (units, group) = cut.units(contract);
            // A dispatch has only so many groups, and each then takes several units, one after another.
            let rounds = units.div_ceil(u64::from(group)).div_ceil(MOST_GROUPS).max(1);
            let iterations = (u64::from(cap) / 2 / rounds) as usize;
            // Parts of whole stages: every template's steps divide 64.
            (iterations * cut.steps_an_iteration() / 64 * 64).max(64)
        }
    };
    (0..k.div_ceil(most).max(1)).map(|part| part * most..((part + 1) * most).min(k)).collect()
}

/// An operand that is computed once, into scratch memory.
struct Stored {
    buffer: BufferId,
    info: BufferInfo,
    loops: Loops,
    factor: Factor,
}

impl Stored {
    /// `None` if the operand is read where it lies, or too large to be stored.
    fn new(plan: &Plan, factor: &Factor, binding_bytes: u64) -> Option<Stored> {
        if factor.strides().is_some() || factor.extents().contains(&0) {
            return None;
        }
        let value = factor.body.insts.len() as u32 - 1;
        let mask = factor.body.var_masks(0)[value as usize];
        let buffer = BufferId(plan.buffers.len() as u32);
        // Row-major over the axes that it differs along. Along the others it is a broadcast: stride 0.
        let mut vars: Vec<Var> = factor.extents().iter().map(|&extent| Var { extent, inner: false }).collect();
        let (mut var, mut kept) = (0, Vec::new());
        for (axis, cuts) in factor.axes.iter().enumerate() {
            let own = var..var + cuts.len();
            if own.clone().any(|v| mask >> v & 1 == 1) {
                kept.push((axis, own));
            } else {
                vars[own].iter_mut().for_each(|v| v.extent = 1);
            }
            var += cuts.len();
        }
        let (mut index, mut read, mut elems) = (Index::default(), Index::default(), 1usize);
        for (axis, own) in kept.iter().rev() {
            // The plain factor has one variable for each axis of more than one.
            let plain = factor.axes[..*axis].iter().filter(|cuts| !cuts.is_empty()).count();
            read = read.plus(&Index::var(plain as u8), elems as i64);
            for v in own.clone().rev() {
                index = index.plus(&Index::var(v as u8), elems as i64);
                elems = elems.checked_mul(vars[v].extent)?;
            }
        }
        if elems * 4 > MOST_STORED || (elems * 4) as u64 > binding_bytes {
            return None;
        }
        let axes = (factor.axes.iter())
            .map(|cuts| if cuts.is_empty() { vec![] } else { vec![cuts.iter().product()] })
            .collect();
        let access = Access { buffer, index: read, conditions: vec![] };
        let body = Body { insts: vec![Inst::Load { access: 0 }], dtypes: vec![DType::F32], accesses: vec![access] };
        Some(Stored {
            buffer,
            info: BufferInfo { dtype: DType::F32, shape: Shape::new(&[elems]).ok()?, place: Place::Scratch(0) },
            loops: Loops { vars, body: factor.body.clone(), stores: vec![Store { buffer, index, value }] },
            factor: Factor { axes, body },
        })
    }
}

#[cfg(test)]
#[path = "contract_device_tests.rs"]
mod device_tests;
#[cfg(test)]
#[path = "contract_tests.rs"]
mod tests;
