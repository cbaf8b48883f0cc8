//! How far off the model is: what plans took over what was predicted enters, a factor for the next prediction leaves.
//!
//! One for each device and each kind of kernel, from the last plans of that kind: their median, so that no single one says
//! much, and around it what depends on a kernel's size, its rows and what it computes. A plan counts once, with what it
//! settles at.

use super::MOST;
use crate::cost::{Features, KINDS, KernelWork, features, fit, kind};

/// What a factor depends on: the kernel of a plan that has most to do.
#[derive(Clone, Copy)]
pub(super) struct About {
    kind: usize,
    features: Features,
}

impl About {
    pub(super) fn new(kernel: Option<&KernelWork>) -> About {
        kernel.map_or(About { kind: 0, features: Features::default() }, |kernel| About {
            kind: kind(kernel),
            features: features(kernel),
        })
    }
}

/// How far off the model was lately, everywhere.
#[derive(Default)]
pub(super) struct Biases {
    of: [OfDevice; MOST],
}

/// How far off it was on one device.
#[derive(Default)]
struct OfDevice {
    kinds: [Bias; KINDS],
    /// The factor of plans of whatever kind: for kinds of which too few were seen.
    common: Option<f64>,
}

impl Biases {
    /// What a prediction is to be multiplied with.
    pub(super) fn factor(&self, device: usize, about: &About) -> f64 {
        let of = &self.of[device];
        of.kinds[about.kind].factor(&about.features).or(of.common).unwrap_or(1.0)
    }

    /// A plan takes so many times what was predicted. `place` is where that was noted before; where it is now comes back.
    pub(super) fn tell(&mut self, device: usize, about: &About, ratio: f64, place: Option<u64>) -> u64 {
        let of = &mut self.of[device];
        let place = of.kinds[about.kind].tell(about.features, ratio.ln(), place);
        of.common = median(of.kinds.iter().flat_map(|bias| &bias.seen).map(|(_, log)| *log)).map(f64::exp);
        place
    }

    /// A device's costs have changed.
    pub(super) fn forget(&mut self, device: usize) {
        self.of[device] = OfDevice::default();
    }
}

/// The median, if there are enough of them. Allocates nothing: this is on the way of a batch.
fn median(logs: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all = [0.0; KINDS * Bias::WINDOW as usize];
    let count = logs.zip(&mut all).map(|(log, place)| *place = log).count();
    let all = &mut all[..count];
    all.sort_unstable_by(f64::total_cmp);
    (count >= Bias::ENOUGH).then(|| all[count / 2])
}

/// How far off the model was lately, on one device for one kind of kernel: logarithms of measured over predicted.
#[derive(Clone, Default)]
pub(super) struct Bias {
    /// The last plans, each at its number modulo the window.
    seen: Vec<(Features, f64)>,
    /// Plans so far.
    count: u64,
    median: f64,
    terms: Features,
}

impl Bias {
    const WINDOW: u64 = 63;
    /// How strongly what depends on a kernel is held back, in plans.
    const HOLD: Features = [1.0; 4];
    /// Fewer say nothing about the next plan.
    pub(super) const ENOUGH: usize = 5;
    /// One plan says no more than a factor of eight, whatever happened to it, and no more than two beyond the others.
    const LARGEST: f64 = 2.1;
    const LARGEST_BEYOND: f64 = 0.7;

    fn tell(&mut self, features: Features, log: f64, place: Option<u64>) -> u64 {
        let place = place.filter(|place| *place < self.count && place + Bias::WINDOW >= self.count);
        let place = place.unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        let entry = (features, log.clamp(-Bias::LARGEST, Bias::LARGEST));
        let at = (place % Bias::WINDOW) as usize;
        match self.seen.get_mut(at) {
            Some(old) => *old = entry,
            None => self.seen.push(entry),
        }
        self.median = median(self.seen.iter().map(|(_, log)| *log)).unwrap_or(0.0);
        let beyond = |log: f64| (log - self.median).clamp(-Bias::LARGEST_BEYOND, Bias::LARGEST_BEYOND);
        self.terms = fit(Bias::HOLD, self.seen.iter().map(|(features, log)| (*features, beyond(*log), 1.0)));
        // The median stands: spikes of some plans would lift a mean.
        self.terms[0] = 0.0;
        place
    }

    fn factor(&self, features: &Features) -> Option<f64> {
        if self.seen.len() < Bias::ENOUGH {
            return None;
        }
        let around: f64 = self.terms.iter().zip(features).map(|(term, feature)| term * feature).sum();
        Some((self.median + around.clamp(-Bias::LARGEST_BEYOND, Bias::LARGEST_BEYOND)).exp())
    }
}

#[cfg(test)]
#[path = "bias_tests.rs"]
mod tests;
