//! The plan: kernels over buffers, the plain value between planner and backends.
//!
//! A graph enters [`Plan::new`]; it is fused, its temporaries are laid out in one scratch block, and what leaves can
//! be printed, compared and run by any backend.

use crate::check;
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::{Body, Inst, PrintInst, Value};
use crate::fuse;
use crate::graph::Graph;
use crate::index::Index;
use crate::memory;
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::fmt;

/// The number of a buffer in its plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Where a buffer's memory comes from.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Var {
    /// It runs over `0..extent`.
    pub extent: usize,
    /// Is it reduced or scanned over, rather than one of the points that are computed?
    pub inner: bool,
}

/// A value that a kernel writes.
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

/// What a plan costs, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// How many kernels.
    pub kernels: usize,
    /// Arithmetic operations, weighed by the op table's cost; a multiply-add of a matrix product counts 2.
    pub flops: u64,
    /// Bytes of the buffers that kernels read, each once for each kernel.
    pub bytes_read: u64,
    /// Bytes that kernels write.
    pub bytes_written: u64,
    /// The size of the scratch block.
    pub peak_scratch_bytes: usize,
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

    /// Counts what the plan costs.
    pub fn stats(&self) -> Stats {
        let mut stats =
            Stats { kernels: self.kernels.len(), peak_scratch_bytes: self.scratch_bytes, ..Stats::default() };
        for kernel in &self.kernels {
            let end = kernel.end();
            stats.flops = stats.flops.saturating_add(flops(&end.body, end));
            let mut read: Vec<BufferId> = Vec::new();
            for body in kernel.bodies() {
                read.extend(body.accesses.iter().map(|a| a.buffer));
            }
            if let Kernel::Contract(c) = kernel {
                let extents = c.batch.iter().copied().chain([2, c.m, c.n, c.k]);
                stats.flops = stats.flops.saturating_add(extents.fold(1, |n: u64, d| n.saturating_mul(d as u64)));
                // The product is made here, not read.
                let product = end.body.accesses[c.product as usize].buffer;
                read.retain(|&b| b != product);
            }
            read.sort_unstable();
            read.dedup();
            stats.bytes_read += read.iter().map(|b| self.buffer(*b).bytes() as u64).sum::<u64>();
            stats.bytes_written += end.stores.iter().map(|s| self.buffer(s.buffer).bytes() as u64).sum::<u64>();
        }
        stats
    }

    /// A buffer by its number.
    pub fn buffer(&self, id: BufferId) -> &BufferInfo {
        &self.buffers[id.0 as usize]
    }

    /// The buffers of the plan's inputs, in order.
    pub fn input_infos(&self) -> &[BufferInfo] {
        &self.buffers[..self.inputs]
    }
}

/// The weighed operations of a body: those that do not depend on an inner variable run once for each outer point.
fn flops(body: &Body, loops: &Loops) -> u64 {
    let inner = loops.inner_mask();
    let masks = body.var_masks(inner);
    let (all, outer) = (loops.points() as u64, loops.outer_points() as u64);
    let cost = |(inst, mask): (&Inst, &u64)| match inst {
        Inst::Map { op, .. } => {
            let points = if inner != 0 && mask & inner == 0 { outer } else { all };
            u64::from(op.row().cost).saturating_mul(points)
        }
        Inst::Reduce { .. } | Inst::Scan { .. } => all,
        _ => 0,
    };
    body.insts.iter().zip(&masks).map(cost).fold(0, u64::saturating_add)
}

impl fmt::Display for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Map => "map",
            Class::Reduce => "reduce",
            Class::Scan => "scan",
            Class::Contract => "contract",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        writeln!(
            f,
            "plan: {} kernel{}, {} flops, {} bytes read, {} written, {} scratch",
            stats.kernels,
            if stats.kernels == 1 { "" } else { "s" },
            stats.flops,
            stats.bytes_read,
            stats.bytes_written,
            stats.peak_scratch_bytes
        )?;
        for (id, buffer) in self.buffers.iter().enumerate() {
            let place = match buffer.place {
                Place::Input(i) => format!("input {i}"),
                Place::Output(i) => format!("output {i}"),
                Place::Scratch(at) => format!("scratch at {at}"),
            };
            writeln!(f, "  b{id}: {}{} {place}", buffer.dtype, buffer.shape)?;
        }
        for (number, kernel) in self.kernels.iter().enumerate() {
            if let Kernel::Contract(c) = kernel {
                writeln!(f, "kernel {number}: contract batch {:?} m {} n {} k {}", c.batch, c.m, c.n, c.k)?;
                for (name, factor) in [("left", &c.left), ("right", &c.right)] {
                    writeln!(f, "  {name} over {:?}:", factor.axes)?;
                    print_body(f, &factor.body)?;
                }
                writeln!(f, "  end over {}, the product in access {}:", vars(&c.end.vars), c.product)?;
            } else {
                writeln!(f, "kernel {number}: {} over {}", kernel.class(), vars(&kernel.end().vars))?;
            }
            print_body(f, &kernel.end().body)?;
            for store in &kernel.end().stores {
                writeln!(f, "    {}[{}] = %{}", store.buffer, store.index, store.value)?;
            }
        }
        Ok(())
    }
}

fn vars(vars: &[Var]) -> String {
    let list: Vec<String> = vars
        .iter()
        .enumerate()
        .map(|(i, v)| format!("i{i} < {}{}", v.extent, if v.inner { " (inner)" } else { "" }))
        .collect();
    if list.is_empty() { "one point".into() } else { list.join(", ") }
}

fn print_body(f: &mut fmt::Formatter<'_>, body: &Body) -> fmt::Result {
    for at in 0..body.insts.len() {
        if !matches!(body.insts[at], Inst::Const(_)) || body.insts.len() == 1 {
            writeln!(f, "    {}", PrintInst(body, at))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
