//! What a kernel must satisfy once everything is in it: nothing is written out of order, nothing that is loaded waits for
//! it, and no expensive value is computed again and again.

use super::CHEAP;
use super::build::{Builder, Obstacle, Stop};
use crate::graph::{GraphOp, NodeId};
use crate::index::Index;

impl Builder<'_> {
    /// What is computed along must be written row-major over the loops, and nothing that is loaded may need it.
    pub(super) fn check_along(&self, root: NodeId) -> Result<(), Stop> {
        let row_major = |outer_only: bool| {
            let order = (0..self.vars.len()).filter(|&v| !self.vars[v].inner);
            let inner = (0..self.vars.len()).filter(|&v| self.vars[v].inner && !outer_only);
            order
                .chain(inner)
                .fold(Index::default(), |sum, v| sum.times(self.extents[v] as i64).plus(&Index::var(v as u8), 1))
        };
        let (all, outer) = (row_major(false), row_major(true));
        for (node, _, index) in &self.along {
            let elems = self.graph.nodes[*node].shape.elems();
            let points: usize = self.extents.iter().product();
            let outer_points: usize = self.vars.iter().filter(|v| !v.inner).map(|v| v.extent).product();
            let fits = (*index == self.identity && elems == self.graph.nodes[root].shape.elems())
                || (*index == all && elems == points)
                || (*index == outer && elems == outer_points);
            if !fits || self.along.iter().filter(|(n, ..)| n == node).count() > 1 || self.needs(*node) {
                return Err(Stop::Obstacle(Obstacle::Apart(root, *node)));
            }
        }
        Ok(())
    }

    /// Does anything that this kernel loads depend on `node`?
    fn needs(&self, node: NodeId) -> bool {
        let mut depends = vec![false; self.graph.nodes.len()];
        depends[node] = true;
        for id in node + 1..self.graph.nodes.len() {
            depends[id] = self.graph.nodes[id].args.iter().any(|&arg| depends[arg]);
        }
        self.loads.iter().any(|&id| depends[id])
    }

    /// Expensive values that the loops would compute more than once get memory.
    pub(super) fn check_repeats(&self, root: NodeId) -> Result<(), Stop> {
        if self.extents.is_empty() {
            return Ok(());
        }
        // In a map the last variable is the row that tiles are cut from: what does not depend on it is done per row.
        let inner_mask = self.vars.iter().enumerate().filter(|(_, v)| v.inner).fold(0u64, |m, (i, _)| m | 1 << i);
        let rows = if inner_mask == 0 { 1u64 << (self.vars.len() - 1) } else { inner_mask };
        let masks = self.body.var_masks(inner_mask);
        let points = |mask: u64| -> u128 {
            self.extents.iter().enumerate().filter(|(v, _)| mask >> v & 1 == 1).map(|(_, &e)| e as u128).product()
        };
        let all = (1u64 << self.vars.len()) - 1;
        let mut worst = None;
        for (&(node, ..), &value) in &self.memo {
            if node == root || self.decisions.stored[node] || self.costs[node] < CHEAP {
                continue;
            }
            if !matches!(self.graph.nodes[node].op, GraphOp::Map { .. } | GraphOp::Take { .. }) {
                continue;
            }
            let mask = masks[value as usize];
            let runs = if mask & rows == 0 { points(all & !rows) } else { points(all) };
            if runs >= 2 * points(mask) {
                worst = worst.max(Some(node));
            }
        }
        worst.map_or(Ok(()), |node| Err(Stop::Obstacle(Obstacle::Store(node))))
    }
}
