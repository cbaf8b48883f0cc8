//! Tiles whose operands a workgroup stages in its memory, as vectors of four lines for each step along the depth.

use super::side::{Along, LANES, Place};
use super::tile::Writer;
use crate::stage::TileVariant;
use std::fmt::Write;

impl Writer<'_> {
    /// The loop along the depth of a workgroup that stages both operands in its memory, vectors of four lines.
    pub(super) fn staged(&mut self, t: &TileVariant, workgroup: usize) {
        let depth = t.depth as usize;
        let sides = [("ls", t.rows as usize, "row0"), ("rs", t.columns as usize, "column0")];
        // One vector more a line than there are keeps neighbours in different banks.
        let pitch = |lines: usize| lines / LANES + 1;
        for (name, lines, _) in sides {
            let _ = writeln!(self.module.globals, "var<workgroup> {name}: array<vec4<f32>, {}>;", depth * pitch(lines));
        }
        let extents = [self.m.clone(), self.n.clone()];
        // What each invocation stages: the places of its lines, and how far its steps lie behind `k`.
        let mut items: Vec<(usize, Vec<Place>, String, usize)> = Vec::new();
        for (which, (name, lines, first)) in sides.into_iter().enumerate() {
            let side = if which == 0 { &mut self.left } else { &mut self.right };
            let count = if side.along() == Some(Along::Depth) { LANES } else { 1 };
            let (blocks, steps) = (lines / LANES, depth / count);
            for slot in 0..(blocks * steps).div_ceil(workgroup) {
                let item = format!("(t + {})", slot * workgroup);
                // Neighbouring invocations read neighbouring memory.
                let (line, step) = if side.deep() {
                    (format!("{item} / {steps}"), format!("{item} % {steps}"))
                } else {
                    (format!("{item} % {blocks}"), format!("{item} / {blocks}"))
                };
                let own = format!("{name}{slot}");
                let _ = writeln!(self.code, "let {own}_line = {line};\nlet {own}_step = ({step}) * {count};");
                let first = format!("({first} + {own}_line * {LANES})");
                let places = side.places(&mut self.module, &mut self.code, &first, &extents[which], LANES);
                items.push((which, places, own, count));
            }
        }
        let (from, to) = (self.from.clone(), self.to.clone());
        self.line(format_args!("for (var k0 = {from}; k0 < {to}; k0 += {depth}) {{"));
        for (which, places, own, count) in &items {
            let (name, lines, _) = sides[*which];
            let side = if *which == 0 { &mut self.left } else { &mut self.right };
            let (code, module) = (&mut self.code, &mut self.module);
            // Where there are fewer items than invocations the last ones have none.
            let _ = writeln!(
                code,
                "if ({own}_step < {depth}{}) {{",
                if side.deep() { format!(" && {own}_line < {}", lines / LANES) } else { String::new() }
            );
            for i in 0..*count {
                let _ = writeln!(code, "var {own}_{i} = vec4<f32>(0.0);");
            }
            let _ = writeln!(code, "let {own}_k = k0 + {own}_step;\nif ({own}_k < {to}) {{");
            let steps = side.steps(module, code, &format!("{own}_k"), *count);
            let values = side.fetch(module, code, places, &steps, (LANES, *count));
            for (i, value) in values.iter().enumerate() {
                let _ = writeln!(code, "{own}_{i} = {value};");
            }
            *code += "}\n";
            for i in 0..*count {
                let _ = writeln!(code, "{name}[({own}_step + {i}) * {} + {own}_line] = {own}_{i};", pitch(lines));
            }
            *code += "}\n";
        }
        // Two steps an iteration keep the text small and the loop's own cost down.
        self.line(format_args!("workgroupBarrier();\nfor (var d = 0; d < {depth}; d += 2) {{"));
        let block = self.block;
        for step in 0..2 {
            for i in 0..block.down {
                let at = i * block.row_step / LANES;
                self.line(format_args!("let a{step}_{i} = ls[(d + {step}) * {} + tr + {at}];", pitch(sides[0].1)));
            }
            for j in 0..block.across {
                let at = j * block.column_step / LANES;
                self.line(format_args!("let b{step}_{j}_ = rs[(d + {step}) * {} + tc + {at}];", pitch(sides[1].1)));
            }
            self.accumulate(|i| format!("a{step}_{i}"), |j| format!("b{step}_{j}_"));
        }
        self.code += "}\nworkgroupBarrier();\n}\n";
    }
}
