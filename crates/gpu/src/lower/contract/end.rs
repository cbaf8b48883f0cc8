//! The end of a product as WGSL: its accumulators run through the fused body in place of the load of the product, and
//! the results are written, four at a time where memory allows.

use super::super::Target;
use super::super::emit::{Emitter, needed};
use super::super::module::Module;
use crate::lower::vector::{self, LANES, contiguous};
use breakeven_ir::expr::{Inst, Value};
use breakeven_ir::merge::{Group, groups};
use breakeven_ir::plan::{Contract, Store};
use std::fmt::Write;

/// The end of one product.
pub(super) struct End<'a> {
    emitter: Emitter<'a>,
    groups: Vec<Group>,
    stores: Vec<Store>,
    product: u32,
    n: usize,
    /// The first group that is a part of the columns, where some groups are exactly these.
    columns: Option<usize>,
    /// Words of the groups' extents.
    words: Vec<Option<String>>,
}

/// Where a run of one or four results lies: `i32` expressions.
pub(super) struct At<'a> {
    /// The row among all rows of all products.
    pub(super) row: &'a str,
    /// The first column, and how many there are.
    pub(super) column: &'a str,
    pub(super) n: &'a str,
    pub(super) lanes: usize,
}

impl<'a> End<'a> {
    pub(super) fn new(target: &'a Target<'a>, contract: &Contract) -> End<'a> {
        let groups = groups(&contract.end, false);
        let columns = (0..groups.len())
            .rev()
            .find(|&from| groups[from..].iter().map(|g| g.extent).product::<usize>() >= contract.n)
            .filter(|&from| groups[from..].iter().map(|g| g.extent).product::<usize>() == contract.n);
        End {
            emitter: Emitter::new(target, &contract.end.body, &groups),
            words: vec![None; groups.len()],
            stores: contract.end.stores.clone(),
            product: contract.product,
            n: contract.n,
            groups,
            columns,
        }
    }

    /// Writes `value`, an `f32` or a `vec4<f32>`. The row is inside, and so is the first column.
    pub(super) fn write(&mut self, module: &mut Module, code: &mut String, value: &str, at: &At<'_>) {
        std::mem::swap(&mut self.emitter.module, module);
        let last = self.groups.len().checked_sub(1);
        // Four columns are all inside, and differ in the last coordinate alone.
        let together = self.n.is_multiple_of(LANES)
            && last.is_none_or(|last| last == 0 || self.groups[last].extent.is_multiple_of(LANES));
        if at.lanes == 1 {
            let coords = self.coords(code, at.row, at.column, at.n, "x");
            self.body(code, &[value.to_owned()], &coords);
        } else if together {
            let lanes: Vec<String> = ["x", "y", "z", "w"].iter().map(|c| format!("{value}.{c}")).collect();
            let coords = self.coords(code, at.row, at.column, at.n, "x");
            self.body(code, &lanes, &coords);
        } else {
            for (lane, component) in ["x", "y", "z", "w"].iter().enumerate() {
                let column = format!("({} + {lane})", at.column);
                let _ = writeln!(code, "if ({column} < {}) {{", at.n);
                let coords = self.coords(code, at.row, &column, at.n, "x");
                self.body(code, &[format!("{value}.{component}")], &coords);
                *code += "}\n";
            }
        }
        std::mem::swap(&mut self.emitter.module, module);
    }

    /// The coordinates of a result.
    fn coords(&mut self, code: &mut String, row: &str, column: &str, n: &str, name: &str) -> Vec<String> {
        let count = self.groups.len();
        match self.columns {
            // The groups are a row and a column, or cuts of these: no more divisions than cuts.
            Some(from) if from > 0 => {
                let mut coords = self.split(code, row, 0..from, &format!("{name}r"));
                coords.extend(self.split(code, column, from..count, &format!("{name}c")));
                coords
            }
            _ if count > 0 => {
                let _ = writeln!(code, "let {name}l = ({row}) * {n} + {column};");
                self.split(code, &format!("{name}l"), 0..count, name)
            }
            _ => Vec::new(),
        }
    }

    fn split(&mut self, code: &mut String, linear: &str, range: std::ops::Range<usize>, name: &str) -> Vec<String> {
        let mut rest = linear.to_owned();
        let mut coords = vec![String::new(); range.len()];
        for group in range.clone().rev() {
            let at = group - range.start;
            if at == 0 {
                coords[0] = format!("({rest})");
                continue;
            }
            let extent = self.groups[group].extent.max(1);
            let module = &mut self.emitter.module;
            let word = self.words[group].get_or_insert_with(|| module.count(extent));
            let _ = writeln!(
                code,
                "let {name}{at} = i32(u32({rest}) % u32({word}));\nlet {name}{at}_ = i32(u32({rest}) / u32({word}));"
            );
            coords[at] = format!("{name}{at}");
            rest = format!("{name}{at}_");
        }
        coords
    }

    /// The body at one or four neighbouring points, and what it stores.
    fn body(&mut self, code: &mut String, product: &[String], base: &[String]) {
        let emitter = &mut self.emitter;
        let lanes = product.len();
        let last = base.len().checked_sub(1);
        let masks = emitter.body.var_masks(0);
        let is_product = |inst: &Inst| matches!(inst, Inst::Load { access } if *access == self.product);
        let given: Vec<bool> = emitter.body.insts.iter().map(is_product).collect();
        let values: Vec<Value> = self.stores.iter().map(|s| s.value).collect();
        let need = needed(&emitter.body, &values, &|at| given[at]);
        let varies = |at: usize| lanes > 1 && last.is_some_and(|last| masks[at] >> last & 1 == 1);
        let lane_of = |at: usize, lane: usize| match (given[at], varies(at)) {
            (true, _) => product[lane].clone(),
            (false, true) => format!("e{at}_{lane}"),
            (false, false) => format!("e{at}"),
        };
        for at in (0..need.len()).filter(|&at| need[at] && !given[at]) {
            if !varies(at) {
                emitter.step(code, at, &format!("e{at}"), base, &|v| lane_of(v as usize, 0));
                continue;
            }
            if let Some(last) = last
                && vector::load(emitter, code, 'e', at, last, base, LANES)
            {
                continue;
            }
            for lane in 0..lanes {
                let mut coords = base.to_vec();
                if let (Some(last), true) = (last, lane > 0) {
                    coords[last] = format!("({} + {lane})", base[last]);
                }
                emitter.step(code, at, &format!("e{at}_{lane}"), &coords, &|v| lane_of(v as usize, lane));
            }
        }
        for store in &self.stores {
            let value = store.value as usize;
            if lanes == 1 {
                emitter.store(code, store, &self.groups, &lane_of(value, 0), base);
                continue;
            }
            let over = store.index.over_groups(&self.groups);
            if let Some(last) = last
                && contiguous(&over, last, LANES)
            {
                let values: Vec<String> = (0..LANES).map(|lane| lane_of(value, lane)).collect();
                vector::store(emitter, code, store.buffer, &over, base, &values);
                continue;
            }
            for lane in 0..lanes {
                let mut coords = base.to_vec();
                if let (Some(last), true) = (last, lane > 0) {
                    coords[last] = format!("({} + {lane})", base[last]);
                }
                emitter.store(code, store, &self.groups, &lane_of(value, lane), &coords);
            }
        }
    }
}
