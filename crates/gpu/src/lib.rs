//! Plans on every adapter that wgpu reaches. A [`breakeven_ir::Plan`] and bytes enter, bytes leave.
//!
//! In flow order: [`Adapters`] finds devices and opens a [`Gpu`]; `lower` renders a plan as stages of WGSL; a caller
//! fills mapped memory and sends a job; the owner thread, which makes every wgpu call of its device, encodes one pass,
//! submits once, and hands mapped results back. `health` decides when a device is lost and `session` opens it anew;
//! `selftest` finds what the driver gets wrong, `tune` which variants win, and `store` remembers both.

mod adapters;
mod config;
mod error;

mod lower;
mod prelude;
mod pull;
mod stage;
pub mod tolerance;

mod buffers;
mod copies;
mod health;
mod job;
mod layout;
mod lookout;
mod params;
mod parts;

mod bandwidth;
mod batch;
mod cut;
mod driver;
mod encode;
mod follower;
mod groups;
mod launch;
mod memory;
mod nesting;
mod owner;
mod pipelines;
mod readback;
mod timing;
mod transfer;
mod trial;

mod backend;
mod choice;
mod depth;
mod joined;
mod mixed;
mod monitor;
mod prepared;
mod selftest;
mod session;
mod share;
mod store;
mod tally;
mod tune;
mod tune_report;

pub use adapters::{AdapterInfo, AdapterLimits, Adapters, Kind, driver_hint};
pub use backend::Gpu;
pub use breakeven_ir::backend::Api;
pub use buffers::PoolStats;
pub use config::{GpuConfig, Thresholds};
pub use error::GpuError;
pub use lower::accepts;
pub use tally::Counters;
pub use tune_report::{TuneReport, TunedClass, TunedVariant};
