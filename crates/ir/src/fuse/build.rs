//! Builds one kernel: pulls everything into the loops of its root that can be computed there.
//!
//! A root node enters; a [`Draft`] leaves, or the [`Obstacle`] that must be settled first. Every node is visited
//! together with the coordinates at which it is needed, so movement is only ever index arithmetic. A reduction over
//! variables that its own result does not depend on stays in the same kernel: that makes softmax one kernel.

use super::Decisions;
use super::coords::flat;
use crate::dtype::{DType, Scalar};
use crate::expr::{Access, Body, Condition, Inst, Value};
use crate::graph::{Graph, GraphOp, NodeId};
use crate::index::{Index, Split};
use crate::ops::Op;
use crate::plan::{BufferId, Factor, Var};
use crate::tensor::FastMap;
use std::rc::Rc;

/// What keeps a kernel from being built.
pub(crate) enum Obstacle {
    /// This node must get memory.
    Store(NodeId),
    /// All of these must, none of which is below another: each would be the next one to be named.
    StoreAll(Vec<NodeId>),
    /// These nodes must not be computed along in the kernel of that root.
    Apart(NodeId, Vec<NodeId>),
}

/// A kernel whose accesses still name nodes.
pub(crate) struct Draft {
    pub(crate) root: NodeId,
    pub(crate) vars: Vec<Var>,
    pub(crate) body: Body,
    /// The root first, then what is computed along.
    pub(crate) stores: Vec<(NodeId, Value, Index)>,
    pub(crate) contract: Option<Product>,
    /// Stored nodes that are read.
    pub(crate) loads: Vec<NodeId>,
    /// Nodes that are computed.
    pub(crate) computed: Vec<NodeId>,
}

impl Draft {
    /// For checks: is it the same kernel?
    pub(crate) fn is_same(&self, other: &Draft) -> bool {
        let product = |draft: &Draft| draft.contract.as_ref().map(|c| format!("{:?}", (&c.left, &c.right, c.product)));
        let rest = |draft: &Draft| format!("{:?}", (&draft.vars, &draft.body, &draft.stores, &draft.loads));
        self.root == other.root
            && self.computed == other.computed
            && rest(self) == rest(other)
            && product(self) == product(other)
    }
}

/// The matrix product inside a draft.
pub(crate) struct Product {
    pub(crate) batch: Vec<usize>,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) left: Factor,
    pub(crate) right: Factor,
    pub(crate) product: u32,
}

/// Why a build stopped: an obstacle for the whole plan, or a split of this kernel's own loops.
pub(super) enum Stop {
    Obstacle(Obstacle),
    Split(Split),
}

/// A node at coordinates under conditions, all by number.
pub(super) type At = (NodeId, u32, u32);

pub(super) enum Task {
    Visit(At),
    Map(At),
    Reduce(At),
    Scan(At),
    Take {
        at: At,
        access: u32,
        stride: i64,
        extent: usize,
    },
    Pad {
        value: Scalar,
        inside: u32,
    },
    /// Selects between the values of the pieces by these conditions.
    Concat {
        inside: Vec<u32>,
    },
}

pub(crate) struct Builder<'a> {
    pub(super) graph: &'a Graph,
    pub(super) decisions: &'a Decisions,
    pub(super) costs: &'a [u32],
    pub(super) done: &'a [bool],
    /// `None` for a matmul's operand, which nothing else is computed along with.
    pub(super) root: Option<NodeId>,
    pub(super) vars: Vec<Var>,
    pub(super) extents: Vec<usize>,
    /// The root's flat index over its variables.
    pub(super) identity: Index,
    pub(super) body: Body,
    pub(super) known: FastMap<Inst, Value>,
    pub(super) accesses: FastMap<Access, u32>,
    pub(super) places: Vec<Rc<[Index]>>,
    pub(super) place_ids: FastMap<Rc<[Index]>, u32>,
    pub(super) guards: Vec<Vec<Condition>>,
    pub(super) guard_ids: FastMap<Vec<Condition>, u32>,
    pub(super) memo: FastMap<At, Value>,
    pub(super) visits: FastMap<NodeId, u32>,
    pub(super) along: Vec<(NodeId, Value, Index)>,
    pub(super) product: Option<(NodeId, u32)>,
    pub(super) loads: Vec<NodeId>,
    /// The reduction that added inner variables of its own.
    pub(super) reduced: Option<NodeId>,
    pub(super) has_inner: bool,
    pub(super) values: Vec<Value>,
}

fn with_room<K, V>(count: usize) -> FastMap<K, V> {
    FastMap::with_capacity_and_hasher(count, Default::default())
}

/// How the loops of a kernel are cut: the factors of each axis of the root, and of each axis that is reduced beyond it.
#[derive(Clone, Default)]
pub(super) struct Cuts {
    pub(super) axes: Vec<Vec<usize>>,
    pub(super) inner: Vec<Vec<usize>>,
}

impl Cuts {
    /// Cuts variable `split.var`, counted over the axes and then the inner ones.
    pub(super) fn cut(&mut self, split: Split) {
        let mut at = usize::from(split.var);
        for factors in self.axes.iter_mut().chain(&mut self.inner) {
            if at < factors.len() {
                let high = factors[at] / split.low;
                factors.splice(at..=at, [high, split.low]);
                return;
            }
            at -= factors.len();
        }
    }
}

impl<'a> Builder<'a> {
    /// The kernel that computes `root`.
    pub(crate) fn kernel(
        graph: &'a Graph,
        decisions: &'a Decisions,
        costs: &'a [u32],
        done: &'a [bool],
        root: NodeId,
    ) -> Result<Draft, Obstacle> {
        let shape = graph.nodes[root].shape;
        let axes = shape.iter().map(|&d| if d == 1 { vec![] } else { vec![d] }).collect();
        let mut cuts = Cuts { axes, inner: vec![] };
        loop {
            let mut builder = Builder::new(graph, decisions, costs, done, Some(root));
            match builder.draft(root, &mut cuts) {
                Ok(draft) => return Ok(draft),
                Err(Stop::Obstacle(obstacle)) => return Err(obstacle),
                Err(Stop::Split(split)) => cuts.cut(split),
            }
        }
    }

    pub(super) fn new(
        graph: &'a Graph,
        decisions: &'a Decisions,
        costs: &'a [u32],
        done: &'a [bool],
        root: Option<NodeId>,
    ) -> Self {
        // Maps that hold most of the graph in the end: growing them there step by step takes a seventh of all planning.
        let nodes = graph.nodes.len();
        Builder {
            graph,
            decisions,
            costs,
            done,
            root,
            vars: vec![],
            extents: vec![],
            identity: Index::default(),
            body: Body::default(),
            known: with_room(nodes),
            accesses: FastMap::default(),
            places: vec![],
            place_ids: with_room(nodes / 2),
            guards: vec![vec![]],
            guard_ids: FastMap::from_iter([(vec![], 0)]),
            memo: with_room(nodes),
            visits: with_room(nodes),
            along: vec![],
            product: None,
            loads: vec![],
            reduced: None,
            has_inner: false,
            values: vec![],
        }
    }

    fn draft(&mut self, root: NodeId, cuts: &mut Cuts) -> Result<Draft, Stop> {
        let coords: Vec<Index> = cuts.axes.iter().map(|factors| self.add_vars(factors, false)).collect();
        self.identity = flat(&coords, &self.graph.nodes[root].shape);
        let place = self.place(coords);
        let value = self.emit((root, place, 0), cuts)?;
        let mut stores = vec![(root, value, self.identity.clone())];
        self.check_along(root)?;
        stores.append(&mut self.along);
        self.check_repeats(root)?;
        let contract = match self.product {
            Some((node, access)) => Some(self.contract(node, access)?),
            None => None,
        };
        let mut computed: Vec<NodeId> = self.memo.keys().map(|&(node, ..)| node).collect();
        computed.sort_unstable();
        computed.dedup();
        computed.retain(|node| !self.loads.contains(node));
        self.loads.sort_unstable();
        self.loads.dedup();
        let body = std::mem::take(&mut self.body);
        let loads = std::mem::take(&mut self.loads);
        Ok(Draft { root, vars: std::mem::take(&mut self.vars), body, stores, contract, loads, computed })
    }

    /// New variables for the factors of an axis, outermost first, and the index along the axis.
    pub(super) fn add_vars(&mut self, factors: &[usize], inner: bool) -> Index {
        let mut index = Index::default();
        for &extent in factors {
            index = index.times(extent as i64).plus(&Index::var(self.vars.len() as u8), 1);
            self.vars.push(Var { extent, inner });
            self.extents.push(extent);
        }
        index
    }

    pub(super) fn place(&mut self, coords: impl Into<Rc<[Index]>>) -> u32 {
        let next = self.places.len() as u32;
        *self.place_ids.entry(coords.into()).or_insert_with_key(|coords| {
            self.places.push(coords.clone());
            next
        })
    }

    pub(super) fn guard(&mut self, mut conditions: Vec<Condition>) -> u32 {
        conditions.sort();
        conditions.dedup();
        let next = self.guards.len() as u32;
        *self.guard_ids.entry(conditions).or_insert_with_key(|conditions| {
            self.guards.push(conditions.clone());
            next
        })
    }

    pub(super) fn inst(&mut self, inst: Inst, dtype: DType) -> Value {
        let body = &mut self.body;
        *self.known.entry(inst).or_insert_with_key(|inst| {
            body.insts.push(inst.clone());
            body.dtypes.push(dtype);
            body.insts.len() as Value - 1
        })
    }

    pub(super) fn access(&mut self, node: NodeId, index: Index, guard: u32) -> u32 {
        let access = Access { buffer: BufferId(node as u32), index, conditions: self.guards[guard as usize].clone() };
        let body = &mut self.body;
        *self.accesses.entry(access).or_insert_with_key(|access| {
            body.accesses.push(access.clone());
            body.accesses.len() as u32 - 1
        })
    }

    /// Emits everything that `at` needs, without recursion: chains may be of any length.
    pub(super) fn emit(&mut self, at: At, cuts: &mut Cuts) -> Result<Value, Stop> {
        let mut tasks = vec![Task::Visit(at)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit(at) => match self.memo.get(&at) {
                    Some(&value) => self.values.push(value),
                    None => self.visit(at, cuts, &mut tasks)?,
                },
                Task::Map(at) => {
                    let node = &self.graph.nodes[at.0];
                    let GraphOp::Map { op, signature } = node.op else { unreachable!("a map task is of a map") };
                    let mut args = [0; 3];
                    let first = self.values.len() - node.args.len();
                    args[..node.args.len()].copy_from_slice(&self.values[first..]);
                    self.values.truncate(first);
                    self.finish(at, Inst::Map { op, signature, args });
                }
                Task::Reduce(at) => {
                    let GraphOp::Reduce { op, .. } = self.graph.nodes[at.0].op else { unreachable!() };
                    let arg = self.pop();
                    self.finish(at, Inst::Reduce { op, arg });
                }
                Task::Scan(at) => {
                    let GraphOp::Scan { op, .. } = self.graph.nodes[at.0].op else { unreachable!() };
                    let arg = self.pop();
                    self.finish(at, Inst::Scan { op, arg });
                }
                Task::Take { at, access, stride, extent } => {
                    let position = self.pop();
                    self.finish(at, Inst::Gather { access, position, stride, extent });
                }
                Task::Pad { value, inside } => {
                    let x = self.pop();
                    let y = self.inst(Inst::Const(value), value.dtype());
                    let selected = self.select(inside, x, y);
                    self.values.push(selected);
                }
                Task::Concat { inside } => {
                    let first = self.values.len() - inside.len();
                    let pieces = self.values.split_off(first);
                    let mut joined = pieces[0];
                    for (&value, &inside) in pieces.iter().zip(&inside).skip(1) {
                        joined = self.select(inside, value, joined);
                    }
                    self.values.push(joined);
                }
            }
        }
        Ok(self.pop())
    }

    fn pop(&mut self) -> Value {
        self.values.pop().expect("every task leaves one value")
    }

    pub(super) fn finish(&mut self, at: At, inst: Inst) {
        let value = self.inst(inst, self.graph.nodes[at.0].dtype);
        self.memo.insert(at, value);
        self.values.push(value);
        if self.decisions.stored[at.0] && Some(at.0) != self.root {
            let index = flat(&self.places[at.1 as usize], &self.graph.nodes[at.0].shape);
            self.along.push((at.0, value, index));
        }
    }

    /// `x` where the conditions of `inside` hold, else `y`.
    pub(super) fn select(&mut self, inside: u32, x: Value, y: Value) -> Value {
        let conditions = self.guards[inside as usize].clone();
        if conditions.is_empty() {
            return x;
        }
        let dtype = self.body.dtypes[x as usize];
        let condition = self.inst(Inst::Inside { conditions }, DType::Bool);
        let signature = Op::Where.signature(&[DType::Bool, dtype, dtype]).map_or(0, |(i, _)| i as u8);
        self.inst(Inst::Map { op: Op::Where, signature, args: [condition, x, y] }, dtype)
    }

    /// The node below any views, or the lowest view of a leaf.
    pub(super) fn below_views(&self, mut id: NodeId) -> NodeId {
        while let GraphOp::View(_) = self.graph.nodes[id].op {
            let arg = self.graph.nodes[id].args[0];
            if self.decisions.stored[arg] || matches!(self.graph.nodes[arg].op, GraphOp::Leaf(_)) {
                break;
            }
            id = arg;
        }
        id
    }

    /// Asks for memory for `id`; if it was to be computed along, it has memory and must be kept apart instead.
    pub(super) fn store(&self, id: NodeId) -> Stop {
        match self.root {
            Some(root) if self.decisions.stored[id] => Stop::Obstacle(Obstacle::Apart(root, vec![id])),
            _ => Stop::Obstacle(Obstacle::Store(id)),
        }
    }

    pub(super) fn store_or(&self, id: NodeId, is_root: bool) -> Stop {
        debug_assert!(!is_root, "a root fits its own loops");
        self.store(id)
    }
}
