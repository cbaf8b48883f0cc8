//! Memory on huge pages for blocks that are smaller than one: sizes enter, parts of a large map leave.
//!
//! A fresh page of 4 KiB costs 1.2 us here and one of 2 MiB 85 us, an eighth of that for each byte. The system gives huge pages to
//! maps that have whole ones only, so that blocks share a map: each is a part of its own, one after the other. What is given
//! back stays with the pool's other blocks and is lent again as it is.

use memmap2::{MmapMut, MmapRaw};
use std::sync::Arc;

/// A page that the system clears at once.
pub(super) const HUGE_PAGE: usize = 2 << 20;
/// A map: address space, of which as much becomes memory as is used.
const MAP_BYTES: usize = 16 * HUGE_PAGE;
/// Parts begin at multiples of this, as they would in pages of their own.
const PAGE: usize = 4096;

/// The map that the next parts are cut from.
#[derive(Default)]
pub(super) struct Arena {
    map: Option<Arc<Map>>,
    /// How much of it is cut.
    used: usize,
}

struct Map {
    map: MmapRaw,
    /// The first huge page in it.
    first: usize,
}

/// A part of a map, which nobody else has.
pub(super) struct Part {
    map: Arc<Map>,
    /// Its place in the map.
    start: usize,
    bytes: usize,
}

impl Arena {
    /// The next `bytes`, less than a map has, with zeros. `None` if the system has none.
    pub(super) fn cut(&mut self, bytes: usize) -> Option<Part> {
        let bytes = bytes.next_multiple_of(PAGE);
        if self.map.is_none() || self.used + bytes > MAP_BYTES {
            let map = MmapMut::map_anon(MAP_BYTES + HUGE_PAGE).ok()?;
            // Huge pages are a wish: without them parts are as good, only slower to fault in.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            let map = MmapRaw::from(map);
            let address = map.as_ptr() as usize;
            let first = address.next_multiple_of(HUGE_PAGE) - address;
            (self.map, self.used) = (Some(Arc::new(Map { map, first })), 0);
        }
        let map = self.map.clone()?;
        let start = map.first + self.used;
        self.used += bytes;
        Some(Part { map, start, bytes })
    }

    /// Forgets what is left of the map: its memory goes with the last part of it.
    pub(super) fn forget(&mut self) {
        *self = Arena::default();
    }
}

impl Part {
    /// Its address, from which `bytes` may be written as long as it is there.
    pub(super) fn as_ptr(&self) -> *mut u8 {
        debug_assert!(self.start + self.bytes <= self.map.map.len());
        self.map.map.as_mut_ptr().wrapping_add(self.start)
    }
}

/// Its memory goes back to the system now, and its addresses with the last part of the map.
impl Drop for Part {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if Arc::strong_count(&self.map) > 1 {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: nobody reads or writes this part any more, and parts are whole pages.
            let _ = unsafe { self.map.map.unchecked_advise_range(advice, self.start, self.bytes) };
        }
    }
}
