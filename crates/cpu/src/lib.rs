//! The plan on SIMD lanes and threads.
//!
//! In flow order: `shape` chooses how a kernel's loops run, `lower` (with `place` and `slots`) turns its fused body into
//! steps over tiles, `tile` runs them (with `fill` for what is not contiguous, `stream` for what is larger than the
//! caches), `product` runs matrix products, over the threads of `team`, in memory of `scratch` and `blocks`. The inner
//! loops are in `kernels`, compiled for each SIMD `level`.

mod backend;
mod blocks;
mod fill;
mod kernels;
mod level;
mod lower;
pub mod map_file;
mod place;
mod prepared;
mod product;
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
