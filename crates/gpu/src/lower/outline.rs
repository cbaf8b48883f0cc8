//! What a kernel over rows consists of, and how it is cut: which passes over a row its reductions and scans need, and
//! how many invocations share a row. A row is one point of the outer loops.

use super::Target;
use super::emit::{Emitter, all_groups, needed};
use super::fold::Part;
use super::vector::{LANES, contiguous};
use breakeven_ir::expr::{Body, Inst, Value};
use breakeven_ir::merge::Group;
use breakeven_ir::plan::{Loops, Store};

/// Rows shorter than this are one invocation's.
const SHORT: usize = 32;
/// Elements that an invocation should have at least.
const ENOUGH: usize = 4;
/// Invocations side by side in memory, where neighbours are rows.
const ABREAST: u32 = 32;
/// Invocations that keep a device busy, where neighbours are rows.
const BUSY: usize = 1 << 14;
/// Workgroups that keep the least of devices busy.
const GROUPS: usize = 8;

/// The passes of a kernel.
pub(super) struct Outline {
    pub(super) groups: Vec<Group>,
    /// How many of the groups are outer ones.
    pub(super) outer: usize,
    pub(super) rows: usize,
    /// Elements of a row.
    pub(super) inner: usize,
    /// The body, over groups.
    pub(super) body: Body,
    inner_mask: u64,
    pub(super) masks: Vec<u64>,
    /// The steps that the kernel's results need.
    pub(super) need: Vec<bool>,
    /// For each step, after how many passes its value can be known.
    pub(super) ready: Vec<usize>,
    /// What each pass reduces: reductions, and the parts of scans that begin in the middle of a row.
    pub(super) passes: Vec<Vec<Part>>,
    pub(super) row_stores: Vec<Store>,
    pub(super) element_stores: Vec<Store>,
}

impl Outline {
    /// `shared`: is a row cut into parts, so that scans must know what is before their part?
    pub(super) fn new(target: &Target<'_>, loops: &Loops, shared: bool) -> Outline {
        let (groups, outer) = all_groups(loops);
        let body = Emitter::new(target, &loops.body, &groups).body;
        let inner_mask = (outer..groups.len()).fold(0, |mask, group| mask | 1u64 << group);
        let masks = body.var_masks(inner_mask);
        let values: Vec<Value> = loops.stores.iter().map(|s| s.value).collect();
        let need = needed(&body, &values, &|_| false);
        let mut ready: Vec<usize> = vec![];
        let mut passes: Vec<Vec<Part>> = vec![];
        for (at, inst) in body.insts.iter().enumerate() {
            let known = inst.args().map(|arg| ready[arg as usize]).max().unwrap_or(0);
            let gathers = matches!(inst, Inst::Reduce { .. }) || (shared && matches!(inst, Inst::Scan { .. }));
            if !gathers {
                ready.push(known);
                continue;
            }
            ready.push(known + 1);
            if let Some(part) = Part::of(&body, at).filter(|_| need[at]) {
                passes.resize_with(passes.len().max(known + 1), Vec::new);
                passes[known].push(part);
            }
        }
        let of_row = |s: &&Store| {
            s.index.over_groups(&groups).vars() & inner_mask == 0 && masks[s.value as usize] & inner_mask == 0
        };
        Outline {
            row_stores: loops.stores.iter().filter(of_row).cloned().collect(),
            element_stores: loops.stores.iter().filter(|s| !of_row(s)).cloned().collect(),
            rows: groups[..outer].iter().map(|g| g.extent).product(),
            inner: groups[outer..].iter().map(|g| g.extent).product(),
            groups,
            outer,
            body,
            inner_mask,
            masks,
            need,
            ready,
            passes,
        }
    }

    /// Does the step's value differ along a row?
    pub(super) fn varies(&self, step: usize) -> bool {
        self.masks[step] & self.inner_mask != 0
    }

    /// What is needed along a row for `wanted`: a set of steps that vary and of what they need directly.
    pub(super) fn along(&self, wanted: &[Value]) -> Vec<bool> {
        needed(&self.body, wanted, &|at| !self.varies(at))
    }

    /// The arguments of what a pass reduces.
    pub(super) fn wanted(&self, parts: &[Part]) -> Vec<Value> {
        parts.iter().flat_map(|p| self.body.insts[p.step].args()).collect()
    }

    /// Is the scan's part gathered by a pass?
    pub(super) fn carried(&self, step: usize) -> bool {
        self.passes.iter().flatten().any(|p| p.step == step)
    }

    pub(super) fn has_scans(&self) -> bool {
        self.steps(|i| matches!(i, Inst::Scan { .. })).next().is_some()
    }

    /// The needed steps of a kind.
    pub(super) fn steps(&self, kind: impl Fn(&Inst) -> bool) -> impl Iterator<Item = usize> {
        (0..self.need.len()).filter(move |&at| self.need[at] && kind(&self.body.insts[at]))
    }

    /// How often a row is walked.
    pub(super) fn walks(&self) -> usize {
        self.passes.len() + usize::from(!self.element_stores.is_empty())
    }

    /// The loads that differ along a row, by the passes that use them.
    pub(super) fn loads(&self) -> Vec<(usize, Vec<usize>)> {
        let stores: Vec<Value> = self.element_stores.iter().map(|s| s.value).collect();
        let wanted = self.passes.iter().map(|parts| self.wanted(parts)).chain([stores]);
        let along: Vec<Vec<bool>> = wanted.map(|w| self.along(&w)).collect();
        let loads = self.steps(|i| matches!(i, Inst::Load { .. })).filter(|&at| self.varies(at));
        loads.map(|at| (at, (0..along.len()).filter(|&pass| along[pass][at]).collect())).collect()
    }

    /// The last group of the inner ones: what four neighbours lie along.
    pub(super) fn last(&self) -> usize {
        self.groups.len() - 1
    }
}

/// How rows are given to invocations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) workgroup: u32,
    /// Invocations that share a row, a power of two.
    pub(super) threads: u32,
    /// Are neighbouring invocations neighbouring rows, rather than neighbours in a row?
    pub(super) columns: bool,
    /// Has each invocation a run of a row, as scans need it? Else it takes every `threads`-th element.
    pub(super) runs: bool,
    /// Elements that an invocation takes at a time: 1, or 4 that lie side by side.
    pub(super) lanes: usize,
}

impl Cut {
    /// Rows of a workgroup.
    pub(super) fn rows(&self) -> u32 {
        self.workgroup / self.threads
    }

    /// How far apart the invocations of a row are.
    pub(super) fn apart(&self) -> u32 {
        if self.columns { self.rows() } else { 1 }
    }

    /// Elements between what an invocation takes and takes next.
    pub(super) fn step(&self) -> usize {
        if self.runs { self.lanes } else { self.threads as usize * self.lanes }
    }

    /// The length of an invocation's run of `inner` elements.
    pub(super) fn run(&self, inner: usize) -> usize {
        inner.div_ceil(self.threads as usize).next_multiple_of(self.lanes)
    }

    /// Chosen for rows of `inner` elements, of which there are `rows` to work on.
    pub(super) fn choose(target: &Target<'_>, outline: &Outline, rows: usize, inner: usize) -> Cut {
        let most = target.variants.rows.workgroup.min(target.limits.workgroup).max(1);
        let workgroup = 1u32 << most.ilog2();
        let columns = inner >= SHORT && rows > 1 && lies_across(outline);
        let enough = 1u32 << (inner / ENOUGH).max(1).ilog2().min(workgroup.ilog2());
        let shared = 1u32 << target.variants.rows.threads.clamp(1, workgroup).ilog2();
        let threads = if inner < SHORT {
            1
        } else if columns {
            // As many rows side by side as there are, or as many as keep every invocation busy.
            let abreast = ABREAST.min(rows.next_power_of_two() as u32).min(workgroup);
            let most = (workgroup / abreast).min(enough);
            let wanted = if shared == 1 { GROUPS * workgroup as usize } else { BUSY };
            let mut threads = 1;
            while threads < most && rows * (threads as usize) < wanted {
                threads *= 2;
            }
            threads
        } else {
            let busy = (GROUPS * workgroup as usize).div_ceil(rows.max(1)).next_power_of_two();
            enough.min(shared.max(busy.min(workgroup as usize) as u32))
        };
        let last = outline.last();
        let side_by_side = |at: usize| match outline.body.insts[at] {
            Inst::Load { access } => {
                let access = &outline.body.accesses[access as usize];
                access.conditions.is_empty() && contiguous(&access.index, last, LANES)
            }
            _ => false,
        };
        let vectors = !columns
            && outline.groups[last].extent.is_multiple_of(4)
            && outline.groups[last].extent > 0
            && (0..outline.need.len()).any(|at| outline.need[at] && side_by_side(at));
        Cut { workgroup, threads, columns, runs: outline.has_scans(), lanes: if vectors { 4 } else { 1 } }
    }

    /// Loop iterations of an invocation for a row of `inner` elements.
    pub(super) fn iterations(&self, outline: &Outline, inner: usize) -> usize {
        let each = inner.div_ceil(self.threads as usize * self.lanes);
        let scans = if outline.has_scans() { 64 * outline.passes.len() } else { 0 };
        1 + outline.walks() * (each + each / 64 + 2) + scans
    }
}

/// Does memory run along the rows' own axis rather than along them?
fn lies_across(outline: &Outline) -> bool {
    let (Some(across), along) = (outline.outer.checked_sub(1), outline.last()) else { return false };
    let mut votes = 0i32;
    let mut vote = |index: &breakeven_ir::index::Index| {
        if let Some(coefficients) = index.affine(outline.groups.len()) {
            votes += i32::from(coefficients[across].abs() == 1) - i32::from(coefficients[along].abs() == 1);
        }
    };
    for at in outline.steps(|i| matches!(i, Inst::Load { .. } | Inst::Gather { .. })) {
        if let Inst::Load { access } | Inst::Gather { access, .. } = outline.body.insts[at] {
            let index = &outline.body.accesses[access as usize].index;
            if outline.varies(at) {
                vote(index);
            }
        }
    }
    for store in &outline.element_stores {
        vote(&store.index.over_groups(&outline.groups));
    }
    votes > 0
}
