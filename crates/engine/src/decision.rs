//! The record of one batch: what every device was expected to take, where it ran, why, and what it took.

use crate::cost::Prediction;
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
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The device that the results come from: `cpu`, `gpu:0`, ..; `cpu+gpu:0` where both worked on it.
    pub device: String,
    /// Why there.
    pub reason: String,
    /// What each device was expected to take; empty where the choice was not ours, or nothing is known.
    pub predicted: Vec<Predicted>,
    /// What the batch took, from the call to its results; what a simulated device tells.
    pub actual_ns: u64,
    /// What it took longer than batches of the same plan did lately on the best other device, where that was measured.
    pub regret_ns: Option<u64>,
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

/// What a device was expected to take.
///
/// ```
/// use breakeven::{Predicted, cost::Prediction};
/// let parts = Prediction { fixed_ns: 90e3, kernels_ns: 10e3, ..Prediction::default() };
/// let predicted = Predicted { device: "gpu:0".into(), expected_ns: 100_000, parts, measured: false };
/// assert_eq!(predicted.parts.total_ns(), predicted.expected_ns);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Predicted {
    /// The device's id.
    pub device: String,
    /// What it was expected to take, with all that was learned.
    pub expected_ns: u64,
    /// What the model says, in its parts.
    pub parts: Prediction,
    /// Does the expectation come from batches of this very plan?
    pub measured: bool,
}
