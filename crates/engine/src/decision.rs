//! The record of one batch: where it ran, why, and what it took.

use breakeven_ir::backend::Timings;

/// Where a batch ran, why, and what it took.
///
/// ```
/// use breakeven::{Engine, Tensor};
/// let engine = Engine::new()?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// let ran = engine.run_with(&[&x.exp()?], &Default::default())?;
/// assert_eq!(ran.decision.device, "cpu");
/// println!("{}: {}", ran.decision.device, ran.decision.reason);
/// # Ok::<(), breakeven::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The device that the results come from: `cpu`, `gpu:0`, ..
    pub device: String,
    /// Why there.
    pub reason: String,
    /// What the batch took, from the call to its results.
    pub actual_ns: u64,
    /// How many kernels the plan has.
    pub kernels: usize,
    /// What each of them takes on that device, in the plan's order: by its own clock where it has one, which times
    /// every run over 2 ms and some of the others; 0 before that. Empty where nothing is known.
    pub kernel_ns: Vec<u64>,
    /// What the device counted.
    pub timings: Timings,
    /// How many devices were tried in vain before this one.
    pub fallbacks: u32,
    /// What went wrong on them.
    pub faults: Vec<String>,
}
