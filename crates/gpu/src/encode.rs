//! One command buffer: copies in, one compute pass, copies out. wgpu puts the barriers between dispatches itself.

use crate::adapters::Kind;
use crate::buffers::Block;
use crate::driver::Driver;
use crate::layout::Region;
use crate::timing::Stamps;

/// One dispatch, ready to be encoded.
pub(crate) struct Dispatch {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) group: wgpu::BindGroup,
    pub(crate) grid: [u32; 3],
}

/// A copy between blocks.
pub(crate) struct Copy<'a> {
    pub(crate) from: &'a Block,
    pub(crate) from_offset: u64,
    pub(crate) to: &'a Block,
    pub(crate) to_offset: u64,
    pub(crate) bytes: u64,
}

/// Everything of one submission.
#[derive(Default)]
pub(crate) struct Recording<'a> {
    pub(crate) before: Vec<Copy<'a>>,
    /// Parts of a block that begin as zeros.
    pub(crate) cleared: Vec<(&'a Block, Region)>,
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) after: Vec<Copy<'a>>,
    /// Is it over in less time than it takes to wake a thread?
    pub(crate) is_short: bool,
    /// Where the timestamps go.
    pub(crate) stamps: Option<Stamps<'a>>,
}

/// Bytes that software is asked to copy at a time. The C library's copies of a second-level cache and more ask for each line before
/// they write it; where cores share no cache, 131,072 elements took 446 us on software GL with all of their 1 MB at once, and 401 so.
const PIECE: u64 = 512 << 10;

/// The most workgroups in one dimension that every device has.
pub(crate) const MOST_GROUPS: u32 = 65_535;

/// The grid for so many units of so many tasks: loops stride over what does not fit.
pub(crate) fn grid(units: u64, group_units: u32, tasks: u32) -> [u32; 3] {
    let x = units.div_ceil(u64::from(group_units.max(1))).clamp(1, u64::from(MOST_GROUPS)) as u32;
    [x, tasks.min(MOST_GROUPS), tasks.div_ceil(MOST_GROUPS)]
}

impl Recording<'_> {
    pub(crate) fn encode(&self, driver: &Driver) -> wgpu::CommandBuffer {
        let mut encoder = driver.device.create_command_encoder(&Default::default());
        let most = if driver.info.kind == Kind::Software { PIECE } else { u64::MAX };
        let copy = |encoder: &mut wgpu::CommandEncoder, copy: &Copy<'_>| {
            let (from, to) = (&copy.from.buffer, &copy.to.buffer);
            let mut left = copy.bytes.next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
            let (mut from_offset, mut to_offset) = (copy.from_offset, copy.to_offset);
            while left > 0 {
                let bytes = left.min(most);
                encoder.copy_buffer_to_buffer(from, from_offset, to, to_offset, bytes);
                (from_offset, to_offset, left) = (from_offset + bytes, to_offset + bytes, left - bytes);
            }
        };
        self.before.iter().for_each(|c| copy(&mut encoder, c));
        for (block, region) in &self.cleared {
            encoder.clear_buffer(&block.buffer, region.offset, Some(region.bytes));
        }
        if !self.dispatches.is_empty() {
            let timestamp_writes = self.stamps.as_ref().map(Stamps::ends);
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for (number, dispatch) in self.dispatches.iter().enumerate() {
                let [x, y, z] = dispatch.grid;
                pass.set_pipeline(&dispatch.pipeline);
                pass.set_bind_group(0, &dispatch.group, &[]);
                pass.dispatch_workgroups(x, y, z);
                if let Some(stamps) = &self.stamps {
                    stamps.after(number, &mut pass);
                }
            }
        }
        self.after.iter().for_each(|c| copy(&mut encoder, c));
        if let Some(stamps) = &self.stamps {
            stamps.resolve(&mut encoder);
        }
        encoder.finish()
    }
}
