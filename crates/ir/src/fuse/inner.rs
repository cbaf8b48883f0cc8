//! Reductions and scans inside a kernel: which of its variables are the inner ones.

use super::build::{Builder, Cuts, Obstacle, Stop};
use crate::graph::{GraphOp, NodeId};
use crate::index::Index;
use crate::shape::{AxisSet, MAX_RANK};

impl Builder<'_> {
    /// The coordinates of a reduction's argument. Its inner variables are those that the result does not depend on
    /// (softmax), the ones that an earlier reduction added, or new ones.
    pub(super) fn inner_coords(
        &mut self,
        id: NodeId,
        coords: &[Index],
        axes: AxisSet,
        cuts: &mut Cuts,
    ) -> Result<Vec<Index>, Stop> {
        let from = self.graph.nodes[self.graph.nodes[id].args[0]].shape;
        let used = coords.iter().fold(0, |mask, c| mask | c.vars());
        let unused: Vec<usize> = (0..self.vars.len()).filter(|&v| used >> v & 1 == 0).collect();
        let is_root = self.root == Some(id);
        if self.product.is_some() {
            return Err(self.store(self.product.map_or(id, |(node, _)| node)));
        }
        let mut inner = vec![Index::default(); MAX_RANK];
        let wide: Vec<usize> = axes.iter().filter(|&axis| from[axis] != 1).collect();
        if unused.is_empty() && !self.has_inner {
            if cuts.inner.len() != wide.len() {
                cuts.inner = wide.iter().map(|&axis| vec![from[axis]]).collect();
            }
            for (&axis, factors) in wide.iter().zip(&cuts.inner.clone()) {
                inner[axis] = self.add_vars(factors, true);
            }
            self.reduced = Some(id);
        } else {
            // Each reduced axis must be made up of the next unused variables, and all of them must be taken.
            let mut rest = unused.iter().copied().peekable();
            for &axis in &wide {
                let mut size = 1;
                while size < from[axis] {
                    let Some(var) = rest.next() else { return Err(self.blocked(id, is_root)) };
                    let extent = self.extents[var];
                    size *= extent;
                    if size > from[axis] {
                        return Err(self.blocked(id, is_root));
                    }
                    inner[axis] = inner[axis].times(extent as i64).plus(&Index::var(var as u8), 1);
                }
                if size != from[axis] {
                    return Err(self.blocked(id, is_root));
                }
            }
            if rest.peek().is_some() || (self.has_inner && unused.iter().any(|&v| !self.vars[v].inner)) {
                return Err(self.blocked(id, is_root));
            }
            if self.has_inner && self.vars.iter().filter(|v| v.inner).count() != unused.len() {
                return Err(self.blocked(id, is_root));
            }
            unused.iter().for_each(|&v| self.vars[v].inner = true);
        }
        self.has_inner = true;
        Ok((0..from.rank())
            .map(|axis| if axes.contains(axis) { inner[axis].clone() } else { coords[axis].clone() })
            .collect())
    }

    /// Can the kernel's inner variables be those of the scanned axis?
    pub(super) fn scan_var(&mut self, coords: &[Index], axis: usize, extent: usize) -> bool {
        let along = coords[axis].vars();
        let elsewhere = coords.iter().enumerate().filter(|&(a, _)| a != axis).fold(0, |mask, (_, c)| mask | c.vars());
        let vars: Vec<usize> = (0..self.vars.len()).filter(|&v| along >> v & 1 == 1).collect();
        let mut whole = Index::default();
        vars.iter().for_each(|&v| whole = whole.times(self.extents[v] as i64).plus(&Index::var(v as u8), 1));
        let same_inner = !self.has_inner || self.vars.iter().enumerate().all(|(v, var)| var.inner == vars.contains(&v));
        let size: usize = vars.iter().map(|&v| self.extents[v]).product();
        let fits =
            along & elsewhere == 0 && coords[axis] == whole && size == extent && same_inner && self.product.is_none();
        if fits {
            vars.iter().for_each(|&v| self.vars[v].inner = true);
            self.has_inner = true;
        }
        fits
    }

    /// A reduction that does not fit the kernel's loops gets memory. If the kernel reduces something itself, it is
    /// better to store what that reads: the inner reduction then shares a kernel with what surrounds it.
    pub(super) fn blocked(&self, id: NodeId, is_root: bool) -> Stop {
        if let Some(outer) = self.reduced.filter(|&outer| outer != id) {
            let arg = self.below_views(self.graph.nodes[outer].args[0]);
            if !self.decisions.stored[arg] && !matches!(self.graph.nodes[arg].op, GraphOp::Leaf(_)) && arg != id {
                return Stop::Obstacle(Obstacle::Store(arg));
            }
        }
        self.store_or(id, is_root)
    }
}
