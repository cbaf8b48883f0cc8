//! Mixed batches: shapes of batches enter, the times of separate runs and of one batch leave, on every device.
//!
//! In flow order: a [`shape`] with its inputs and expected results; a [`place`] to run it; the [`ways`] of running it,
//! side by side; the [`verdict`]; its [`print`](mod@print).

pub mod place;
pub mod print;
pub mod shape;
pub mod verdict;
pub mod ways;
