//! The kernels of a product: tiles that a workgroup stages or reads directly, blocks of one invocation each, and blocks
//! that several invocations share along the depth.

use super::super::Target;
use super::super::module::{Elem, Module, Shape};
use super::cut::{BLOCKS_GROUP, Cut, Part, SHARED_GROUP};
use super::end::{At, End};
use super::side::{Along, LANES, Place, Side};
use crate::stage::{Slot, Stage, TileVariant, Turns};
use breakeven_ir::DType;
use breakeven_ir::plan::{Class, Contract};
use std::fmt::Write;

/// What an invocation keeps in registers: `down` blocks of `rows` rows each `row_step` apart, `across` blocks of
/// `lanes` columns each `column_step` apart.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) down: usize,
    pub(super) row_step: usize,
    pub(super) lanes: usize,
    pub(super) across: usize,
    pub(super) column_step: usize,
}

/// Writes one stage.
pub(super) struct Writer<'a> {
    target: &'a Target<'a>,
    contract: &'a Contract,
    part: &'a Part,
    pub(super) module: Module,
    pub(super) code: String,
    pub(super) left: Side<'a>,
    pub(super) right: Side<'a>,
    pub(super) block: Block,
    /// Words: rows, columns, and where the part of the depth begins and ends.
    pub(super) m: String,
    pub(super) n: String,
    pub(super) from: String,
    pub(super) to: String,
}

/// One stage of a product.
pub(super) fn stage<'a>(
    target: &'a Target<'a>,
    number: usize,
    contract: &'a Contract,
    cut: Cut,
    part: &'a Part,
) -> Stage {
    let mut module = Module::default();
    let (m, n) = (module.count(contract.m), module.count(contract.n));
    // Whole products begin at 0, and their text says so.
    let from = if part.depth == (0..part.whole) { "0".into() } else { module.count(part.depth.start) };
    let to = module.count(part.depth.end);
    let block = match cut {
        Cut::Tile(t) => Block {
            rows: LANES,
            down: t.thread_rows as usize / LANES,
            row_step: (t.rows / t.thread_rows) as usize * LANES,
            lanes: LANES,
            across: t.thread_columns as usize / LANES,
            column_step: (t.columns / t.thread_columns) as usize * LANES,
        },
        Cut::Blocks { rows, columns } | Cut::Shared { rows, columns, .. } => {
            let (height, lanes) = (rows.min(LANES), columns.min(LANES));
            Block {
                rows: height,
                down: rows / height,
                row_step: height,
                lanes,
                across: columns / lanes,
                column_step: lanes,
            }
        }
    };
    let mut writer = Writer {
        left: Side::new(target, &contract.left, (contract.m, contract.k), false),
        right: Side::new(target, &contract.right, (contract.n, contract.k), true),
        target,
        contract,
        part,
        module,
        code: String::new(),
        block,
        m,
        n,
        from,
        to,
    };
    let workgroup = match cut {
        Cut::Tile(t) => writer.tile(&t),
        Cut::Blocks { .. } => writer.blocks(cut),
        Cut::Shared { slices, .. } => writer.shared(cut, slices),
    };
    let (units, group_units) = cut.units(contract);
    let outputs = contract.batch.iter().product::<usize>() * contract.m * contract.n;
    let work = outputs as u64 * part.depth.len().max(1) as u64;
    let shape = Shape { workgroup: workgroup as u32, units, turns: Turns::once(group_units), work };
    writer.module.stage(number, Class::Contract, shape, &writer.code)
}

impl Writer<'_> {
    pub(super) fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.code, "{text}");
    }

    /// Cuts unit `unit` into `batch`, `row0` and `column0`, and begins both operands there.
    fn open(&mut self, unit: &str, cut: Cut) {
        let (rows, columns) = cut.unit();
        let across = self.module.count(self.contract.n.div_ceil(columns));
        self.line(format_args!(
            "let uc = i32(u32({unit}) % u32({across}));\nlet ur = i32(u32({unit}) / u32({across}));"
        ));
        let batched = self.contract.batch.iter().any(|&extent| extent > 1);
        if batched {
            let down = self.module.count(self.contract.m.div_ceil(rows));
            self.line(format_args!("let row0 = i32(u32(ur) % u32({down})) * {rows};"));
            self.line(format_args!("let batch = i32(u32(ur) / u32({down}));"));
            self.line(format_args!("let row_base = batch * {};", self.m.clone()));
        } else {
            self.line(format_args!("let row0 = ur * {rows};\nlet row_base = 0;"));
        }
        self.line(format_args!("let column0 = uc * {columns};"));
        if self.contract.k == 0 {
            // Operands without elements are never read, and nothing could be bound.
            return;
        }
        let coords = self.batch_coords();
        self.left.open(&mut self.module, &mut self.code, &coords);
        self.right.open(&mut self.module, &mut self.code, &coords);
    }

    /// The coordinate of each batch axis; those of extent 1 have none.
    fn batch_coords(&mut self) -> Vec<String> {
        let mut coords = vec![String::new(); self.contract.batch.len()];
        let mut rest = "batch".to_owned();
        let axes: Vec<usize> = (0..coords.len()).filter(|&axis| self.contract.batch[axis] > 1).collect();
        for (at, &axis) in axes.iter().enumerate().rev() {
            if at == 0 {
                coords[axis] = rest;
                break;
            }
            let word = self.module.count(self.contract.batch[axis]);
            self.line(format_args!("let batch{axis} = i32(u32({rest}) % u32({word}));"));
            self.line(format_args!("let rest{axis} = i32(u32({rest}) / u32({word}));"));
            coords[axis] = format!("batch{axis}");
            rest = format!("rest{axis}");
        }
        coords
    }

    fn zero(&self) -> &'static str {
        if self.block.lanes == 1 { "0.0" } else { "vec4<f32>(0.0)" }
    }

    fn accumulators(&self) -> Vec<(usize, usize)> {
        let rows = self.block.rows * self.block.down;
        (0..rows).flat_map(|row| (0..self.block.across).map(move |j| (row, j))).collect()
    }

    fn declare(&mut self) {
        let zero = self.zero();
        for (i, j) in self.accumulators() {
            self.line(format_args!("var acc{i}_{j} = {zero};"));
        }
    }

    /// The lines of both operands that this invocation multiplies.
    fn lines(&mut self, row: &str, column: &str) -> (Vec<Vec<Place>>, Vec<Vec<Place>>) {
        let block = self.block;
        let (m, n) = (self.m.clone(), self.n.clone());
        let plus = |first: &str, by: usize| if by == 0 { first.to_owned() } else { format!("({first} + {by})") };
        let rows = (0..block.down)
            .map(|i| {
                let first = plus(row, i * block.row_step);
                self.left.places(&mut self.module, &mut self.code, &first, &m, block.rows)
            })
            .collect();
        let columns = (0..block.across)
            .map(|j| {
                let first = plus(column, j * block.column_step);
                self.right.places(&mut self.module, &mut self.code, &first, &n, block.lanes)
            })
            .collect();
        (rows, columns)
    }

    /// Steps along the depth of one iteration: four where an operand lies along it and every load of it gives four.
    fn stride(&self) -> usize {
        let deep = self.left.along() == Some(Along::Depth) || self.right.along() == Some(Along::Depth);
        if deep { LANES } else { 1 }
    }

    /// Multiplies what both operands have at `count` steps from `k` on.
    fn multiply(&mut self, rows: &[Vec<Place>], columns: &[Vec<Place>], count: usize) {
        let block = self.block;
        let steps = self.left.steps(&mut self.module, &mut self.code, "k", count);
        let left: Vec<Vec<String>> = rows
            .iter()
            .map(|lines| self.left.fetch(&mut self.module, &mut self.code, lines, &steps, (block.rows, count)))
            .collect();
        let steps = self.right.steps(&mut self.module, &mut self.code, "k", count);
        let right: Vec<Vec<String>> = columns
            .iter()
            .map(|lines| self.right.fetch(&mut self.module, &mut self.code, lines, &steps, (block.lanes, count)))
            .collect();
        for step in 0..count {
            self.accumulate(|i| left[i][step].clone(), |j| right[j][step].clone());
        }
    }

    /// One step: every accumulator gets the product of its row and its columns.
    pub(super) fn accumulate(&mut self, left: impl Fn(usize) -> String, right: impl Fn(usize) -> String) {
        for (i, j) in self.accumulators() {
            let (part, lane) = (i / self.block.rows, i % self.block.rows);
            let component = if self.block.rows == 1 { "" } else { [".x", ".y", ".z", ".w"][lane] };
            self.line(format_args!("acc{i}_{j} += {}{component} * {};", left(part), right(j)));
        }
    }

    /// A tile; the workgroup's size leaves.
    fn tile(&mut self, t: &TileVariant) -> usize {
        let threads = (t.columns / t.thread_columns) as usize;
        let workgroup = threads * (t.rows / t.thread_rows) as usize;
        let staged = t.depth > 0;
        self.line(format_args!("let t = i32(lid);\nlet tc = t % {threads};\nlet tr = t / {threads};"));
        self.line(format_args!("for (var u = first + i32(wid.x); u < end; u += i32(groups.x)) {{"));
        self.open("u", Cut::Tile(*t));
        self.line(format_args!("let row1 = row0 + tr * {LANES};\nlet column1 = column0 + tc * {LANES};"));
        self.declare();
        let inside = format!("row1 < {} && column1 < {}", self.m, self.n);
        if staged {
            self.staged(t, workgroup);
            self.line(format_args!("if ({inside}) {{"));
        } else {
            self.line(format_args!("if ({inside}) {{"));
            self.direct("row1", "column1", None);
        }
        self.finish("row1", "column1");
        self.code += "}\n}\n";
        workgroup
    }

    /// The loop along the depth of an invocation that reads for itself, or with every `slices`th step.
    fn direct(&mut self, row: &str, column: &str, slices: Option<usize>) {
        if self.contract.k == 0 {
            return;
        }
        let (rows, columns) = self.lines(row, column);
        let count = self.stride();
        let (from, to) = (self.from.clone(), self.to.clone());
        let (start, step) = match slices {
            Some(slices) => (format!("{from} + slice * {count}"), slices * count),
            None => (from, count),
        };
        self.line(format_args!("for (var k = {start}; k < {to}; k += {step}) {{"));
        self.multiply(&rows, &columns, count);
        self.code += "}\n";
    }

    /// Blocks of one invocation each.
    fn blocks(&mut self, cut: Cut) -> usize {
        let workgroup = BLOCKS_GROUP;
        self.line(format_args!(
            "for (var u = first + i32(wid.x * {workgroup}u + lid); u < end; u += i32(groups.x * {workgroup}u)) {{"
        ));
        self.open("u", cut);
        self.declare();
        self.direct("row0", "column0", None);
        self.finish("row0", "column0");
        self.code += "}\n";
        workgroup
    }

    /// Blocks that several invocations share along the depth.
    fn shared(&mut self, cut: Cut, slices: usize) -> usize {
        let workgroup = SHARED_GROUP;
        let blocks = workgroup / slices;
        let rows = self.block.rows;
        let ty = if self.block.lanes == 1 { "f32" } else { "vec4<f32>" };
        let _ = writeln!(self.module.globals, "var<workgroup> sums: array<{ty}, {}>;", workgroup * rows);
        // Neighbouring invocations read neighbouring memory.
        let deep = self.left.deep() || self.right.deep();
        let (slice, own) = if deep {
            (format!("i32(lid) % {slices}"), format!("i32(lid) / {slices}"))
        } else {
            (format!("i32(lid) / {blocks}"), format!("i32(lid) % {blocks}"))
        };
        self.line(format_args!("let slice = {slice};\nlet own = {own};"));
        self.line(format_args!(
            "for (var g = first + i32(wid.x) * {blocks}; g < end; g += i32(groups.x) * {blocks}) {{\n\
             let u = min(g + own, end - 1);"
        ));
        self.open("u", cut);
        self.declare();
        self.direct("row0", "column0", Some(slices));
        for i in 0..rows {
            self.line(format_args!("sums[(own * {slices} + slice) * {rows} + {i}] = acc{i}_0;"));
        }
        self.line(format_args!("workgroupBarrier();\nif (slice == 0 && g + own < end) {{"));
        self.line(format_args!("for (var s = 1; s < {slices}; s++) {{"));
        for i in 0..rows {
            self.line(format_args!("acc{i}_0 += sums[(own * {slices} + s) * {rows} + {i}];"));
        }
        self.code += "}\n";
        self.finish("row0", "column0");
        self.code += "}\nworkgroupBarrier();\n}\n";
        workgroup
    }

    /// Writes the accumulators: a loop over them, so that the end's text is there once.
    fn finish(&mut self, row: &str, column: &str) {
        let block = self.block;
        let list = self.accumulators();
        let count = list.len();
        let (m, n) = (self.m.clone(), self.n.clone());
        let at = if count == 1 {
            self.line(format_args!("let value = acc0_0;"));
            (row.to_owned(), column.to_owned())
        } else {
            self.line(format_args!("for (var a = 0; a < {count}; a++) {{\nvar sum = acc0_0;"));
            for (number, (i, j)) in list.iter().enumerate().skip(1) {
                self.line(format_args!("if (a == {number}) {{ sum = acc{i}_{j}; }}"));
            }
            let across = block.across;
            let i = if across == 1 { "a".into() } else { format!("a / {across}") };
            let rows = if block.down == 1 {
                format!("{row} + {i}")
            } else {
                format!("{row} + ({i}) / {} * {} + ({i}) % {}", block.rows, block.row_step, block.rows)
            };
            let columns = if across == 1 {
                column.to_owned()
            } else {
                format!("{column} + a % {across} * {}", block.column_step)
            };
            self.line(format_args!("let value = sum;\nlet out_row = {rows};\nlet out_column = {columns};"));
            self.line(format_args!("if (out_row < {m} && out_column < {n}) {{"));
            ("out_row".into(), "out_column".into())
        };
        self.line(format_args!("let out_line = row_base + {};", at.0));
        self.out(&At { row: "out_line", column: &at.1, n: &n, lanes: block.lanes });
        if count > 1 {
            self.code += "}\n}\n";
        }
    }

    /// Adds what earlier stages summed, and leaves the sum there, or hands it to the end.
    fn out(&mut self, at: &At<'_>) {
        let Part { depth, whole, sums } = self.part;
        let mut value = "value".to_owned();
        if *depth != (0..*whole) {
            let elems = self.contract.batch.iter().product::<usize>() * self.contract.m * self.contract.n;
            let elem = Elem::Scalar(DType::F32);
            let binding = self.module.binding(self.target, Slot::Partials(*sums), elem, true);
            self.module.resize(binding, elems);
            let lane = |lane: usize| format!("b{binding}[o{binding} + {} * {} + {} + {lane}]", at.row, at.n, at.column);
            let components = if at.lanes == 1 { &[""][..] } else { &[".x", ".y", ".z", ".w"][..] };
            self.line(format_args!("var whole = value;"));
            for (i, component) in components.iter().enumerate() {
                self.line(format_args!("if ({} + {i} < {}) {{", at.column, at.n));
                if depth.start > 0 {
                    self.line(format_args!("whole{component} += {};", lane(i)));
                }
                if depth.end < *whole {
                    self.line(format_args!("{} = whole{component};", lane(i)));
                }
                self.code += "}\n";
            }
            value = "whole".into();
        }
        if depth.end == *whole {
            let mut end = End::new(self.target, self.contract);
            end.write(&mut self.module, &mut self.code, &value, at);
        }
    }
}
