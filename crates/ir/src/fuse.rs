//! Fusion: decides which nodes get memory, and makes one kernel for each of those.
//!
//! A graph enters, a plan without memory offsets leaves. Kernels are built from the outputs backwards: everything
//! that a kernel can compute in its own loops is pulled into it ([`build`]), and what it must load becomes the root of
//! a kernel of its own. Where pulling in would repeat expensive work, the builder names the node that should get
//! memory instead, and the attempt starts again with it; graphs are small and every restart settles one node.

mod build;
mod coords;
mod inner;
mod kept;
mod product;
mod settle;
mod visit;

use crate::graph::{Graph, GraphOp, NodeId};
use crate::plan::{BufferId, BufferInfo, Contract, Factor, Kernel, Loops, Place, Plan};
use crate::tensor::View;
use build::{Builder, Draft, Obstacle};
use kept::{Kept, KeptDrafts};
use std::collections::{BTreeSet, HashSet};

/// Costs below this are cheaper to repeat than to store and load: about one pass through memory, in additions.
const CHEAP: u32 = 6;

/// What has been decided so far.
pub(crate) struct Decisions {
    /// Nodes that get memory.
    pub(crate) stored: Vec<bool>,
    /// (root, node): the node must not be computed along in the root's kernel.
    pub(crate) apart: HashSet<(NodeId, NodeId)>,
    /// One kernel for each operation.
    pub(crate) fusion: bool,
}

pub(crate) fn plan(mut graph: Graph, fusion: bool) -> Plan {
    // An output that is an input as it is needs a copy: a view of its own.
    for at in 0..graph.outputs.len() {
        let id = graph.outputs[at];
        if let GraphOp::Leaf(_) = graph.nodes[id].op {
            let (shape, dtype) = (graph.nodes[id].shape, graph.nodes[id].dtype);
            graph.outputs[at] = graph.add(GraphOp::View(View::Reshape), vec![id], shape, dtype);
        }
    }
    let mut decisions = Decisions { stored: vec![false; graph.nodes.len()], apart: HashSet::new(), fusion };
    graph.outputs.iter().for_each(|&id| decisions.stored[id] = true);
    if !fusion {
        for (id, node) in graph.nodes.iter().enumerate() {
            decisions.stored[id] |= !matches!(node.op, GraphOp::Leaf(_) | GraphOp::Const(_));
        }
    }
    let mut earlier = KeptDrafts::default();
    loop {
        match attempt(&graph, &decisions, &mut earlier) {
            Ok(drafts) => return assemble(&graph, &decisions, needed(&graph, drafts)),
            Err(Obstacle::Store(id)) => {
                debug_assert!(!decisions.stored[id], "node {id} has memory already");
                decisions.stored[id] = true;
            }
            Err(Obstacle::StoreAll(ids)) => {
                debug_assert!(!ids.is_empty() && ids.iter().all(|&id| !decisions.stored[id]));
                ids.iter().for_each(|&id| decisions.stored[id] = true);
            }
            Err(Obstacle::Apart(root, ids)) => {
                for id in ids {
                    let new = decisions.apart.insert((root, id));
                    debug_assert!(new, "nodes {root} and {id} are apart already");
                }
            }
        }
    }
}

/// Kernels for everything that is needed, in an order in which they can run. Those of `earlier` attempts are taken over where
/// nothing has changed for them; what this attempt has made is there for the next one.
fn attempt(graph: &Graph, decisions: &Decisions, earlier: &mut KeptDrafts) -> Result<Vec<Draft>, Obstacle> {
    let mut kept = Vec::new();
    match build_all(graph, decisions, earlier, &mut kept) {
        Ok(order) => {
            let mut slots: Vec<Option<Draft>> = kept.into_iter().map(|kept| Some(kept.draft)).collect();
            Ok(order.into_iter().filter_map(|at| slots[at].take()).collect())
        }
        Err(obstacle) => {
            earlier.extend(kept.into_iter().map(|kept| (kept.draft.root, kept)));
            Err(obstacle)
        }
    }
}

/// Makes the kernels, and says in which order they can run.
fn build_all(
    graph: &Graph,
    decisions: &Decisions,
    earlier: &mut KeptDrafts,
    kept: &mut Vec<Kept>,
) -> Result<Vec<usize>, Obstacle> {
    let costs = inline_costs(graph, &decisions.stored);
    let mut wanted: BTreeSet<NodeId> = graph.outputs.iter().copied().collect();
    let mut done = vec![false; graph.nodes.len()];
    while let Some(root) = wanted.pop_last() {
        if done[root] || graph.nodes[root].shape.elems() == 0 {
            continue;
        }
        let build = || Builder::kernel(graph, decisions, &costs, &done, root);
        let next = match earlier.remove(&root).filter(|kept| kept.holds(decisions, &done)) {
            Some(same) => {
                debug_assert!(build().is_ok_and(|draft| same.draft.is_same(&draft)), "kernel {root} has changed");
                same
            }
            None => Kept::new(graph, decisions, &done, build()?),
        };
        for &(node, ..) in &next.draft.stores {
            done[node] = true;
        }
        wanted.extend(next.draft.loads.iter().copied().filter(|&id| !done[id]));
        kept.push(next);
    }
    repeated_work(graph, &costs, kept)?;
    in_order(graph, kept)
}

/// The work that inlining a node repeats: its own cost and that of all it pulls in.
fn inline_costs(graph: &Graph, stored: &[bool]) -> Vec<u32> {
    let mut costs = vec![0u32; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate() {
        let own = match &node.op {
            GraphOp::Map { op, .. } => op.row().cost,
            GraphOp::Reduce { .. } | GraphOp::Scan { .. } | GraphOp::Matmul => u32::MAX / 2,
            GraphOp::Concat { .. } | GraphOp::Take { .. } => 2,
            _ => 0,
        };
        let below = |arg: &NodeId| if stored[*arg] { 0 } else { costs[*arg] };
        costs[id] = node.args.iter().map(below).fold(own, u32::saturating_add);
    }
    costs
}

/// Finds work that two kernels would do: it is done once and stored.
fn repeated_work(graph: &Graph, costs: &[u32], kept: &[Kept]) -> Result<(), Obstacle> {
    let mut by = vec![usize::MAX; graph.nodes.len()];
    let mut repeated = Vec::new();
    for (at, draft) in kept.iter().map(|kept| &kept.draft).enumerate() {
        for &node in &draft.computed {
            if by[node] != usize::MAX && by[node] != at && costs[node] >= CHEAP {
                repeated.push(node);
            }
            by[node] = at;
        }
    }
    settle::outermost(graph, repeated).map_or(Ok(()), |nodes| Err(Obstacle::StoreAll(nodes)))
}

/// Sorts kernels so that each runs after those that it reads from.
fn in_order(graph: &Graph, kept: &[Kept]) -> Result<Vec<usize>, Obstacle> {
    let drafts: Vec<&Draft> = kept.iter().map(|kept| &kept.draft).collect();
    let mut maker = vec![usize::MAX; graph.nodes.len()];
    for (at, draft) in drafts.iter().enumerate() {
        draft.stores.iter().for_each(|&(node, ..)| maker[node] = at);
    }
    let mut order = Vec::with_capacity(drafts.len());
    let mut placed = vec![false; drafts.len()];
    while order.len() < drafts.len() {
        // The last drafted first: producers were found after their consumers.
        let ready = (0..drafts.len())
            .rev()
            .find(|&at| !placed[at] && drafts[at].loads.iter().all(|&n| maker[n] == usize::MAX || placed[maker[n]]));
        match ready {
            Some(at) => {
                placed[at] = true;
                order.push(at);
            }
            None => {
                // Kernels wait for each other through nodes that were computed along: take one such apart.
                let stuck = (0..drafts.len()).find(|&at| !placed[at] && drafts[at].stores.len() > 1);
                let at = stuck.expect("kernels of single nodes follow the order of the graph");
                return Err(Obstacle::Apart(drafts[at].root, vec![drafts[at].stores[1].0]));
            }
        }
    }
    Ok(order)
}

/// Drafts without stores that nobody reads: a node was given memory for a kernel that in the end computes it along.
fn needed(graph: &Graph, mut drafts: Vec<Draft>) -> Vec<Draft> {
    let mut is_read = vec![false; graph.nodes.len()];
    let loads = drafts.iter().flat_map(|draft| &draft.loads);
    loads.chain(&graph.outputs).for_each(|&id| is_read[id] = true);
    for draft in &mut drafts {
        draft.stores.retain(|&(node, ..)| is_read[node]);
        debug_assert!(!draft.stores.is_empty(), "a kernel that nobody needs");
    }
    drafts
}

/// Numbers the buffers and writes the plan.
fn assemble(graph: &Graph, decisions: &Decisions, drafts: Vec<Draft>) -> Plan {
    let mut ids = vec![BufferId(u32::MAX); graph.nodes.len()];
    for (id, node) in graph.nodes.iter().enumerate() {
        if let GraphOp::Leaf(at) = node.op {
            ids[id] = BufferId(at as u32);
        }
    }
    let leaf = |(at, &(dtype, shape))| BufferInfo { dtype, shape, place: Place::Input(at) };
    let mut buffers: Vec<BufferInfo> = graph.leaves.iter().enumerate().map(leaf).collect();
    let mut add = |id: NodeId, place: Place| {
        let info = BufferInfo { dtype: graph.nodes[id].dtype, shape: graph.nodes[id].shape, place };
        ids[id] = BufferId(buffers.len() as u32);
        buffers.push(info);
    };
    let mut outputs = vec![false; graph.nodes.len()];
    for (at, &id) in graph.outputs.iter().enumerate() {
        if !std::mem::replace(&mut outputs[id], true) {
            add(id, Place::Output(at));
        }
    }
    for &(id, ..) in drafts.iter().flat_map(|d| &d.stores) {
        debug_assert!(decisions.stored[id]);
        if !outputs[id] {
            add(id, Place::Scratch(0));
        }
    }
    let kernels = drafts.into_iter().map(|draft| draft.into_kernel(&ids)).collect();
    let outputs = graph.outputs.iter().map(|&id| ids[id]).collect();
    Plan { buffers, kernels, inputs: graph.leaves.len(), outputs, scratch_bytes: 0 }
}

impl Draft {
    /// The kernel, with nodes replaced by their buffers.
    fn into_kernel(self, ids: &[BufferId]) -> Kernel {
        let renumber = |mut body: crate::expr::Body| {
            body.accesses.iter_mut().for_each(|a| a.buffer = ids[a.buffer.0 as usize]);
            body
        };
        let stores = self
            .stores
            .into_iter()
            .map(|(node, value, index)| crate::plan::Store { buffer: ids[node], index, value })
            .collect();
        let end = Loops { vars: self.vars, body: renumber(self.body), stores };
        match self.contract {
            None => Kernel::Loops(end),
            Some(c) => Kernel::Contract(Box::new(Contract {
                batch: c.batch,
                m: c.m,
                n: c.n,
                k: c.k,
                left: Factor { body: renumber(c.left.body), ..c.left },
                right: Factor { body: renumber(c.right.body), ..c.right },
                end,
                product: c.product,
            })),
        }
    }
}
