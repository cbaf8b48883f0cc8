//! Bind groups, remembered by the pipeline and the parts of blocks that they bind, so that a batch of the same shape
//! finds its own again.

use crate::buffers::Block;
use std::collections::HashMap;

/// A part of a block as a binding shows it.
#[derive(Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) block: &'a Block,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Bind groups that are remembered. They are small; the number only keeps a program that never repeats itself bounded.
const MOST: usize = 4096;

/// The bind groups of a device.
#[derive(Default)]
pub(crate) struct Groups {
    /// By pipeline and, for each binding, block, offset and bytes; with the last use.
    known: HashMap<Box<[u64]>, (wgpu::BindGroup, u64)>,
    clock: u64,
}

impl Groups {
    /// The bind group of a pipeline with these parts, and whether it had to be created.
    pub(crate) fn find(
        &mut self,
        device: &wgpu::Device,
        pipeline: usize,
        layout: &wgpu::BindGroupLayout,
        parts: &[Bound<'_>],
    ) -> (wgpu::BindGroup, bool) {
        let mut key = Vec::with_capacity(1 + 3 * parts.len());
        key.push(pipeline as u64);
        key.extend(parts.iter().flat_map(|part| [part.block.id, part.offset, part.bytes]));
        self.clock += 1;
        if let Some((group, used)) = self.known.get_mut(&*key) {
            *used = self.clock;
            return (group.clone(), false);
        }
        let entry = |(&Bound { block, offset, bytes }, binding)| {
            let size = wgpu::BufferSize::new(bytes);
            let resource = wgpu::BufferBinding { buffer: &block.buffer, offset, size };
            wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(resource) }
        };
        let entries: Vec<wgpu::BindGroupEntry<'_>> = parts.iter().zip(0..).map(entry).collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        if self.known.len() >= MOST {
            let old = self.clock.saturating_sub(MOST as u64 / 2);
            self.known.retain(|_, (_, used)| *used > old);
        }
        self.known.insert(key.into(), (group.clone(), self.clock));
        (group, true)
    }

    /// Forgets the bind groups of blocks that are gone: they would keep the memory.
    pub(crate) fn forget(&mut self, gone: &[Block]) {
        if !gone.is_empty() {
            self.known.retain(|key, _| !key[1..].chunks(3).any(|part| gone.iter().any(|block| block.id == part[0])));
        }
    }
}
