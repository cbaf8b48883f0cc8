//! The plan: kernels over buffers, the plain value between planner and backends.
//!
//! A graph enters [`Plan::new`]; it is fused, its temporaries are laid out in one scratch block, and what leaves can
//! be printed, compared and run by any backend.

mod cut;
mod print;
mod rows;
mod stats;

pub use cut::{Cut, From, MadeBy};
pub use rows::Rows;
pub use stats::Stats;

use crate::backend::RESULT_ALIGN;
use crate::check;
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::{Body, Inst, Value};
use crate::fuse;
use crate::graph::Graph;
use crate::index::Index;
use crate::memory;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The number of a buffer in its plan.
///
/// ```
/// use breakeven_ir::{Plan, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// let plan = Plan::new(&[&x.exp()?])?;
/// let id = plan.outputs[0];
/// assert_eq!((id.to_string().as_str(), plan.buffer(id).bytes()), ("b1", 8));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Where a buffer's memory comes from.
///
/// ```
/// use breakeven_ir::{Plan, Tensor, plan::Place};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// let plan = Plan::new(&[&x.exp()?])?;
/// assert_eq!(plan.buffers[0].place, Place::Input(0));
/// assert_eq!(plan.buffer(plan.outputs[0]).place, Place::Output(0));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The plan's input of this number.
    Input(usize),
    /// The plan's output of this number.
    Output(usize),
    /// A part of the scratch block, from this byte on.
    Scratch(usize),
}

/// A buffer: row-major elements of one dtype.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [2, 3])?;
/// let input = Plan::new(&[&x.exp()?])?.input_infos()[0];
/// assert_eq!((input.dtype, input.shape.dims(), input.bytes()), (DType::F32, &[2, 3][..], 24));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferInfo {
    /// The elements' dtype.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// Where its memory comes from.
    pub place: Place,
}

impl BufferInfo {
    /// Its size.
    pub fn bytes(&self) -> usize {
        self.shape.elems() * self.dtype.size_bytes()
    }
}

/// A loop variable of a kernel.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::Var};
/// let x = Tensor::input("x", DType::F32, [2, 3])?;
/// let plan = Plan::new(&[&x.sum(&[1], false)?])?;
/// let rows = Var { extent: 2, inner: false };
/// assert_eq!(plan.kernels[0].end().vars, [rows, Var { extent: 3, inner: true }]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Var {
    /// It runs over `0..extent`.
    pub extent: usize,
    /// Is it reduced or scanned over, rather than one of the points that are computed?
    pub inner: bool,
}

/// A value that a kernel writes.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [2, 3])?;
/// let plan = Plan::new(&[&x.softmax(-1)?])?;
/// let store = &plan.kernels[0].end().stores[0];
/// assert_eq!(format!("{}[{}]", store.buffer, store.index), "b1[i0*3 + i1]");
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    /// Where to.
    pub buffer: BufferId,
    /// Which element: row-major over all variables, or over the outer ones.
    pub index: Index,
    /// What.
    pub value: Value,
}

/// The class of a kernel.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::Class};
/// let x = Tensor::input("x", DType::F32, [3, 3])?;
/// let plan = Plan::new(&[&x.softmax(-1)?])?;
/// assert_eq!(plan.kernels[0].class(), Class::Reduce);
/// assert_eq!(Class::Contract.to_string(), "contract");
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Class {
    /// Every point on its own.
    Map,
    /// Reductions over rows, with whatever is computed before, between and after them.
    Reduce,
    /// Running values along rows.
    Scan,
    /// A matrix product.
    Contract,
}

/// Loops around a fused body: a map, a reduction or a scan.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::Kernel};
/// let x = Tensor::input("x", DType::F32, [2, 3])?;
/// let plan = Plan::new(&[&x.sum(&[1], false)?])?;
/// let Kernel::Loops(loops) = &plan.kernels[0] else { unreachable!("a sum is no matrix product") };
/// assert_eq!((loops.points(), loops.outer_points(), loops.inner_mask()), (6, 2, 0b10));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Loops {
    /// The variables, outermost first; inner ones in the order in which they are reduced.
    pub vars: Vec<Var>,
    /// What is computed.
    pub body: Body,
    /// What is written.
    pub stores: Vec<Store>,
}

/// A (batched) matrix product with fused operands and a fused end.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::Kernel};
/// let (a, b) = (Tensor::input("a", DType::F32, [2, 3])?, Tensor::input("b", DType::F32, [3, 4])?);
/// let plan = Plan::new(&[&a.matmul(&b)?.relu()?])?;   // one kernel: relu is the product's end
/// let [Kernel::Contract(product)] = &plan.kernels[..] else { unreachable!("one product") };
/// assert_eq!((product.m, product.n, product.k), (2, 4, 3));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Contract {
    /// The batch axes' extents.
    pub batch: Vec<usize>,
    /// Rows of the left operand and of the product.
    pub m: usize,
    /// Columns of the right operand and of the product.
    pub n: usize,
    /// The axis that is summed over.
    pub k: usize,
    /// The left operand, (batch.., m, k).
    pub left: Factor,
    /// The right operand, (batch.., k, n).
    pub right: Factor,
    /// What is done with the product: a map that reads access `product` and writes the result.
    pub end: Loops,
    /// The access of `end` that stands for the product; it lies in the buffer of `end`'s first store.
    pub product: u32,
}

/// An operand of a matrix product: a fused expression over its batch axes, rows and columns.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, plan::Kernel};
/// let (a, b) = (Tensor::input("a", DType::F32, [2, 3])?, Tensor::input("b", DType::F32, [4, 3])?);
/// let plan = Plan::new(&[&a.matmul(&b.transpose()?)?])?;
/// let [Kernel::Contract(product)] = &plan.kernels[..] else { unreachable!("one product") };
/// let (_, strides) = product.right.strides().expect("read as it lies");
/// assert_eq!(strides, [1, 3]);   // the transpose is in the strides
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Factor {
    /// For each batch axis, the rows and the columns: the extents of the variables that it is cut into, outermost
    /// first. Variables are numbered in this order; an axis of extent 1 has none.
    pub axes: Vec<Vec<usize>>,
    /// What is computed; its last value is the operand.
    pub body: Body,
}

impl Factor {
    /// The extents of all variables.
    pub fn extents(&self) -> Vec<usize> {
        self.axes.concat()
    }

    /// Where the operand lies, if it is read as it is: its access and the stride of each batch axis, the rows and the
    /// columns.
    pub fn strides(&self) -> Option<(&crate::expr::Access, Vec<i64>)> {
        let [Inst::Load { access }] = self.body.insts[..] else { return None };
        let access = &self.body.accesses[access as usize];
        let coefficients = access.index.affine(self.axes.iter().map(Vec::len).sum())?;
        if !access.conditions.is_empty() || self.axes.iter().any(|cuts| cuts.len() > 1) {
            return None;
        }
        let mut next = coefficients.into_iter();
        let stride = |cuts: &Vec<usize>| if cuts.is_empty() { Some(0) } else { next.next() };
        Some((access, self.axes.iter().map(stride).collect::<Option<Vec<i64>>>()?))
    }
}

/// One kernel.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [4, 4])?;
/// let plan = Plan::new(&[&x.matmul(&x)?.softmax(-1)?])?;
/// for kernel in &plan.kernels {
///     let reads = kernel.bodies().iter().map(|body| body.accesses.len()).sum::<usize>();
///     println!("{}: {reads} accesses, {} stores", kernel.class(), kernel.end().stores.len());
/// }
/// assert_eq!(plan.kernels.iter().map(|k| k.class().to_string()).collect::<Vec<_>>(), ["contract", "reduce"]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Kernel {
    /// A map, reduction or scan.
    Loops(Loops),
    /// A matrix product.
    Contract(Box<Contract>),
}

impl Loops {
    /// Map, reduce or scan.
    pub fn class(&self) -> Class {
        if !self.vars.iter().any(|v| v.inner) {
            Class::Map
        } else if self.body.insts.iter().any(|i| matches!(i, Inst::Scan { .. })) {
            Class::Scan
        } else {
            Class::Reduce
        }
    }

    /// How many points the loops run over.
    pub fn points(&self) -> usize {
        self.vars.iter().map(|v| v.extent).fold(1, usize::saturating_mul)
    }

    /// How many points the outer loops run over.
    pub fn outer_points(&self) -> usize {
        self.vars.iter().filter(|v| !v.inner).map(|v| v.extent).product()
    }

    /// A bit mask of the inner variables.
    pub fn inner_mask(&self) -> u64 {
        self.vars.iter().enumerate().filter(|(_, v)| v.inner).fold(0, |mask, (i, _)| mask | 1 << i)
    }
}

impl Kernel {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Kernel::Loops(loops) => loops.class(),
            Kernel::Contract(_) => Class::Contract,
        }
    }

    /// The loops that write its results.
    pub fn end(&self) -> &Loops {
        match self {
            Kernel::Loops(loops) => loops,
            Kernel::Contract(contract) => &contract.end,
        }
    }

    /// The bodies that read buffers.
    pub fn bodies(&self) -> Vec<&Body> {
        match self {
            Kernel::Loops(loops) => vec![&loops.body],
            Kernel::Contract(c) => vec![&c.left.body, &c.right.body, &c.end.body],
        }
    }
}

/// A batch, ready for any backend.
///
/// ```
/// use breakeven_ir::{Plan, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let plan = Plan::new(&[&(&(&x * 2.0)? + 1.0)?.relu()?])?;
/// assert_eq!(plan.stats().kernels, 1);
/// println!("{plan}");
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    /// Every buffer; inputs come first, in the order of the leaves.
    pub buffers: Vec<BufferInfo>,
    /// The kernels in an order in which they can run.
    pub kernels: Vec<Kernel>,
    /// How many inputs there are.
    pub inputs: usize,
    /// The buffer of each output; one buffer may serve several.
    pub outputs: Vec<BufferId>,
    /// The size of the scratch block.
    pub scratch_bytes: usize,
}

impl Plan {
    /// Plans one batch: everything that `outputs` need, fused.
    pub fn new(outputs: &[&Tensor]) -> Result<Plan> {
        Plan::with_fusion(outputs, true)
    }

    /// Plans with one kernel for each operation: slow, and what fused plans are tested against.
    pub fn unfused(outputs: &[&Tensor]) -> Result<Plan> {
        Plan::with_fusion(outputs, false)
    }

    fn with_fusion(outputs: &[&Tensor], fusion: bool) -> Result<Plan> {
        let graph = Graph::build(outputs);
        check::graph(&graph);
        let mut plan = fuse::plan(graph, fusion);
        check::plan(&plan);
        memory::lay_out(&mut plan);
        check::memory(&plan);
        Ok(plan)
    }

    /// A buffer by its number.
    pub fn buffer(&self, id: BufferId) -> &BufferInfo {
        &self.buffers[id.0 as usize]
    }

    /// The buffers of the plan's inputs, in order.
    pub fn input_infos(&self) -> &[BufferInfo] {
        &self.buffers[..self.inputs]
    }

    /// The buffers that the plan writes for its caller, in order; one may serve several outputs.
    pub fn output_buffers(&self) -> impl Iterator<Item = &BufferInfo> + Clone {
        self.buffers.iter().filter(|b| matches!(b.place, Place::Output(_)))
    }

    /// Bytes of one task's results among many: each output padded to [`RESULT_ALIGN`].
    pub fn result_stride(&self) -> usize {
        self.output_buffers().map(|b| b.bytes().next_multiple_of(RESULT_ALIGN)).sum()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
