//! A batch on the host: inputs and whoever computes enter, results in fresh memory leave.

use super::{Made, RunError, Source, Timings};
use crate::buffer::Buffer;
use crate::plan::{BufferInfo, Plan};

/// Runs one batch into fresh host memory: `run` is called with the bytes of the inputs and with one slice for each buffer
/// placed as output. For devices that compute in the host's memory.
///
/// ```
/// use breakeven_ir::backend::{Made, RunError, Source, Timings, on_host};
/// use breakeven_ir::{Plan, Tensor};
/// let x = Tensor::from_slice(&[true, false, true, true], [4])?;
/// let plan = Plan::new(&[&x.reshape(&[2, 2])?])?;
/// let (made, _) = on_host(&plan, &[Source::Bytes(&[1, 0, 1, 1])], |inputs, outputs| {
///     outputs[0].copy_from_slice(inputs[0]);
///     Ok(Timings::default())
/// })?;
/// assert!(matches!(&made[..], [Made::Host(copy)] if copy.as_bytes() == [1, 0, 1, 1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn on_host(
    plan: &Plan,
    inputs: &[Source<'_>],
    run: impl FnOnce(&[&[u8]], &mut [&mut [u8]]) -> Result<Timings, RunError>,
) -> Result<(Vec<Made>, Timings), RunError> {
    let bytes: Vec<&[u8]> = inputs.iter().map(Source::bytes).collect();
    let sizes = plan.output_buffers().map(BufferInfo::bytes);
    let mut words: Vec<(Vec<u32>, usize)> = sizes.map(|size| (vec![0u32; size.div_ceil(4)], size)).collect();
    let mut slices: Vec<&mut [u8]> =
        words.iter_mut().map(|(words, size)| &mut bytemuck::cast_slice_mut(words)[..*size]).collect();
    let timings = run(&bytes, &mut slices)?;
    let made = words.into_iter().map(|(words, size)| {
        let buffer = Buffer::from_vec(words);
        Made::Host(buffer.slice(0..size).unwrap_or(buffer))
    });
    Ok((made.collect(), timings))
}
