//! What a plan costs: its kernels enter; operations, bytes and scratch leave, counted.

use super::{BufferId, Contract, Kernel, Loops, Plan};
use crate::expr::{Body, Inst};

/// What a plan costs, counted.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [100])?;
/// let y = (&(&x * 2.0)? + 1.0)?;
/// let (fused, unfused) = (Plan::new(&[&y])?.stats(), Plan::unfused(&[&y])?.stats());
/// assert_eq!((fused.kernels, fused.bytes_read, fused.bytes_written), (1, 400, 400));
/// assert!(unfused.bytes_read > fused.bytes_read);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
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

impl Plan {
    /// Counts what the plan costs.
    pub fn stats(&self) -> Stats {
        let mut stats =
            Stats { kernels: self.kernels.len(), peak_scratch_bytes: self.scratch_bytes, ..Stats::default() };
        for kernel in &self.kernels {
            let end = kernel.end();
            stats.flops = stats.flops.saturating_add(kernel.flops());
            let mut read: Vec<BufferId> = Vec::new();
            for body in kernel.bodies() {
                read.extend(body.accesses.iter().map(|a| a.buffer));
            }
            if let Kernel::Contract(c) = kernel {
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
}

impl Kernel {
    /// Its arithmetic operations, weighed by the op table's cost; a multiply-add of a matrix product counts 2.
    pub fn flops(&self) -> u64 {
        let product = match self {
            Kernel::Loops(_) => 0,
            Kernel::Contract(contract) => contract.product_flops(),
        };
        let end = self.end();
        product.saturating_add(flops(&end.body, end))
    }
}

impl Contract {
    /// The operations of the product alone, without what is done with it: a multiply-add counts 2.
    pub fn product_flops(&self) -> u64 {
        let extents = self.batch.iter().copied().chain([2, self.m, self.n, self.k]);
        extents.fold(1, |n: u64, d| n.saturating_mul(d as u64))
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
