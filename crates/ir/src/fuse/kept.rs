//! Kernels of an attempt that came to nothing: a draft enters, and leaves again if a later attempt would make the same one.
//!
//! Attempts differ in a few nodes that were given memory, and most kernels never look at those. What a kernel looks at is
//! everything between its root and what it loads.

use super::Decisions;
use super::build::Draft;
use crate::graph::{Graph, GraphOp, NodeId};
use crate::tensor::FastMap;

/// Drafts by their roots.
pub(super) type KeptDrafts = FastMap<NodeId, Kept>;

/// A draft, and what was known when it was made.
pub(super) struct Kept {
    pub(super) draft: Draft,
    seen: Vec<Seen>,
    /// Nodes that were apart from its root.
    apart: usize,
}

/// A node that the kernel looked at: whether it had memory, and whether an earlier kernel of the attempt had computed it.
struct Seen {
    node: NodeId,
    stored: bool,
    done: bool,
}

impl Kept {
    /// `done` as it was when the draft was made.
    pub(super) fn new(graph: &Graph, decisions: &Decisions, done: &[bool], draft: Draft) -> Kept {
        let is_along = |id: NodeId| draft.stores.iter().any(|&(node, ..)| node == id);
        let mut met = vec![false; graph.nodes.len()];
        let mut seen = Vec::with_capacity(draft.computed.len() + draft.loads.len());
        let mut stack = vec![draft.root];
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut met[node], true) {
                continue;
            }
            seen.push(Seen { node, stored: decisions.stored[node], done: done[node] });
            let is_loaded = draft.loads.binary_search(&node).is_ok() && !is_along(node);
            if !is_loaded && !matches!(graph.nodes[node].op, GraphOp::Leaf(_)) {
                stack.extend_from_slice(&graph.nodes[node].args);
            }
        }
        let apart = apart_from(decisions, draft.root);
        Kept { draft, seen, apart }
    }

    /// Would the same draft be made now? Costs need no look: they follow from which of these nodes have memory.
    pub(super) fn holds(&self, decisions: &Decisions, done: &[bool]) -> bool {
        let same = |seen: &Seen| seen.stored == decisions.stored[seen.node] && seen.done == done[seen.node];
        self.apart == apart_from(decisions, self.draft.root) && self.seen.iter().all(same)
    }
}

fn apart_from(decisions: &Decisions, root: NodeId) -> usize {
    decisions.apart.iter().filter(|(from, _)| *from == root).count()
}
