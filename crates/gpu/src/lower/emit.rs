//! Bodies and indices as WGSL: each step of a fused body becomes a `let`, movement becomes integer arithmetic.
//!
//! Coefficients and bounds are parameters, so that the text does not depend on sizes. What the text does depend on is
//! which coefficients are 0, 1 or -1, and whether a division is needed at all.

use super::Target;
use super::module::{Elem, Module, lane_type};
use crate::stage::Slot;
use breakeven_ir::expr::{Access, Body, Condition, Inst, Value};
use breakeven_ir::index::{Atom, Index};
use breakeven_ir::merge::Group;
use breakeven_ir::plan::{Loops, Store};
use breakeven_ir::{DType, Op, Scalar};
use std::collections::HashMap;
use std::fmt::Write;

/// Writes one kernel's code. Indices are over groups of variables: coordinate `g` is that of group `g`.
pub(crate) struct Emitter<'a> {
    pub(crate) module: Module,
    pub(crate) target: &'a Target<'a>,
    pub(crate) body: Body,
    pub(crate) extents: Vec<usize>,
    /// Parameters that an index uses, by the index, the place in it and the value: each is declared once.
    words: HashMap<(Index, u32, i64), String>,
    constants: HashMap<Value, String>,
}

/// The places of an index's own words, after those of its terms.
const OFFSET: u32 = u32::MAX;
const DIVISOR: u32 = 1 << 16;
const MODULUS: u32 = 2 << 16;
const BELOW: u32 = 3 << 16;

impl<'a> Emitter<'a> {
    /// For the body of a kernel whose variables run as `groups`.
    pub(crate) fn new(target: &'a Target<'a>, body: &Body, groups: &[Group]) -> Emitter<'a> {
        let over = |conditions: &[Condition]| -> Vec<Condition> {
            conditions.iter().map(|c| Condition { index: c.index.over_groups(groups), below: c.below }).collect()
        };
        let mut body = body.clone();
        for access in &mut body.accesses {
            access.index = access.index.over_groups(groups);
            access.conditions = over(&access.conditions);
        }
        for inst in &mut body.insts {
            match inst {
                Inst::Arange { index, .. } => *index = index.over_groups(groups),
                Inst::Inside { conditions } => *conditions = over(conditions),
                _ => {}
            }
        }
        let extents = groups.iter().map(|g| g.extent).collect();
        Emitter { module: Module::default(), target, body, extents, words: HashMap::new(), constants: HashMap::new() }
    }

    fn word(&mut self, index: &Index, place: u32, value: i64) -> String {
        let key = (index.clone(), place, value);
        if let Some(name) = self.words.get(&key) {
            return name.clone();
        }
        let name = self.module.param(value as i32 as u32);
        self.words.insert(key, name.clone());
        name
    }

    /// A parameter that is 0, which no compiler knows.
    fn zero(&mut self) -> String {
        self.word(&Index::constant(i64::MIN), 0, 0)
    }

    /// An index at these coordinates (`i32` expressions), as an `i32` expression.
    pub(crate) fn index(&mut self, index: &Index, coords: &[String]) -> String {
        let mut text = String::new();
        for (at, (atom, coefficient)) in index.terms.iter().enumerate() {
            let atom = match atom {
                Atom::Var(var) => coords[usize::from(*var)].clone(),
                Atom::Wrapped { index: inner, divisor, modulus } => {
                    let mut value = self.index(inner, coords);
                    // Division of what can't be negative needs no rounding down.
                    let negative = inner.bounds(&self.extents).0 < 0;
                    let at = at as u32;
                    if *divisor != 1 {
                        let word = self.word(index, DIVISOR + at, *divisor);
                        value = if negative {
                            format!("div_floor({value}, {word})")
                        } else {
                            format!("({value} / {word})")
                        };
                    }
                    if *modulus != 0 {
                        let word = self.word(index, MODULUS + at, *modulus);
                        value = if negative {
                            format!("mod_floor({value}, {word})")
                        } else {
                            format!("({value} % {word})")
                        };
                    }
                    value
                }
            };
            match *coefficient {
                1 if text.is_empty() => text = atom,
                1 => text += &format!(" + {atom}"),
                -1 => text += &format!(" - {atom}"),
                coefficient => {
                    let word = self.word(index, at as u32, coefficient);
                    text += &format!("{}{word} * {atom}", if text.is_empty() { "" } else { " + " });
                }
            }
        }
        if index.offset != 0 {
            let word = self.word(index, OFFSET, index.offset);
            text += &format!("{}{word}", if text.is_empty() { "" } else { " + " });
        }
        if text.is_empty() { "0".into() } else { format!("({text})") }
    }

    /// Do all conditions hold? A WGSL bool.
    pub(crate) fn conditions(&mut self, conditions: &[Condition], coords: &[String]) -> String {
        let tests: Vec<String> = conditions
            .iter()
            .map(|c| {
                let index = self.index(&c.index, coords);
                let below = self.word(&c.index, BELOW, c.below);
                // A negative index is a large unsigned one.
                format!("bitcast<u32>({index}) < u32({below})")
            })
            .collect();
        if tests.is_empty() { "true".into() } else { tests.join(" && ") }
    }

    /// The element of a binding at `index`, an `i32` expression counted from the task's part.
    pub(crate) fn element(&mut self, slot: Slot, dtype: DType, index: &str) -> String {
        let number = self.module.binding(self.target, slot, Elem::Scalar(dtype), false);
        match dtype {
            DType::Bool => {
                format!("((b{number}[(o{number} + {index}) >> 2u] >> (u32((o{number} + {index}) & 3) * 8u)) & 255u)")
            }
            _ => format!("b{number}[o{number} + {index}]"),
        }
    }

    fn load(&mut self, access: &Access, coords: &[String], plus: &str) -> String {
        let index = self.index(&access.index, coords);
        let dtype = self.target.plan.buffer(access.buffer).dtype;
        self.element(Slot::Buffer(access.buffer), dtype, &format!("{index}{plus}"))
    }

    /// A constant as an expression.
    pub(crate) fn constant(&mut self, value: Scalar) -> String {
        let text = value.to_f64();
        // Known constants let compilers simplify. A float 0 is not among them: x * 0 is NaN for infinities, and drivers
        // without strict floats make it 0.
        let plain = [1.0, -1.0, 2.0, 0.5].contains(&text) || (text == 0.0 && value.dtype() != DType::F32);
        match (value.dtype(), plain) {
            (DType::F32, true) => format!("{text:?}f"),
            (DType::F32, false) => format!("bitcast<f32>({})", self.module.param(value.bits())),
            (DType::I32, true) => format!("{text}i"),
            (DType::I32, false) => self.module.param(value.bits()),
            (_, true) => format!("{text}u"),
            (_, false) => format!("bitcast<u32>({})", self.module.param(value.bits())),
        }
    }

    /// Writes step `at` as `name` to `code`; `arg` names the steps before it. Reductions and scans are not for here.
    pub(crate) fn step(
        &mut self,
        code: &mut String,
        at: usize,
        name: &str,
        coords: &[String],
        arg: &dyn Fn(Value) -> String,
    ) {
        let dtype = self.body.dtypes[at];
        let ty = lane_type(dtype);
        let inst = self.body.insts[at].clone();
        let expression = match &inst {
            Inst::Load { access } => {
                let access = self.body.accesses[*access as usize].clone();
                let load = self.load(&access, coords, "");
                if !access.conditions.is_empty() {
                    let inside = self.conditions(&access.conditions, coords);
                    let _ = writeln!(code, "var {name} = {ty}(0);\nif ({inside}) {{ {name} = {load}; }}");
                    return;
                }
                load
            }
            Inst::Const(value) => match self.constants.get(&(at as Value)) {
                Some(text) => text.clone(),
                None => {
                    let text = self.constant(*value);
                    self.constants.insert(at as Value, text.clone());
                    text
                }
            },
            Inst::Arange { index, start, step } => {
                let index = self.index(index, coords);
                let key = |this: &mut Self, place: usize, value: Scalar| {
                    let key = (at * 2 + place) as Value | 1 << 31;
                    if let Some(text) = this.constants.get(&key) {
                        return text.clone();
                    }
                    let text = this.constant(value);
                    this.constants.insert(key, text.clone());
                    text
                };
                let (start, step) = (key(self, 0, *start), key(self, 1, *step));
                format!("{start} + {step} * {ty}({index})")
            }
            Inst::Inside { conditions } => format!("u32({})", self.conditions(conditions, coords)),
            Inst::Map { op, signature, args } => {
                let mut text = op.row().signatures[usize::from(*signature)].wgsl.to_owned();
                let is_number = |value: Value| match self.body.insts[value as usize] {
                    Inst::Const(value) => !value.to_f64().is_nan(),
                    _ => false,
                };
                if dtype == DType::F32 && matches!(op, Op::Maximum | Op::Minimum) && is_number(args[1]) {
                    text = text.replacen("_(", "_to(", 1);
                }
                for (i, value) in args.iter().enumerate().take(op.row().arity) {
                    let mut value = arg(*value);
                    // Drivers without strict floats make x - x 0 and x / x 1, also where x is infinite or NaN.
                    if i == 1 && args[0] == args[1] && matches!(op, Op::Sub | Op::Div) && dtype == DType::F32 {
                        value = format!("bitcast<f32>(bitcast<i32>({value}) ^ {})", self.zero());
                    }
                    text = text.replace(&format!("{{{i}}}"), &value);
                }
                text
            }
            Inst::Gather { access, position, stride, extent } => {
                let access = self.body.accesses[*access as usize].clone();
                self.gather(code, at, name, &access, &arg(*position), *stride, *extent, coords);
                return;
            }
            Inst::Reduce { .. } | Inst::Scan { .. } => unreachable!("the templates write reductions and scans"),
        };
        let _ = writeln!(code, "let {name} = {expression};");
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one step")]
    fn gather(
        &mut self,
        code: &mut String,
        at: usize,
        name: &str,
        access: &Access,
        position: &str,
        stride: i64,
        extent: usize,
        coords: &[String],
    ) {
        let ty = lane_type(self.body.dtypes[at]);
        let status = self.module.binding(self.target, Slot::Status, Elem::Status, true);
        // The step stands for its own two words, as an index that no kernel has.
        let own = Index::constant(i64::MAX - at as i64);
        let extent = self.word(&own, 0, extent as i64);
        let stride = self.word(&own, 1, stride);
        let load = self.load(access, coords, &format!(" + {name}_at * {stride}"));
        let inside = self.conditions(&access.conditions, coords);
        let _ = writeln!(
            code,
            "var {name} = {ty}(0);\n\
             if ({inside}) {{\n\
             let {name}_at = select({position}, {position} + {extent}, {position} < 0);\n\
             if (bitcast<u32>({name}_at) < u32({extent})) {{ {name} = {load}; }}\n\
             else if (atomicOr(&b{status}[o{status}], 1u) == 0u) {{\n\
             atomicStore(&b{status}[o{status} + 1], bitcast<u32>({position}));\n\
             atomicStore(&b{status}[o{status} + 2], u32({extent}));\n\
             }}\n}}"
        );
    }

    /// Writes a value to its place, one element at a time.
    pub(crate) fn store(&mut self, code: &mut String, store: &Store, groups: &[Group], value: &str, coords: &[String]) {
        let index = self.index(&store.index.over_groups(groups), coords);
        self.store_at(code, Slot::Buffer(store.buffer), self.target.plan.buffer(store.buffer).dtype, &index, value);
    }

    /// Writes a value to element `index` of a slot.
    pub(crate) fn store_at(&mut self, code: &mut String, slot: Slot, dtype: DType, index: &str, value: &str) {
        let elem = if dtype == DType::Bool { Elem::AtomicBool } else { Elem::Scalar(dtype) };
        let number = self.module.binding(self.target, slot, elem, true);
        if dtype == DType::Bool {
            // Four bools share a word, and other invocations write its other bytes at the same time.
            let _ = writeln!(
                code,
                "{{ let at = o{number} + {index};\nlet shift = u32(at & 3) * 8u;\n\
                 atomicAnd(&b{number}[at >> 2u], ~(255u << shift));\n\
                 atomicOr(&b{number}[at >> 2u], {value} << shift); }}"
            );
        } else {
            let _ = writeln!(code, "b{number}[o{number} + {index}] = {value};");
        }
    }

    /// Splits a linear position into the coordinates of groups `range`, innermost last: `let`s named after `name`.
    pub(crate) fn split(
        &mut self,
        code: &mut String,
        linear: &str,
        range: std::ops::Range<usize>,
        name: &str,
    ) -> Vec<String> {
        let mut rest = linear.to_owned();
        let mut coords = vec![String::new(); range.len()];
        for group in range.clone().rev() {
            let at = group - range.start;
            if group == range.start {
                coords[at] = format!("({rest})");
                continue;
            }
            let extent = self.module.count(self.extents[group].max(1));
            let _ = writeln!(
                code,
                "let {name}{at} = i32(u32({rest}) % u32({extent}));\nlet {name}{at}_ = i32(u32({rest}) / u32({extent}));"
            );
            coords[at] = format!("{name}{at}");
            rest = format!("{name}{at}_");
        }
        coords
    }
}

/// Which steps are needed for `wanted`, as a set over the body's steps. Steps in `given` are there already.
pub(crate) fn needed(body: &Body, wanted: &[Value], given: &dyn Fn(usize) -> bool) -> Vec<bool> {
    let mut need = vec![false; body.insts.len()];
    wanted.iter().for_each(|&value| need[value as usize] = true);
    for at in (0..body.insts.len()).rev() {
        if need[at] && !given(at) {
            body.insts[at].args().for_each(|arg| need[arg as usize] = true);
        }
    }
    need
}

/// All of a kernel's groups: the outer ones first, then the inner ones; and how many are outer.
pub(crate) fn all_groups(loops: &Loops) -> (Vec<Group>, usize) {
    let mut groups = breakeven_ir::merge::groups(loops, false);
    let outer = groups.len();
    groups.extend(breakeven_ir::merge::groups(loops, true));
    (groups, outer)
}
