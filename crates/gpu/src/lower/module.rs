//! A WGSL module in the making: bindings and parameters are asked for while code is written, and the whole text leaves
//! with everything declared.

use super::Target;
use crate::prelude;
use crate::stage::{Binding, Slot, Stage, Turns};
use breakeven_ir::DType;
use breakeven_ir::plan::Class;
use std::fmt::Write;
use std::sync::Arc;

/// How the elements of a binding are typed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Elem {
    /// One element at a time; bools are bytes of words.
    Scalar(DType),
    /// Four neighbours at a time; four bools are one word.
    Vector(DType),
    /// Eight neighbours at a time, two in each 64-bit word. Not for bools.
    Wide(DType),
    /// Words of bools, written byte by byte by several invocations.
    AtomicBool,
    /// The status words.
    Status,
}

impl Elem {
    fn wgsl(self) -> &'static str {
        match self {
            Elem::Scalar(dtype) => lane_type(dtype),
            Elem::Vector(DType::F32) => "vec4<f32>",
            Elem::Vector(DType::I32) => "vec4<i32>",
            Elem::Vector(DType::U32) => "vec4<u32>",
            Elem::Vector(DType::Bool) => "u32",
            Elem::Wide(_) => "vec4<u64>",
            Elem::AtomicBool | Elem::Status => "atomic<u32>",
        }
    }

    fn element_bytes(self) -> usize {
        match self {
            Elem::Scalar(dtype) | Elem::Vector(dtype) | Elem::Wide(dtype) => dtype.size_bytes(),
            Elem::AtomicBool => 1,
            Elem::Status => 4,
        }
    }
}

/// The WGSL type of a lane.
pub(crate) fn lane_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::I32 => "i32",
        DType::U32 | DType::Bool => "u32",
    }
}

/// A module in the making.
#[derive(Default)]
pub(crate) struct Module {
    bindings: Vec<(Binding, Elem)>,
    params: Vec<u32>,
    /// Declarations before `main`, such as workgroup memory.
    pub(crate) globals: String,
}

impl Module {
    /// The number of the binding that shows `slot` as `elem`, declared if it is new.
    pub(crate) fn binding(&mut self, target: &Target<'_>, slot: Slot, elem: Elem, writes: bool) -> usize {
        let found = self.bindings.iter().position(|(b, e)| b.slot == slot && *e == elem && b.writes == writes);
        found.unwrap_or_else(|| {
            let elems = match slot {
                Slot::Buffer(id) => target.plan.buffer(id).shape.elems(),
                // Filled in by whoever knows: see `resize`.
                Slot::Partials(_) => 0,
                Slot::Status => 4,
            };
            self.bindings.push((Binding { slot, writes, element_bytes: elem.element_bytes(), window: 0..elems }, elem));
            self.bindings.len() - 1
        })
    }

    /// Sets how many elements of a binding are bound.
    pub(crate) fn resize(&mut self, binding: usize, elems: usize) {
        self.bindings[binding].0.window = 0..elems;
    }

    /// A parameter word: the name of an `i32` that holds it.
    pub(crate) fn param(&mut self, word: u32) -> String {
        self.params.push(word);
        format!("k{}", self.params.len() - 1)
    }

    /// A parameter that counts something.
    pub(crate) fn count(&mut self, value: usize) -> String {
        self.param(value as u32)
    }

    /// The finished stage. `main` runs with `task: u32`, `first` and `end` (units of this dispatch, `i32`), the bases
    /// `o0..`, the parameters `k0..`, and the builtins `wid`, `groups`, `lid` at hand.
    pub(crate) fn stage(self, kernel: usize, class: Class, shape: Shape, main: &str) -> Stage {
        let count = self.bindings.len();
        let stride = count + 2 + self.params.len();
        let mut text = String::new();
        for (number, (binding, elem)) in self.bindings.iter().enumerate() {
            let access = if binding.writes { "read_write" } else { "read" };
            let _ = writeln!(
                text,
                "@group(0) @binding({number}) var<storage, {access}> b{number}: array<{}>;",
                elem.wgsl()
            );
        }
        let _ = writeln!(text, "@group(0) @binding({count}) var<storage, read> params: array<i32>;");
        text += &self.globals;
        let mut code = format!(
            "@compute @workgroup_size({})\n\
             fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,\n\
             \x20       @builtin(local_invocation_index) lid: u32) {{\n\
             let task = wid.y + wid.z * 65535u;\n\
             if (task >= u32(params[0])) {{ return; }}\n\
             let q = 1 + i32(task) * {stride};\n",
            shape.workgroup
        );
        for number in 0..count {
            let _ = writeln!(code, "let o{number} = params[q + {number}];");
        }
        let _ = writeln!(code, "let first = params[q + {count}];\nlet end = params[q + {}];", count + 1);
        for number in 0..self.params.len() {
            let _ = writeln!(code, "let k{number} = params[q + {}];", count + 2 + number);
        }
        code += main;
        code += "}\n";
        text += &prelude::functions_for(&format!("{}{code}", self.globals));
        text += &code;
        Stage {
            kernel,
            class,
            source: Arc::from(text),
            bindings: self.bindings.into_iter().map(|(binding, _)| binding).collect(),
            params: self.params,
            units: shape.units,
            group_units: shape.turns.group_units(shape.units),
            turns: shape.turns,
            work: shape.work,
            run: None,
        }
    }
}

/// The size of a stage.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) workgroup: u32,
    pub(crate) units: u64,
    pub(crate) turns: Turns,
    pub(crate) work: u64,
}
