//! Which SIMD level moves memory fastest: the best level of a CPU enters, the level for kernels that do little else leaves.
//!
//! A caller's memory is rarely aligned to 64 bytes, so that every AVX-512 load lies across two cache lines. Some CPUs pay for that
//! with more than the wider load saves and others do not (a plain loop over 10^5 elements takes 3.1 us with 64-byte vectors and 3.5
//! with 32-byte ones on a Zen 5), so it is measured when the backend is made, which takes about 0.1 ms.

use crate::kernels::map::map_fns;
use crate::level::Level;
use breakeven_ir::Op;
use std::time::Instant;

/// The levels of a backend's kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Levels {
    /// Of all that compute.
    pub(crate) computing: Level,
    /// Of those that do little but move memory.
    pub(crate) moving: Level,
}

/// Lanes that are moved: what is read and written stays in every L2.
const LANES: usize = 32 << 10;
const ROUNDS: usize = 6;
/// The first lane of what is read and of what is written, of 16 in a line: neither begins with one, nor both at the same place.
const FROM: usize = 4;
const TO: usize = 8;

impl Levels {
    /// The level for everything, but for what moves memory: that has the faster one of it and of the one below.
    pub(crate) fn measured(level: Level) -> Levels {
        let below = level.with_half_lines();
        let levels = [below, level];
        if below == level {
            return Levels { computing: level, moving: level };
        }
        let mut memory = vec![0u32; 2 * (LANES + 16)];
        let (from, to) = memory.split_at_mut(LANES + 16);
        let line = |lanes: &[u32]| (64 - lanes.as_ptr() as usize % 64) % 64 / 4;
        let (from, to) = (&from[(line(from) + FROM) % 16..], &mut *to);
        let at = (line(to) + TO) % 16;
        let to = &mut to[at..];
        let mut best = [u128::MAX; 2];
        for round in 0..ROUNDS {
            for (level, best) in levels.iter().zip(&mut best) {
                let Some(abs) = map_fns(Op::Abs, 0, *level).version([false; 3]) else { continue };
                let start = Instant::now();
                // SAFETY: both have as many lanes, and the CPU has both levels: one is the caller's, who had it from
                // `Level::all`, the other one is below it.
                unsafe { abs(to.as_mut_ptr(), from.as_ptr(), from.as_ptr(), from.as_ptr(), LANES) };
                let took = start.elapsed().as_nanos();
                // The first round faults the memory in.
                if round > 0 {
                    *best = took.min(*best);
                }
            }
        }
        Levels { computing: level, moving: levels[usize::from(best[1] < best[0])] }
    }
}

/// Without a measurement: what moves memory does so in halves of lines.
impl From<Level> for Levels {
    fn from(level: Level) -> Levels {
        Levels { computing: level, moving: level.with_half_lines() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_moved_by_the_level_or_by_the_one_below() {
        for level in Level::all() {
            let levels = Levels::measured(level);
            assert_eq!(levels.computing, level);
            assert!([level, level.with_half_lines()].contains(&levels.moving), "{levels:?}");
        }
    }
}
