//! Lowering: a plan enters, stages of WGSL leave. Pure: no device is asked, only its limits.
//!
//! Each kernel becomes one stage, or several where a row is too long for one workgroup. `emit` renders bodies and
//! indices, `module` puts a module together, and each class has its template: `map`, `rows`, `split`, `contract`.

mod contract;
mod emit;
mod fold;
mod map;
mod module;
mod outline;
mod rows;
mod split;
mod vector;
mod walk;
mod window;

use crate::stage::{Limits, Lowered, Variants};
use breakeven_ir::plan::{Class, Kernel, Loops, Plan};

/// Why a device can't run a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unsupported(pub(crate) String);

/// What the templates need to know about where a kernel runs.
pub(crate) struct Target<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) limits: &'a Limits,
    pub(crate) variants: &'a Variants,
}

/// Indices are 32-bit and signed: nothing larger is counted.
const MOST_POINTS: u64 = i32::MAX as u64 - (1 << 20);

/// Could a GPU that has what every WebGPU device has run this plan? Asked where no device is there to ask.
///
/// ```
/// use breakeven_ir::{DType, Plan, Tensor};
/// let x = Tensor::input("x", DType::F32, [100])?;
/// assert!(breakeven_gpu::accepts(&Plan::new(&[&x.exp()?])?));
/// # Ok::<(), breakeven_ir::Error>(())
/// ```
pub fn accepts(plan: &Plan) -> bool {
    lower(plan, &Limits::default(), &Variants::default()).is_ok()
}

/// Lowers every kernel of a plan.
pub(crate) fn lower(plan: &Plan, limits: &Limits, variants: &Variants) -> Result<Lowered, Unsupported> {
    let target = Target { plan, limits, variants };
    let mut lowered = Lowered::default();
    for (number, kernel) in plan.kernels.iter().enumerate() {
        match kernel {
            Kernel::Loops(loops) => {
                for part in window::parts(&target, loops)? {
                    lower_loops(&target, number, &part, &mut lowered)?;
                }
            }
            Kernel::Contract(contract) => contract::lower(&target, number, contract, &mut lowered)?,
        }
    }
    lowered.status = lowered.stages.iter().any(|s| s.bindings.iter().any(|b| b.slot == crate::stage::Slot::Status));
    if let Some(stage) = lowered.stages.iter().find(|s| s.bindings.len() + 1 > limits.bindings as usize) {
        return Err(Unsupported(format!(
            "kernel {} needs {} storage buffers at once, and the device binds {}",
            stage.kernel,
            stage.bindings.len() + 1,
            limits.bindings
        )));
    }
    Ok(lowered)
}

fn lower_loops(target: &Target<'_>, number: usize, loops: &Loops, lowered: &mut Lowered) -> Result<(), Unsupported> {
    if loops.points() as u64 > MOST_POINTS {
        return Err(Unsupported(format!(
            "kernel {number} runs over {} points, more than indices count",
            loops.points()
        )));
    }
    let before = lowered.stages.len();
    match loops.class() {
        Class::Map => lowered.stages.push(map::lower(target, number, loops)),
        Class::Reduce | Class::Scan if split::pays(target, loops) => split::lower(target, number, loops, lowered)?,
        _ => lowered.stages.push(rows::lower(target, number, loops)?),
    }
    for stage in &mut lowered.stages[before..] {
        window::narrow(target, loops, stage);
    }
    Ok(())
}

#[cfg(test)]
#[path = "lower_tests.rs"]
mod tests;

#[cfg(test)]
mod device_tests;
