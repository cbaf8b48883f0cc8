//! The buffer pool of one device: blocks by role and size class, handed out lowest number first so that a batch of the
//! same shape gets the same buffers again, and with them its cached bind groups.
//!
//! Blocks wait here in the state in which they are needed next: uploads mapped for writing, so that a caller fills one
//! without a word to the owner thread; the others unmapped. Callers only lock and move; whatever calls wgpu (creating,
//! unmapping, freeing) happens on the owner thread.

use crate::copies::{self, Hands, PART};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks and their parts begin at multiples of this: no device asks for more from a storage binding.
pub(crate) const ALIGN: u64 = 256;

/// What a block is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    /// Written by the host. On unified memory shaders read it in place, elsewhere it is copied from.
    Upload,
    /// Seen by the device only.
    Device,
    /// Read by the host. On unified memory shaders write it in place, elsewhere it is copied to.
    Readback,
}

impl Role {
    pub(crate) fn usages(self, unified: bool) -> wgpu::BufferUsages {
        use wgpu::BufferUsages as U;
        let in_place = if unified { U::STORAGE } else { U::empty() };
        match self {
            Role::Upload => U::MAP_WRITE | U::COPY_SRC | in_place,
            Role::Device => U::STORAGE | U::COPY_SRC | U::COPY_DST,
            Role::Readback => U::MAP_READ | U::COPY_DST | in_place,
        }
    }
}

/// A buffer of the pool while it is in use.
pub(crate) struct Block {
    pub(crate) buffer: wgpu::Buffer,
    /// Unlike the buffer's address it is never used again: bind groups are remembered by it.
    pub(crate) id: u64,
    pub(crate) role: Role,
    size: u64,
    wanted: u64,
}

/// What a pool holds.
///
/// ```
/// assert_eq!(breakeven_gpu::PoolStats::default().hit_rate(), 0.0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStats {
    /// Bytes that batches and values use.
    pub in_use_bytes: u64,
    /// Bytes of all buffers, used or idle.
    pub reserved_bytes: u64,
    /// Bytes of used buffers beyond what was asked for.
    pub padding_bytes: u64,
    /// Requests that an idle buffer served.
    pub hits: u64,
    /// Requests that needed a new buffer.
    pub misses: u64,
    /// How many buffers there are.
    pub buffers: u64,
}

impl PoolStats {
    /// The share of requests that an idle buffer served.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

/// The size class of a request: powers of two in four steps, so that at most a fifth is padding.
pub(crate) fn class(bytes: u64) -> u64 {
    let bytes = bytes.max(ALIGN);
    let step = (bytes.next_power_of_two() / 8).max(ALIGN);
    bytes.next_multiple_of(step)
}

struct Idle {
    block: Block,
    view: Option<wgpu::BufferViewMut>,
    since: u64,
}

#[derive(Default)]
struct Inner {
    idle: BTreeMap<(Role, u64), Vec<Idle>>,
    /// Read back and let go by their readers, still mapped.
    returned: Vec<Block>,
    stats: PoolStats,
    clock: u64,
    next_id: u64,
}

/// The pool.
pub(crate) struct Pool {
    inner: Mutex<Inner>,
    cap_bytes: u64,
}

impl Pool {
    pub(crate) fn new(cap_bytes: u64) -> Arc<Pool> {
        Arc::new(Pool { inner: Mutex::default(), cap_bytes })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held; a poisoned pool would still be consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, role: Role, bytes: u64) -> Option<Idle> {
        let mut inner = self.lock();
        let size = class(bytes);
        // The lowest number, whatever the order in which blocks came back: the same batch gets the same blocks.
        let lowest = |list: &mut Vec<Idle>| {
            let place = (0..list.len()).min_by_key(|place| list[*place].block.id)?;
            Some(list.swap_remove(place))
        };
        let Some(mut idle) = inner.idle.get_mut(&(role, size)).and_then(lowest) else {
            inner.stats.misses += 1;
            return None;
        };
        idle.block.wanted = bytes;
        inner.stats.hits += 1;
        inner.use_block(&idle.block, true);
        Some(idle)
    }

    /// An idle upload, ready to be filled.
    pub(crate) fn take_upload(self: &Arc<Pool>, bytes: u64) -> Option<Upload> {
        let idle = self.take(Role::Upload, bytes)?;
        Some(Upload { block: Some(idle.block), view: idle.view, pool: self.clone() })
    }

    /// An idle block.
    pub(crate) fn take_block(&self, role: Role, bytes: u64) -> Option<Block> {
        self.take(role, bytes).map(|idle| idle.block)
    }

    /// A new buffer becomes a block in use.
    pub(crate) fn admit(&self, buffer: wgpu::Buffer, role: Role, wanted: u64) -> Block {
        let mut inner = self.lock();
        inner.next_id += 1;
        let block = Block { size: buffer.size(), buffer, id: inner.next_id, role, wanted };
        inner.stats.reserved_bytes += block.size;
        inner.stats.buffers += 1;
        inner.use_block(&block, true);
        block
    }

    /// A block is idle again; an upload comes with its mapped memory.
    pub(crate) fn give(&self, block: Block, view: Option<wgpu::BufferViewMut>) {
        let mut inner = self.lock();
        inner.use_block(&block, false);
        inner.put(block, view);
    }

    /// A block that a reader let go is unmapped and idle again.
    pub(crate) fn give_returned(&self, block: Block) {
        self.lock().put(block, None);
    }

    /// A block is gone.
    pub(crate) fn forget(&self, block: Block) {
        let mut inner = self.lock();
        inner.use_block(&block, false);
        inner.stats.reserved_bytes -= block.size;
        inner.stats.buffers -= 1;
    }

    /// Blocks that readers let go: the owner unmaps them and gives them back.
    pub(crate) fn returned(&self) -> Vec<Block> {
        std::mem::take(&mut self.lock().returned)
    }

    /// Idle blocks beyond the cap, or all with `everything`: the owner drops them.
    pub(crate) fn evict(&self, everything: bool) -> Vec<Block> {
        let mut inner = self.lock();
        let mut evicted = Vec::new();
        while everything || inner.stats.reserved_bytes > self.cap_bytes {
            let all = inner.idle.iter().flat_map(|(key, list)| list.iter().zip(0..).map(|(i, n)| (i.since, *key, n)));
            let Some((_, key, place)) = all.min() else { break };
            let Some(list) = inner.idle.get_mut(&key) else { break };
            let idle = list.swap_remove(place);
            inner.stats.reserved_bytes -= idle.block.size;
            inner.stats.buffers -= 1;
            drop(idle.view);
            evicted.push(idle.block);
        }
        evicted
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.lock().stats
    }
}

impl Inner {
    fn put(&mut self, block: Block, view: Option<wgpu::BufferViewMut>) {
        self.clock += 1;
        let since = self.clock;
        self.idle.entry((block.role, block.size)).or_default().push(Idle { block, view, since });
    }

    fn use_block(&mut self, block: &Block, begins: bool) {
        let stats = &mut self.stats;
        let padding = block.size - block.wanted.min(block.size);
        if begins {
            stats.in_use_bytes += block.size;
            stats.padding_bytes += padding;
        } else {
            stats.in_use_bytes -= block.size;
            stats.padding_bytes -= padding;
        }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Mapped memory that a caller fills. Dropped, it is idle again.
pub(crate) struct Upload {
    block: Option<Block>,
    view: Option<wgpu::BufferViewMut>,
    pool: Arc<Pool>,
}

impl Upload {
    pub(crate) fn new(block: Block, view: wgpu::BufferViewMut, pool: &Arc<Pool>) -> Upload {
        Upload { block: Some(block), view: Some(view), pool: pool.clone() }
    }

    /// Copies bytes to an offset; what lies outside of the block is dropped.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        if let Some(view) = &mut self.view
            && !bytes.is_empty()
            && offset + bytes.len() <= view.len()
        {
            view.slice(offset..offset + bytes.len()).copy_from_slice(bytes);
        }
    }

    /// Copies pieces to their offsets, which ascend; what lies outside of the block is dropped.
    pub(crate) fn write_all<'p>(&mut self, hands: Hands, pieces: impl Iterator<Item = (usize, &'p [u8])>) {
        let Some(view) = &mut self.view else { return };
        let (mut rest, mut at) = (view.slice(..), 0);
        // In parts, so that two threads have about as much to do.
        let parts = pieces.flat_map(|(offset, bytes)| {
            bytes.chunks(PART).enumerate().map(move |(number, part)| (offset + number * PART, part))
        });
        let copies = parts.map_while(|(offset, bytes)| {
            rest.split_off(..offset.checked_sub(at)?)?;
            let place = rest.split_off(..bytes.len())?;
            at = offset + bytes.len();
            Some((bytes.len(), Some((Place(place), bytes))))
        });
        copies::run(hands, &mut copies.collect::<Vec<_>>(), |(place, bytes)| place.write(bytes));
    }

    /// Reads one byte of each cache line, for its being near afterwards; what lies outside of the block is left out.
    pub(crate) fn read_lines(&mut self, offset: usize, bytes: usize) {
        let Some(view) = &mut self.view else { return };
        if offset + bytes > view.len() {
            return;
        }
        let begin = view.slice(..).as_raw_element_ptr();
        for at in (offset..offset + bytes).step_by(LINE) {
            // SAFETY: inside of mapped memory, of which this is the only user, and whose bytes all have values from the start.
            unsafe { begin.add(at).read_volatile() };
        }
    }

    /// The block, whose memory the host no longer sees: the owner unmaps it.
    pub(crate) fn into_block(mut self) -> Option<Block> {
        self.view = None;
        self.block.take()
    }
}

/// A part of mapped memory.
struct Place<'a>(wgpu::WriteOnly<'a, [u8]>);

// SAFETY: like a `&mut [u8]` it is the only way to its bytes while it lives, and any thread may write mapped memory.
unsafe impl Send for Place<'_> {}

impl Place<'_> {
    fn write(mut self, bytes: &[u8]) {
        self.0.copy_from_slice(bytes);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give(block, self.view.take());
        }
    }
}

/// Mapped memory that a caller reads, for as long as it likes. Dropped, it goes back to the owner.
pub(crate) struct Readback {
    block: Option<Block>,
    view: Option<wgpu::BufferView>,
    pool: Arc<Pool>,
}

impl Readback {
    pub(crate) fn new(block: Block, view: wgpu::BufferView, pool: &Arc<Pool>) -> Readback {
        Readback { block: Some(block), view: Some(view), pool: pool.clone() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.view.as_deref().unwrap_or(&[])
    }
}

impl Drop for Readback {
    fn drop(&mut self) {
        self.view = None;
        if let Some(block) = self.block.take() {
            let mut inner = self.pool.lock();
            inner.use_block(&block, false);
            inner.returned.push(block);
        }
    }
}

/// A block of the device's memory that a value keeps. Dropped, it is idle again.
pub(crate) struct Kept {
    block: Option<Block>,
    pool: Arc<Pool>,
}

impl Kept {
    pub(crate) fn new(block: Block, pool: &Arc<Pool>) -> Kept {
        Kept { block: Some(block), pool: pool.clone() }
    }

    pub(crate) fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give(block, None);
        }
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
