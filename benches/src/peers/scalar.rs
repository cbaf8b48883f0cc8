//! The scalar functions that a user of ndarray writes by hand, since it has no activations: one f32 enters and leaves.

use crate::workload::CHAIN;

/// `1 / (1 + exp(-v))`
#[inline]
pub fn sigmoid(v: f32) -> f32 {
    1.0 / (1.0 + (-v).exp())
}

/// Tanh form.
#[inline]
pub fn gelu(v: f32) -> f32 {
    0.5 * v * (1.0 + (0.797_884_6 * (v + 0.044_715 * v * v * v)).tanh())
}

/// `max(v, 0)`
#[inline]
pub fn relu(v: f32) -> f32 {
    v.max(0.0)
}

/// The ten-op chain, fused by hand.
#[inline]
pub fn chain(v: f32) -> f32 {
    let (a, b, c) = CHAIN;
    gelu(((v * a + b) * sigmoid(v) - c).abs().sqrt() + v)
}
