//! Runs a prepared plan on borrowed memory, with outputs from the pool.

use crate::array::{Array, View};
use crate::error::{Error, Result};
use breakeven_cpu::{Block, Blocks};
use breakeven_ir::backend::Prepared;
use breakeven_ir::plan::{BufferInfo, Place, Plan};
use breakeven_ir::{Buffer, HostBytes};
use std::sync::Arc;

/// Slices that are kept on the stack while a batch runs; larger batches use a list.
const INLINE: usize = 16;

/// Calls `work` with the bytes of `views`.
pub(crate) fn with_bytes<R>(views: &[View<'_>], work: impl FnOnce(&[&[u8]]) -> R) -> R {
    if views.len() <= INLINE {
        let mut bytes: [&[u8]; INLINE] = [&[]; INLINE];
        for (slot, view) in bytes.iter_mut().zip(views) {
            *slot = view.bytes;
        }
        work(&bytes[..views.len()])
    } else {
        work(&views.iter().map(|v| v.bytes).collect::<Vec<_>>())
    }
}

/// The buffers that a plan writes for its caller, in order.
pub(crate) fn output_buffers(plan: &Plan) -> impl Iterator<Item = &BufferInfo> + Clone {
    plan.buffers.iter().filter(|b| matches!(b.place, Place::Output(_)))
}

/// Runs one batch into fresh blocks of the pool.
pub(crate) fn run(
    prepared: &dyn Prepared,
    blocks: &Arc<Blocks>,
    inputs: &[&[u8]],
    threads: bool,
) -> Result<Vec<Array>> {
    let plan = prepared.plan();
    let taken: Result<Vec<Block>, _> = output_buffers(plan).map(|info| blocks.take(info.bytes())).collect();
    let mut taken = taken?;
    {
        let mut slices: Vec<&mut [u8]> = taken.iter_mut().map(Block::as_mut_bytes).collect();
        prepared.run(inputs, &mut slices, threads)?;
    }
    let made: Vec<Buffer> = taken.into_iter().map(|block| Buffer::new(Arc::new(block) as Arc<dyn HostBytes>)).collect();
    let array = |id: &breakeven_ir::plan::BufferId| {
        let info = plan.buffer(*id);
        // One buffer may serve several outputs: they share it.
        let at = output_buffers(plan).position(|b| b.place == info.place).unwrap_or(0);
        Array::new(made[at].clone(), info.dtype, info.shape)
    };
    Ok(plan.outputs.iter().map(array).collect())
}

/// Checks that `views` are what the plan's inputs expect, named by `name`.
pub(crate) fn check_inputs(plan: &Plan, views: &[View<'_>], name: impl Fn(usize) -> String) -> Result<()> {
    for (at, (view, info)) in views.iter().zip(plan.input_infos()).enumerate() {
        if view.dtype != info.dtype {
            return Err(Error::InputDType { name: name(at), expected: info.dtype, found: view.dtype });
        }
        let fits = match view.shape {
            Some(shape) => shape == info.shape,
            None => view.bytes.len() == info.bytes(),
        };
        if !fits {
            let found = match view.shape {
                Some(shape) => format!("shape {shape}"),
                None => format!("{} elements", view.bytes.len() / view.dtype.size_bytes()),
            };
            return Err(Error::InputShape { name: name(at), expected: info.shape, found });
        }
    }
    Ok(())
}
