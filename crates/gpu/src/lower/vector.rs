//! Four neighbours at a time: where memory allows it, and how they are loaded and stored.

use super::emit::Emitter;
use super::module::Elem;
use crate::stage::Slot;
use breakeven_ir::DType;
use breakeven_ir::expr::Inst;
use breakeven_ir::index::Index;
use breakeven_ir::plan::BufferId;
use std::fmt::Write;

/// Lanes of a vector.
pub(crate) const LANES: usize = 4;

/// Does the index walk memory in order along group `last`, in steps that keep vectors aligned?
pub(crate) fn contiguous(index: &Index, last: usize) -> bool {
    let aligned = |value: i64| value % LANES as i64 == 0;
    index.affine(last + 1).is_some_and(|coefficients| {
        coefficients[last] == 1 && coefficients[..last].iter().all(|&c| aligned(c)) && aligned(index.offset)
    })
}

/// Loads four neighbours at once where they lie side by side; the lanes of step 7 are `{name}7_0` to `{name}7_3`.
pub(crate) fn load(
    emitter: &mut Emitter<'_>,
    code: &mut String,
    name: char,
    at: usize,
    last: usize,
    base: &[String],
) -> bool {
    let Inst::Load { access } = emitter.body.insts[at] else { return false };
    let access = emitter.body.accesses[access as usize].clone();
    if !access.conditions.is_empty() || !contiguous(&access.index, last) {
        return false;
    }
    let dtype = emitter.target.plan.buffer(access.buffer).dtype;
    let index = emitter.index(&access.index, base);
    let binding = emitter.module.binding(emitter.target, Slot::Buffer(access.buffer), Elem::Vector(dtype), false);
    let _ = writeln!(code, "let {name}{at} = b{binding}[(o{binding} + {index}) >> 2u];");
    for lane in 0..LANES {
        let part = match dtype {
            DType::Bool => format!("({name}{at} >> {}u) & 255u", lane * 8),
            _ => format!("{name}{at}.{}", ["x", "y", "z", "w"][lane]),
        };
        let _ = writeln!(code, "let {name}{at}_{lane} = {part};");
    }
    true
}

/// Stores four neighbours at once; `index` is where the first of them goes.
pub(crate) fn store(
    emitter: &mut Emitter<'_>,
    code: &mut String,
    buffer: BufferId,
    index: &Index,
    base: &[String],
    lane: impl Fn(usize) -> String,
) {
    let index = emitter.index(index, base);
    let dtype = emitter.target.plan.buffer(buffer).dtype;
    let binding = emitter.module.binding(emitter.target, Slot::Buffer(buffer), Elem::Vector(dtype), true);
    let packed = match dtype {
        // Four bools are one word.
        DType::Bool => format!("{} | ({} << 8u) | ({} << 16u) | ({} << 24u)", lane(0), lane(1), lane(2), lane(3)),
        _ => format!("vec4({}, {}, {}, {})", lane(0), lane(1), lane(2), lane(3)),
    };
    let _ = writeln!(code, "b{binding}[(o{binding} + {index}) >> 2u] = {packed};");
}
