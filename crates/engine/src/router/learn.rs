//! Learning from batches: what one took enters, and stays in what is known about its plan, its kind and its device.

use super::without_wait_ns;
use super::{BETTER, CONFIRM, Choice, LONGEST_AWAY, MOST, Routed, Router, Side, State, TELLING, Why, lock};
use crate::cost::Prediction;
use std::sync::atomic::Ordering::Relaxed;

impl Router {
    /// Hears of a batch that was not ours to place.
    pub(crate) fn hear(&self, routed: &Routed, device: usize, actual_ns: u64) {
        let version = self.version.load(Relaxed);
        let mut state = lock(&routed.state);
        if state.version != version {
            self.predict(routed, &mut state, version);
        }
        state.batches += 1;
        let Some(predicted) = state.sides[device].prediction else { return };
        self.note(routed, &mut state, device, &predicted, actual_ns);
    }

    /// Notes what a batch took, for its plan and for others of its kind.
    fn note(&self, routed: &Routed, state: &mut State, device: usize, predicted: &Prediction, actual_ns: u64) {
        let batch = state.batches;
        let side = &mut state.sides[device];
        side.history.push(whole_ns(side, predicted, actual_ns), batch);
        side.batches += 1;
        // The first ones of a plan find cold caches and threads asleep: only what it settles at says something about the
        // model, and the longer it runs the better.
        let is_telling = side.batches.is_multiple_of(TELLING) && (side.batches / TELLING).is_power_of_two();
        if is_telling && let (Some(usual), true) = (side.history.expected_ns(), side.whole_ns() > 0.0) {
            let ratio = usual as f64 / side.whole_ns();
            side.told = Some(lock(&self.biases).tell(device, &routed.about, ratio, side.told));
        }
    }

    /// Learns what a batch took. `is_first` if something had to be made for it, which the next one will find.
    pub(crate) fn learn(&self, routed: &Routed, choice: &Choice, device: usize, actual_ns: u64, is_first: bool) {
        let mut state = lock(&routed.state);
        self.spent_ns.fetch_add(actual_ns, Relaxed);
        if choice.why == Why::Explores && device == choice.device {
            let usual = state.current.map_or(0, |current| choice.expected_ns[current]);
            self.explored_ns.fetch_add(actual_ns.saturating_sub(usual), Relaxed);
            // A pleasant surprise is looked at again at once; a window of old times would hide it.
            let surprise = usual > 0 && (actual_ns as f64) < BETTER * usual as f64;
            if surprise && state.confirm.is_none() && choice.expected_ns[device] > usual {
                state.confirm = Some((device, CONFIRM));
            }
        }
        let batch = state.batches;
        if device == 0 && choice.device > 0 {
            // It failed, or was not ready: tried again soon, and ever later if that goes on.
            let side = &mut state.sides[choice.device];
            side.failures = (side.failures + 1).min(LONGEST_AWAY.ilog2());
            side.away_until = batch + (1 << side.failures);
        }
        if device >= MOST {
            return;
        }
        let side = &mut state.sides[device];
        if device == choice.device {
            side.failures = 0;
        }
        if is_first {
            return;
        }
        self.note(routed, &mut state, device, &choice.predicted[device], actual_ns);
    }
}

/// What a batch would have taken if everything had been sent and nothing been waited for.
fn whole_ns(side: &Side, predicted: &Prediction, actual_ns: u64) -> u64 {
    // What is pending is a guess, too: a part of the time is always the batch's own.
    let own_ns = (actual_ns as f64 - predicted.wait_ns).max(actual_ns as f64 / 8.0);
    let share = without_wait_ns(predicted) / side.whole_ns();
    // Nothing was predicted, or the costs have changed meanwhile: it is what it is.
    if share > 0.0 && share <= 1.0 { (own_ns / share) as u64 } else { own_ns as u64 }
}
