//! How long things take on the device: timestamps where it has them, wall time where not, and what they say about the
//! next run.

use crate::buffers::Block;
use crate::driver::Driver;
use std::time::Duration;

/// Nanoseconds for an element of a kernel that was never measured: what the slowest device that was seen takes for
/// short kernels (software Vulkan: 12 for an addition, 15 for a multiply-add).
const ASSUMED_NS: f64 = 25.0;

/// Less work than this says more about overhead than about speed.
const TELLING_WORK: u64 = 1 << 14;

/// What is known about a kernel's speed.
#[derive(Default)]
pub(crate) struct Speed {
    ns_per_work: Option<f64>,
    /// The work that it was measured with: a larger one is more telling.
    work: u64,
}

impl Speed {
    /// Nanoseconds that `work` is predicted to take.
    pub(crate) fn predict_ns(&self, work: u64) -> f64 {
        work as f64 * self.ns_per_work.unwrap_or(ASSUMED_NS)
    }

    /// Was it ever measured?
    pub(crate) fn is_known(&self) -> bool {
        self.ns_per_work.is_some()
    }

    /// Learns from a measurement.
    pub(crate) fn learn(&mut self, work: u64, ns: f64) {
        if work < TELLING_WORK || work < self.work / 4 {
            return;
        }
        let measured = ns / work as f64;
        self.ns_per_work = Some(match self.ns_per_work {
            Some(before) if work <= self.work * 4 => before * 0.75 + measured * 0.25,
            _ => measured,
        });
        self.work = self.work.max(work);
    }
}

/// Timestamps around a compute pass.
pub(crate) struct Clock {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    period_ns: f64,
    runs: u64,
}

/// Bytes of the two timestamps.
pub(crate) const STAMP_BYTES: u64 = 16;

/// Runs that are predicted to take longer than this are always timed, of shorter ones every 16th: the two extra commands
/// cost 5 to 10 us on software Vulkan.
const WORTH_TIMING: Duration = Duration::from_millis(2);

impl Clock {
    pub(crate) fn new(driver: &Driver) -> Option<Clock> {
        if !driver.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return None;
        }
        let set = driver.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 2,
        });
        let resolved = driver.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 256,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        driver.check(0).ok()?;
        Some(Clock { set, resolved, period_ns: f64::from(driver.queue.get_timestamp_period()), runs: 0 })
    }

    /// Is this run to be timed?
    pub(crate) fn wanted(&mut self, predicted_ns: f64) -> bool {
        self.runs += 1;
        predicted_ns > WORTH_TIMING.as_nanos() as f64 || self.runs % 16 == 1
    }

    pub(crate) fn writes(&self) -> wgpu::ComputePassTimestampWrites<'_> {
        wgpu::ComputePassTimestampWrites {
            query_set: &self.set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        }
    }

    /// Copies the timestamps into a readback.
    pub(crate) fn resolve(&self, encoder: &mut wgpu::CommandEncoder, readback: &Block, offset: u64) {
        encoder.resolve_query_set(&self.set, 0..2, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &readback.buffer, offset, STAMP_BYTES);
    }

    /// The time between two timestamps as they were read back.
    pub(crate) fn elapsed_ns(&self, bytes: &[u8]) -> u64 {
        let stamp = |part: &[u8]| part.try_into().map(u64::from_le_bytes).unwrap_or(0);
        let (begin, end) = (stamp(&bytes[..8]), stamp(&bytes[8..16]));
        (end.saturating_sub(begin) as f64 * self.period_ns) as u64
    }
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
