//! The plan on SIMD lanes and threads.
//!
//! In flow order: `shape` chooses how a kernel's loops run; `lower` (with `peephole`, `place` and `slots`) turns its fused body into
//! a `program` of steps over tiles; `prepared` keeps the programs of a plan; `schedule` cuts their work into chunks for
//! the threads of `team`; `tile` runs the steps (with `fill` for what is not contiguous and `stream` for what is larger
//! than the caches); `product` runs matrix products. Memory comes from `scratch` and `blocks`. The inner loops are in
//! `kernels`, compiled for each SIMD `level`; `moving` measures which of them moves memory fastest. `ahead` has cache lines come
//! before they are used, and `held` has few of them travel, for whoever passes things between threads.

pub mod ahead;
mod backend;
mod blocks;
mod cores;
mod either;
mod fill;
pub mod held;
mod kernels;
mod level;
mod lower;
pub mod map_file;
mod moment;
mod moving;
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
mod tasks;
mod team;
pub mod threads;
mod tile;

pub use backend::Cpu;
/// Memory of the pool: written by one, then read by many.
///
/// ```
/// use breakeven_ir::HostBytes;
/// let blocks = std::sync::Arc::new(breakeven_cpu::Blocks::default());
/// let mut block = blocks.take(3)?;
/// block.as_mut_bytes().copy_from_slice(b"abc");
/// assert_eq!(block.as_bytes(), b"abc");   // from now on for reading, by as many as like
/// # Ok::<(), breakeven_ir::backend::RunError>(())
/// ```
pub use blocks::Block;
pub use blocks::BlockStats;
/// The memory pool.
///
/// ```
/// let blocks = std::sync::Arc::new(breakeven_cpu::Blocks::default());
/// drop(blocks.take(1000)?);                    // back to the pool, and lent again
/// drop(blocks.take(1000)?);
/// assert_eq!((blocks.stats().misses, blocks.stats().hits), (1, 1));
/// blocks.clear();
/// assert_eq!(blocks.stats().free_bytes, 0);
/// # Ok::<(), breakeven_ir::backend::RunError>(())
/// ```
pub use blocks::Blocks;
pub use level::Level;
pub use moment::{Clocks, Moment, Timeline};
