//! The inner loops: plain Rust over chunks of lanes, compiled once for each SIMD level.
//!
//! Slots and row-major memory enter as raw pointers to 32-bit lanes, unaligned and possibly in place (`dst` equal to an
//! argument, never overlapping it partly): every kernel reads a chunk before it writes that chunk.

#![allow(clippy::needless_range_loop, reason = "index loops over lane arrays are what LLVM vectorises")]

pub(crate) mod columns;
pub(crate) mod contract;
mod dot;
pub(crate) mod map;
pub(crate) mod reduce;
mod rows;
pub(crate) mod scan;
