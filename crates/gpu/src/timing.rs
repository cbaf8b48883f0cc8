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

/// Timestamps around a compute pass, and between its dispatches where the device can.
pub(crate) struct Clock {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    period_ns: f64,
    runs: u64,
    /// Can a pass be stamped between dispatches?
    inside: bool,
}

/// Timestamps of a pass at most. Dispatches beyond are timed together with the last one that has its own.
const STAMPS: u32 = 64;

/// Bytes of all timestamps.
pub(crate) const STAMP_BYTES: u64 = 8 * STAMPS as u64;

/// Where the timestamps of a pass go.
#[derive(Clone, Copy)]
pub(crate) struct Stamps<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) block: &'a Block,
    pub(crate) offset: u64,
    /// Times between timestamps: one for each dispatch, or one for all.
    pub(crate) intervals: u32,
}

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
            count: STAMPS,
        });
        let resolved = driver.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: STAMP_BYTES,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        driver.check(0).ok()?;
        let inside = driver.device.features().contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES);
        Some(Clock { set, resolved, period_ns: f64::from(driver.queue.get_timestamp_period()), runs: 0, inside })
    }

    /// Is this run to be timed?
    pub(crate) fn wanted(&mut self, predicted_ns: f64) -> bool {
        self.runs += 1;
        predicted_ns > WORTH_TIMING.as_nanos() as f64 || self.runs % 16 == 1
    }

    /// The timestamps of a pass with so many dispatches, to be read at an offset of a block.
    pub(crate) fn stamps<'a>(&'a self, block: &'a Block, offset: u64, dispatches: usize) -> Stamps<'a> {
        let intervals = if self.inside { (dispatches as u32).min(STAMPS - 1) } else { 1 };
        Stamps { clock: self, block, offset, intervals }
    }

    /// The times between timestamps as they were read back.
    pub(crate) fn intervals_ns(&self, bytes: &[u8], intervals: usize) -> Vec<u64> {
        let stamps: Vec<u64> = bytes.chunks_exact(8).map(|b| b.try_into().map_or(0, u64::from_le_bytes)).collect();
        let ns = |pair: &[u64]| (pair[1].saturating_sub(pair[0]) as f64 * self.period_ns) as u64;
        stamps.windows(2).take(intervals).map(ns).collect()
    }
}

impl Stamps<'_> {
    /// The first and the last.
    pub(crate) fn ends(&self) -> wgpu::ComputePassTimestampWrites<'_> {
        wgpu::ComputePassTimestampWrites {
            query_set: &self.clock.set,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(self.intervals),
        }
    }

    /// The one after a dispatch, if it has its own.
    pub(crate) fn after(&self, dispatch: usize, pass: &mut wgpu::ComputePass<'_>) {
        let number = dispatch as u32 + 1;
        if number < self.intervals {
            pass.write_timestamp(&self.clock.set, number);
        }
    }

    /// Copies them to where they are read.
    pub(crate) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        let Clock { set, resolved, .. } = self.clock;
        let count = self.intervals + 1;
        encoder.resolve_query_set(set, 0..count, resolved, 0);
        encoder.copy_buffer_to_buffer(resolved, 0, &self.block.buffer, self.offset, 8 * u64::from(count));
    }
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
