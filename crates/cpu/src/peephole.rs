//! Steps that two values become one of: found in a kernel's body before it is lowered.

use crate::program::TileProgram;
use crate::shape::Form;
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::plan::Loops;
use breakeven_ir::{DType, Op, ReduceOp};

/// The differences that the very next step exponentiates and nothing else needs: softmax in one pass less.
pub(crate) fn exponents(kernel: &Loops) -> Vec<Option<[Value; 2]>> {
    let body = &kernel.body;
    let uses = uses(kernel);
    let of = |(v, inst): (usize, &Inst)| {
        let Inst::Map { op: Op::Exp, args: [arg, ..], .. } = *inst else { return None };
        match body.insts[arg as usize] {
            Inst::Map { op: Op::Sub, args: [a, b, _], .. } if uses[arg as usize] == 1 && arg as usize + 1 == v => {
                Some([a, b])
            }
            _ => None,
        }
    };
    body.insts.iter().enumerate().map(of).collect()
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
