//! Runs a prepared plan on borrowed memory, with outputs from the pool.

use crate::array::{Array, View, ViewMut};
use crate::error::{Error, Result};
use breakeven_cpu::{Block, Blocks};
use breakeven_ir::backend::{Made, Prepared, RunError, Stop, Timings};
use breakeven_ir::plan::{BufferId, Plan};
use breakeven_ir::{Buffer, HostBytes};
use smallvec::SmallVec;
use std::sync::Arc;

/// Slices that are kept on the stack while a batch runs; larger batches use a list.
const INLINE: usize = 16;
/// Outputs that are kept there.
const INLINE_OUTPUTS: usize = 8;
/// The inputs of a batch.
pub(crate) type Views<'a> = SmallVec<[View<'a>; 4]>;

/// Calls `work` with the bytes of `views`.
pub(crate) fn with_bytes<R>(views: &[View<'_>], work: impl FnOnce(&[&[u8]]) -> R) -> R {
    if views.len() <= INLINE {
        let mut bytes: [&[u8]; INLINE] = [&[]; INLINE];
        for (slot, view) in bytes.iter_mut().zip(views) {
            *slot = view.host();
        }
        work(&bytes[..views.len()])
    } else {
        work(&views.iter().map(View::host).collect::<Vec<_>>())
    }
}

/// Runs one batch into fresh blocks of the pool, unless it is told to stop.
pub(crate) fn run(
    prepared: &dyn Prepared,
    blocks: &Arc<Blocks>,
    inputs: &[&[u8]],
    stop: Option<&Stop>,
) -> Result<Vec<Array>> {
    Ok(arrays(prepared.plan(), &buffers(prepared, blocks, inputs, stop)?))
}

/// As [`run`], for the memory of each of the plan's output buffers.
pub(crate) fn buffers(
    prepared: &dyn Prepared,
    blocks: &Arc<Blocks>,
    inputs: &[&[u8]],
    stop: Option<&Stop>,
) -> Result<Vec<Buffer>> {
    let taken: Result<Vec<Block>, _> = prepared.plan().output_buffers().map(|info| blocks.take(info.bytes())).collect();
    let mut taken = taken?;
    {
        let mut slices: Vec<&mut [u8]> = taken.iter_mut().map(Block::as_mut_bytes).collect();
        start(prepared, inputs, &mut slices, stop)?;
    }
    Ok(taken.into_iter().map(|block| Buffer::new(Arc::new(block) as Arc<dyn HostBytes>)).collect())
}

/// Runs one batch into memory that exists, in the order of the plan's outputs. Allocates nothing.
pub(crate) fn run_into(
    prepared: &dyn Prepared,
    blocks: &Arc<Blocks>,
    inputs: &[&[u8]],
    outputs: &mut [ViewMut<'_>],
    stop: Option<&Stop>,
) -> Result<()> {
    let plan = prepared.plan();
    let count = outputs.len();
    if plan.output_buffers().count() != count {
        // One buffer serves several outputs: computed once, copied.
        copy(&run(prepared, blocks, inputs, stop)?, outputs);
    } else if count <= INLINE_OUTPUTS {
        let mut slices: [&mut [u8]; INLINE_OUTPUTS] = Default::default();
        for (slot, output) in slices.iter_mut().zip(outputs.iter_mut()) {
            *slot = output.bytes;
        }
        start(prepared, inputs, &mut slices[..count], stop)?;
    } else {
        let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(|o| &mut *o.bytes).collect();
        start(prepared, inputs, &mut slices, stop)?;
    }
    Ok(())
}

/// With all threads.
#[inline]
fn start(
    prepared: &dyn Prepared,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    stop: Option<&Stop>,
) -> Result<Timings, RunError> {
    match stop {
        None => prepared.run(inputs, outputs, true),
        Some(stop) => prepared.run_until(inputs, outputs, true, stop),
    }
}

/// Arrays into memory that exists.
pub(crate) fn copy(arrays: &[Array], outputs: &mut [ViewMut<'_>]) {
    for (output, array) in outputs.iter_mut().zip(arrays) {
        output.bytes.copy_from_slice(array.as_bytes());
    }
}

/// What a device made, fetched if it stayed there.
pub(crate) fn on_host(made: &[Made]) -> Result<Vec<Buffer>, RunError> {
    let buffer = |made: &Made| match made {
        Made::Host(buffer) => Ok(buffer.clone()),
        Made::Resident(resident) => resident.fetch(),
    };
    made.iter().map(buffer).collect()
}

/// The plan's outputs, from the memory of each of its output buffers. One buffer may serve several: they share it.
pub(crate) fn arrays(plan: &Plan, made: &[Buffer]) -> Vec<Array> {
    let array = |id: &BufferId| {
        let info = plan.buffer(*id);
        Array::new(made[output_number(plan, *id)].clone(), info.dtype, info.shape)
    };
    plan.outputs.iter().map(array).collect()
}

/// Which of the plan's output buffers this one is.
pub(crate) fn output_number(plan: &Plan, id: BufferId) -> usize {
    plan.output_buffers().position(|b| b.place == plan.buffer(id).place).unwrap_or(0)
}

/// Checks that `views` are what the plan's inputs expect, named by `name`.
pub(crate) fn check_inputs(plan: &Plan, views: &[View<'_>], name: impl Fn(usize) -> String) -> Result<()> {
    for (at, (view, info)) in views.iter().zip(plan.input_infos()).enumerate() {
        if view.dtype != info.dtype {
            return Err(Error::InputDType { name: name(at), expected: info.dtype, found: view.dtype });
        }
        let fits = match view.shape {
            Some(shape) => shape == info.shape,
            None => view.len_bytes() == info.bytes(),
        };
        if !fits {
            let found = match view.shape {
                Some(shape) => format!("shape {shape}"),
                None => format!("{} elements", view.len_bytes() / view.dtype.size_bytes()),
            };
            return Err(Error::InputShape { name: name(at), expected: info.shape, found });
        }
    }
    Ok(())
}
