//! The template for few long rows: each row is cut into slices, so that more than a few workgroups have work.
//!
//! Every pass of the kernel becomes two stages: the first reduces each slice to one value in scratch memory, the second
//! combines a row's values there. The stages after them read the result, and the last one writes what differs along
//! rows. A scan's slices are combined to what is before each of them.

use super::emit::needed;
use super::fold::{self, NOWHERE, Part};
use super::module::Elem;
use super::outline::{Cut, Outline};
use super::walk::{Span, Walk};
use super::{Target, Unsupported, rows};
use crate::stage::{Lowered, Slot, Stage};
use breakeven_ir::DType;
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::plan::Loops;
use std::fmt::Write;

/// Fewer rows than this leave a device idle if each is one workgroup's,
const FEW: usize = 64;
/// and elements from which on that outweighs the dispatches.
const LONG: usize = 1 << 14;
/// Slices that are wanted, and the least that one should have.
const SLICES: usize = 1024;
const SLICE: usize = 4096;

/// Is it better, or the only way, to cut the rows of this kernel into slices?
pub(crate) fn pays(target: &Target<'_>, loops: &Loops) -> bool {
    let rows = loops.outer_points();
    let inner = loops.points() / rows.max(1);
    (rows > 0 && rows < FEW && inner >= LONG) || rows::is_too_long(target, loops)
}

/// A kernel over few long rows as stages.
pub(crate) fn lower(
    target: &Target<'_>,
    number: usize,
    loops: &Loops,
    lowered: &mut Lowered,
) -> Result<(), Unsupported> {
    let outline = Outline::new(target, loops, true);
    let slices = SLICES.div_ceil(outline.rows.max(1)).min(outline.inner / SLICE).max(1);
    // A multiple of what a workgroup takes at a time, as vectors.
    let length = outline.inner.div_ceil(slices).next_multiple_of(4 * target.variants.rows.workgroup as usize);
    let slices = outline.inner.div_ceil(length).max(1);
    let mut cut = Cut::choose(target, &outline, outline.rows * slices, length);
    let too_long =
        |cut: &Cut| target.limits.loop_cap.is_some_and(|cap| cut.iterations(&outline, length) > cap as usize / 2);
    while too_long(&cut) && cut.threads < cut.workgroup {
        cut.threads *= 2;
    }
    if too_long(&cut) {
        return Err(Unsupported(format!("kernel {number} has rows of {} elements: too many", outline.inner)));
    }
    let area = Area::new(&outline, slices);
    let mut split =
        Split { target, number, loops, outline: &outline, cut, slices, length, area, slot: lowered.partials.len() };
    let bytes = split.area.words * 4;
    if bytes as u64 > target.limits.binding_bytes {
        return Err(Unsupported(format!("kernel {number} needs {bytes} bytes of scratch memory at once")));
    }
    let mut stages = split.stages();
    if cut.lanes > 1 && stages.iter().any(|s| s.bindings.len() >= target.limits.bindings as usize) {
        // A buffer that is read both as vectors and as scalars is bound twice.
        split.cut.lanes = 1;
        stages = split.stages();
    }
    lowered.partials.push(bytes);
    lowered.stages.extend(stages);
    Ok(())
}

/// Where things lie in the scratch memory, in words.
struct Area {
    /// A word for each row and reduction.
    results: Vec<(usize, usize)>,
    /// A word for each slice and scan.
    carries: Vec<(usize, usize)>,
    /// The slices' values of the pass at hand.
    parts: usize,
    words: usize,
}

impl Area {
    fn new(outline: &Outline, slices: usize) -> Area {
        let units = outline.rows * slices;
        let mut words = 0;
        let mut take = |count: usize| {
            words += count;
            words - count
        };
        let all = outline.passes.concat();
        let (scans, reductions): (Vec<Part>, Vec<Part>) = all.into_iter().partition(|p| is_scan(outline, p));
        let results = reductions.iter().map(|p| (p.step, take(outline.rows))).collect();
        let carries = scans.iter().map(|p| (p.step, take(units))).collect();
        let largest = outline.passes.iter().map(|parts| parts.iter().map(Part::words).sum::<usize>()).max();
        let parts = take(largest.unwrap_or(0) * units);
        Area { results, carries, parts, words: words.max(1) }
    }
}

fn is_scan(outline: &Outline, part: &Part) -> bool {
    matches!(outline.body.insts[part.step], Inst::Scan { .. })
}

fn find(list: &[(usize, usize)], step: usize) -> usize {
    list.iter().find(|(s, _)| *s == step).map_or(0, |(_, at)| *at)
}

/// Writes the stages of one kernel.
struct Split<'a> {
    target: &'a Target<'a>,
    number: usize,
    loops: &'a Loops,
    outline: &'a Outline,
    cut: Cut,
    slices: usize,
    length: usize,
    area: Area,
    /// The scratch memory's number.
    slot: usize,
}

impl<'a> Split<'a> {
    fn stages(&self) -> Vec<Stage> {
        let count = self.outline.passes.len();
        let mut stages: Vec<Stage> = (0..count).flat_map(|pass| [self.slices(pass), self.combine(pass)]).collect();
        if !self.outline.element_stores.is_empty() {
            stages.push(self.elements());
        }
        stages
    }

    /// A writer, and the name of the scratch memory as `b0[o0 + `.
    fn walk(&self, cut: Cut) -> (Walk<'a>, String) {
        let mut walk = Walk::new(self.target, self.loops, self.outline, cut);
        let binding =
            walk.emitter.module.binding(self.target, Slot::Partials(self.slot), Elem::Scalar(DType::U32), true);
        walk.emitter.module.resize(binding, self.area.words);
        (walk, format!("b{binding}[o{binding} + "))
    }

    fn units(&self) -> usize {
        self.outline.rows * self.slices
    }

    /// The steps that `wanted` need, with reductions as their ends.
    fn need(&self, wanted: &[Value]) -> Vec<bool> {
        needed(&self.outline.body, wanted, &|at| matches!(self.outline.body.insts[at], Inst::Reduce { .. }))
    }

    /// Opens a stage over slices, up to where the first `passes` passes are done.
    fn open(&self, walk: &mut Walk<'a>, scratch: &str, wanted: &[Value], passes: usize) {
        let need = self.need(wanted);
        walk.open(&need, Span::Slice(self.length));
        self.read_results(walk, scratch, &need, &[]);
        walk.row_steps(&need, |o, at| o.ready[at] > 0);
        for (pass, parts) in self.outline.passes[..passes].iter().enumerate() {
            let scans: Vec<Part> = parts.iter().filter(|p| is_scan(self.outline, p) && need[p.step]).cloned().collect();
            if scans.is_empty() {
                continue;
            }
            if walk.cut.threads > 1 {
                walk.pass(pass, &scans);
            }
            for Part { fold, step } in &scans {
                let at = walk.emitter.module.count(find(&self.area.carries, *step));
                let before = format!("bitcast<{}>({scratch}{at} + u])", fold.ty());
                let _ = if walk.cut.threads > 1 {
                    writeln!(walk.code, "e{step} = {};", fold.combine(&before, &format!("e{step}")))
                } else {
                    writeln!(walk.code, "let e{step} = {before};")
                };
            }
        }
    }

    /// The results of earlier passes that are needed, but for those of `known`.
    fn read_results(&self, walk: &mut Walk<'a>, scratch: &str, need: &[bool], known: &[Part]) {
        for &(step, at) in &self.area.results {
            if need[step] && !known.iter().any(|p| p.step == step) {
                let at = walk.emitter.module.count(at);
                let ty = super::module::lane_type(self.outline.body.dtypes[step]);
                let _ = writeln!(walk.code, "let v{step} = bitcast<{ty}>({scratch}{at} + row]);");
            }
        }
    }

    /// Every slice's values of a pass.
    fn slices(&self, pass: usize) -> Stage {
        let (mut walk, scratch) = self.walk(self.cut);
        let parts = &self.outline.passes[pass];
        self.open(&mut walk, &scratch, &self.outline.wanted(parts), pass);
        walk.gather(pass, parts);
        fold::tree(&mut walk.emitter.module, &mut walk.code, parts, &self.cut);
        walk.code += walk.first_only();
        for (part, at) in parts.iter().zip(self.places(parts)) {
            let at = walk.emitter.module.count(at);
            let step = part.step;
            let _ = writeln!(walk.code, "{scratch}{at} + u] = bitcast<u32>(m{step});");
            if part.fold.indexed() {
                let units = walk.emitter.module.count(self.units());
                let _ = writeln!(walk.code, "{scratch}{at} + {units} + u] = bitcast<u32>(v{step});");
            }
        }
        walk.code += "}\n";
        walk.stage(self.number, self.loops.class(), self.units(), self.loops.points())
    }

    /// Where the slices' values of each part lie.
    fn places(&self, parts: &[Part]) -> Vec<usize> {
        let mut next = self.area.parts;
        let place = |part: &Part| {
            if is_scan(self.outline, part) {
                return find(&self.area.carries, part.step);
            }
            next += part.words() * self.units();
            next - part.words() * self.units()
        };
        parts.iter().map(place).collect()
    }

    /// Combines a row's values of a pass; after the last pass, also writes the row's results.
    fn combine(&self, pass: usize) -> Stage {
        let parts = &self.outline.passes[pass];
        let runs = parts.iter().any(|p| is_scan(self.outline, p));
        let cut = Cut { threads: self.cut.workgroup, columns: false, runs, lanes: 1, ..self.cut };
        let (mut walk, scratch) = self.walk(cut);
        let last = pass + 1 == self.outline.passes.len();
        let wanted: Vec<Value> = self.outline.row_stores.iter().filter(|_| last).map(|s| s.value).collect();
        let need = self.need(&wanted);
        walk.open(&need, Span::Row(self.slices));
        let rows = walk.emitter.module.count(self.outline.rows);
        let units = walk.emitter.module.count(self.units());
        let places: Vec<String> = self.places(parts).into_iter().map(|at| walk.emitter.module.count(at)).collect();
        let slice = |at: &str, fold: &fold::Fold| format!("bitcast<{}>({scratch}{at} + j * {rows} + row])", fold.ty());
        let each = format!("for (var j = begin; j < stop; j += {}) {{", cut.step());
        for (Part { fold, step }, at) in parts.iter().zip(&places) {
            let _ = writeln!(walk.code, "var a{step} = {};", fold.identity());
            let index = format!("bitcast<i32>({scratch}{at} + {units} + j * {rows} + row])");
            if fold.indexed() {
                let _ = writeln!(walk.code, "var ia{step} = {NOWHERE};");
            }
            let _ = writeln!(walk.code, "{each}");
            fold.add(&mut walk.emitter.module, &mut walk.code, &format!("a{step}"), &slice(at, fold), &index);
            walk.code += "}\n";
        }
        let reductions: Vec<Part> = parts.iter().filter(|p| !is_scan(self.outline, p)).cloned().collect();
        fold::tree(&mut walk.emitter.module, &mut walk.code, &reductions, &cut);
        if !reductions.is_empty() {
            walk.code += walk.first_only();
            for Part { step, .. } in &reductions {
                let at = walk.emitter.module.count(find(&self.area.results, *step));
                let _ = writeln!(walk.code, "{scratch}{at} + row] = bitcast<u32>(v{step});");
            }
            walk.code += "}\n";
        }
        for (part, at) in parts.iter().zip(&places).filter(|(p, _)| is_scan(self.outline, p)) {
            let Part { fold, step } = part;
            fold::prefix(&mut walk.emitter.module, &mut walk.code, part, &cut);
            let _ = writeln!(
                walk.code,
                "{each}\nlet next = {};\n{scratch}{at} + j * {rows} + row] = bitcast<u32>(e{step});\ne{step} = next;\n}}",
                fold.combine(&format!("e{step}"), &slice(at, fold))
            );
        }
        self.read_results(&mut walk, &scratch, &need, &reductions);
        walk.row_steps(&need, |o, at| o.ready[at] > 0);
        if last {
            walk.store_rows(&self.outline.row_stores);
        }
        walk.stage(self.number, self.loops.class(), self.outline.rows, self.units())
    }

    /// Writes what differs along the rows.
    fn elements(&self) -> Stage {
        let (mut walk, scratch) = self.walk(self.cut);
        let wanted: Vec<Value> = self.outline.element_stores.iter().map(|s| s.value).collect();
        self.open(&mut walk, &scratch, &wanted, self.outline.passes.len());
        walk.store_elements(&self.outline.element_stores);
        walk.stage(self.number, self.loops.class(), self.units(), self.loops.points())
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
