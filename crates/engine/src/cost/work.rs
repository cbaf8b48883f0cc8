//! What a plan asks of a device, counted once: a plan enters; points, operations, bytes and shapes of each kernel leave.

use breakeven_ir::Op;
use breakeven_ir::expr::{Access, Body, Inst};
use breakeven_ir::plan::{Class, Kernel, Loops, Plan};

/// What a plan asks of a device.
///
/// ```
/// use breakeven::{DType, Plan, Tensor, cost::Work};
/// let x = Tensor::input("x", DType::F32, [1000])?;
/// let work = Work::of(&Plan::new(&[&(&x * 2.0)?.exp()?])?);
/// assert_eq!((work.upload_bytes, work.readback_bytes), (4000, 4000));
/// assert_eq!((work.kernels.len(), work.kernels[0].points), (1, 1000.0));
/// # Ok::<(), breakeven::RecordError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Work {
    /// Each kernel.
    pub kernels: Vec<KernelWork>,
    /// Bytes of all inputs.
    pub upload_bytes: u64,
    /// Bytes of all outputs.
    pub readback_bytes: u64,
}

/// What a kernel asks of a device.
///
/// ```
/// use breakeven::{DType, Plan, Tensor, cost::Work};
/// let x = Tensor::input("x", DType::F32, [20, 50])?;
/// let sum = &Work::of(&Plan::new(&[&x.sum(&[1], false)?])?).kernels[0];
/// assert_eq!((sum.points, sum.row, sum.steps), (1000.0, 50.0, 1000.0));
/// # Ok::<(), breakeven::RecordError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct KernelWork {
    /// Its class.
    pub class: Class,
    /// Points that its loops run over.
    pub points: f64,
    /// Points that are reduced or scanned together; 1 for a map.
    pub row: f64,
    /// How often each op is computed.
    pub ops: Vec<(Op, f64)>,
    /// Steps of reductions and scans.
    pub steps: f64,
    /// Bytes that it reads and writes one after the other.
    pub bytes: f64,
    /// Bytes that it reads with steps between them.
    pub strided_bytes: f64,
    /// Does a reduction run along memory's rows rather than across them?
    pub along: bool,
    /// Batches, rows, columns and summed extent of a matrix product.
    pub product: Option<[f64; 4]>,
}

impl Work {
    /// Counts.
    pub fn of(plan: &Plan) -> Work {
        Work {
            kernels: plan.kernels.iter().map(|kernel| KernelWork::of(plan, kernel)).collect(),
            upload_bytes: plan.input_infos().iter().map(|info| info.bytes() as u64).sum(),
            readback_bytes: plan.output_buffers().map(|info| info.bytes() as u64).sum(),
        }
    }
}

impl KernelWork {
    fn of(plan: &Plan, kernel: &Kernel) -> KernelWork {
        let end = kernel.end();
        let (points, outer) = (end.points() as f64, end.outer_points() as f64);
        let mut work = KernelWork {
            class: kernel.class(),
            points,
            row: if outer > 0.0 { points / outer } else { 1.0 },
            ops: Vec::new(),
            steps: 0.0,
            bytes: end.stores.iter().map(|store| plan.buffer(store.buffer).bytes() as f64).sum(),
            strided_bytes: 0.0,
            along: true,
            product: None,
        };
        work.count_ops(&end.body, end);
        match kernel {
            Kernel::Loops(loops) => {
                let extents: Vec<usize> = loops.vars.iter().map(|var| var.extent).collect();
                work.count_reads(plan, &loops.body, &extents, None);
            }
            Kernel::Contract(c) => {
                let batch: usize = c.batch.iter().product();
                work.product = Some([batch as f64, c.m as f64, c.n as f64, c.k as f64]);
                let extents: Vec<usize> = end.vars.iter().map(|var| var.extent).collect();
                work.count_reads(plan, &end.body, &extents, Some(c.product));
                for factor in [&c.left, &c.right] {
                    // Read as it lies is part of the product; what is computed on the way is not.
                    if factor.strides().is_none() {
                        let points: f64 = factor.extents().iter().map(|&extent| extent as f64).product();
                        factor.body.insts.iter().for_each(|inst| work.count_op(inst, points));
                        work.count_reads(plan, &factor.body, &factor.extents(), None);
                    }
                }
            }
        }
        work
    }

    fn count_ops(&mut self, body: &Body, loops: &Loops) {
        let inner = loops.inner_mask();
        let masks = body.var_masks(inner);
        let (all, outer) = (loops.points() as f64, loops.outer_points() as f64);
        for (inst, mask) in body.insts.iter().zip(masks) {
            // What does not vary along the rows is computed once for each.
            let is_outer = inner != 0 && mask & inner == 0 && matches!(inst, Inst::Map { .. });
            self.count_op(inst, if is_outer { outer } else { all });
        }
    }

    fn count_op(&mut self, inst: &Inst, points: f64) {
        match inst {
            Inst::Map { op, .. } => match self.ops.iter_mut().find(|(other, _)| other == op) {
                Some((_, count)) => *count += points,
                None => self.ops.push((*op, points)),
            },
            Inst::Reduce { .. } | Inst::Scan { .. } => self.steps += points,
            // A gather's address is computed for each element, and its memory lies anywhere.
            Inst::Gather { .. } => self.strided_bytes += 4.0 * points,
            _ => {}
        }
    }

    fn count_reads(&mut self, plan: &Plan, body: &Body, extents: &[usize], product: Option<u32>) {
        let points: f64 = extents.iter().map(|&extent| extent as f64).product();
        let last = extents.iter().rposition(|&extent| extent > 1);
        let is_gathered = |number: u32| {
            // Counted where it is computed: its index here is only where its axis begins.
            body.insts.iter().any(|inst| matches!(inst, Inst::Gather { access, .. } if *access == number))
        };
        for (number, access) in body.accesses.iter().enumerate() {
            if Some(number as u32) == product || is_gathered(number as u32) {
                continue;
            }
            let info = plan.buffer(access.buffer);
            let bytes = (info.bytes() as f64).min(points * info.dtype.size_bytes() as f64);
            if is_strided(access, extents.len(), last) {
                self.strided_bytes += bytes;
                self.along = false;
            } else {
                self.bytes += bytes;
            }
        }
    }
}

/// Are neighbours along the last variable no neighbours in memory?
fn is_strided(access: &Access, vars: usize, last: Option<usize>) -> bool {
    let Some(last) = last else { return false };
    access.index.affine(vars).is_none_or(|steps| !matches!(steps.get(last), Some(-1..=1)))
}

impl Work {
    /// The kernel that has most to do.
    pub(crate) fn largest(&self) -> Option<&KernelWork> {
        let size = |kernel: &KernelWork| {
            let product = kernel.product.map_or(0.0, |shape| shape.iter().product());
            kernel.points + kernel.ops.iter().map(|(op, count)| count * f64::from(op.row().cost)).sum::<f64>() + product
        };
        self.kernels.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
    }

    /// So many times as much in one batch: every kernel runs over as many times the points.
    pub(crate) fn times(&self, count: f64) -> Work {
        let kernel = |kernel: &KernelWork| KernelWork {
            points: kernel.points * count,
            ops: kernel.ops.iter().map(|(op, n)| (*op, n * count)).collect(),
            steps: kernel.steps * count,
            bytes: kernel.bytes * count,
            strided_bytes: kernel.strided_bytes * count,
            product: kernel.product.map(|[batch, m, n, k]| [batch * count, m, n, k]),
            ..kernel.clone()
        };
        Work {
            kernels: self.kernels.iter().map(kernel).collect(),
            upload_bytes: (self.upload_bytes as f64 * count) as u64,
            readback_bytes: (self.readback_bytes as f64 * count) as u64,
        }
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
