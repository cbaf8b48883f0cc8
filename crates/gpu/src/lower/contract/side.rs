//! The operands of a product as WGSL: read where they lie, by strides, or computed from their fused bodies.
//!
//! Both operands look alike from here: lines (rows of the left, columns of the right) by depth (the axis that is
//! summed). What leaves is always the same form: for each step along the depth, the values of one or four lines.

use super::super::Target;
use super::super::emit::{Emitter, needed};
use super::super::module::{Elem, Module};
use crate::stage::Slot;
use breakeven_ir::DType;
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::merge::Group;
use breakeven_ir::plan::{BufferId, Factor};
use std::fmt::Write;

pub(super) use crate::lower::vector::LANES;

/// The axis along which four neighbours are loaded at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Along {
    Lines,
    Depth,
}

/// A position along one axis, ready to be used in an index: one expression for an operand with strides, else one for
/// each variable that the axis is cut into.
#[derive(Clone)]
pub(super) struct Place(Vec<String>);

/// One operand.
pub(super) struct Side<'a> {
    /// What its names begin with.
    name: &'static str,
    target: &'a Target<'a>,
    /// The extents of its lines and of the depth.
    lines: usize,
    kind: Kind<'a>,
    /// Counts names.
    serial: usize,
    batch: Vec<String>,
}

enum Kind<'a> {
    Plain(Plain),
    Fused(Box<Fused<'a>>),
}

/// An operand that is read where it lies.
struct Plain {
    buffer: BufferId,
    offset: i64,
    batch: Vec<i64>,
    line: i64,
    depth: i64,
    along: Option<Along>,
    /// The words of the strides along lines and depth, once they are used.
    words: [Option<String>; 2],
}

/// An operand that is computed.
struct Fused<'a> {
    emitter: Emitter<'a>,
    /// The extents of the variables of each axis.
    axes: Vec<Vec<usize>>,
    /// Their words, once they are used.
    words: Vec<Vec<Option<String>>>,
    /// Are the lines the last axis, as those of the right operand?
    lines_last: bool,
}

impl<'a> Side<'a> {
    /// The left (lines are rows) or right (lines are columns) operand.
    pub(super) fn new(target: &'a Target<'a>, factor: &Factor, extents: (usize, usize), right: bool) -> Side<'a> {
        let (lines, depth) = extents;
        let kind = match factor.strides() {
            Some((access, strides)) => {
                let [batch @ .., row, column] = &strides[..] else { unreachable!("an operand has rows and columns") };
                let (line, deep) = if right { (*column, *row) } else { (*row, *column) };
                let aligned = |value: &i64| value % LANES as i64 == 0;
                let rest = aligned(&access.index.offset) && batch.iter().all(aligned);
                let along = if rest && deep == 1 && aligned(&line) && depth.is_multiple_of(LANES) {
                    Some(Along::Depth)
                } else if rest && line == 1 && aligned(&deep) && lines.is_multiple_of(LANES) {
                    Some(Along::Lines)
                } else {
                    None
                };
                Kind::Plain(Plain {
                    buffer: access.buffer,
                    offset: access.index.offset,
                    batch: batch.to_vec(),
                    line,
                    depth: deep,
                    along,
                    words: [None, None],
                })
            }
            None => {
                let groups: Vec<Group> = (factor.extents().into_iter().enumerate())
                    .map(|(var, extent)| Group { vars: vec![var], extent })
                    .collect();
                Kind::Fused(Box::new(Fused {
                    emitter: Emitter::new(target, &factor.body, &groups),
                    axes: factor.axes.clone(),
                    words: factor.axes.iter().map(|cuts| vec![None; cuts.len()]).collect(),
                    lines_last: right,
                }))
            }
        };
        Side { name: if right { "r" } else { "l" }, target, lines, kind, serial: 0, batch: Vec::new() }
    }

    /// The axis of vector loads.
    pub(super) fn along(&self) -> Option<Along> {
        match &self.kind {
            Kind::Plain(plain) => plain.along,
            Kind::Fused(_) => None,
        }
    }

    /// Do neighbours along the depth lie side by side?
    pub(super) fn deep(&self) -> bool {
        matches!(&self.kind, Kind::Plain(plain) if plain.depth == 1)
    }

    fn name(&mut self) -> String {
        self.serial += 1;
        format!("{}{}", self.name, self.serial)
    }

    /// Begins a product: `coords` are the batch axes' coordinates, empty where an axis has but one.
    pub(super) fn open(&mut self, module: &mut Module, code: &mut String, coords: &[String]) {
        match &mut self.kind {
            Kind::Plain(plain) => {
                let vector = plain.along.is_some();
                let elem = if vector { Elem::Vector(DType::F32) } else { Elem::Scalar(DType::F32) };
                let binding = module.binding(self.target, Slot::Buffer(plain.buffer), elem, false);
                let mut base = format!("o{binding}");
                if plain.offset != 0 {
                    base += &format!(" + {}", module.param(plain.offset as i32 as u32));
                }
                for (coord, &stride) in coords.iter().zip(&plain.batch) {
                    if stride != 0 && !coord.is_empty() {
                        base += &format!(" + {coord} * {}", module.param(stride as i32 as u32));
                    }
                }
                let _ = writeln!(code, "let {}_base = {base};", self.name);
                self.batch = vec![format!("b{binding}"), format!("{}_base", self.name)];
            }
            Kind::Fused(_) => {
                self.batch.clear();
                for (axis, coord) in coords.iter().enumerate() {
                    let place = self.decode(module, code, axis, coord);
                    self.batch.extend(place.0);
                }
            }
        }
    }

    /// Cuts a position along an axis of a fused operand into its variables.
    fn decode(&mut self, module: &mut Module, code: &mut String, axis: usize, position: &str) -> Place {
        let name = self.name();
        let Kind::Fused(fused) = &mut self.kind else { unreachable!("only fused operands are cut") };
        let cuts = &fused.axes[axis];
        let mut rest = position.to_owned();
        let mut coords = vec![String::new(); cuts.len()];
        for at in (0..cuts.len()).rev() {
            if at == 0 {
                coords[0] = format!("({rest})");
                continue;
            }
            let word = fused.words[axis][at].get_or_insert_with(|| module.count(cuts[at].max(1)));
            let _ = writeln!(
                code,
                "let {name}x{at} = i32(u32({rest}) % u32({word}));\nlet {name}y{at} = i32(u32({rest}) / u32({word}));"
            );
            coords[at] = format!("{name}x{at}");
            rest = format!("{name}y{at}");
        }
        Place(coords)
    }

    /// `count` neighbouring lines from `first` on. Those beyond the last stand for it: what they give is never stored.
    pub(super) fn places(
        &mut self,
        module: &mut Module,
        code: &mut String,
        first: &str,
        extent: &str,
        count: usize,
    ) -> Vec<Place> {
        let whole = self.along() == Some(Along::Lines) && count == LANES;
        let taken = if whole { 1 } else { count };
        let last = if whole { LANES } else { 1 };
        let exact = self.lines.is_multiple_of(LANES) && taken > 1;
        (0..taken)
            .map(|i| {
                let at = match (i, exact) {
                    (0, false) => format!("min({first}, {extent} - {last})"),
                    (i, false) => format!("min({first} + {i}, {extent} - {last})"),
                    // Four lines of a multiple of four are all there or all beyond.
                    (i, true) => format!("(min({first}, {extent} - {LANES}) + {i})"),
                };
                self.place(module, code, &at, 0)
            })
            .collect()
    }

    /// `count` neighbouring steps along the depth from `first` on.
    pub(super) fn steps(&mut self, module: &mut Module, code: &mut String, first: &str, count: usize) -> Vec<Place> {
        let taken = if self.along() == Some(Along::Depth) && count == LANES { 1 } else { count };
        (0..taken)
            .map(|i| {
                let at = if i == 0 { first.to_owned() } else { format!("({first} + {i})") };
                self.place(module, code, &at, 1)
            })
            .collect()
    }

    /// A position along the lines (0) or the depth (1).
    fn place(&mut self, module: &mut Module, code: &mut String, at: &str, which: usize) -> Place {
        let name = self.name();
        match &mut self.kind {
            Kind::Plain(plain) => {
                let value = match [plain.line, plain.depth][which] {
                    0 => return Place(vec!["0".into()]),
                    1 => at.to_owned(),
                    stride => {
                        let word = plain.words[which].get_or_insert_with(|| module.param(stride as i32 as u32));
                        format!("{at} * {word}")
                    }
                };
                let _ = writeln!(code, "let {name} = {value};");
                Place(vec![name])
            }
            Kind::Fused(fused) => {
                let lines = fused.axes.len() - if fused.lines_last { 1 } else { 2 };
                let depth = fused.axes.len() - if fused.lines_last { 2 } else { 1 };
                let _ = writeln!(code, "let {name} = {at};");
                self.decode(module, code, [lines, depth][which], &name)
            }
        }
    }

    /// The values at `lines` (one or four) for each of `count` steps: an `f32` or a `vec4<f32>` expression a step.
    pub(super) fn fetch(
        &mut self,
        module: &mut Module,
        code: &mut String,
        lines: &[Place],
        steps: &[Place],
        shape: (usize, usize),
    ) -> Vec<String> {
        let (lanes, count) = shape;
        let along = self.along();
        if along == Some(Along::Depth) && count == LANES {
            let parts: Vec<String> = lines.iter().map(|line| self.vector(code, line, &steps[0])).collect();
            let part = |step: usize| {
                let parts: Vec<String> = parts.iter().map(|p| format!("{p}.{}", ["x", "y", "z", "w"][step])).collect();
                if lanes == 1 { parts[0].clone() } else { format!("vec4<f32>({})", parts.join(", ")) }
            };
            return (0..LANES).map(|step| self.named(code, part(step))).collect();
        }
        if along == Some(Along::Lines) && lanes == LANES {
            return steps.iter().map(|step| self.vector(code, &lines[0], step)).collect();
        }
        let mut values = Vec::new();
        for step in steps {
            let parts: Vec<String> = lines.iter().map(|line| self.element(module, code, line, step)).collect();
            let value = if lanes == 1 { parts[0].clone() } else { format!("vec4<f32>({})", parts.join(", ")) };
            values.push(self.named(code, value));
        }
        values
    }

    fn named(&mut self, code: &mut String, value: String) -> String {
        let name = self.name();
        let _ = writeln!(code, "let {name} = {value};");
        name
    }

    /// Where an operand with strides has an element.
    fn at(&self, line: &Place, step: &Place) -> String {
        let mut text = self.batch[1].clone();
        for part in [&line.0[0], &step.0[0]].into_iter().filter(|p| *p != "0") {
            text += &format!(" + {part}");
        }
        text
    }

    fn vector(&mut self, code: &mut String, line: &Place, step: &Place) -> String {
        let value = format!("{}[({}) >> 2u]", self.batch[0], self.at(line, step));
        self.named(code, value)
    }

    fn element(&mut self, module: &mut Module, code: &mut String, line: &Place, step: &Place) -> String {
        if let Kind::Plain(plain) = &self.kind {
            // A vector binding serves single elements too: the component is what the index leaves over.
            let value = if plain.along.is_some() {
                let at = self.at(line, step);
                format!("{}[({at}) >> 2u][({at}) & 3]", self.batch[0])
            } else {
                format!("{}[{}]", self.batch[0], self.at(line, step))
            };
            return self.named(code, value);
        }
        let name = self.name();
        let Kind::Fused(fused) = &mut self.kind else { unreachable!("no other kind") };
        let (rows, columns) = if fused.lines_last { (step, line) } else { (line, step) };
        let coords = [&self.batch[..], &rows.0, &columns.0].concat();
        let emitter = &mut fused.emitter;
        std::mem::swap(&mut emitter.module, module);
        let last = emitter.body.insts.len() - 1;
        let need = needed(&emitter.body, &[last as Value], &|_| false);
        for at in (0..=last).filter(|&at| need[at]) {
            emitter.step(code, at, &format!("{name}v{at}"), &coords, &|v| format!("{name}v{v}"));
        }
        std::mem::swap(&mut emitter.module, module);
        format!("{name}v{last}")
    }
}

/// What computing one element of an operand costs beyond a load; an addition is 1.
pub(super) fn cost(factor: &Factor) -> u64 {
    let cuts: usize = factor.axes.iter().map(|cuts| cuts.len().saturating_sub(1)).sum();
    let conditions: usize = factor.body.accesses.iter().map(|a| a.conditions.len()).sum();
    let steps = factor.body.insts.iter().map(|inst| match inst {
        Inst::Map { op, .. } => u64::from(op.row().cost),
        Inst::Gather { .. } => 8,
        _ => 0,
    });
    let more_loads = factor.body.accesses.len().saturating_sub(1);
    (cuts + 2 * conditions + 2 * more_loads) as u64 + steps.sum::<u64>()
}
