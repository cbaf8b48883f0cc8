//! The libraries that a user could pick instead: a workload enters, every way in which they can compute it leaves.
//!
//! One file a library. Each is used as its documentation would have it used for speed, with its threads on; variants
//! that reuse their output exist wherever the library can do that.

use crate::arm::Arm;
use crate::workload::Workload;

mod burn;
mod candle;
mod matrix_products;
mod ndarray;
pub mod python;
mod scalar;
mod trueno;

/// Libraries written in Rust, which the summary also compares as a group.
pub const RUST_LIBRARIES: [&str; 7] = ["ndarray", "candle", "burn", "trueno", "faer", "gemm", "matrixmultiply"];

/// Every Rust peer's arms for this workload.
pub fn arms(workload: &Workload) -> Vec<Arm<'_>> {
    let mut arms = ndarray::arms(workload);
    arms.extend(candle::arms(workload));
    arms.extend(burn::arms(workload));
    arms.extend(trueno::arms(workload));
    arms.extend(matrix_products::arms(workload));
    arms
}
