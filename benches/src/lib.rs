//! Breakeven beside the libraries that a user could pick instead: workloads enter, one honest table leaves.
//!
//! In flow order: a [`workload`] and its [`reference`](mod@reference); the [`arm`]s that compute it, from the [`peers`]
//! and from [`ours`]; their side by side [`measure`]ment; the machine's [`limits`]; the [`report`] with its bars; the
//! [`table`] and the [`chart`].

pub mod arm;
pub mod chart;
pub mod limits;
pub mod measure;
pub mod ours;
pub mod peers;
pub mod reference;
pub mod report;
pub mod table;
pub mod workload;

/// The library name of our own arms.
pub const OURS: &str = "ours";
