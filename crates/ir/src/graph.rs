//! The recorded graph as a table: common subexpressions, constants and dead nodes are gone.
//!
//! Tensors enter; a [`Graph`] leaves, in which every node is used, arguments come first, and no two nodes are equal.

use crate::dtype::{DType, Scalar};
use crate::ops::{Op, ReduceOp, ScanOp};
use crate::shape::{AxisSet, Shape};
use crate::tensor::{FastMap, Kind, Tensor, View, Walk};
use std::hash::BuildHasher;

/// The number of a node.
pub(crate) type NodeId = usize;

/// What a node computes. Everything keeps its axes; arguments of `Map` and `Matmul` broadcast.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum GraphOp {
    /// A leaf by its place among the plan's inputs.
    Leaf(usize),
    /// One value everywhere.
    Const(Scalar),
    Arange {
        start: Scalar,
        step: Scalar,
    },
    Map {
        op: Op,
        signature: u8,
    },
    Reduce {
        op: ReduceOp,
        axes: AxisSet,
    },
    Scan {
        op: ScanOp,
        axis: u8,
    },
    Matmul,
    View(View),
    Concat {
        axis: u8,
    },
    Take {
        axis: u8,
    },
}

/// A node of the graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct GraphNode {
    pub(crate) op: GraphOp,
    pub(crate) args: Vec<NodeId>,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// The whole computation.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<GraphNode>,
    /// The dtype and shape of each leaf, also of those that nothing needs in the end.
    pub(crate) leaves: Vec<(DType, Shape)>,
    pub(crate) outputs: Vec<NodeId>,
    /// Nodes by their hash, or by the next number that was free: a node is hundreds of bytes, and is here once.
    seen: FastMap<u64, NodeId>,
}

/// Pieces that one kernel selects between when it joins tensors. More are joined in rounds: each piece is looked at
/// for every element, so that a kernel over all of a hundred pieces would do a hundred times the work.
const PIECES: usize = 8;

impl Graph {
    pub(crate) fn build(outputs: &[&Tensor]) -> Graph {
        let walk = Walk::new(outputs);
        let mut graph = Graph { nodes: Vec::with_capacity(walk.order().len()), ..Graph::default() };
        graph.seen.reserve(walk.order().len());
        let mut ids: Vec<NodeId> = Vec::with_capacity(walk.order().len());
        for tensor in walk.order() {
            let mut args = Vec::new();
            tensor.0.kind.for_each_arg(|arg| args.push(ids[walk.index(arg) as usize]));
            let id = graph.lower(tensor, args);
            ids.push(id);
        }
        graph.outputs = outputs.iter().map(|t| ids[walk.index(t) as usize]).collect();
        graph.drop_dead();
        graph
    }

    fn lower(&mut self, tensor: &Tensor, args: Vec<NodeId>) -> NodeId {
        let (shape, dtype) = (tensor.shape(), tensor.dtype());
        let op = match &tensor.0.kind {
            Kind::Input(_) | Kind::Data(_) => {
                self.leaves.push((dtype, shape));
                GraphOp::Leaf(self.leaves.len() - 1)
            }
            Kind::Const(value) => GraphOp::Const(*value),
            Kind::Arange { start, step } => GraphOp::Arange { start: *start, step: *step },
            Kind::Count { arg, axes } => {
                let count: usize = axes.iter().map(|axis| arg.shape()[axis]).product();
                GraphOp::Const(Scalar::from(count as f32))
            }
            Kind::Map { op, signature, .. } => GraphOp::Map { op: *op, signature: *signature },
            Kind::Reduce { op, axes, .. } => GraphOp::Reduce { op: *op, axes: *axes },
            Kind::Scan { op, axis, .. } => GraphOp::Scan { op: *op, axis: *axis },
            Kind::Matmul { .. } => GraphOp::Matmul,
            Kind::Move { arg, by } => match by.resolve(arg.shape()) {
                Ok((_, view)) => GraphOp::View(view),
                // Recording has resolved it before: the shapes are the same.
                Err(error) => unreachable!("a recorded movement no longer fits: {error}"),
            },
            Kind::Concat { axis, .. } => GraphOp::Concat { axis: *axis },
            Kind::Take { axis, .. } => GraphOp::Take { axis: *axis },
        };
        let args = if matches!(op, GraphOp::Const(_)) { Vec::new() } else { args };
        self.add(op, args, shape, dtype)
    }

    /// Adds a node, or finds the one that computes the same.
    pub(crate) fn add(&mut self, op: GraphOp, args: Vec<NodeId>, shape: Shape, dtype: DType) -> NodeId {
        // A leaf stays a leaf, also when it is empty: inputs are numbered.
        if shape.elems() == 0 && !matches!(op, GraphOp::Leaf(_)) {
            return self.insert(GraphOp::Const(Scalar::zero(dtype)), Vec::new(), shape, dtype);
        }
        let constant = |id: NodeId| match self.nodes[id].op {
            GraphOp::Const(value) => Some(value),
            _ => None,
        };
        match &op {
            GraphOp::Map { op: map, .. } => {
                let values: Option<Vec<Scalar>> = args.iter().map(|&id| constant(id)).collect();
                if let Some(value) = values.and_then(|values| map.fold(&values)) {
                    return self.insert(GraphOp::Const(value), Vec::new(), shape, dtype);
                }
                if let Some(same) = self.identity(*map, &args, shape, dtype) {
                    return same;
                }
                let map = *map;
                let mut args = args;
                if map.has(crate::ops::property::COMMUTES) {
                    args.sort_unstable();
                }
                if map == Op::Pow && constant(args[1]) == Some(Scalar::from(2.0f32)) {
                    let op = GraphOp::Map { op: Op::Square, signature: 0 };
                    return self.insert(op, vec![args[0]], shape, dtype);
                }
                return self.insert(op, args, shape, dtype);
            }
            GraphOp::View(view) => match (constant(args[0]), view) {
                (Some(value), View::Pad { value: pad, .. }) if value != *pad => {}
                (Some(value), _) => return self.insert(GraphOp::Const(value), Vec::new(), shape, dtype),
                _ => {}
            },
            GraphOp::Reduce { op: reduce, axes } => {
                let from = self.nodes[args[0]].shape;
                if axes.iter().any(|axis| from[axis] == 0) {
                    let value = reduce.identity(self.nodes[args[0]].dtype).unwrap_or(Scalar::zero(dtype));
                    return self.insert(GraphOp::Const(value), Vec::new(), shape, dtype);
                }
                // One element: its own sum, product, maximum; its place is 0.
                if axes.iter().all(|axis| from[axis] == 1) {
                    return match reduce {
                        ReduceOp::ArgMax | ReduceOp::ArgMin => {
                            self.insert(GraphOp::Const(Scalar::zero(dtype)), Vec::new(), shape, dtype)
                        }
                        _ => args[0],
                    };
                }
            }
            GraphOp::Scan { axis, .. } if shape[usize::from(*axis)] == 1 => return args[0],
            GraphOp::Matmul if self.nodes[args[0]].shape[self.nodes[args[0]].shape.rank() - 1] == 0 => {
                return self.insert(GraphOp::Const(Scalar::zero(dtype)), Vec::new(), shape, dtype);
            }
            GraphOp::Concat { axis } => return self.concat(*axis, args, shape, dtype),
            _ => {}
        }
        self.insert(op, args, shape, dtype)
    }

    /// A join without its empty pieces, in rounds of [`PIECES`].
    fn concat(&mut self, axis: u8, args: Vec<NodeId>, shape: Shape, dtype: DType) -> NodeId {
        let mut pieces: Vec<NodeId> = args.into_iter().filter(|&id| self.nodes[id].shape.elems() > 0).collect();
        while pieces.len() > 1 {
            let mut round = Vec::with_capacity(pieces.len().div_ceil(PIECES));
            for chunk in pieces.chunks(PIECES) {
                if let [one] = chunk {
                    round.push(*one);
                    continue;
                }
                let along = chunk.iter().map(|&id| self.nodes[id].shape[usize::from(axis)]).sum();
                let op = GraphOp::Concat { axis };
                round.push(self.insert(op, chunk.to_vec(), shape.with(usize::from(axis), along), dtype));
            }
            pieces = round;
        }
        pieces[0]
    }

    /// The argument that the op gives back unchanged, bit for bit: `x * 1`, `x / 1`, `x - 0`, `x ** 1`.
    fn identity(&self, op: Op, args: &[NodeId], shape: Shape, dtype: DType) -> Option<NodeId> {
        let is = |id: NodeId, value: f32| match self.nodes[id].op {
            GraphOp::Const(c) => c == Scalar::from(value).cast(c.dtype()) && c.dtype() != DType::Bool,
            _ => false,
        };
        let kept = match (op, args) {
            (Op::Mul, &[x, one]) if is(one, 1.0) => x,
            (Op::Mul, &[one, x]) if is(one, 1.0) => x,
            (Op::Div | Op::Pow, &[x, one]) if is(one, 1.0) => x,
            (Op::Sub, &[x, zero]) if is(zero, 0.0) => x,
            _ => return None,
        };
        (self.nodes[kept].shape == shape && self.nodes[kept].dtype == dtype).then_some(kept)
    }

    fn insert(&mut self, op: GraphOp, args: Vec<NodeId>, shape: Shape, dtype: DType) -> NodeId {
        let node = GraphNode { op, args, shape, dtype };
        let mut hash = self.seen.hasher().hash_one(&node);
        while let Some(&id) = self.seen.get(&hash) {
            if self.nodes[id] == node {
                return id;
            }
            hash = hash.wrapping_add(1);
        }
        let id = self.nodes.len();
        self.seen.insert(hash, id);
        self.nodes.push(node);
        id
    }

    /// Keeps what the outputs need, in order.
    fn drop_dead(&mut self) {
        let mut live = vec![false; self.nodes.len()];
        self.outputs.iter().for_each(|&id| live[id] = true);
        // Arguments have smaller numbers: one sweep from the end finds everything.
        for id in (0..self.nodes.len()).rev() {
            if live[id] {
                self.nodes[id].args.iter().for_each(|&arg| live[arg] = true);
            }
        }
        let mut renumbered = vec![0; self.nodes.len()];
        let mut kept = Vec::with_capacity(live.iter().filter(|live| **live).count());
        for (id, mut node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if live[id] {
                node.args.iter_mut().for_each(|arg| *arg = renumbered[*arg]);
                renumbered[id] = kept.len();
                kept.push(node);
            }
        }
        self.nodes = kept;
        self.outputs.iter_mut().for_each(|id| *id = renumbered[*id]);
        self.seen.clear();
    }
}
