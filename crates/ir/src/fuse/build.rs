//! Builds one kernel: pulls everything into the loops of its root that can be computed there.
//!
//! A root node enters; a [`Draft`] leaves, or the [`Obstacle`] that must be settled first. Every node is visited
//! together with the coordinates at which it is needed, so movement is only ever index arithmetic. A reduction over
//! variables that its own result does not depend on stays in the same kernel: that makes softmax one kernel.

use super::coords::{self, condition, flat};
use super::{CHEAP, Decisions};
use crate::dtype::{DType, Scalar};
use crate::expr::{Access, Body, Condition, Inst, Value};
use crate::graph::{Graph, GraphOp, NodeId};
use crate::index::{Index, Split};
use crate::ops::Op;
use crate::plan::{BufferId, Factor, Var};
use crate::shape::{AxisSet, MAX_RANK};
use crate::tensor::View;
use std::collections::HashMap;

/// What keeps a kernel from being built.
pub(crate) enum Obstacle {
    /// This node must get memory.
    Store(NodeId),
    /// This node must not be computed along in the kernel of that root.
    Apart(NodeId, NodeId),
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
enum Stop {
    Obstacle(Obstacle),
    Split(Split),
}

/// A node at coordinates under conditions, all by number.
type At = (NodeId, u32, u32);

enum Task {
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
    graph: &'a Graph,
    decisions: &'a Decisions,
    costs: &'a [u32],
    done: &'a [bool],
    /// `None` for a matmul's operand, which nothing else is computed along with.
    root: Option<NodeId>,
    vars: Vec<Var>,
    extents: Vec<usize>,
    /// The root's flat index over its variables.
    identity: Index,
    body: Body,
    known: HashMap<Inst, Value>,
    accesses: HashMap<Access, u32>,
    places: Vec<Vec<Index>>,
    place_ids: HashMap<Vec<Index>, u32>,
    guards: Vec<Vec<Condition>>,
    guard_ids: HashMap<Vec<Condition>, u32>,
    memo: HashMap<At, Value>,
    visits: HashMap<NodeId, u32>,
    along: Vec<(NodeId, Value, Index)>,
    product: Option<(NodeId, u32)>,
    loads: Vec<NodeId>,
    /// The reduction that added inner variables of its own.
    reduced: Option<NodeId>,
    has_inner: bool,
    values: Vec<Value>,
}

/// How the loops of a kernel are cut: the factors of each axis of the root, and of each axis that is reduced beyond it.
#[derive(Clone, Default)]
struct Cuts {
    axes: Vec<Vec<usize>>,
    inner: Vec<Vec<usize>>,
}

impl Cuts {
    /// Cuts variable `split.var`, counted over the axes and then the inner ones.
    fn cut(&mut self, split: Split) {
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

    fn new(
        graph: &'a Graph,
        decisions: &'a Decisions,
        costs: &'a [u32],
        done: &'a [bool],
        root: Option<NodeId>,
    ) -> Self {
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
            known: HashMap::new(),
            accesses: HashMap::new(),
            places: vec![],
            place_ids: HashMap::new(),
            guards: vec![vec![]],
            guard_ids: HashMap::from([(vec![], 0)]),
            memo: HashMap::new(),
            visits: HashMap::new(),
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
    fn add_vars(&mut self, factors: &[usize], inner: bool) -> Index {
        let mut index = Index::default();
        for &extent in factors {
            index = index.times(extent as i64).plus(&Index::var(self.vars.len() as u8), 1);
            self.vars.push(Var { extent, inner });
            self.extents.push(extent);
        }
        index
    }

    fn place(&mut self, coords: Vec<Index>) -> u32 {
        let next = self.places.len() as u32;
        *self.place_ids.entry(coords).or_insert_with_key(|coords| {
            self.places.push(coords.clone());
            next
        })
    }

    fn guard(&mut self, mut conditions: Vec<Condition>) -> u32 {
        conditions.sort();
        conditions.dedup();
        let next = self.guards.len() as u32;
        *self.guard_ids.entry(conditions).or_insert_with_key(|conditions| {
            self.guards.push(conditions.clone());
            next
        })
    }

    fn inst(&mut self, inst: Inst, dtype: DType) -> Value {
        let body = &mut self.body;
        *self.known.entry(inst).or_insert_with_key(|inst| {
            body.insts.push(inst.clone());
            body.dtypes.push(dtype);
            body.insts.len() as Value - 1
        })
    }

    fn access(&mut self, node: NodeId, index: Index, guard: u32) -> u32 {
        let access = Access { buffer: BufferId(node as u32), index, conditions: self.guards[guard as usize].clone() };
        let body = &mut self.body;
        *self.accesses.entry(access).or_insert_with_key(|access| {
            body.accesses.push(access.clone());
            body.accesses.len() as u32 - 1
        })
    }

    /// Emits everything that `at` needs, without recursion: chains may be of any length.
    fn emit(&mut self, at: At, cuts: &mut Cuts) -> Result<Value, Stop> {
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

    fn finish(&mut self, at: At, inst: Inst) {
        let value = self.inst(inst, self.graph.nodes[at.0].dtype);
        self.memo.insert(at, value);
        self.values.push(value);
        if self.decisions.stored[at.0] && Some(at.0) != self.root {
            let index = flat(&self.places[at.1 as usize], &self.graph.nodes[at.0].shape);
            self.along.push((at.0, value, index));
        }
    }

    /// `x` where the conditions of `inside` hold, else `y`.
    fn select(&mut self, inside: u32, x: Value, y: Value) -> Value {
        let conditions = self.guards[inside as usize].clone();
        if conditions.is_empty() {
            return x;
        }
        let dtype = self.body.dtypes[x as usize];
        let condition = self.inst(Inst::Inside { conditions }, DType::Bool);
        let signature = Op::Where.signature(&[DType::Bool, dtype, dtype]).map_or(0, |(i, _)| i as u8);
        self.inst(Inst::Map { op: Op::Where, signature, args: [condition, x, y] }, dtype)
    }

    fn visit(&mut self, at: At, cuts: &mut Cuts, tasks: &mut Vec<Task>) -> Result<(), Stop> {
        let (id, place, guard) = at;
        let node = &self.graph.nodes[id];
        let coords = self.places[place as usize].clone();
        let is_root = self.root == Some(id);
        if matches!(node.op, GraphOp::Leaf(_)) || (self.decisions.stored[id] && !is_root && !self.joins(at)) {
            let access = self.access(id, flat(&coords, &node.shape), guard);
            if self.decisions.stored[id] {
                self.loads.push(id);
            }
            let value = self.inst(Inst::Load { access }, node.dtype);
            self.memo.insert(at, value);
            self.values.push(value);
            return Ok(());
        }
        match &node.op {
            GraphOp::Leaf(_) => unreachable!("leaves are loaded"),
            GraphOp::Const(value) => {
                let value = self.inst(Inst::Const(*value), node.dtype);
                self.values.push(value);
            }
            GraphOp::Arange { start, step } => {
                let index = flat(&coords, &node.shape);
                let value = self.inst(Inst::Arange { index, start: *start, step: *step }, node.dtype);
                self.values.push(value);
            }
            GraphOp::Map { .. } => {
                let visits = self.visits.entry(id).or_insert(0);
                *visits += 1;
                if *visits > 1 && self.costs[id] >= CHEAP && !is_root {
                    return Err(self.store(id));
                }
                tasks.push(Task::Map(at));
                for &arg in node.args.iter().rev() {
                    let coords = coords::broadcast(&coords, &self.graph.nodes[arg].shape);
                    tasks.push(Task::Visit((arg, self.place(coords), guard)));
                }
            }
            GraphOp::View(view) => {
                let (arg, to) = (node.args[0], node.shape);
                let viewed = coords::view(view, &coords, &to, &self.graph.nodes[arg].shape, &self.extents);
                if let Some(split) = viewed.split {
                    return Err(Stop::Split(split));
                }
                let place = self.place(viewed.coords);
                let mut inner_guard = guard;
                if let View::Pad { value, .. } = view {
                    let inside = self.guard(viewed.conditions.clone());
                    inner_guard = self.guard([&self.guards[guard as usize][..], &viewed.conditions].concat());
                    tasks.push(Task::Pad { value: *value, inside });
                }
                tasks.push(Task::Visit((arg, place, inner_guard)));
            }
            GraphOp::Concat { axis } => {
                let axis = usize::from(*axis);
                let mut inside = Vec::new();
                let mut visits = Vec::new();
                let mut offset = 0;
                for &arg in &node.args {
                    let dim = self.graph.nodes[arg].shape[axis];
                    let mut coords = coords.clone();
                    coords[axis] = coords[axis].clone().shift(-offset);
                    offset += dim as i64;
                    let conditions: Vec<Condition> = condition(&coords[axis], dim, &self.extents).into_iter().collect();
                    inside.push(self.guard(conditions.clone()));
                    let inner = self.guard([&self.guards[guard as usize][..], &conditions].concat());
                    visits.push(Task::Visit((arg, self.place(coords), inner)));
                    // A piece is computed for every element of the join: only cheap ones may be.
                    if self.costs[arg] >= CHEAP && !self.decisions.stored[arg] {
                        return Err(self.store(self.below_views(arg)));
                    }
                }
                tasks.push(Task::Concat { inside });
                tasks.extend(visits.into_iter().rev());
            }
            GraphOp::Take { axis } => self.visit_take(at, usize::from(*axis), &coords, tasks)?,
            GraphOp::Reduce { axes, .. } => {
                if guard != 0 || self.root.is_none() {
                    return Err(self.store(id));
                }
                let arg = node.args[0];
                let inner = self.inner_coords(id, &coords, *axes, cuts)?;
                tasks.push(Task::Reduce(at));
                tasks.push(Task::Visit((arg, self.place(inner), 0)));
            }
            GraphOp::Scan { axis, .. } => {
                let axis = usize::from(*axis);
                if guard != 0 || self.root.is_none() || !self.scan_var(&coords, axis, node.shape[axis]) {
                    return Err(self.store_or(id, is_root));
                }
                tasks.push(Task::Scan(at));
                tasks.push(Task::Visit((node.args[0], place, 0)));
            }
            GraphOp::Matmul => {
                // The product is written where the root's result goes, so the root must hold f32-sized elements.
                let fits = self.root.is_some_and(|root| self.graph.nodes[root].dtype != DType::Bool)
                    && flat(&coords, &node.shape) == self.identity
                    && self.product.is_none()
                    && guard == 0
                    && !self.has_inner;
                if !fits {
                    return Err(self.store(id));
                }
                let root = self.root.unwrap_or(id);
                let access = self.access(root, self.identity.clone(), 0);
                self.product = Some((id, access));
                let value = self.inst(Inst::Load { access }, DType::F32);
                self.memo.insert(at, value);
                self.values.push(value);
            }
        }
        Ok(())
    }

    fn visit_take(&mut self, at: At, axis: usize, coords: &[Index], tasks: &mut Vec<Task>) -> Result<(), Stop> {
        let node = &self.graph.nodes[at.0];
        let (source, indices) = (node.args[0], node.args[1]);
        if !matches!(self.graph.nodes[source].op, GraphOp::Leaf(_)) && !self.decisions.stored[source] {
            return Err(self.store(source));
        }
        let (from, rank) = (self.graph.nodes[source].shape, self.graph.nodes[indices].shape.rank());
        let mut base = coords[..axis].to_vec();
        base.push(Index::default());
        base.extend_from_slice(&coords[axis + rank..]);
        if self.decisions.stored[source] {
            self.loads.push(source);
        }
        let access = self.access(source, flat(&base, &from), at.2);
        tasks.push(Task::Take { at, access, stride: from.strides()[axis], extent: from[axis] });
        let place = self.place(coords[axis..axis + rank].to_vec());
        tasks.push(Task::Visit((indices, place, at.2)));
        Ok(())
    }

    /// May a stored node be computed along in this kernel instead of being loaded?
    fn joins(&self, (id, _, guard): At) -> bool {
        let Some(root) = self.root else { return false };
        self.decisions.fusion
            && guard == 0
            && !self.done[id]
            && !self.decisions.apart.contains(&(root, id))
            && matches!(self.graph.nodes[id].op, GraphOp::Map { .. } | GraphOp::Reduce { .. } | GraphOp::Scan { .. })
    }

    /// The coordinates of a reduction's argument. Its inner variables are those that the result does not depend on
    /// (softmax), the ones that an earlier reduction added, or new ones.
    fn inner_coords(
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
    fn scan_var(&mut self, coords: &[Index], axis: usize, extent: usize) -> bool {
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
    fn blocked(&self, id: NodeId, is_root: bool) -> Stop {
        if let Some(outer) = self.reduced.filter(|&outer| outer != id) {
            let arg = self.below_views(self.graph.nodes[outer].args[0]);
            if !self.decisions.stored[arg] && !matches!(self.graph.nodes[arg].op, GraphOp::Leaf(_)) && arg != id {
                return Stop::Obstacle(Obstacle::Store(arg));
            }
        }
        self.store_or(id, is_root)
    }

    /// The node below any views, or the lowest view of a leaf.
    fn below_views(&self, mut id: NodeId) -> NodeId {
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
    fn store(&self, id: NodeId) -> Stop {
        match self.root {
            Some(root) if self.decisions.stored[id] => Stop::Obstacle(Obstacle::Apart(root, id)),
            _ => Stop::Obstacle(Obstacle::Store(id)),
        }
    }

    fn store_or(&self, id: NodeId, is_root: bool) -> Stop {
        debug_assert!(!is_root, "a root fits its own loops");
        self.store(id)
    }

    /// What is computed along must be written row-major over the loops, and nothing that is loaded may need it.
    fn check_along(&self, root: NodeId) -> Result<(), Stop> {
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
    fn check_repeats(&self, root: NodeId) -> Result<(), Stop> {
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

    /// The operands of the product, each in a body of its own over (batch.., m, n, k).
    fn contract(&mut self, node: NodeId, product: u32) -> Result<Product, Stop> {
        let GraphOp::Matmul = self.graph.nodes[node].op else { unreachable!("a product is of a matmul") };
        let (a, b) = (self.graph.nodes[node].args[0], self.graph.nodes[node].args[1]);
        let shape = self.graph.nodes[node].shape;
        let rank = shape.rank();
        let batch = shape[..rank - 2].to_vec();
        let from = self.graph.nodes[a].shape;
        let (m, n, k) = (shape[rank - 2], shape[rank - 1], from[from.rank() - 1]);
        let left = self.factor(a, &[&batch[..], &[m, k]].concat())?;
        let right = self.factor(b, &[&batch[..], &[k, n]].concat())?;
        Ok(Product { batch, m, n, k, left, right, product })
    }

    /// An operand in a body of its own over `extents`: batch axes, rows and columns.
    fn factor(&mut self, id: NodeId, extents: &[usize]) -> Result<Factor, Stop> {
        let axes = extents.iter().map(|&d| if d == 1 { vec![] } else { vec![d] }).collect();
        let mut cuts = Cuts { axes, inner: vec![] };
        loop {
            let mut builder = Builder::new(self.graph, self.decisions, self.costs, self.done, None);
            let coords: Vec<Index> = cuts.axes.iter().map(|factors| builder.add_vars(factors, false)).collect();
            let place = builder.place(coords::broadcast(&coords, &self.graph.nodes[id].shape));
            match builder.emit((id, place, 0), &mut Cuts::default()) {
                Ok(value) => {
                    // The operand is the last value; what was emitted after it belongs to nothing.
                    builder.body.insts.truncate(value as usize + 1);
                    builder.body.dtypes.truncate(value as usize + 1);
                    self.loads.append(&mut builder.loads);
                    self.memo.extend(builder.memo.into_iter().map(|((node, ..), _)| ((node, u32::MAX, 0), 0)));
                    return Ok(Factor { axes: cuts.axes, body: builder.body });
                }
                Err(Stop::Split(split)) => cuts.cut(split),
                // Whatever does not fit an operand is stored, together with what surrounds it.
                Err(Stop::Obstacle(obstacle)) => {
                    let target = self.below_views(id);
                    let stored =
                        self.decisions.stored[target] || matches!(self.graph.nodes[target].op, GraphOp::Leaf(_));
                    return Err(Stop::Obstacle(if stored { obstacle } else { Obstacle::Store(target) }));
                }
            }
        }
    }
}
