//! WHAT to compute. Pure: no unsafe code, no threads, no device.
//!
//! In flow order: a [`Tensor`] records operations of the op table ([`Op`]); `graph` drops what is double or dead;
//! `fuse` makes kernels of fused bodies ([`expr::Body`]) whose movement is index arithmetic ([`index::Index`]);
//! `memory` lays out scratch; a [`Plan`] leaves, for any [`backend::Backend`] to run.
#![forbid(unsafe_code)]

pub mod lane;

pub mod backend;
mod buffer;
mod check;
mod dtype;
mod error;
pub mod expr;
mod fuse;
mod graph;
pub mod index;
mod memory;
pub mod merge;
mod ops;
pub mod plan;
mod shape;
mod tensor;

pub use buffer::{Buffer, HostBytes, Readable, read_as};
pub use dtype::{DType, Element, Scalar};
pub use error::{Error, Result};
pub use ops::{LaneBits, Op, OpRow, ReduceOp, ScanOp, Signature, property};
pub use plan::Plan;
pub use shape::{AxisSet, IntoShape, MAX_RANK, Shape};
pub use tensor::{Input, Leaf, Operand, PlanKey, Recipe, Slice, Tensor, parse_recipe, plan_key, recipe, s};
