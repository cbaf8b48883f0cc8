//! Loop variables that run as one: neighbours that every index of a kernel walks without a gap.
//!
//! A kernel's loops enter, groups of variables leave. Fewer variables mean longer runs of lanes on a CPU and fewer
//! divisions on a GPU.

use crate::expr::{Access, Condition, Inst};
use crate::index::{Atom, Index};
use crate::plan::Loops;

/// Variables that run as one.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::Kernel, merge::groups};
/// let x = Tensor::input("x", DType::F32, [3, 4])?;
/// let plan = Plan::new(&[&x.exp()?])?;
/// let Kernel::Loops(loops) = &plan.kernels[0] else { panic!("a map") };
/// assert_eq!(groups(loops, false)[0].extent, 12);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The variables, outermost first.
    pub vars: Vec<usize>,
    /// The product of their extents.
    pub extent: usize,
}

/// The outer (or the inner) variables of a kernel, merged where every index allows it.
pub fn groups(loops: &Loops, inner: bool) -> Vec<Group> {
    let indices = all_indices(loops);
    let extents: Vec<usize> = loops.vars.iter().map(|v| v.extent).collect();
    let mut groups: Vec<Group> = Vec::new();
    for var in (0..loops.vars.len()).filter(|&var| loops.vars[var].inner == inner) {
        let mergeable = |last: &Group| {
            let before = last.vars[last.vars.len() - 1];
            indices.iter().all(|index| match index.affine(extents.len()) {
                Some(c) => c[before] == c[var] * extents[var] as i64,
                None => index.vars() & (1 << before | 1 << var) == 0,
            })
        };
        match groups.last_mut() {
            Some(last) if mergeable(last) => {
                last.vars.push(var);
                last.extent *= extents[var];
            }
            _ => groups.push(Group { vars: vec![var], extent: extents[var] }),
        }
    }
    groups
}

impl Index {
    /// The index over groups of variables instead of variables: `names` has the group of each variable. Every group
    /// must be one that [`groups`] made for a kernel with this index.
    #[must_use]
    pub fn over_groups(&self, groups: &[Group]) -> Index {
        let mut over = Index::constant(self.offset);
        for (atom, coefficient) in &self.terms {
            let atom = match atom {
                Atom::Var(var) => {
                    let found = groups.iter().position(|g| g.vars.last() == Some(&usize::from(*var)));
                    // The coefficients of a group's other variables follow from that of its last one.
                    let Some(group) = found else { continue };
                    Atom::Var(group as u8)
                }
                Atom::Wrapped { index, divisor, modulus } => {
                    Atom::Wrapped { index: Box::new(index.over_groups(groups)), divisor: *divisor, modulus: *modulus }
                }
            };
            over = over.plus(&Index { offset: 0, terms: vec![(atom, 1)] }, *coefficient);
        }
        over
    }
}

/// Every index of the kernel: loads, conditions, counted ranges and stores.
fn all_indices(kernel: &Loops) -> Vec<&Index> {
    fn conditions(list: &[Condition]) -> impl Iterator<Item = &Index> {
        list.iter().map(|c| &c.index)
    }
    let mut indices: Vec<&Index> = kernel.stores.iter().map(|s| &s.index).collect();
    for Access { index, conditions: list, .. } in &kernel.body.accesses {
        indices.push(index);
        indices.extend(conditions(list));
    }
    for inst in &kernel.body.insts {
        match inst {
            Inst::Arange { index, .. } => indices.push(index),
            Inst::Inside { conditions: list } => indices.extend(conditions(list)),
            _ => {}
        }
    }
    indices
}
