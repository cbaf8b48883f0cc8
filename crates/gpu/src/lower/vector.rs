//! Four neighbours at a time, or eight: where memory allows it, and how they are loaded and stored.
//!
//! Eight are one vector of 64-bit words where the device has them, else two vectors: software drivers fetch and store the words of
//! a vector one by one, so that half as many of twice the size take half the time.

use super::emit::Emitter;
use super::module::{Elem, lane_type};
use crate::stage::{Slot, WIDE};
use breakeven_ir::DType;
use breakeven_ir::expr::Inst;
use breakeven_ir::index::Index;
use breakeven_ir::plan::BufferId;
use std::fmt::Write;

/// Lanes of a vector.
pub(crate) const LANES: usize = 4;

/// The names of a vector's components.
pub(crate) const PARTS: [&str; LANES] = ["x", "y", "z", "w"];

/// Does the index walk memory in order along group `last`, in steps that keep vectors of so many lanes aligned?
pub(crate) fn contiguous(index: &Index, last: usize, lanes: usize) -> bool {
    let aligned = |value: i64| value % lanes as i64 == 0;
    index.affine(last + 1).is_some_and(|coefficients| {
        coefficients[last] == 1 && coefficients[..last].iter().all(|&c| aligned(c)) && aligned(index.offset)
    })
}

/// Are so many lanes of this type one vector of 64-bit words?
fn is_wide(emitter: &Emitter<'_>, dtype: DType, lanes: usize) -> bool {
    lanes == WIDE && dtype != DType::Bool && emitter.target.limits.int64
}

/// Loads so many neighbours at once where they lie side by side; the lanes of step 7 are `{name}7_0`, `{name}7_1` and so on.
pub(crate) fn load(
    emitter: &mut Emitter<'_>,
    code: &mut String,
    name: char,
    at: usize,
    last: usize,
    base: &[String],
    lanes: usize,
) -> bool {
    let Inst::Load { access } = emitter.body.insts[at] else { return false };
    let access = emitter.body.accesses[access as usize].clone();
    if !access.conditions.is_empty() || !contiguous(&access.index, last, lanes) {
        return false;
    }
    let dtype = emitter.target.plan.buffer(access.buffer).dtype;
    let index = emitter.index(&access.index, base);
    let slot = Slot::Buffer(access.buffer);
    if is_wide(emitter, dtype, lanes) {
        let binding = emitter.module.binding(emitter.target, slot, Elem::Wide(dtype), false);
        let _ = writeln!(code, "let {name}{at} = b{binding}[(o{binding} + {index}) >> 3u];");
        for lane in 0..lanes {
            let shift = if lane % 2 == 0 { "" } else { " >> 32u" };
            let word = format!("u32({name}{at}.{}{shift})", PARTS[lane / 2]);
            let _ = writeln!(code, "let {name}{at}_{lane} = bitcast<{}>({word});", lane_type(dtype));
        }
        return true;
    }
    let binding = emitter.module.binding(emitter.target, slot, Elem::Vector(dtype), false);
    for number in 0..lanes / LANES {
        let place = nth(binding, &index, number);
        let _ = writeln!(code, "let {name}{at}p{number} = {place};");
    }
    for lane in 0..lanes {
        let vector = format!("{name}{at}p{}", lane / LANES);
        let part = match dtype {
            DType::Bool => format!("({vector} >> {}u) & 255u", lane % LANES * 8),
            _ => format!("{vector}.{}", PARTS[lane % LANES]),
        };
        let _ = writeln!(code, "let {name}{at}_{lane} = {part};");
    }
    true
}

/// Stores so many neighbours at once; `index` is where the first of them goes.
pub(crate) fn store(
    emitter: &mut Emitter<'_>,
    code: &mut String,
    buffer: BufferId,
    index: &Index,
    base: &[String],
    values: &[String],
) {
    let index = emitter.index(index, base);
    let dtype = emitter.target.plan.buffer(buffer).dtype;
    let slot = Slot::Buffer(buffer);
    if is_wide(emitter, dtype, values.len()) {
        let binding = emitter.module.binding(emitter.target, slot, Elem::Wide(dtype), true);
        let word = |lane: &String| format!("u64(bitcast<u32>({lane}))");
        let pair = |pair: &[String]| format!("{} | ({} << 32u)", word(&pair[0]), word(&pair[1]));
        let words: Vec<String> = values.chunks_exact(2).map(pair).collect();
        let _ = writeln!(code, "b{binding}[(o{binding} + {index}) >> 3u] = vec4<u64>({});", words.join(", "));
        return;
    }
    let binding = emitter.module.binding(emitter.target, slot, Elem::Vector(dtype), true);
    for (number, values) in values.chunks_exact(LANES).enumerate() {
        let packed = match (dtype, values) {
            // Four bools are one word.
            (DType::Bool, [a, b, c, d]) => format!("{a} | ({b} << 8u) | ({c} << 16u) | ({d} << 24u)"),
            _ => format!("vec4({})", values.join(", ")),
        };
        let _ = writeln!(code, "{} = {packed};", nth(binding, &index, number));
    }
}

/// The vector that begins at an index, or one of those after it.
fn nth(binding: usize, index: &str, number: usize) -> String {
    let after = if number == 0 { String::new() } else { format!(" + {number}") };
    format!("b{binding}[((o{binding} + {index}) >> 2u){after}]")
}
