//! Plans on GPUs.

mod config;
mod error;
mod adapters;

mod prelude;
mod stage;
mod lower;
pub mod tolerance;

mod layout;
mod params;
mod buffers;
mod health;
mod job;

mod driver;
mod groups;
mod pipelines;
mod timing;
mod encode;
mod batch;
mod cut;
mod readback;
mod transfer;
mod trial;
mod owner;

mod tally;
mod choice;
mod store;
mod selftest;
mod tune_report;
mod tune;
mod session;
mod monitor;
mod prepared;
mod mixed;
mod backend;

pub use adapters::{AdapterInfo, AdapterLimits, Adapters, Kind, driver_hint};
pub use backend::Gpu;
pub use breakeven_ir::backend::Api;
pub use buffers::PoolStats;
pub use config::{GpuConfig, Thresholds};
pub use error::GpuError;
pub use tally::Counters;
pub use tune_report::{TuneReport, TunedClass, TunedVariant};
