//! The plan on SIMD lanes and threads.
//!
//! In flow order: `shape` chooses how a kernel's loops run; `lower` (with `peephole`, `place` and `slots`) turns its fused body into
//! a `program` of steps over tiles; `prepared` keeps the programs of a plan; `schedule` cuts their work into chunks for
//! the threads of `team`; `tile` runs the steps (with `fill` for what is not contiguous and `stream` for what is larger
//! than the caches); `product` runs matrix products. Memory comes from `scratch` and `blocks`. The inner loops are in
//! `kernels`, compiled for each SIMD `level`.

mod backend;
mod blocks;
mod cores;
mod fill;
mod kernels;
mod level;
mod lower;
pub mod map_file;
mod peephole;
mod place;
mod prepared;
mod product;
mod program;
mod schedule;
mod scratch;
mod shape;
mod slots;
mod stream;
mod team;
pub mod threads;
mod tile;

pub use backend::Cpu;
pub use blocks::{Block, BlockStats, Blocks};
pub use level::Level;
