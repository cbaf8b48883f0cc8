//! Where the time of a run went: spans of the user's stages and of the engine's batches enter, a [`Profile`] leaves, a plain
//! value that can be added up, printed, exported and kept as JSON.
//!
//! [`Engine::profile`](crate::Engine::profile) begins one, [`Recorder::finish`] ends it. The calling thread and the queue's
//! workers take part at once, other threads when they [join](Handle::join); [`span!`](crate::span) marks stages, batches
//! appear by themselves, below the stage that asked for them.
//!
//! What is made of one: [`Profile::check`] says whether it adds up, [`Profile::analysis`] what it says, with how much a GPU
//! could gain at most; [`Profile::chrome`], [`Profile::folded`] and [`Profile::prometheus`] are for other tools.

mod advice;
mod amdahl;
mod analysis;
mod budget;
mod check;
mod chrome;
mod compared;
mod example;
mod folded;
mod json;
#[cfg(feature = "tracing")]
mod layer;
mod merged;
mod model;
mod names;
mod node;
mod plans;
mod prometheus;
mod recording;
mod shares;
mod span;
mod stages;
mod thread;
mod told;
mod tree;
mod watch;

#[cfg(test)]
mod fixture_tests;

pub use advice::Advice;
pub use amdahl::Amdahl;
pub use analysis::{ANALYSIS_VERSION, Analysis, DeviceRow, ThreadRow, TopRow};
pub use check::Fault;
pub use compared::{Basis, Figure, PlanRow};
pub use json::ReadError;
#[cfg(feature = "tracing")]
pub use layer::Layer;
pub use merged::Node;
pub use model::{
    BatchRecord, DecisionRecord, Expected, Frame, FrameKind, MachineRecord, PROFILE_VERSION, Phase, PlanRecord,
    Profile, Rerun, Span, ThreadRecord,
};
pub(crate) use plans::Outputs;
pub(crate) use recording::{Attendance, Place};
pub use recording::{Handle, Recorder};
pub use shares::apportion;
pub use span::{Entered, Traced, enter, in_span};
pub use stages::StageRow;
pub use thread::Joined;
pub(crate) use thread::is_joined;
pub(crate) use watch::{Waited, Watch, mark, note_job};
