//! Steps that two values become one of: found in a kernel's body before it is lowered.

use crate::kernels::bytes::logic_fn;
use crate::level::Level;
use crate::program::{Access, TileProgram};
use crate::shape::Form;
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::plan::Loops;
use breakeven_ir::{DType, Op, ReduceOp};

/// Two values that are computed in one pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pair {
    /// `exp(a - b)`.
    ExpSub,
    /// `a * b + c`, rounded twice as they are apart.
    MulAdd,
    /// `(a - b) * c`, of a [`Deviation`].
    SubMul,
}

/// A value that takes another one in, which nothing else needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    pub(crate) pair: Pair,
    /// The value that is taken in.
    pub(crate) taken: Value,
    pub(crate) args: [Value; 3],
    pub(crate) arity: usize,
}

/// A sum of squares of what is between a row and its mean: where nothing else needs the differences but what multiplies them by
/// something that is the same all along, they are made again there, which costs less than to keep them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deviation {
    /// The difference.
    difference: Value,
    /// Of what.
    pub(crate) of: [Value; 2],
}

/// The deviations that reductions sum up.
pub(crate) fn deviations(kernel: &Loops, out: &TileProgram) -> Vec<Option<Deviation>> {
    let body = &kernel.body;
    let uses = uses(kernel);
    let masks = body.var_masks(out.shape.inner_mask);
    let is_inner = |value: Value| masks[value as usize] & out.shape.inner_mask != 0;
    let of = |inst: &Inst| {
        let Inst::Reduce { op: ReduceOp::Sum, arg: square } = *inst else { return None };
        let Inst::Map { op: Op::Square, args: [difference, ..], .. } = body.insts[square as usize] else { return None };
        let Inst::Map { op: Op::Sub, args: [x, mean, _], .. } = body.insts[difference as usize] else { return None };
        let is_multiplied = |inst: &&Inst| match **inst {
            Inst::Map { op: Op::Mul, args: [a, b, _], .. } => {
                a == difference && !is_inner(b) || b == difference && !is_inner(a)
            }
            _ => false,
        };
        let others = body.insts.iter().filter(is_multiplied).count();
        let fits = out.shape.form == Form::Rows
            && body.dtypes[difference as usize] == DType::F32
            && is_inner(x)
            && !is_inner(mean)
            && uses[square as usize] == 1
            && uses[difference as usize] == 1 + others;
        fits.then_some(Deviation { difference, of: [x, mean] })
    };
    body.insts.iter().map(of).collect()
}

/// The values that take in one that comes just before them: softmax and layer_norm in one pass less each.
pub(crate) fn merged(kernel: &Loops, out: &TileProgram, deviations: &[Option<Deviation>]) -> Vec<Option<Merged>> {
    let body = &kernel.body;
    let uses = uses(kernel);
    let masks = body.var_masks(out.shape.inner_mask);
    let lanes = if out.shape.form == Form::Rows { out.shape.inner_mask } else { out.shape.lane_mask };
    // Nothing but reading lies between: then what the one taken in takes is still at hand.
    let just_before = |arg: Value, v: usize| {
        let between = &body.insts[arg as usize + 1..v];
        uses[arg as usize] == 1 && between.iter().all(|inst| matches!(inst, Inst::Load { .. } | Inst::Const(_)))
    };
    let of = |(v, inst): (usize, &Inst)| {
        let Inst::Map { op, args, .. } = *inst else { return None };
        match op {
            Op::Exp => match body.insts[args[0] as usize] {
                Inst::Map { op: Op::Sub, args: [a, b, _], .. } if just_before(args[0], v) => {
                    Some(Merged { pair: Pair::ExpSub, taken: args[0], args: [a, b, 0], arity: 2 })
                }
                _ => None,
            },
            Op::Mul if body.dtypes[v] == DType::F32 => deviations.iter().flatten().find_map(|deviation| {
                let taken = deviation.difference;
                let other = if args[0] == taken { args[1] } else { args[0] };
                let [x, mean] = deviation.of;
                let merged = Merged { pair: Pair::SubMul, taken, args: [x, mean, other], arity: 3 };
                args[..2].contains(&taken).then_some(merged)
            }),
            Op::Add if body.dtypes[v] == DType::F32 => {
                [(args[0], args[1]), (args[1], args[0])].into_iter().find_map(|(product, other)| {
                    let Inst::Map { op: Op::Mul, args: [a, b, _], .. } = body.insts[product as usize] else {
                        return None;
                    };
                    // A product that is the same in all lanes is computed once, not in each.
                    let differs = |value: Value| masks[value as usize] & lanes != 0;
                    let (a, b) = if differs(a) { (a, b) } else { (b, a) };
                    let fits = differs(a) && just_before(product, v);
                    fits.then_some(Merged { pair: Pair::MulAdd, taken: product, args: [a, b, other], arity: 3 })
                })
            }
            _ => None,
        }
    };
    body.insts.iter().enumerate().map(of).collect()
}

/// A load that is laid over another value where its conditions hold: what padding and joins are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlay {
    /// Which of the body's accesses.
    pub(crate) access: u32,
    /// What is there elsewhere: a constant, a load, or another overlay.
    pub(crate) rest: Value,
}

/// The selections of a map that are overlays: nothing else needs what they select from, and each element is moved once.
pub(crate) fn overlays(kernel: &Loops, out: &TileProgram) -> Vec<Option<Overlay>> {
    let body = &kernel.body;
    let uses = uses(kernel);
    let masks = body.var_masks(out.shape.inner_mask);
    let mut overlays: Vec<Option<Overlay>> = Vec::with_capacity(body.insts.len());
    for (v, inst) in body.insts.iter().enumerate() {
        let overlay = match *inst {
            Inst::Map { op: Op::Where, args: [inside, load, rest], .. } if out.shape.form == Form::Map => {
                let once = |value: Value| uses[value as usize] == 1;
                let is_rest = match body.insts[rest as usize] {
                    Inst::Const(_) => true,
                    Inst::Load { .. } => once(rest),
                    _ => once(rest) && overlays[rest as usize].is_some(),
                };
                match (&body.insts[inside as usize], &body.insts[load as usize]) {
                    (Inst::Inside { conditions }, Inst::Load { access })
                        if is_rest
                            && once(inside)
                            && once(load)
                            && masks[v] & out.shape.lane_mask != 0
                            && body.accesses[*access as usize].conditions == *conditions =>
                    {
                        Some(Overlay { access: *access, rest })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        overlays.push(overlay);
    }
    overlays
}

/// How often each value is used or stored.
fn uses(kernel: &Loops) -> Vec<usize> {
    let mut uses = vec![0; kernel.body.insts.len()];
    kernel.body.insts.iter().flat_map(Inst::args).for_each(|arg| uses[arg as usize] += 1);
    kernel.stores.iter().for_each(|store| uses[store.value as usize] += 1);
    uses
}

/// The factors of each sum of products that runs along rows and whose products nothing else needs: they are multiplied
/// while they are summed, which spares a slot and a pass.
pub(crate) fn factors(kernel: &Loops, out: &TileProgram) -> Vec<Option<[Value; 2]>> {
    let body = &kernel.body;
    let uses = uses(kernel);
    let masks = body.var_masks(out.shape.inner_mask);
    let of = |inst: &Inst| {
        let Inst::Reduce { op: ReduceOp::Sum, arg } = *inst else { return None };
        let along = masks[arg as usize] & out.shape.inner_mask != 0;
        if out.shape.form != Form::Rows || body.dtypes[arg as usize] != DType::F32 || uses[arg as usize] != 1 || !along
        {
            return None;
        }
        match body.insts[arg as usize] {
            Inst::Map { op: Op::Mul, args: [a, b, _], .. } => Some([a, b]),
            Inst::Map { op: Op::Square, args: [a, ..], .. } => Some([a, a]),
            _ => None,
        }
    };
    body.insts.iter().map(of).collect()
}

/// The load of each `any` and `all` of nothing but contiguous bools: bytes that need not become lanes first.
pub(crate) fn byte_loads(kernel: &Loops, out: &TileProgram) -> Vec<Option<u32>> {
    let body = &kernel.body;
    let uses = uses(kernel);
    let of = |inst: &Inst| {
        let Inst::Reduce { op: ReduceOp::Any | ReduceOp::All, arg } = *inst else { return None };
        let Inst::Load { access } = body.insts[arg as usize] else { return None };
        let load = &out.loads[access as usize];
        let along = load.bounds.is_empty() && out.contiguous(&load.place) && load.width == 1;
        (along && uses[arg as usize] == 1).then_some(access)
    };
    body.insts.iter().map(of).collect()
}

/// Is it a map of nothing but contiguous bools, and written as such? Then bytes do, and need not become lanes.
pub(crate) fn is_all_bytes(kernel: &Loops, out: &TileProgram) -> bool {
    let body = &kernel.body;
    let is_bytes = |access: &Access| access.width == 1 && access.bounds.is_empty() && out.contiguous(&access.place);
    let is_logic = |inst: &Inst| match inst {
        Inst::Load { .. } => true,
        Inst::Map { op, .. } => logic_fn(*op, Level::Portable).is_some(),
        _ => false,
    };
    out.shape.form == Form::Map
        && out.stream.is_none()
        && body.dtypes.iter().all(|dtype| *dtype == DType::Bool)
        && body.insts.iter().all(is_logic)
        && out.loads.iter().chain(&out.stores).all(is_bytes)
}
