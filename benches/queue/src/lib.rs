//! The engine's queue beside what people put between threads today, and mixed batches: groups enter, tables leave.
//!
//! In flow order: a [`request`] and the worker that answers it; the [`pipe`] that carries it there and its answer back,
//! by [`mutex`], [`crossbeam`], [`flume`], [`kanal`], [`tokio`], [`broadcast`] and [`ours`]; a [`pool`] of memory; the
//! [`groups`], whose rows have one [`case`] an arm; their side by side [`measure`]ment; the [`report`] with its bars;
//! the [`table`]. [`mixed`] is the other half: many tasks one after the other, and as one batch.
#![forbid(unsafe_code)]

// The clock and the rules of the other tables, so that all of them mean the same by a median. Shared as files: the
// packages they are part of compile dozens of libraries.
#[path = "../../src/arm.rs"]
pub mod arm;
// Arms whose calls can fail, as on a GPU.
#[path = "../../gpu/src/attempt.rs"]
pub mod attempt;
pub mod broadcast;
pub mod case;
pub mod crossbeam;
pub mod flume;
pub mod grid;
pub mod groups;
pub mod kanal;
pub mod machine;
#[path = "../../src/measure.rs"]
pub mod measure;
pub mod mixed;
pub mod mutex;
pub mod ours;
pub mod pipe;
pub mod pool;
pub mod reference;
pub mod report;
pub mod request;
pub mod table;
pub mod tokio;

/// The library name of our own arms.
pub const OURS: &str = "ours";
