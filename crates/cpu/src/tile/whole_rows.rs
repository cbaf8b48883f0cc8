//! Rows that are one tile each: their numbers and the frame of a thread enter, written outputs leave.

use super::Frame;
use std::ops::Range;

/// Rows up to this size are asked for one row ahead (softmax of 4096 x 512: 764-794 us instead of 804-903); of longer
/// ones the hardware sees where they go.
#[cfg(target_arch = "x86_64")]
const PREFETCH_BYTES: usize = 8192;

/// As for the other methods: the frame's pointers are valid, and the buffers are the plan's.
impl Frame<'_> {
    /// Rows that are one tile each: pointers and lanes stay from phase to phase. What is computed beside the row is
    /// single lanes, whatever the tile.
    pub(super) unsafe fn single_tile_rows(&mut self, rows: Range<usize>) {
        let program = self.program;
        self.lanes(0, program.lane_count);
        self.position = 0;
        let first = rows.start;
        let follows = || program.outer.iter().chain(&program.inner);
        // Rows of one loop are as far apart as the first two.
        let even = program.shape.loops.len() == 1 && follows().all(|follow| follow.place.general.is_none());
        for row in rows {
            self.set_loops(row);
            // SAFETY: see the impl; a pointer that goes on by its stride points to the element of the next row.
            unsafe {
                if even && row > first {
                    for follow in follows() {
                        let ptr = self.ptrs.add(follow.ptr as usize);
                        *ptr = (*ptr).wrapping_offset(follow.place.coefficients[0] as isize * follow.width as isize);
                    }
                } else {
                    self.follow(&program.outer);
                    self.follow(&program.inner);
                }
                self.steps(&program.head);
                for (number, phase) in program.phases.iter().enumerate() {
                    self.start(phase);
                    self.steps(&phase.body);
                    if number == 0 {
                        self.prefetch_next_row();
                    }
                    self.finish_rows(&phase.reduces);
                    self.steps(&phase.after);
                }
            }
        }
    }

    /// Asks for the memory of the next row while this one is computed with.
    unsafe fn prefetch_next_row(&self) {
        #[cfg(target_arch = "x86_64")]
        for follow in &self.program.inner {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            let Some(last) = self.program.shape.loops.len().checked_sub(1) else { return };
            let next = follow.place.coefficients[last] * follow.width as i64;
            let bytes = self.program.lane_count * follow.width;
            if next == bytes as i64 && bytes <= PREFETCH_BYTES {
                // SAFETY: see the impl; a prefetch of any address is harmless.
                unsafe {
                    let row = (*self.ptrs.add(follow.ptr as usize)).wrapping_add(bytes);
                    for line in 0..bytes / 64 {
                        _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(line * 64).cast());
                    }
                }
            }
        }
    }
}
