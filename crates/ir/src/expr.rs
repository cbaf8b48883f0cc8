//! A fused scalar program: what one kernel computes for each point of its loops.
//!
//! `fuse` writes it; the CPU runs it a tile at a time, the GPU renders it as WGSL. Values are numbered in the order
//! in which they are computed, each from earlier ones.

use crate::dtype::{DType, Scalar};
use crate::index::Index;
use crate::ops::{Op, ReduceOp, ScanOp};
use crate::plan::BufferId;
use std::fmt;

/// The number of a value in its [`Body`].
pub type Value = u32;

/// One step of a body.
///
/// ```
/// use breakeven_ir::{DType, Op, Plan, Tensor, expr::Inst};
/// let x = Tensor::input("x", DType::F32, [4])?;
/// let plan = Plan::new(&[&x.exp()?])?;
/// let [Inst::Load { .. }, exp @ Inst::Map { op: Op::Exp, .. }] = &plan.kernels[0].end().body.insts[..] else {
///     unreachable!("a load and its exponential")
/// };
/// assert_eq!(exp.args().collect::<Vec<_>>(), [0]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Inst {
    /// An element of a buffer.
    Load {
        /// Which of the body's accesses.
        access: u32,
    },
    /// A constant.
    Const(Scalar),
    /// `start + step * index`.
    Arange {
        /// The index.
        index: Index,
        /// The value at 0.
        start: Scalar,
        /// The difference between neighbours.
        step: Scalar,
    },
    /// Do all conditions hold here? What padding and joins select by.
    Inside {
        /// The conditions.
        conditions: Vec<Condition>,
    },
    /// An elementwise op.
    Map {
        /// The op.
        op: Op,
        /// Which of its signatures.
        signature: u8,
        /// Its arguments; those beyond its arity are 0.
        args: [Value; 3],
    },
    /// A reduction over the kernel's inner variables: one value for each outer point.
    Reduce {
        /// How to combine.
        op: ReduceOp,
        /// What is reduced.
        arg: Value,
    },
    /// A running value along the kernel's inner variable.
    Scan {
        /// How to combine.
        op: ScanOp,
        /// What is scanned.
        arg: Value,
    },
    /// An element whose place along one axis is computed: `index + position * stride`.
    Gather {
        /// The access at position 0.
        access: u32,
        /// The position, an i32; negative counts from the end.
        position: Value,
        /// Elements between neighbouring positions.
        stride: i64,
        /// How many positions there are.
        extent: usize,
    },
}

/// `0 <= index < below`.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [4])?;
/// let plan = Plan::new(&[&x.pad(&[(1, 1)], 0.0f32)?])?;
/// let condition = &plan.kernels[0].end().body.accesses[0].conditions[0];
/// assert_eq!((condition.index.to_string().as_str(), condition.below), ("i0 - 1", 4));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Condition {
    /// What is compared.
    pub index: Index,
    /// The bound.
    pub below: i64,
}

/// A place that a body reads. Where a condition fails nothing is read and the value is 0.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [4])?;
/// let plan = Plan::new(&[&x.flip(&[0])?.exp()?])?;
/// let access = &plan.kernels[0].end().body.accesses[0];
/// assert_eq!(format!("{}[{}]", access.buffer, access.index), "b0[-i0 + 3]");   // the flip costs nothing
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// The element.
    pub index: Index,
    /// Conditions under which the index is inside the buffer.
    pub conditions: Vec<Condition>,
}

/// The fused program of a kernel.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [2, 3])?;
/// let plan = Plan::new(&[&x.sum(&[1], false)?])?;
/// let (body, inner) = (&plan.kernels[0].end().body, plan.kernels[0].end().inner_mask());
/// assert_eq!(body.dtypes, [DType::F32; 2]);
/// assert_eq!(body.var_masks(inner), [0b11, 0b01]);   // the load differs along both axes, the sum along the first
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The steps, arguments before their users.
    pub insts: Vec<Inst>,
    /// The dtype of each step's value.
    pub dtypes: Vec<DType>,
    /// What is read.
    pub accesses: Vec<Access>,
}

impl Inst {
    /// The values that this step uses.
    pub fn args(&self) -> impl Iterator<Item = Value> + '_ {
        let (args, count): ([Value; 3], usize) = match self {
            Inst::Map { op, args, .. } => (*args, op.row().arity),
            Inst::Reduce { arg, .. } | Inst::Scan { arg, .. } => ([*arg, 0, 0], 1),
            Inst::Gather { position, .. } => ([*position, 0, 0], 1),
            _ => ([0; 3], 0),
        };
        args.into_iter().take(count)
    }
}

impl Body {
    /// For each value, the loop variables it depends on as a bit mask. A reduction takes away those of `inner`.
    pub fn var_masks(&self, inner: u64) -> Vec<u64> {
        let mut masks: Vec<u64> = Vec::with_capacity(self.insts.len());
        let access = |access: &u32| {
            let access = &self.accesses[*access as usize];
            access.conditions.iter().fold(access.index.vars(), |mask, c| mask | c.index.vars())
        };
        for inst in &self.insts {
            let args = inst.args().fold(0, |mask, arg| mask | masks[arg as usize]);
            masks.push(match inst {
                Inst::Load { access: a } => access(a),
                Inst::Gather { access: a, .. } => args | access(a),
                Inst::Const(_) => 0,
                Inst::Arange { index, .. } => index.vars(),
                Inst::Inside { conditions } => conditions.iter().fold(0, |mask, c| mask | c.index.vars()),
                Inst::Map { .. } => args,
                Inst::Scan { .. } => args | inner,
                Inst::Reduce { .. } => args & !inner,
            });
        }
        masks
    }
}

/// A body's step, printed as `%3 = mul(%1, 2.0)`. Constants are printed where they are used.
pub(crate) struct PrintInst<'a>(pub(crate) &'a Body, pub(crate) usize);

impl fmt::Display for PrintInst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PrintInst(body, at) = *self;
        let value = |v: Value| match &body.insts[v as usize] {
            Inst::Const(scalar) => scalar.to_string(),
            _ => format!("%{v}"),
        };
        let access = |a: u32| {
            let Access { buffer, index, conditions } = &body.accesses[a as usize];
            let mut text = format!("{buffer}[{index}]");
            for (i, c) in conditions.iter().enumerate() {
                text += &format!("{} 0 <= {} < {}", if i == 0 { " if" } else { " and" }, c.index, c.below);
            }
            text
        };
        write!(f, "%{at} = ")?;
        match &body.insts[at] {
            Inst::Load { access: a } => write!(f, "{}", access(*a)),
            Inst::Const(scalar) => write!(f, "{scalar}"),
            Inst::Arange { index, start, step } => write!(f, "{start} + {step} * ({index})"),
            Inst::Inside { conditions } => {
                for (i, c) in conditions.iter().enumerate() {
                    write!(f, "{}0 <= {} < {}", if i == 0 { "" } else { " and " }, c.index, c.below)?;
                }
                Ok(())
            }
            Inst::Map { op, .. } => {
                let args: Vec<String> = body.insts[at].args().map(value).collect();
                write!(f, "{}({})", op.row().name, args.join(", "))
            }
            Inst::Reduce { op, arg } => write!(f, "reduce {}({})", op.name(), value(*arg)),
            Inst::Scan { op, arg } => write!(f, "{}({})", op.name(), value(*arg)),
            Inst::Gather { access: a, position, stride, .. } => {
                write!(f, "{} at {} * {stride}", access(*a), value(*position))
            }
        }
    }
}
