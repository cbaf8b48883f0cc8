//! What one batch does on a simulated device: tasks and bytes enter, what they take leaves.

use super::cost::Work;
use super::device::{Passage, Simulated};
use super::pace::Parts;
use breakeven_ir::backend::{RunError, Stop, Timings};
use breakeven_ir::plan::{BufferInfo, Plan};
use std::sync::atomic::Ordering::Relaxed;

/// A batch as it is put together.
pub(super) struct Load<'a> {
    device: &'a Simulated,
    /// One factor for the whole batch, even if it is changed meanwhile.
    slowdown: f64,
    pub(super) upload_bytes: u64,
    pub(super) readback_bytes: u64,
    device_ns: u64,
    kernels: u32,
}

impl<'a> Load<'a> {
    pub(super) fn new(device: &'a Simulated) -> Load<'a> {
        let slowdown = device.slowdown();
        Load { device, slowdown, upload_bytes: 0, readback_bytes: 0, device_ns: 0, kernels: 0 }
    }

    /// Kernels that each run once, for so many tasks.
    pub(super) fn add_kernels(&mut self, works: &[Work], tasks: usize) {
        let ns = works.iter().map(|work| self.device.profile.costs().kernel_ns(work, tasks as u64, self.slowdown));
        self.device_ns = ns.fold(self.device_ns, u64::saturating_add);
        self.kernels = self.kernels.saturating_add(works.len() as u32);
    }

    /// Tasks of one plan, from host to host.
    pub(super) fn add_tasks(&mut self, plan: &Plan, works: &[Work], tasks: usize) {
        if tasks == 0 {
            return;
        }
        let all = |bytes: usize| (bytes as u64).saturating_mul(tasks as u64);
        self.upload_bytes += all(plan.input_infos().iter().map(BufferInfo::bytes).sum());
        self.readback_bytes += all(plan.output_buffers().map(BufferInfo::bytes).sum());
        self.add_kernels(works, tasks);
    }

    /// What each part of it takes.
    fn parts(&self) -> Parts {
        // No tasks, or tasks without results: nothing is submitted.
        if self.kernels == 0 {
            return Parts::default();
        }
        let (costs, slowdown) = (self.device.profile.costs(), self.slowdown);
        let call_ns = costs.call_ns(slowdown);
        // What rounding makes of it, so that both together are the call's.
        let host_ns = costs.create_ns(slowdown).min(call_ns);
        Parts {
            host_ns,
            upload_ns: costs.upload_ns(self.upload_bytes, slowdown),
            compute_ns: self.device_ns.saturating_add(call_ns - host_ns),
            readback_ns: costs.readback_ns(self.readback_bytes, slowdown),
        }
    }

    /// What it takes if it has the device for itself, as that would tell.
    pub(super) fn timings(&self) -> Timings {
        if self.kernels == 0 {
            return Timings::default();
        }
        let parts = self.parts();
        Timings {
            total_ns: parts.total_ns(),
            upload_ns: parts.upload_ns,
            readback_ns: parts.readback_ns,
            kernels: self.kernels,
            dispatches: self.kernels,
            passes: 1,
            submits: 1,
            uploads: u32::from(self.upload_bytes > 0),
            readbacks: u32::from(self.readback_bytes > 0),
            upload_bytes: self.upload_bytes,
            readback_bytes: self.readback_bytes,
            device_ns: self.device_ns,
            ..Timings::default()
        }
    }

    /// It goes to the device, which may be lost or refuse it.
    pub(super) fn begin(&self) -> Result<Batch<'a>, RunError> {
        let mut parts = self.parts();
        if self.kernels > 0 {
            // A lost device has nothing left to fail.
            self.device.faults.life(&self.device.id)?;
            self.device.faults.batch(&self.device.id)?;
            // On the engine that computes: everything behind it is late, too.
            parts.compute_ns = parts.compute_ns.saturating_add(self.device.spike_ns.swap(0, Relaxed));
        }
        Ok(Batch { passage: self.device.begin(&parts)?, timings: self.timings() })
    }
}

/// A batch on the device. Meanwhile the CPU computes its results.
pub(super) struct Batch<'a> {
    passage: Passage<'a>,
    timings: Timings,
}

impl Batch<'_> {
    /// Of the life that it began in.
    pub(super) fn generation(&self) -> u64 {
        self.passage.generation()
    }

    /// Lets the time pass.
    pub(super) fn end(self, stop: Option<&Stop>) -> Result<Timings, RunError> {
        let total_ns = self.passage.end(stop)?;
        // What it took beyond its own parts, it waited for the batches before it.
        let queue_ns = total_ns.saturating_sub(self.timings.total_ns);
        Ok(Timings { total_ns, queue_ns, ..self.timings })
    }
}
