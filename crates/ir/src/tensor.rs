//! Record: a [`Tensor`] is a lazy, immutable value, a node of a shared graph.
//!
//! Operators and methods enter, checked for shapes and dtypes where they are written; a graph leaves, which
//! `graph::Graph::build` lowers when it is run. Nothing is computed here.

mod contract;
mod create;
mod elementwise;
mod join;
mod movement;
mod rebuild;
mod recipe;
mod reduce;
mod slice;
mod walk;

pub use create::Input;
pub use elementwise::Operand;
pub(crate) use movement::{Movement, View};
pub use recipe::{Leaf, Recipe, parse_recipe, recipe};
pub use slice::{Slice, s};
pub(crate) use walk::{FastMap, Walk};
pub use walk::{PlanKey, plan_key};

use crate::buffer::Buffer;
use crate::dtype::{DType, Scalar};
use crate::ops::{Op, ReduceOp, ScanOp};
use crate::shape::{AxisSet, Shape};
use std::fmt;
use std::sync::Arc;

/// A lazy n-dimensional array: what to compute, not yet computed.
///
/// Cloning shares the node. Every operation returns a `Result`: a wrong shape or dtype is an error at the line that
/// made it.
///
/// ```
/// use breakeven_ir::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let y = (&(&x * 2.0)? + 1.0)?.relu()?.sum(&[1], false)?;
/// assert_eq!(y.shape().dims(), [2]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(pub(crate) Arc<Node>);

/// What a tensor is made from.
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// The kinds of node. Arguments of `Map` broadcast implicitly, and movements keep what the user asked for, so that
/// the same recipe can be recorded again for inputs of another size (see `rebuild`).
#[derive(Clone)]
pub(crate) enum Kind {
    Input(Arc<Input>),
    Data(Buffer),
    Const(Scalar),
    /// `start + step * i` along its only axis.
    Arange {
        start: Scalar,
        step: Scalar,
    },
    /// How many elements `arg` has along `axes`, as f32: the divisor of a mean.
    Count {
        arg: Tensor,
        axes: AxisSet,
    },
    Map {
        op: Op,
        signature: u8,
        args: Args,
    },
    /// Always keeps its axes with extent 1. A `blank` one may be over no elements, as nothing looks at it then.
    Reduce {
        op: ReduceOp,
        arg: Tensor,
        axes: AxisSet,
        blank: bool,
    },
    Scan {
        op: ScanOp,
        arg: Tensor,
        axis: u8,
    },
    /// `[.., m, k] x [.., k, n]`, batch axes broadcast.
    Matmul {
        left: Tensor,
        right: Tensor,
    },
    Move {
        arg: Tensor,
        by: Arc<Movement>,
    },
    Concat {
        args: Arc<[Tensor]>,
        axis: u8,
    },
    Take {
        arg: Tensor,
        indices: Tensor,
        axis: u8,
    },
}

/// Up to three arguments without an allocation.
#[derive(Clone)]
pub(crate) enum Args {
    One(Tensor),
    Two(Tensor, Tensor),
    Three(Tensor, Tensor, Tensor),
}

impl Kind {
    /// Calls `visit` with each argument in order.
    pub(crate) fn for_each_arg<'a>(&'a self, mut visit: impl FnMut(&'a Tensor)) {
        match self {
            Kind::Input(_) | Kind::Data(_) | Kind::Const(_) | Kind::Arange { .. } => {}
            Kind::Count { arg, .. } | Kind::Reduce { arg, .. } | Kind::Scan { arg, .. } | Kind::Move { arg, .. } => {
                visit(arg)
            }
            Kind::Map { args: Args::One(a), .. } => visit(a),
            Kind::Map { args: Args::Two(a, b), .. } => {
                visit(a);
                visit(b)
            }
            Kind::Map { args: Args::Three(a, b, c), .. } => {
                visit(a);
                visit(b);
                visit(c)
            }
            Kind::Matmul { left, right } => {
                visit(left);
                visit(right)
            }
            Kind::Concat { args, .. } => args.iter().for_each(visit),
            Kind::Take { arg, indices, .. } => {
                visit(arg);
                visit(indices)
            }
        }
    }
}

impl Tensor {
    pub(crate) fn node(kind: Kind, shape: Shape, dtype: DType) -> Tensor {
        Tensor(Arc::new(Node { kind, shape, dtype }))
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.0.shape
    }

    /// Its dtype.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The input that this tensor is, if it was made by [`Tensor::input`].
    pub fn as_input(&self) -> Option<&Input> {
        match &self.0.kind {
            Kind::Input(input) => Some(input),
            _ => None,
        }
    }

    /// The data that this tensor is, if it was made from data and not computed.
    pub fn as_data(&self) -> Option<&Buffer> {
        match &self.0.kind {
            Kind::Data(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The node's address: equal for clones of one tensor.
    pub(crate) fn address(&self) -> *const Node {
        Arc::as_ptr(&self.0)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.0.kind {
            Kind::Input(input) => format!("input {}", input.name()),
            Kind::Data(_) => "data".into(),
            Kind::Const(value) => format!("const {value}"),
            Kind::Arange { .. } => "arange".into(),
            Kind::Count { .. } => "count".into(),
            Kind::Map { op, .. } => op.row().name.into(),
            Kind::Reduce { op, .. } => op.name().into(),
            Kind::Scan { op, .. } => op.name().into(),
            Kind::Matmul { .. } => "matmul".into(),
            Kind::Move { by, .. } => by.name().into(),
            Kind::Concat { .. } => "concat".into(),
            Kind::Take { .. } => "take".into(),
        };
        write!(f, "Tensor({what}, {}{})", self.dtype(), self.shape())
    }
}

/// Dropping a chain of a million operations must not recurse a million times: nodes that only this one holds are
/// taken apart with a list of their own.
impl Drop for Node {
    fn drop(&mut self) {
        fn take(kind: &mut Kind, pending: &mut Vec<Arc<Node>>) {
            let kind = std::mem::replace(kind, Kind::Const(Scalar::zero(DType::Bool)));
            match kind {
                Kind::Input(_) | Kind::Data(_) | Kind::Const(_) | Kind::Arange { .. } => {}
                Kind::Count { arg, .. }
                | Kind::Reduce { arg, .. }
                | Kind::Scan { arg, .. }
                | Kind::Move { arg, .. } => pending.push(arg.0),
                Kind::Map { args: Args::One(a), .. } => pending.push(a.0),
                Kind::Map { args: Args::Two(a, b), .. } => pending.extend([a.0, b.0]),
                Kind::Map { args: Args::Three(a, b, c), .. } => pending.extend([a.0, b.0, c.0]),
                Kind::Matmul { left, right } => pending.extend([left.0, right.0]),
                Kind::Concat { args, .. } => pending.extend(args.iter().map(|t| t.0.clone())),
                Kind::Take { arg, indices, .. } => pending.extend([arg.0, indices.0]),
            }
        }
        // Leaves hold nothing: the common case costs no list.
        let mut leaf = true;
        self.kind.for_each_arg(|_| leaf = false);
        if leaf {
            return;
        }
        let mut pending = Vec::new();
        take(&mut self.kind, &mut pending);
        while let Some(mut node) = pending.pop() {
            if let Some(node) = Arc::get_mut(&mut node) {
                take(&mut node.kind, &mut pending);
            }
        }
    }
}
