//! What work costs on a simulated device: a kernel or a transfer enters, virtual nanoseconds leave.
//!
//! Times are whole nanoseconds part by part, so that the parts of a batch add up to its total exactly.

use breakeven_ir::plan::{Class, Kernel};

/// Time over work: known at some points, between them on straight lines in log-log.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Curve {
    /// (work, ns), both above 0 and ascending.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// `points` are sorted by their work, and none is 0.
    pub(super) fn new(points: Vec<(f64, f64)>) -> Curve {
        Curve { points }
    }

    /// Beyond the last point time grows with the work: a device has a top speed. Below the first it falls as it does
    /// after it, at most in proportion: small work leaves a device idle.
    pub(super) fn ns(&self, work: f64) -> f64 {
        let (Some(&first), Some(&last)) = (self.points.first(), self.points.last()) else { return 0.0 };
        if work <= 0.0 {
            return 0.0;
        }
        if work >= last.0 {
            return last.1 * (work / last.0);
        }
        let next = self.points.partition_point(|point| point.0 <= work);
        let slope = |a: (f64, f64), b: (f64, f64)| (b.1 / a.1).ln() / (b.0 / a.0).ln();
        let (from, slope) = match (next.checked_sub(1).map(|at| self.points[at]), self.points.get(next.max(1))) {
            (Some(from), Some(&to)) => (from, slope(from, to)),
            (_, Some(&second)) => (first, slope(first, second).clamp(0.0, 1.0)),
            (_, None) => (first, 1.0),
        };
        from.1 * (work / from.0).powf(slope)
    }
}

/// What a kernel does, as far as its time depends on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Work {
    class: Class,
    /// Points of its loops, or the operations of its product.
    size: f64,
    /// Weighed operations beyond the one a point that every curve has in it.
    more_ops: f64,
}

impl Work {
    pub(super) fn of(kernel: &Kernel) -> Work {
        let (size, included) = match kernel {
            Kernel::Loops(loops) => (loops.points() as f64, loops.points() as u64),
            Kernel::Contract(contract) => (contract.product_flops() as f64, contract.product_flops()),
        };
        Work { class: kernel.class(), size, more_ops: kernel.flops().saturating_sub(included) as f64 }
    }
}

/// The costs of a device, in nanoseconds and bytes a nanosecond.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Costs {
    /// Of every batch.
    pub(super) call_ns: f64,
    /// The part of it that goes into creating buffers.
    pub(super) create_ns: f64,
    /// Of a batch that sends something, whatever its size.
    pub(super) upload_ns: f64,
    /// Of a batch that reads something back, whatever its size.
    pub(super) readback_ns: f64,
    pub(super) upload_gb_s: f64,
    pub(super) readback_gb_s: f64,
    pub(super) least_kernel_ns: f64,
    pub(super) op_ns: f64,
    pub(super) map: Curve,
    pub(super) reduce: Curve,
    pub(super) scan: Curve,
    pub(super) contract: Curve,
}

impl Costs {
    /// A kernel over `tasks` tasks at once: one dispatch, as large as all of them.
    pub(super) fn kernel_ns(&self, work: &Work, tasks: u64, slowdown: f64) -> u64 {
        let tasks = tasks as f64;
        let curve = match work.class {
            Class::Map => &self.map,
            Class::Reduce => &self.reduce,
            Class::Scan => &self.scan,
            Class::Contract => &self.contract,
        };
        let ns = curve.ns(work.size * tasks) + self.op_ns * work.more_ops * tasks;
        // 0 would say that the kernel was not timed.
        whole(ns.max(self.least_kernel_ns) * slowdown).max(1)
    }

    /// What every batch pays.
    pub(super) fn call_ns(&self, slowdown: f64) -> u64 {
        whole(self.call_ns * slowdown)
    }

    /// The part of that which is over before anything is sent.
    pub(super) fn create_ns(&self, slowdown: f64) -> u64 {
        whole(self.create_ns * slowdown)
    }

    /// Bytes on their way to the device.
    pub(super) fn upload_ns(&self, bytes: u64, slowdown: f64) -> u64 {
        transfer_ns(self.upload_ns, bytes, self.upload_gb_s, slowdown)
    }

    /// Bytes on their way back.
    pub(super) fn readback_ns(&self, bytes: u64, slowdown: f64) -> u64 {
        transfer_ns(self.readback_ns, bytes, self.readback_gb_s, slowdown)
    }
}

fn transfer_ns(fixed_ns: f64, bytes: u64, gb_s: f64, slowdown: f64) -> u64 {
    if bytes == 0 { 0 } else { whole((fixed_ns + bytes as f64 / gb_s) * slowdown) }
}

/// The conversion saturates: no profile makes time wrap.
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}
