//! The plan on SIMD lanes and threads.
pub mod threads;
