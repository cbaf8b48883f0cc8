//! One node at a time: what it takes to compute it here, or why it can't be.

use super::CHEAP;
use super::build::{At, Builder, Cuts, Stop, Task};
use super::coords::{self, condition, flat};
use crate::dtype::DType;
use crate::expr::{Condition, Inst};
use crate::graph::{GraphOp, NodeId};
use crate::index::Index;
use crate::tensor::View;

impl Builder<'_> {
    /// Emits a leaf, or lists what has to be done for the node.
    pub(super) fn visit(&mut self, at: At, cuts: &mut Cuts, tasks: &mut Vec<Task>) -> Result<(), Stop> {
        let (id, place, guard) = at;
        let node = &self.graph.nodes[id];
        let coords = self.places[place as usize].clone();
        let is_root = self.root == Some(id);
        // A constant is cheaper to write down than to load, also where it has memory because it is an output.
        let constant = matches!(node.op, GraphOp::Const(_));
        let loaded = self.decisions.stored[id] && !is_root && !constant && !self.joins(at);
        if matches!(node.op, GraphOp::Leaf(_)) || loaded {
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
                    let from = &self.graph.nodes[arg].shape;
                    let place = if coords::is_same(&coords, from) {
                        place
                    } else {
                        self.place(coords::broadcast(&coords, from))
                    };
                    tasks.push(Task::Visit((arg, place, guard)));
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
                    let mut coords = coords.to_vec();
                    let within = coords[axis].clone().shift(-offset);
                    offset += dim as i64;
                    let conditions: Vec<Condition> = condition(&within, dim, &self.extents).into_iter().collect();
                    coords[axis] = coords::only(within, dim);
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
                // And it must be all of it: a slice of one row may well begin where the product does.
                let whole = |root: NodeId| {
                    let root = &self.graph.nodes[root];
                    root.dtype != DType::Bool && root.shape.elems() == node.shape.elems()
                };
                let fits = self.root.is_some_and(whole)
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
}
