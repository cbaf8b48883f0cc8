//! Array computing that runs batches of work where they pay.
//!
//! Record operations on [`Tensor`]s, run them as one batch with an [`Engine`], or compile them into a [`Program`] that
//! runs again and again. Operations are fused: an expression of any length is one pass over memory.
//!
//! ```
//! use breakeven::{Engine, Tensor};
//!
//! let engine = Engine::new()?;
//! let x = Tensor::from_vec((0..1000).map(|i| i as f32 / 100.0).collect(), [10, 100])?;
//! let y = (&x.sigmoid()? * &x)?.softmax(-1)?;   // nothing is computed yet
//! let y = &engine.run(&[&y])?[0];               // one kernel
//! assert_eq!(y.shape().dims(), [10, 100]);
//! let first_row: f32 = y.as_slice::<f32>()?[..100].iter().sum();
//! assert!((first_row - 1.0).abs() < 1e-5);
//! # Ok::<(), breakeven::Error>(())
//! ```
#![forbid(unsafe_code)]

mod array;
mod batch;
mod cached;
mod calibrate;
mod config;
pub mod cost;
mod decision;
mod devices;
mod divided;
mod engine;
mod error;
mod execute;
mod gpus;
mod machine;
mod many;
#[cfg(feature = "ndarray")]
mod ndarray;
mod plans;
pub mod profile;
mod program;
mod queue;
mod resident;
mod route;
mod router;
mod rows;
mod scout;
mod sim;
mod stream;
mod tasks;
mod verify;
mod whole_file;

pub use array::{Array, View, ViewMut};
pub use breakeven_cpu::BlockStats;
pub use breakeven_ir::backend::{self, Api, Direction, Health, RunError, Status, Timings, Transfer, Usage, Way};
pub use breakeven_ir::plan;
pub use breakeven_ir::{
    AxisSet, Buffer, DType, Element, Error as RecordError, HostBytes, Input, IntoShape, Leaf, MAX_RANK, Op, OpRow,
    Operand, Plan, Readable, Recipe, ReduceOp, Scalar, ScanOp, Shape, Signature, Slice, Tensor, parse_recipe, property,
    recipe, s,
};
pub use cached::{CacheFigures, CacheOptions, CacheStats, CacheSummary, Cached, CachedProgram};
pub use config::{
    BACKENDS_VAR, CACHE_DIR_VAR, Config, DEVICE_VAR, Device, SYNC_TIMEOUT_VAR, THREADS_VAR, TIME, parse_time,
};
pub use decision::{Decision, Predicted};
pub use devices::DeviceInfo;
pub use engine::{Engine, Ran};
pub use error::{Error, Result};
pub use gpus::hint as driver_hint;
pub use machine::cpu_name;
pub use many::Many;
#[cfg(feature = "ndarray")]
pub use ndarray::FromNdarray;
pub use plans::PlanStats;
pub use program::Program;
pub use queue::{
    Admit, Answer, Command, Event, Events, Job, Kernel, Memory, Priority, QueueConfig, QueueStats, Ticket,
};
pub use route::RunOptions;
pub use router::Objective;
pub use sim::{ProfileError, SimBackend, SimProfile};
pub use stream::Stream;

/// The README's example is run with the others.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
