//! Walks along rows: an outline and a cut enter, the loops of one stage leave.
//!
//! In the code, `u` is the unit, `row` its row, `lo..hi` the elements of the row that the unit has, `begin` the first
//! of this invocation, `stop` where it stops, `j` the element at hand. `v7` is step 7's value for the row, `v7_0` at `j`.

use super::Target;
use super::emit::Emitter;
use super::fold::{self, NOWHERE, Part};
use super::module::{Shape, lane_type};
use super::outline::{Cut, Outline};
use super::vector::{self, LANES, contiguous};
use crate::stage::{Stage, Turns};
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::plan::{Class, Store};
use std::fmt::Write;

/// Elements that an invocation sums before the sum is added to the total: it keeps the digits of long f32 sums.
const BLOCK: usize = 64;

/// What a unit has of its row.
#[derive(Clone, Copy)]
pub(super) enum Span {
    /// All of its so many elements.
    Row(usize),
    /// A slice of so many elements; unit `slice * rows + row`.
    Slice(usize),
}

/// Writes a stage.
pub(super) struct Walk<'a> {
    pub(super) emitter: Emitter<'a>,
    pub(super) outline: &'a Outline,
    pub(super) cut: Cut,
    /// Loads that are kept in workgroup memory, and the first pass that has them.
    kept: Vec<(usize, usize)>,
    /// The coordinates of the row.
    coords: Vec<String>,
    pub(super) code: String,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        target: &'a Target<'a>,
        loops: &breakeven_ir::plan::Loops,
        outline: &'a Outline,
        cut: Cut,
    ) -> Walk<'a> {
        let emitter = Emitter::new(target, &loops.body, &outline.groups);
        Walk { emitter, outline, cut, kept: vec![], coords: vec![], code: String::new() }
    }

    /// The module is done.
    pub(super) fn stage(mut self, kernel: usize, class: Class, units: usize, work: usize) -> Stage {
        self.code += "}\n";
        let shape = Shape {
            workgroup: self.cut.workgroup,
            units: units as u64,
            turns: Turns::once(self.cut.rows()),
            work: work as u64,
        };
        self.emitter.module.stage(kernel, class, shape, &self.code)
    }

    /// Keeps what several passes load in workgroup memory, if a row fits: memory is then read once.
    pub(super) fn keep(&mut self) {
        let loads: Vec<(usize, Vec<usize>)> = self.outline.loads().into_iter().filter(|(_, p)| p.len() > 1).collect();
        if loads.is_empty() || self.cut.threads == 1 {
            return;
        }
        let parts: Vec<Part> = self.outline.passes.concat();
        let workgroup = self.cut.workgroup as usize;
        let bytes = self.emitter.target.limits.workgroup_bytes as usize;
        let free = (bytes / 4).saturating_sub(fold::words(&parts) * workgroup) / loads.len() / workgroup;
        let each = self.cut.run(self.outline.inner).next_multiple_of(self.cut.lanes);
        if each > free {
            return;
        }
        for (at, passes) in loads {
            let ty = lane_type(self.outline.body.dtypes[at]);
            // Sizes are in the text only as powers of two.
            let size = each.next_power_of_two().min(free) * workgroup;
            let _ = writeln!(self.emitter.module.globals, "var<workgroup> kept{at}: array<{ty}, {size}>;");
            self.kept.push((at, passes[0]));
        }
    }

    /// Everything up to the passes: what depends on nothing, the loop over units, what depends on the row alone.
    /// `need` has the steps that the stage uses.
    pub(super) fn open(&mut self, need: &[bool], span: Span) {
        let Cut { workgroup, threads, columns, runs, lanes } = self.cut;
        let rows = self.cut.rows();
        self.row_steps(need, |o, at| o.masks[at] == 0 && o.ready[at] == 0);
        let code = &mut self.code;
        if threads == 1 {
            let _ = writeln!(
                code,
                "for (var u = first + i32(wid.x * {workgroup}u + lid); u < end; u += i32(groups.x * {workgroup}u)) {{"
            );
        } else {
            *code += &if columns {
                format!("let lane = lid / {rows}u;\nlet base = lid % {rows}u;\nlet own = base;\n")
            } else {
                format!("let lane = lid % {threads}u;\nlet base = lid - lane;\nlet own = lid / {threads}u;\n")
            };
            let _ = writeln!(
                code,
                "for (var u0 = first + i32(wid.x * {rows}u); u0 < end; u0 += i32(groups.x * {rows}u)) {{"
            );
            *code += if rows == 1 {
                "let u = u0;\nlet live = true;\n"
            } else {
                // Those past the end take part in every barrier, and store nothing.
                "let u = min(u0 + i32(own), end - 1);\nlet live = u0 + i32(own) < end;\n"
            };
        }
        let (Span::Row(length) | Span::Slice(length)) = span;
        let count = self.emitter.module.count(length);
        match span {
            Span::Row(_) => {
                let _ = writeln!(code, "let row = u;\nlet lo = 0;\nlet hi = {count};");
            }
            Span::Slice(_) => {
                let rows = self.emitter.module.count(self.outline.rows);
                let inner = self.emitter.module.count(self.outline.inner);
                let _ = writeln!(
                    code,
                    "let row = i32(u32(u) % u32({rows}));\nlet lo = i32(u32(u) / u32({rows})) * {count};\n\
                     let hi = min({inner}, lo + {count});"
                );
            }
        }
        *code += &match (threads, runs) {
            (1, _) => "let begin = lo;\nlet stop = hi;\n".into(),
            (_, false) => format!("let begin = lo + i32(lane) * {lanes};\nlet stop = hi;\n"),
            (_, true) => {
                let run = self.emitter.module.count(self.cut.run(length));
                format!("let begin = lo + i32(lane) * {run};\nlet stop = min(hi, begin + {run});\n")
            }
        };
        let mut coords = String::new();
        self.coords = self.emitter.split(&mut coords, "row", 0..self.outline.outer, "x");
        self.code += &coords;
        self.row_steps(need, |o, at| o.masks[at] != 0 && o.ready[at] == 0);
    }

    /// The steps of `which` that are the same along a row.
    pub(super) fn row_steps(&mut self, need: &[bool], which: impl Fn(&Outline, usize) -> bool) {
        for (at, &wanted) in need.iter().enumerate() {
            let reduces = matches!(self.outline.body.insts[at], Inst::Reduce { .. });
            if wanted && !reduces && !self.outline.varies(at) && which(self.outline, at) {
                self.emitter.step(&mut self.code, at, &format!("v{at}"), &self.coords, &|v| format!("v{v}"));
            }
        }
    }

    /// The name of a value at lane `lane` of an element.
    fn value(&self, value: Value, lane: usize) -> String {
        if self.outline.varies(value as usize) { format!("v{value}_{lane}") } else { format!("v{value}") }
    }

    /// Gathers each part's argument over this invocation's elements: `a{step}`, and `ia{step}` if it is an index.
    pub(super) fn gather(&mut self, pass: usize, parts: &[Part]) {
        let lanes = self.cut.lanes;
        for Part { fold, step } in parts {
            for lane in 0..lanes {
                let _ = writeln!(self.code, "var a{step}_{lane} = {};", fold.identity());
                if fold.indexed() {
                    let _ = writeln!(self.code, "var ia{step}_{lane} = {NOWHERE};");
                }
            }
        }
        let wanted = self.outline.wanted(parts);
        self.walk(pass, &wanted, parts, |walk| {
            for (Part { fold, step }, &arg) in parts.iter().zip(&wanted) {
                let letter = if fold.blocked() { "p" } else { "a" };
                for lane in 0..lanes {
                    let value = walk.value(arg, lane);
                    let acc = format!("{letter}{step}_{lane}");
                    fold.add(&mut walk.emitter.module, &mut walk.code, &acc, &value, &format!("(j + {lane})"));
                }
            }
        });
        for Part { fold, step } in parts {
            let _ = writeln!(self.code, "var a{step} = a{step}_0;");
            if fold.indexed() {
                let _ = writeln!(self.code, "var ia{step} = ia{step}_0;");
            }
            for lane in 1..lanes {
                let (value, index) = (format!("a{step}_{lane}"), format!("ia{step}_{lane}"));
                fold.add(&mut self.emitter.module, &mut self.code, &format!("a{step}"), &value, &index);
            }
        }
    }

    /// A pass: gathers parts and combines them along the row. Reductions leave as `v{step}`, scans as `e{step}`, what
    /// is before this invocation's run.
    pub(super) fn pass(&mut self, pass: usize, parts: &[Part]) {
        self.gather(pass, parts);
        let is_scan = |p: &&Part| matches!(self.outline.body.insts[p.step], Inst::Scan { .. });
        let reductions: Vec<Part> = parts.iter().filter(|p| !is_scan(p)).cloned().collect();
        fold::tree(&mut self.emitter.module, &mut self.code, &reductions, &self.cut);
        for part in parts.iter().filter(is_scan) {
            fold::prefix(&mut self.emitter.module, &mut self.code, part, &self.cut);
        }
    }

    /// Writes the values that differ along the row.
    pub(super) fn store_elements(&mut self, stores: &[Store]) {
        if stores.is_empty() {
            return;
        }
        let guarded = self.cut.rows() > 1 && self.cut.threads > 1;
        self.code += if guarded { "if (live) {\n" } else { "{\n" };
        let wanted: Vec<Value> = stores.iter().map(|s| s.value).collect();
        self.walk(self.outline.passes.len(), &wanted, &[], |walk| {
            for store in stores {
                walk.store_element(store);
            }
        });
        self.code += "}\n";
    }

    fn store_element(&mut self, store: &Store) {
        let index = store.index.over_groups(&self.outline.groups);
        let coords = self.element_coords();
        let value = |lane: usize| self.value(store.value, lane);
        if self.cut.lanes == 1 || !contiguous(&index, self.outline.last(), LANES) {
            let values: Vec<String> = (0..self.cut.lanes).map(value).collect();
            for (value, coords) in values.iter().zip(&coords) {
                self.emitter.store(&mut self.code, store, &self.outline.groups, value, coords);
            }
            return;
        }
        let values: Vec<String> = (0..self.cut.lanes).map(value).collect();
        vector::store(&mut self.emitter, &mut self.code, store.buffer, &index, &coords[0], &values);
    }

    /// Writes the values of the row.
    pub(super) fn store_rows(&mut self, stores: &[Store]) {
        if stores.is_empty() {
            return;
        }
        self.code += self.first_only();
        for store in stores {
            let value = format!("v{}", store.value);
            self.emitter.store(&mut self.code, store, &self.outline.groups, &value, &self.coords);
        }
        self.code += "}\n";
    }

    /// Opens a block for one invocation of each row.
    pub(super) fn first_only(&self) -> &'static str {
        if self.cut.threads == 1 { "{\n" } else { "if (live && lane == 0u) {\n" }
    }

    /// The coordinates of each lane of the element at hand.
    fn element_coords(&self) -> Vec<Vec<String>> {
        let count = self.outline.groups.len() - self.outline.outer;
        let mut coords = self.coords.clone();
        coords.push(if count == 1 { "(j)".into() } else { "(y1_)".into() });
        coords.extend((1..count).map(|at| format!("y{at}")));
        let lane = |lane: usize| {
            let mut coords = coords.clone();
            if let Some(last) = coords.last_mut().filter(|_| lane > 0) {
                *last = format!("({last} + {lane})");
            }
            coords
        };
        (0..self.cut.lanes).map(lane).collect()
    }

    /// The loop over this invocation's elements, with every step that `wanted` needs; `inside` uses them. The blocks
    /// of `parts` are summed here.
    fn walk(&mut self, pass: usize, wanted: &[Value], parts: &[Part], inside: impl FnOnce(&mut Self)) {
        let along = self.outline.along(wanted);
        let steps: Vec<usize> = (0..along.len()).filter(|&at| along[at] && self.outline.varies(at)).collect();
        let scans: Vec<Part> = steps
            .iter()
            .filter(|&&at| matches!(self.outline.body.insts[at], Inst::Scan { .. }))
            .filter_map(|&at| Part::of(&self.outline.body, at))
            .collect();
        // A block of its own: several passes may run the same scan.
        self.code += "{\n";
        for Part { fold, step } in &scans {
            let start = if self.outline.carried(*step) { format!("e{step}") } else { fold.identity().to_owned() };
            let _ = writeln!(self.code, "var c{step} = {start};");
        }
        let (step, lanes) = (self.cut.step(), self.cut.lanes);
        let mut sums: Vec<(String, String)> = vec![];
        for Part { step, .. } in parts.iter().filter(|p| p.fold.blocked()) {
            sums.extend((0..lanes).map(|lane| (format!("a{step}_{lane}"), format!("p{step}_{lane}"))));
        }
        let running = scans.iter().filter(|p| p.fold.blocked());
        sums.extend(running.map(|Part { step, .. }| (format!("c{step}"), format!("p{step}"))));
        if sums.is_empty() {
            let _ = writeln!(self.code, "for (var j = begin; j < stop; j += {step}) {{");
        } else {
            let block = BLOCK * step;
            let _ = writeln!(self.code, "for (var block = begin; block < stop; block += {block}) {{");
            for (_, part) in &sums {
                let _ = writeln!(self.code, "var {part} = 0.0f;");
            }
            let _ = writeln!(
                self.code,
                "let close = min(stop, block + {block});\nfor (var j = block; j < close; j += {step}) {{"
            );
        }
        let mut split = String::new();
        self.emitter.split(&mut split, "j", self.outline.outer..self.outline.groups.len(), "y");
        self.code += &split;
        if self.kept.iter().any(|(at, _)| along[*at]) {
            let each = lanes * self.cut.workgroup as usize;
            let _ = writeln!(self.code, "let slot = u32(j - begin) / {step}u * {each}u + lid;");
        }
        let coords = self.element_coords();
        for at in steps {
            match scans.iter().find(|p| p.step == at) {
                Some(part) => self.running(part),
                None => self.element(pass, at, &coords),
            }
        }
        inside(self);
        self.code += "}\n";
        for (sum, part) in &sums {
            let _ = writeln!(self.code, "{sum} += {part};");
        }
        self.code += if sums.is_empty() { "}\n" } else { "}\n}\n" };
    }

    /// A scan's value at each lane.
    fn running(&mut self, Part { fold, step }: &Part) {
        let arg = self.outline.body.insts[*step].args().next().unwrap_or_default();
        for lane in 0..self.cut.lanes {
            let value = self.value(arg, lane);
            let (carry, part) = (format!("c{step}"), format!("p{step}"));
            let _ = if fold.blocked() {
                writeln!(self.code, "{part} += {value};\nlet v{step}_{lane} = {carry} + {part};")
            } else {
                writeln!(self.code, "{carry} = {};\nlet v{step}_{lane} = {carry};", fold.combine(&carry, &value))
            };
        }
    }

    /// A step at each lane.
    fn element(&mut self, pass: usize, at: usize, coords: &[Vec<String>]) {
        let kept = self.kept.iter().find(|(load, _)| *load == at).map(|(_, first)| *first);
        let place = |lane: usize| format!("kept{at}[slot + {}u]", lane * self.cut.workgroup as usize);
        if kept.is_some_and(|first| pass > first) {
            for lane in 0..self.cut.lanes {
                let _ = writeln!(self.code, "let v{at}_{lane} = {};", place(lane));
            }
            return;
        }
        let last = self.outline.last();
        if self.cut.lanes == 1 || !vector::load(&mut self.emitter, &mut self.code, 'v', at, last, &coords[0], LANES) {
            for (lane, coords) in coords.iter().enumerate() {
                let outline = self.outline;
                let arg = |v: Value| if outline.varies(v as usize) { format!("v{v}_{lane}") } else { format!("v{v}") };
                self.emitter.step(&mut self.code, at, &format!("v{at}_{lane}"), coords, &arg);
            }
        }
        if kept.is_some() {
            for lane in 0..self.cut.lanes {
                let _ = writeln!(self.code, "{} = v{at}_{lane};", place(lane));
            }
        }
    }
}
