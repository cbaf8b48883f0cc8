//! The engine's queue beside what people put between threads today, and mixed batches: groups enter, tables leave.
//!
//! In flow order: a [`request`] and the worker that answers it; the [`pipe`] that carries it there and the [`reply`] that
//! comes back, by [`mutex`], [`channel`]s, [`broadcast`] and [`ours`]; a [`pool`] of memory; the [`groups`], whose rows
//! have one [`case`] an arm; their [`side_by_side`] measurement; the [`report`] with its bars; the [`table`]. [`mixed`] is
//! the other half: many tasks one after the other, and as one batch.
//!
//! The table, with all arms of a row interleaved, takes a minute or two, and `--quick` a quarter of one; `--help` lists the
//! rest:
//!
//! ```text
//! cargo run --release -p queue-benches --bin queue
//! cargo run --release -p queue-benches --bin mixed
//! ```
//!
//! The same rows by criterion take three to six minutes; a group alone is `--bench answers -- producers`:
//!
//! ```text
//! cargo bench -p queue-benches
//! ```
//!
//! Without our own arms, whatever they compile with: `--no-default-features`.
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
pub mod channel;
pub mod grid;
pub mod groups;
pub mod machine;
#[path = "../../src/measure.rs"]
pub mod measure;
pub mod mixed;
pub mod mutex;
pub mod ours;
pub mod pipe;
pub mod pool;
pub mod reference;
pub mod reply;
pub mod report;
pub mod request;
pub mod side_by_side;
pub mod table;

/// The library name of our own arms.
pub const OURS: &str = "ours";
