//! The memory pool: output and scratch blocks are kept and lent again, because fresh pages are dear.
//!
//! At ten million elements 6 of 7 milliseconds of an addition go into page faults. Large blocks are mapped on huge
//! pages where the system gives them, and a block goes back to the pool when the last tensor that reads it is dropped.

mod arena;

use crate::scratch::Line;
use arena::{Arena, HUGE_PAGE, Part};
use breakeven_ir::HostBytes;
use breakeven_ir::backend::RunError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks below this come from the allocator, whose pages they share.
const SHARED_BYTES: usize = 16 << 10;
/// Once fresh blocks are this large together they come from huge pages: one of those is cleared in the time of 70 small ones
/// (85 us and 1.2 us), as with skis that are rented until they might have been bought.
const RENTED_BYTES: usize = 70 * 4096;
/// From this size on a block is mapped on its own: what lies beyond its last whole huge page does not count.
const MAPPED_BYTES: usize = 4 * HUGE_PAGE;
/// What the pool keeps at most when nothing is in use; more is given back to the system.
const KEEP_BYTES: usize = 1 << 30;
/// Size classes are an eighth of a power of two apart: at most 12.5 % of a block is padding.
const CLASSES_PER_DOUBLING: u32 = 8;
const SMALLEST_BYTES: usize = 256;

/// Blocks that are not in use, for one engine.
#[derive(Default)]
pub struct Blocks {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    blocks: Vec<Memory>,
    bytes: usize,
    /// Bytes of blocks that are lent.
    lent: usize,
    hits: u64,
    misses: u64,
    /// Bytes of blocks that were neither small nor on huge pages.
    rented: usize,
    arena: Arena,
    /// Is the engine gone? Then nobody will take what is given back.
    closed: bool,
}

/// How the pool has been used.
///
/// ```
/// let blocks = std::sync::Arc::new(breakeven_cpu::Blocks::default());
/// drop(blocks.take(1000)?);
/// drop(blocks.take(1000)?);
/// assert_eq!((blocks.stats().misses, blocks.stats().hits), (1, 1));
/// # Ok::<(), breakeven_ir::backend::RunError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockStats {
    /// Bytes that are kept for the next run.
    pub free_bytes: usize,
    /// Bytes that results and callers hold.
    pub used_bytes: usize,
    /// Blocks that were there when they were asked for.
    pub hits: u64,
    /// Blocks that had to be made.
    pub misses: u64,
}

/// Raw memory of one size class.
struct Memory {
    storage: Storage,
    bytes: usize,
}

enum Storage {
    Lines(Vec<Line>),
    Part(Part),
    Mapped(memmap2::MmapMut),
}

impl Memory {
    fn new(bytes: usize) -> Result<Memory, RunError> {
        let storage = if bytes >= MAPPED_BYTES {
            let map = memmap2::MmapMut::map_anon(bytes).map_err(|_| RunError::OutOfMemory { bytes })?;
            // Huge pages are a wish: without them the block is as good, only slower to fault in.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            Storage::Mapped(map)
        } else {
            let mut lines: Vec<Line> = Vec::new();
            lines.try_reserve_exact(bytes.div_ceil(64)).map_err(|_| RunError::OutOfMemory { bytes })?;
            lines.resize(bytes.div_ceil(64), Line::ZERO);
            Storage::Lines(lines)
        };
        Ok(Memory { storage, bytes })
    }

    fn as_ptr(&self) -> *const u8 {
        match &self.storage {
            Storage::Lines(lines) => lines.as_ptr().cast(),
            Storage::Part(part) => part.as_ptr(),
            Storage::Mapped(map) => map.as_ptr(),
        }
    }
}

impl Free {
    /// Fresh memory on huge pages, where that pays.
    fn part(&mut self, bytes: usize) -> Option<Memory> {
        if !(SHARED_BYTES..MAPPED_BYTES).contains(&bytes) {
            return None;
        }
        if self.rented + bytes <= RENTED_BYTES {
            self.rented += bytes;
            return None;
        }
        let storage = Storage::Part(self.arena.cut(bytes)?);
        Some(Memory { storage, bytes })
    }
}

/// The size class of `bytes`: the next step, an eighth of a power of two apart. `None` if that is more than a `usize`.
fn class(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(SMALLEST_BYTES);
    let step = (1usize << (usize::BITS - 1 - bytes.leading_zeros())) / CLASSES_PER_DOUBLING as usize;
    bytes.checked_next_multiple_of(step.max(64))
}

/// A block that is being written: nobody else has it.
pub struct Block {
    memory: Option<Memory>,
    len: usize,
    home: Arc<Blocks>,
}

impl Blocks {
    /// A block of `len` bytes with arbitrary contents.
    pub fn take(self: &Arc<Blocks>, len: usize) -> Result<Block, RunError> {
        let bytes = class(len).ok_or(RunError::OutOfMemory { bytes: len })?;
        let mut free = self.lock();
        let found = free.blocks.iter().rposition(|m| m.bytes == bytes);
        free.lent += bytes;
        let memory = match found {
            Some(at) => {
                free.hits += 1;
                free.bytes -= bytes;
                free.blocks.swap_remove(at)
            }
            None => {
                free.misses += 1;
                match free.part(bytes) {
                    Some(memory) => memory,
                    None => {
                        drop(free);
                        Memory::new(bytes).inspect_err(|_| self.lock().lent -= bytes)?
                    }
                }
            }
        };
        Ok(Block { memory: Some(memory), len, home: self.clone() })
    }

    /// How the pool has been used so far.
    pub fn stats(&self) -> BlockStats {
        let free = self.lock();
        BlockStats { free_bytes: free.bytes, used_bytes: free.lent, hits: free.hits, misses: free.misses }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives everything that is not in use back to the system.
    pub fn clear(&self) {
        let mut free = self.lock();
        free.blocks.clear();
        free.arena.forget();
        free.bytes = 0;
    }

    /// As [`Blocks::clear`], and for good: results that outlive the engine are freed when they are dropped. They hold the
    /// pool itself, because a weak pointer to it would cost each of them two more locked instructions.
    pub(crate) fn close(&self) {
        let mut free = self.lock();
        free.blocks = Vec::new();
        free.arena.forget();
        (free.bytes, free.closed) = (0, true);
    }

    fn give_back(&self, memory: Memory) {
        let mut free = self.lock();
        free.lent -= memory.bytes;
        if !free.closed && free.bytes + memory.bytes <= KEEP_BYTES {
            free.bytes += memory.bytes;
            free.blocks.push(memory);
        }
    }
}

impl Block {
    /// Makes it `len` bytes long, if that is the same size class: the memory for a batch like the last one.
    pub fn resize(&mut self, len: usize) -> bool {
        let fits = self.memory.as_ref().is_some_and(|memory| Some(memory.bytes) == class(len));
        if fits {
            self.len = len;
        }
        fits
    }

    /// The bytes, to be written.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        let len = self.len;
        match self.memory.as_mut().map(|m| &mut m.storage) {
            Some(Storage::Mapped(map)) => &mut map[..len],
            // SAFETY: the part is initialised memory of at least `len` bytes, and nobody else has it.
            Some(Storage::Part(part)) => unsafe { std::slice::from_raw_parts_mut(part.as_ptr(), len) },
            // SAFETY: the lines are initialised memory of at least `len` bytes, borrowed mutably.
            Some(Storage::Lines(lines)) => unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), len) },
            None => &mut [],
        }
    }
}

impl HostBytes for Block {
    fn as_bytes(&self) -> &[u8] {
        match &self.memory {
            // SAFETY: the memory is initialised, at least `len` bytes long, and shared only for reading.
            Some(memory) => unsafe { std::slice::from_raw_parts(memory.as_ptr(), self.len) },
            None => &[],
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.home.give_back(memory);
        }
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
