//! What a device must do to run plans. Engine, router and queue see only this.

mod api;
mod error;
mod host;
mod launch;
mod report;
mod stop;
mod transfer;

pub use api::Api;
pub use error::RunError;
pub use host::on_host;
pub use launch::Launch;
pub use report::{Health, Status, Timings, Usage};
pub use stop::Stop;
pub use transfer::{Direction, Transfer, Way};

use crate::buffer::Buffer;
use crate::plan::Plan;
use std::any::Any;
use std::sync::Arc;

/// A value that lies on a device.
///
/// ```
/// fn describe(value: &dyn breakeven_ir::backend::Resident) -> String {
///     format!("{} bytes on {}{}", value.len_bytes(), value.device(), if value.is_current() { "" } else { ", stale" })
/// }
/// # let _ = describe;
/// ```
pub trait Resident: Send + Sync {
    /// The device's id.
    fn device(&self) -> &str;
    /// Its size.
    fn len_bytes(&self) -> usize;
    /// Is the device still the one that it was made on?
    fn is_current(&self) -> bool;
    /// A copy on the host.
    fn fetch(&self) -> Result<Buffer, RunError>;
    /// For the device itself, which knows what it is.
    fn as_any(&self) -> &dyn Any;
}

/// An input of a batch.
///
/// ```
/// use breakeven_ir::{Buffer, backend::Source};
/// let buffer = Buffer::from_vec(vec![1.0f32]);
/// assert_eq!(Source::Shared(&buffer).bytes(), 1.0f32.to_ne_bytes());
/// ```
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Borrowed bytes.
    Bytes(&'a [u8]),
    /// Shared bytes, which may also lie on a device.
    Shared(&'a Buffer),
}

impl<'a> Source<'a> {
    /// The bytes on the host; fetched from the device if they are only there.
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Source::Bytes(bytes) => bytes,
            Source::Shared(buffer) => buffer.as_bytes(),
        }
    }

    /// The bytes on the host, or why they can't be had.
    pub fn try_bytes(&self) -> Result<&'a [u8], RunError> {
        match self {
            Source::Bytes(bytes) => Ok(bytes),
            Source::Shared(buffer) => buffer.try_bytes(),
        }
    }
}

/// A result of a batch.
///
/// ```
/// use breakeven_ir::{Buffer, backend::{Made, RunError}};
/// fn on_host(made: Made) -> Result<Buffer, RunError> {
///     match made {
///         Made::Host(buffer) => Ok(buffer),
///         Made::Resident(value) => value.fetch(),
///     }
/// }
/// assert_eq!(on_host(Made::Host(Buffer::from_vec(vec![7u32])))?.as_bytes(), 7u32.to_ne_bytes());
/// # Ok::<(), RunError>(())
/// ```
pub enum Made {
    /// In host memory, or in device memory that the host sees.
    Host(Buffer),
    /// On the device.
    Resident(Arc<dyn Resident>),
}

/// One task of many: a plan, its inputs, and where its results go.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor, backend::Task};
/// use std::sync::Arc;
/// let plan = Arc::new(Plan::new(&[&Tensor::input("x", DType::F32, [2])?.exp()?])?);
/// let inputs: [&[u8]; 2] = [&[0; 8], &[1; 8]];
/// let task = |number: usize| Task {
///     plan: &plan,
///     inputs: &inputs[number..=number],
///     offset: number * plan.result_stride(),
/// };
/// assert_eq!([task(0).offset, task(1).offset], [0, 64]);
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
pub struct Task<'a> {
    /// The plan, as it was given to [`Backend::prepare`].
    pub plan: &'a Arc<Plan>,
    /// The plan's inputs.
    pub inputs: &'a [&'a [u8]],
    /// The byte of the common results at which this task's begin: its outputs in the order of their buffers, each
    /// padded to [`RESULT_ALIGN`].
    pub offset: usize,
}

/// Results of [`Prepared::run_tasks`] are padded to this many bytes, so that every slice is aligned and no two tasks
/// share a cache line.
pub const RESULT_ALIGN: usize = 64;

/// The version of what kernels compute, on every device: raised when a change of planner, lanes, kernels or shaders may
/// change a bit of any result. Results that were kept on disk are believed only under the same one.
pub const KERNEL_VERSION: u32 = 6;

/// A plan made ready for one device. Running it allocates nothing but what [`Prepared::run`]'s caller gives it.
///
/// ```
/// use breakeven_ir::backend::{Prepared, RunError, Timings};
/// use breakeven_ir::{Plan, Tensor};
/// use std::sync::Arc;
///
/// /// Plans that only copy.
/// struct Copies(Arc<Plan>);
/// impl Prepared for Copies {
///     fn plan(&self) -> &Arc<Plan> {
///         &self.0
///     }
///     fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], _threads: bool) -> Result<Timings, RunError> {
///         outputs[0].copy_from_slice(inputs[0]);
///         Ok(Timings { kernels: 1, threads: 1, ..Timings::default() })
///     }
///     fn run_tasks(
///         &self,
///         tasks: usize,
///         inputs: &[&[u8]],
///         results: &mut [u8],
///         stride: usize,
///         _failed: &mut dyn FnMut(usize, RunError),
///     ) {
///         for (input, result) in inputs.iter().zip(results.chunks_mut(stride)).take(tasks) {
///             result[..input.len()].copy_from_slice(input);
///         }
///     }
///     fn estimate_ns(&self) -> u64 {
///         1000
///     }
/// }
///
/// let x = Tensor::from_slice(&[true, false, true, true], [4])?;
/// let prepared = Copies(Plan::new(&[&x.reshape(&[2, 2])?])?.into());
/// let mut output = [0; 4];
/// let timings = prepared.run(&[&[1, 0, 1, 1]], &mut [&mut output], false)?;
/// assert_eq!((output, timings.kernels), ([1, 0, 1, 1], 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Prepared: Send + Sync {
    /// The plan.
    fn plan(&self) -> &Arc<Plan>;

    /// Runs one batch: `inputs` and `outputs` are row-major bytes in the plan's order, their sizes checked by the
    /// caller. `outputs` has one slice for each buffer placed as output, in the order of those buffers.
    /// Without `threads` it runs on the calling thread alone: one task of many that run side by side.
    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], threads: bool) -> Result<Timings, RunError>;

    /// As [`Prepared::run`], unless and until it is told to stop: [`RunError::Stopped`], and what the outputs hold is not
    /// defined. A device that can't be stopped half-way looks before it begins.
    fn run_until(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: bool,
        stop: &Stop,
    ) -> Result<Timings, RunError> {
        stop.check()?;
        self.run(inputs, outputs, threads)
    }

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

    /// What each of the plan's kernels takes, in their order: on one thread of a CPU, by its own clock on a device that
    /// has one. 0 where it was not timed yet; empty where nothing is known.
    fn kernel_ns(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Runs one batch whose inputs may lie on the device already. Results come in the order of the buffers placed as
    /// outputs; with `stay` they remain on the device if it has memory of its own.
    fn run_batch(&self, inputs: &[Source<'_>], _stay: bool) -> Result<(Vec<Made>, Timings), RunError> {
        on_host(self.plan(), inputs, |inputs, outputs| self.run(inputs, outputs, true))
    }

    /// As [`Prepared::run_batch`], unless and until it is told to stop: see [`Prepared::run_until`].
    fn run_batch_until(
        &self,
        inputs: &[Source<'_>],
        stay: bool,
        stop: &Stop,
    ) -> Result<(Vec<Made>, Timings), RunError> {
        stop.check()?;
        self.run_batch(inputs, stay)
    }

    /// Is everything that it needs there, so that a run waits for no compiler?
    fn is_ready(&self) -> bool {
        true
    }
}

/// A device that runs plans.
///
/// ```
/// use breakeven_ir::backend::{Backend, Prepared, RunError};
/// use breakeven_ir::{DType, Plan, Tensor};
/// use std::sync::Arc;
///
/// /// A device that is too small for anything.
/// struct Tiny;
/// impl Backend for Tiny {
///     fn id(&self) -> &str {
///         "tiny:0"
///     }
///     fn name(&self) -> &str {
///         "no memory at all"
///     }
///     fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
///         Err(RunError::OutOfMemory { bytes: plan.buffers.iter().map(|buffer| buffer.bytes()).sum() })
///     }
/// }
///
/// let plan = Plan::new(&[&Tensor::input("x", DType::F32, [100])?.exp()?])?;
/// assert_eq!(Tiny.prepare(&plan.into()).err(), Some(RunError::OutOfMemory { bytes: 800 }));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
pub trait Backend: Send + Sync {
    /// Its id: `cpu`, `gpu:0`, ..
    fn id(&self) -> &str;

    /// What it is, for people.
    fn name(&self) -> &str;

    /// Makes a plan ready to run.
    fn prepare(&self, plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError>;

    /// Would it make this plan ready? As [`Backend::prepare`], but nothing is compiled or kept.
    fn accepts(&self, _plan: &Arc<Plan>) -> Result<(), RunError> {
        Ok(())
    }

    /// Runs many tasks, of any plans that were prepared here, as one batch.
    fn run_mixed(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
    ) -> Result<Timings, RunError> {
        for (number, task) in tasks.iter().enumerate() {
            let stride = task.plan.result_stride();
            let place = &mut results[task.offset..task.offset + stride];
            self.prepare(task.plan)?.run_tasks(1, task.inputs, place, stride, &mut |_, error| failed(number, error));
        }
        Ok(Timings::default())
    }

    /// As [`Backend::run_mixed`], but results may be left where the device has put them: `left` is told a task's number
    /// and its output buffers, in order, and nothing of them is in `results`.
    fn run_mixed_in_place(
        &self,
        tasks: &[Task<'_>],
        results: &mut [u8],
        failed: &mut dyn FnMut(usize, RunError),
        left: &mut dyn FnMut(usize, Vec<Buffer>),
    ) -> Result<Timings, RunError> {
        let _ = left;
        self.run_mixed(tasks, results, failed)
    }

    /// Puts bytes on the device, for the batches to come.
    fn upload(&self, _bytes: &[u8]) -> Result<Arc<dyn Resident>, RunError> {
        Err(RunError::Unsupported { device: self.id().into(), why: "it has no memory of its own".into() })
    }

    /// Memory of this many bytes, all 0, for a caller that writes and reads it himself. It is given back when it is
    /// dropped.
    fn allocate(&self, _bytes: usize) -> Result<Arc<dyn Resident>, RunError> {
        Err(RunError::Unsupported { device: self.id().into(), why: "it has no memory of its own".into() })
    }

    /// Writes bytes to memory that was allocated here, from its byte `offset` on.
    fn write(&self, _to: &Arc<dyn Resident>, _offset: usize, _bytes: &[u8]) -> Result<(), RunError> {
        Err(RunError::Unsupported { device: self.id().into(), why: "it has no memory of its own".into() })
    }

    /// Reads bytes of memory that was allocated here, from its byte `offset` on.
    fn read(&self, _from: &Arc<dyn Resident>, _offset: usize, _into: &mut [u8]) -> Result<(), RunError> {
        Err(RunError::Unsupported { device: self.id().into(), why: "it has no memory of its own".into() })
    }

    /// Runs a kernel of the caller's own, and waits until it is done.
    fn launch(&self, _launch: &Launch<'_>) -> Result<Timings, RunError> {
        Err(RunError::Unsupported { device: self.id().into(), why: "it takes no kernels in WGSL".into() })
    }

    /// How many batches it is worth handing over at once, from as many threads: while one is computed, another's inputs go
    /// up and a third one's results come back.
    fn depth(&self) -> usize {
        1
    }

    /// Times transfers of this many bytes, `samples` of each way that it has, one way after the other in turn. A way that
    /// it does not have is not among them; a device without memory of its own has none at all.
    fn transfers(&self, _bytes: usize, _samples: usize) -> Result<Vec<Transfer>, RunError> {
        Ok(Vec::new())
    }

    /// What it is known to get wrong, in words, and what is done about it.
    fn quirks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Are its times told, not measured? They are in [`Timings`], and no wall clock knows them.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Is it gone? As [`Backend::health`] says, but asked before every batch.
    fn is_lost(&self) -> bool {
        self.health().status == Status::Lost
    }

    /// What it still has to do, in nanoseconds as predicted.
    fn pending_ns(&self) -> u64 {
        0
    }

    /// What it holds and has to do. A device without memory of its own holds none.
    fn usage(&self) -> Usage {
        Usage { pending_ns: self.pending_ns(), ..Usage::default() }
    }

    /// Gives memory back that it keeps for batches to come.
    fn release(&self) -> Result<(), RunError> {
        Ok(())
    }

    /// How it fares.
    fn health(&self) -> Health {
        Health { status: Status::Healthy, reason: "nothing can be wrong with it".into() }
    }
}
