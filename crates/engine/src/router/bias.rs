//! How far off the model is: what batches took over what was predicted enters, a factor for the next prediction leaves.
//!
//! One for each device and each kind of kernel, from the batches of many plans: the median of the last ones, so that no
//! single batch says much.

use super::MOST;
use crate::cost::KINDS;

/// How far off the model was lately, everywhere.
#[derive(Default)]
pub(super) struct Biases {
    of: [[Bias; KINDS]; MOST],
}

impl Biases {
    /// What a prediction is to be multiplied with.
    pub(super) fn factor(&self, device: usize, kind: usize) -> f64 {
        self.of[device][kind].factor()
    }

    /// A batch took so many times what was predicted.
    pub(super) fn push(&mut self, device: usize, kind: usize, ratio: f64) {
        self.of[device][kind].push(ratio.ln());
    }

    /// A device's costs have changed.
    pub(super) fn forget(&mut self, device: usize) {
        self.of[device] = [Bias::default(); KINDS];
    }
}

/// How far off the model was lately, on one device for one kind of kernel: logarithms of measured over predicted.
#[derive(Clone, Copy)]
pub(super) struct Bias {
    logs: [f32; Bias::WINDOW],
    len: usize,
    next: usize,
}

impl Bias {
    const WINDOW: usize = 15;
    /// Fewer say nothing about the next plan.
    pub(super) const ENOUGH: usize = 5;

    fn push(&mut self, log: f64) {
        // One batch says no more than a factor of eight, whatever happened to it.
        self.logs[self.next] = log.clamp(-2.1, 2.1) as f32;
        self.next = (self.next + 1) % Bias::WINDOW;
        self.len = (self.len + 1).min(Bias::WINDOW);
    }

    fn factor(&self) -> f64 {
        if self.len < Bias::ENOUGH {
            return 1.0;
        }
        let mut sorted = self.logs;
        let known = &mut sorted[..self.len];
        known.sort_unstable_by(f32::total_cmp);
        f64::from(known[self.len / 2]).exp()
    }
}

impl Default for Bias {
    fn default() -> Bias {
        Bias { logs: [0.0; Bias::WINDOW], len: 0, next: 0 }
    }
}
