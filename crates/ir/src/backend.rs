//! What a device must do to run plans. Engine, router and queue see only this.

use crate::plan::Plan;
use std::sync::Arc;

/// How a run went: what a backend tells instead of logging.
///
/// ```
/// assert_eq!(breakeven_ir::backend::Timings::default().kernels, 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timings {
    /// Wall time of the run.
    pub total_ns: u64,
    /// How many kernels ran.
    pub kernels: u32,
    /// The most threads that worked on a kernel.
    pub threads: u32,
}

/// What went wrong on a device while a batch ran.
///
/// ```
/// use breakeven_ir::backend::RunError;
/// let error = RunError::TakeIndex { index: 7, extent: 5 };
/// assert!(error.to_string().contains("index 7 is out of range for an axis of extent 5"));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// `take` met an index outside its axis.
    #[error(
        "take: index {index} is out of range for an axis of extent {extent}: indices from -{extent} to {extent} - 1 exist"
    )]
    TakeIndex {
        /// The first offending index found.
        index: i32,
        /// The axis' extent.
        extent: usize,
    },
    /// Memory could not be had.
    #[error("{bytes} bytes of memory could not be had: free memory, or run smaller batches")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
}

/// Results of [`Prepared::run_tasks`] are padded to this many bytes, so that every slice is aligned and no two tasks
/// share a cache line.
pub const RESULT_ALIGN: usize = 64;

/// A plan made ready for one device. Running it allocates nothing but what [`Prepared::run`]'s caller gives it.
pub trait Prepared: Send + Sync {
    /// The plan.
    fn plan(&self) -> &Arc<Plan>;

    /// Runs one batch: `inputs` and `outputs` are row-major bytes in the plan's order, their sizes checked by the
    /// caller. `outputs` has one slice for each buffer placed as output, in the order of those buffers.
    /// Without `threads` it runs on the calling thread alone: one task of many that run side by side.
    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError>;

    /// Runs `tasks` batches one after the other on the calling thread, for the price of one call. `inputs` holds the
    /// plan's inputs task after task; the results of task `t` begin at byte `t * stride` of `results`, its outputs in
    /// the order of their buffers, each padded to [`RESULT_ALIGN`]. `failed` is told of tasks that fail; the others are
    /// not disturbed.
    fn run_tasks(
        &self,
        tasks: usize,
        inputs: &[&[u8]],
        results: &mut [u8],
        stride: usize,
        failed: &mut dyn FnMut(usize, RunError),
    );

    /// What a run takes on one thread: estimated at first, measured later.
    fn estimate_ns(&self) -> u64;
}

/// A device that runs plans.
pub trait Backend: Send + Sync {
    /// Its id: `cpu`, `gpu:0`, ..
    fn id(&self) -> &str;

    /// What it is, for people.
    fn name(&self) -> &str;

    /// Makes a plan ready to run.
    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError>;
}
