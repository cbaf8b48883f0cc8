//! Transfers to each adapter and back: devices and sizes enter, what each way took leaves, with what was left out and why.
//!
//! Small sizes of all devices come first, as they do for ops.

use std::time::{Duration, Instant};

use breakeven::{Engine, backend};
use breakeven_report::{Stats, Transfer, words};

use super::sweep::Arm;
use crate::memory;

/// Bytes that are measured, as powers of two.
const FULL: [u32; 8] = [12, 14, 16, 18, 20, 22, 24, 26];
/// As [`FULL`], for those in a hurry.
const QUICK: [u32; 4] = [12, 16, 20, 24];
/// Samples that are taken even if that takes long: fewer have no spread.
const LEAST: u32 = 3;
/// Samples of one size take no longer than about this: whoever interrupts waits for them. The first round, which makes
/// buffers and looks at what arrives, comes on top.
const LONGEST: Duration = Duration::from_millis(750);
/// Copies of the bytes that there are at once.
const COPIES: u64 = 8;

/// What is measured.
pub struct Transfers<'a> {
    /// On its devices.
    pub engine: &'a Engine,
    /// On these; the CPU and simulated devices have no transfers.
    pub arms: &'a [Arm],
    /// Samples of each, at most.
    pub samples: u32,
    /// Until then.
    pub deadline: Instant,
    /// Whether to stop at once.
    pub stop: &'a dyn Fn() -> bool,
}

/// The sizes that are measured, in bytes.
pub fn sizes(quick: bool) -> Vec<u64> {
    let logs: &[u32] = if quick { &QUICK } else { &FULL };
    logs.iter().map(|log| 1 << log).collect()
}

/// A device on its way through the sizes.
struct Track<'a> {
    arm: &'a Arm,
    /// What one round of all ways took at each size so far, and how many bytes that was.
    rounds: Vec<(Duration, u64)>,
    ended: bool,
}

impl Track<'_> {
    /// What one round will take if each further byte takes what it did between the last two sizes. The first two have
    /// nothing to go by; they are small.
    fn expected(&self, bytes: u64) -> Duration {
        let [.., (then, few), (now, more)] = self.rounds[..] else { return Duration::ZERO };
        let steps = bytes.saturating_sub(more) as f64 / more.saturating_sub(few).max(1) as f64;
        now + now.saturating_sub(then).mul_f64(steps)
    }
}

impl Transfers<'_> {
    /// Measures these sizes. `show` is told how many of the measurements are done, how many there are, and what is next.
    pub fn run(&self, sizes: &[u64], show: &mut dyn FnMut(usize, usize, &str)) -> (Vec<Transfer>, Vec<String>) {
        let adapters = self.arms.iter().filter(|arm| arm.id != "cpu" && !arm.told);
        let mut tracks: Vec<Track<'_>> = adapters.map(|arm| Track { arm, rounds: Vec::new(), ended: false }).collect();
        let total = sizes.len() * tracks.len();
        let (mut done, mut all, mut notes) = (0, Vec::new(), Vec::new());
        for &bytes in sizes {
            for track in &mut tracks {
                if (self.stop)() {
                    return (all, notes);
                }
                done += 1;
                if track.ended {
                    continue;
                }
                show(done - 1, total, &format!("{}, transfers of {}", track.arm.id, words::bytes(bytes)));
                match self.measure(track, bytes) {
                    Ok(measured) => all.extend(measured),
                    Err(why) => {
                        track.ended = true;
                        let id = &track.arm.id;
                        notes.push(format!("transfers of {} and more with {id}: {why}", words::bytes(bytes)));
                    }
                }
            }
        }
        (all, notes)
    }

    /// All ways of one device at one size, or why not.
    fn measure(&self, track: &mut Track<'_>, bytes: u64) -> Result<Vec<Transfer>, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let expected = track.expected(bytes);
        // One round more: the first warms up.
        if left.is_zero() || expected * (LEAST + 1) > left {
            return Err("the time was up before, which a larger --budget has room for".to_owned());
        }
        if !memory::fits(bytes.saturating_mul(COPIES)) {
            return Err("the memory of this machine is too small".to_owned());
        }
        let samples = affordable(self.samples, expected, left);
        let begun = Instant::now();
        let of_size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let timed = self.engine.transfers(&track.arm.id, of_size, samples as usize).map_err(|e| e.to_string())?;
        track.rounds.push((begun.elapsed() / (samples + 1), bytes));
        Ok(timed.iter().filter_map(|timed| transfer(&track.arm.id, timed)).collect())
    }
}

/// As many samples as were asked for, or as there is time for.
fn affordable(asked: u32, round: Duration, left: Duration) -> u32 {
    let rounds = left.min(LONGEST).as_secs_f64() / round.as_secs_f64().max(1e-9);
    // A cast saturates.
    (rounds as u32).saturating_sub(1).clamp(LEAST.min(asked), asked)
}

/// A device's measurement as a report has it.
fn transfer(device: &str, timed: &backend::Transfer) -> Option<Transfer> {
    Some(Transfer {
        device: device.to_owned(),
        direction: timed.direction.name().to_owned(),
        way: timed.way.name().to_owned(),
        bytes: timed.bytes as u64,
        stats: Stats::of(&timed.samples_ns)?,
    })
}

#[cfg(test)]
#[path = "transfers_tests.rs"]
mod tests;
