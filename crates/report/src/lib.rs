//! What a scan of a machine measured, for people: a [`Scan`] enters, a [`table()`] for the terminal, [`csv()`] and
//! [`transfers_csv()`], JSON, [`markdown()`] and one [`html()`] page that needs no network leave.
//!
//! Several of them side by side are a [`compare::Comparison`]; [`import`] reads scans and results of other tools;
//! [`bench::Bench`] is what a run of the suite measured. All pages are drawn by one module.
//!
//! This crate knows nothing of the engine: it reads numbers, finds the sizes from which a device is faster than the CPU
//! ([`Scan::crossovers`]), and shows them. Whatever it shows was measured; where nothing was, it says so.
//!
//! ```
//! use breakeven_report::{Device, Row, Scan, Stats, Verdict};
//!
//! let row = |device: &str, size: u64, ns: u64| Row {
//!     op: "exp".into(),
//!     class: "map".into(),
//!     size,
//!     unit: "elements".into(),
//!     device: device.into(),
//!     stats: Stats::of(&[ns]).unwrap_or_default(),
//! };
//! let scan = Scan {
//!     devices: vec![Device::cpu("Xeon"), Device { id: "gpu:0".into(), kind: "discrete".into(), ..Device::default() }],
//!     rows: vec![
//!         row("cpu", 1_000, 500),
//!         row("cpu", 1_000_000, 500_000),
//!         row("gpu:0", 1_000, 50_000),
//!         row("gpu:0", 1_000_000, 60_000),
//!     ],
//!     ..Scan::default()
//! };
//! let exp = &scan.crossovers()[0];
//! assert_eq!(exp.verdict, Verdict::DeviceFrom);
//! assert_eq!(exp.words(), "from 110 k elements on");
//! assert!(breakeven_report::table(&scan).contains("from 110 k elements on"));
//! ```
#![forbid(unsafe_code)]

pub mod bench;
mod claim;
pub mod compare;
mod crossover;
mod csv;
mod curves;
mod html;
pub mod import;
mod lists;
mod markdown;
mod page;
mod read;
mod scan;
mod stats;
mod table;
mod transfers;
pub mod words;

#[cfg(test)]
mod fixture_tests;

pub use claim::{Claim, ClaimError};
pub use crossover::{Crossover, Largest, Verdict};
pub use csv::{csv, transfers_csv};
pub use html::html;
pub use markdown::markdown;
pub use read::ReadError;
pub use scan::{Device, Fused, How, Machine, Overhead, Row, Scan, VERSION};
pub use stats::{Stats, WIDE};
pub use table::table;
pub use transfers::Transfer;
