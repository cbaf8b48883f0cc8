//! What a kernel must satisfy once everything is in it: nothing is written out of order, nothing that is loaded waits for
//! it, and no expensive value is computed again and again.

use super::CHEAP;
use super::build::{Builder, Obstacle, Stop};
use crate::graph::{Graph, GraphOp, NodeId};
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
        let mut unfit = Vec::new();
        for (node, _, index) in &self.along {
            let elems = self.graph.nodes[*node].shape.elems();
            let points: usize = self.extents.iter().product();
            let outer_points: usize = self.vars.iter().filter(|v| !v.inner).map(|v| v.extent).product();
            let fits = (*index == self.identity && elems == self.graph.nodes[root].shape.elems())
                || (*index == all && elems == points)
                || (*index == outer && elems == outer_points);
            if !fits || self.along.iter().filter(|(n, ..)| n == node).count() > 1 || self.needs(*node) {
                unfit.push(*node);
            }
        }
        outermost(self.graph, unfit).map_or(Ok(()), |nodes| Err(Stop::Obstacle(Obstacle::Apart(root, nodes))))
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
        let mut repeated = Vec::new();
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
                repeated.push(node);
            }
        }
        outermost(self.graph, repeated).map_or(Ok(()), |nodes| Err(Stop::Obstacle(Obstacle::StoreAll(nodes))))
    }
}

/// Those of some nodes that no other of them needs. What is below one that gets memory may not be repeated any more.
pub(super) fn outermost(graph: &Graph, mut nodes: Vec<NodeId>) -> Option<Vec<NodeId>> {
    nodes.sort_unstable();
    nodes.dedup();
    let last = *nodes.last()?;
    let mut below = vec![false; last + 1];
    let mut kept = Vec::new();
    let mut next = nodes.into_iter().rev().peekable();
    // Arguments have smaller numbers: from the end everything that a node needs comes after it.
    for id in (0..=last).rev() {
        let is_named = next.next_if_eq(&id).is_some();
        if is_named && !below[id] {
            kept.push(id);
        }
        if is_named || below[id] {
            graph.nodes[id].args.iter().for_each(|&arg| below[arg] = true);
        }
    }
    Some(kept)
}
