//! Reductions and scans as WGSL: how two values become one, in an invocation and across those that share a row.
//!
//! Names of accumulators enter, statements leave. A radix-8 tree needs a third of the barriers of a binary one, and
//! software drivers pay for every barrier twice: when they compile it and when they run it.

use super::module::{Module, lane_type};
use super::outline::Cut;
use breakeven_ir::expr::{Body, Inst};
use breakeven_ir::{DType, ReduceOp, ScanOp};
use std::fmt::Write;

/// The index of no element.
pub(super) const NOWHERE: &str = "2147483647i";
/// Values that one step of the tree combines.
const RADIX: u32 = 8;
/// Arrays of workgroup memory that a tree uses at once.
pub(super) const ARRAYS: usize = 4;

/// How a step combines its argument's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fold {
    op: ReduceOp,
    /// The argument's dtype.
    dtype: DType,
}

/// Values that an invocation has gathered: `name` is theirs, and `name` with `i` before it their index.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) fold: Fold,
    pub(super) step: usize,
}

impl Part {
    pub(super) fn of(body: &Body, step: usize) -> Option<Part> {
        let (op, arg) = match body.insts[step] {
            Inst::Reduce { op, arg } => (op, arg),
            Inst::Scan { op: ScanOp::Sum, arg } => (ReduceOp::Sum, arg),
            Inst::Scan { op: ScanOp::Prod, arg } => (ReduceOp::Prod, arg),
            Inst::Scan { op: ScanOp::Max, arg } => (ReduceOp::Max, arg),
            _ => return None,
        };
        Some(Part { fold: Fold { op, dtype: body.dtypes[arg as usize] }, step })
    }

    /// Words of its result: an index has its value with it while it is still compared.
    pub(super) fn words(&self) -> usize {
        1 + usize::from(self.fold.indexed())
    }
}

impl Fold {
    pub(super) fn ty(self) -> &'static str {
        lane_type(self.dtype)
    }

    /// Is the place of the value the result?
    pub(super) fn indexed(self) -> bool {
        matches!(self.op, ReduceOp::ArgMax | ReduceOp::ArgMin)
    }

    /// Is it summed in blocks? Long f32 sums one by one lose digits.
    pub(super) fn blocked(self) -> bool {
        self.op == ReduceOp::Sum && self.dtype == DType::F32
    }

    /// The value of no elements; for extremes one that any element beats or equals.
    pub(super) fn identity(self) -> &'static str {
        match (self.op, self.dtype) {
            (ReduceOp::Sum, DType::F32) => "0.0f",
            (ReduceOp::Prod, DType::F32) => "1.0f",
            (ReduceOp::Max | ReduceOp::ArgMax, DType::F32) => "-inf()",
            (ReduceOp::Min | ReduceOp::ArgMin, DType::F32) => "inf()",
            (ReduceOp::Sum, DType::I32) => "0i",
            (ReduceOp::Prod, DType::I32) => "1i",
            (ReduceOp::Max | ReduceOp::ArgMax, DType::I32) => "(-2147483647i - 1i)",
            (ReduceOp::Min | ReduceOp::ArgMin, DType::I32) => "2147483647i",
            (ReduceOp::Prod | ReduceOp::All, _) => "1u",
            (ReduceOp::Min | ReduceOp::ArgMin, _) => "4294967295u",
            _ => "0u",
        }
    }

    /// Two values as one.
    pub(super) fn combine(self, a: &str, b: &str) -> String {
        match (self.op, self.dtype) {
            (ReduceOp::Sum, _) => format!("{a} + {b}"),
            (ReduceOp::Prod, _) => format!("{a} * {b}"),
            (ReduceOp::Max, DType::F32) => format!("max_({a}, {b})"),
            (ReduceOp::Min, DType::F32) => format!("min_({a}, {b})"),
            (ReduceOp::Max, _) => format!("max({a}, {b})"),
            (ReduceOp::Min, _) => format!("min({a}, {b})"),
            (ReduceOp::All, _) => format!("{a} & {b}"),
            _ => format!("{a} | {b}"),
        }
    }

    /// Adds a value (and its index) to the accumulator `acc` (and `i` + `acc`).
    pub(super) fn add(self, module: &mut Module, code: &mut String, acc: &str, value: &str, index: &str) {
        if !self.indexed() {
            let _ = writeln!(code, "{acc} = {};", self.combine(acc, value));
            return;
        }
        let takes = self.takes(module);
        let _ =
            writeln!(code, "if ({takes}({value}, {index}, {acc}, i{acc})) {{ {acc} = {value}; i{acc} = {index}; }}");
    }

    /// The name of the function that tells whether `b` replaces `a`: NaN beats everything, the first of equals stays.
    fn takes(self, module: &mut Module) -> String {
        let (name, sign) = if self.op == ReduceOp::ArgMax { ("max", '>') } else { ("min", '<') };
        let ty = self.ty();
        let name = format!("takes_{name}_{ty}");
        if !module.globals.contains(&name) {
            let test = if self.dtype == DType::F32 {
                format!(
                    "let x = is_nan(a);\nlet y = is_nan(b);\n\
                     if (x || y) {{ return y && (!x || j < i); }}\n\
                     return b {sign} a || (b == a && j < i);"
                )
            } else {
                format!("return b {sign} a || (b == a && j < i);")
            };
            let _ = writeln!(module.globals, "fn {name}(b: {ty}, j: i32, a: {ty}, i: i32) -> bool {{\n{test}\n}}");
        }
        name
    }
}

/// Workgroup memory for values of one type, declared when it is first asked for.
fn array(module: &mut Module, ty: &str, number: usize, cut: &Cut) -> String {
    let name = format!("s{}{number}", &ty[..1]);
    let line = format!("var<workgroup> {name}: array<{ty}, {}>;\n", cut.workgroup);
    if !module.globals.contains(&line) {
        module.globals += &line;
    }
    name
}

/// Combines `a{step}` (and `ia{step}`) of all invocations that share a row; all of them get the result, a reduction's
/// in `v{step}` and what an index was found by in `m{step}`. `T` alone renames.
pub(super) fn tree(module: &mut Module, code: &mut String, parts: &[Part], cut: &Cut) {
    if cut.threads == 1 {
        for Part { fold, step } in parts {
            let _ = writeln!(code, "let m{step} = a{step};");
            let _ = writeln!(
                code,
                "let v{step} = {};",
                if fold.indexed() { format!("ia{step}") } else { format!("m{step}") }
            );
        }
        return;
    }
    for parts in batches(parts) {
        let mut number = 0;
        let mut arrays: Vec<(String, Option<String>)> = vec![];
        for part in parts {
            let value = array(module, part.fold.ty(), number, cut);
            let index = part.fold.indexed().then(|| array(module, "i32", number + 1, cut));
            number += part.words();
            arrays.push((value, index));
        }
        batch(module, code, parts, &arrays, cut);
    }
}

/// What is combined at a time: as much as [`ARRAYS`] hold.
fn batches(parts: &[Part]) -> impl Iterator<Item = &[Part]> {
    let mut words = 0;
    parts.chunk_by(move |part, next| {
        words += part.words();
        let together = words + next.words() <= ARRAYS;
        words = if together { words } else { 0 };
        together
    })
}

/// The most words of workgroup memory that [`tree`] and [`prefix`] use an invocation.
pub(super) fn words(parts: &[Part]) -> usize {
    let mut types: Vec<&str> = parts.iter().map(|p| p.fold.ty()).collect();
    types.extend(parts.iter().filter(|p| p.fold.indexed()).map(|_| "i32"));
    types.sort_unstable();
    types.dedup();
    types.len() * ARRAYS
}

fn batch(module: &mut Module, code: &mut String, parts: &[Part], arrays: &[(String, Option<String>)], cut: &Cut) {
    for (Part { step, .. }, (value, index)) in parts.iter().zip(arrays) {
        let _ = writeln!(code, "{value}[lid] = a{step};");
        if let Some(index) = index {
            let _ = writeln!(code, "{index}[lid] = ia{step};");
        }
    }
    *code += "workgroupBarrier();\n";
    let apart = cut.apart();
    let mut width = cut.threads;
    while width > RADIX {
        let next = width / RADIX;
        let _ = writeln!(code, "if (lane < {next}u) {{");
        for (part, (value, index)) in parts.iter().zip(arrays) {
            gather(module, code, part, (value, index.as_deref()), "lid", width / next, next * apart);
            let _ = writeln!(code, "{value}[lid] = a{};", part.step);
            if let Some(index) = index {
                let _ = writeln!(code, "{index}[lid] = ia{};", part.step);
            }
        }
        *code += "}\nworkgroupBarrier();\n";
        width = next;
    }
    for (part, (value, index)) in parts.iter().zip(arrays) {
        gather(module, code, part, (value, index.as_deref()), "base", width, apart);
        let step = part.step;
        let result = if index.is_some() { format!("ia{step}") } else { format!("a{step}") };
        let _ = writeln!(code, "let m{step} = a{step};\nlet v{step} = {result};");
    }
    // The arrays are used again.
    *code += "workgroupBarrier();\n";
}

/// `a{step}` becomes the combination of `count` values from `first` on, `apart` apart.
fn gather(
    module: &mut Module,
    code: &mut String,
    Part { fold, step }: &Part,
    (value, index): (&str, Option<&str>),
    first: &str,
    count: u32,
    apart: u32,
) {
    let acc = format!("a{step}");
    let _ = writeln!(code, "{acc} = {value}[{first}];");
    if let Some(index) = index {
        let _ = writeln!(code, "i{acc} = {index}[{first}];");
    }
    for k in 1..count {
        let at = format!("[{first} + {}u]", k * apart);
        fold.add(module, code, &acc, &format!("{value}{at}"), &index.map_or_else(String::new, |i| format!("{i}{at}")));
    }
}

/// `e{step}` becomes the combination of `a{step}` of the invocations before this one in its row.
///
/// Two levels: about the square root of the invocations is combined by one each, then everyone adds up what is before
/// it. That is two barriers, where doubling needs two for every bit of the count.
pub(super) fn prefix(module: &mut Module, code: &mut String, part: &Part, cut: &Cut) {
    let Part { fold, step } = part;
    let identity = fold.identity();
    if cut.threads == 1 {
        let _ = writeln!(code, "var e{step} = {identity};");
        return;
    }
    let (each, all) = (array(module, fold.ty(), 0, cut), array(module, fold.ty(), 1, cut));
    let run = 1u32 << (cut.threads.ilog2().div_ceil(2));
    let heads = cut.threads / run;
    let apart = cut.apart();
    let at = |index: &str| format!("[base + ({index}) * {apart}u]");
    let _ = writeln!(code, "{each}[lid] = a{step};\nworkgroupBarrier();\nif (lane < {heads}u) {{");
    let _ = writeln!(code, "a{step} = {each}{};", at(&format!("lane * {run}u")));
    let value = format!("{each}{}", at(&format!("lane * {run}u + k")));
    let _ = writeln!(
        code,
        "for (var k = 1u; k < {run}u; k++) {{ a{step} = {}; }}",
        fold.combine(&format!("a{step}"), &value)
    );
    let _ = writeln!(code, "{all}[lid] = a{step};\n}}\nworkgroupBarrier();\nvar e{step} = {identity};");
    let sum = |from: &str, to: &str, array: &str| {
        let next = fold.combine(&format!("e{step}"), &format!("{array}{}", at("k")));
        format!("for (var k = {from}; k < {to}; k++) {{ e{step} = {next}; }}\n")
    };
    *code += &sum("0u", &format!("lane / {run}u"), &all);
    *code += &sum(&format!("lane / {run}u * {run}u"), "lane", &each);
    *code += "workgroupBarrier();\n";
}
