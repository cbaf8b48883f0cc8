//! Breakeven's GPU side beside other ways to the same adapter: workloads enter, one honest table leaves.
//!
//! In flow order: the one [`adapter`] that all arms share; a [`workload`] and its [`reference`](mod@reference); the
//! [`arm`]s that compute it, written by [`hand`], by [`burn`], by [`trueno`] and by [`ours`]; their side by side
//! [`measure`]ment; the [`report`] with its bars; the [`table`].
//!
//! Every arm goes from the host's memory to the host's memory: that is what a caller waits for.

pub mod adapter;
// The clock and the rules of the CPU's table, so that both tables mean the same by a median. Shared as files: the
// package they are part of compiles a dozen CPU libraries.
#[path = "../../src/arm.rs"]
pub mod arm;
pub mod attempt;
pub mod burn;
pub mod hand;
#[path = "../../src/measure.rs"]
pub mod measure;
pub mod ours;
pub mod reference;
pub mod report;
pub mod table;
pub mod trueno;
pub mod workload;

/// The library name of our own arms.
pub const OURS: &str = "ours";
