//! What a faster GPU could gain at most: a profile enters, the time of batches that a GPU could run and the bound that
//! follows leave.

use super::{FrameKind, Profile, ThreadRecord};
use serde::Serialize;

/// How much of a run a GPU could take over, and what that would gain at most.
///
/// ```
/// use breakeven::profile::Profile;
/// let amdahl = Profile::example().analysis()?.amdahl;
/// assert_eq!((amdahl.eligible_ns, amdahl.run_ns), (9_000_000, 100_000_000));
/// assert_eq!(amdahl.bound, Some(100.0 / 91.0));
/// # Ok::<(), breakeven::profile::Fault>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Amdahl {
    /// Time of batches that a GPU could run, wherever they ran, from their beginning to their end.
    pub eligible_ns: u64,
    /// What of it belongs to batches whose records were not kept. They count as eligible, so that the bound holds.
    pub assumed_ns: u64,
    /// What parts of the run are taken of: the wall time of one thread; of several, their time without waiting.
    pub run_ns: u64,
    /// What the busiest thread would still have to do.
    pub remaining_ns: u64,
    /// How many times as fast the run would be with an infinitely fast GPU, at most; none if nothing would remain.
    pub bound: Option<f64>,
}

/// The bound, and for each thread the eligible time of each frame; what lies below an eligible frame is part of it.
pub(super) fn amdahl(profile: &Profile) -> (Amdahl, Vec<Vec<u64>>) {
    let mut assumed_ns = 0;
    let eligible: Vec<Vec<u64>> =
        (0..profile.threads.len()).map(|thread| eligible(profile, thread, &mut assumed_ns)).collect();
    let of = |thread: usize| eligible[thread].iter().sum::<u64>();
    let eligible_ns: u64 = (0..eligible.len()).map(of).sum();
    let (run_ns, remaining_ns) = match &profile.threads[..] {
        // Nobody else does what one thread waits for, so that its waiting stays.
        [] | [_] => (profile.wall_ns, profile.wall_ns.saturating_sub(eligible_ns)),
        // Each thread must still do all of its work that no GPU can take over, one thing after the other, so that the run
        // can't take less than the thread which has most of it left: the bound is a true one. Waiting of every kind goes,
        // because it may be for what others do, and that may be eligible; for a file it would stay, but nobody says which
        // it is, and the bound may be too large but never too small. More could only be gained by dividing the work anew
        // between threads, which is no gain of a GPU.
        threads => {
            let worked = |(at, thread): (usize, &ThreadRecord)| {
                (thread.end_ns - thread.begin_ns).saturating_sub(waited(thread, &eligible[at]))
            };
            let left = |(at, thread)| worked((at, thread)).saturating_sub(of(at));
            let run_ns = threads.iter().enumerate().map(worked).sum();
            (run_ns, threads.iter().enumerate().map(left).max().unwrap_or(0))
        }
    };
    let bound = match (eligible_ns, remaining_ns) {
        // A GPU that has nothing to do changes nothing.
        (0, _) => Some(1.0),
        (_, 0) => None,
        _ => Some(profile.wall_ns as f64 / remaining_ns as f64),
    };
    (Amdahl { eligible_ns, assumed_ns, run_ns, remaining_ns, bound }, eligible)
}

/// The eligible time of each frame of a thread: whole batches with everything below them.
fn eligible(profile: &Profile, thread: usize, assumed_ns: &mut u64) -> Vec<u64> {
    let frames = &profile.threads[thread].frames;
    // What is known of the batches of each frame: how many, and their time.
    let mut known: Vec<(u64, u64, u64)> = vec![(0, 0, 0); frames.len()];
    for batch in profile.batches.iter().filter(|batch| batch.thread as usize == thread) {
        let (count, yes_ns, no_ns) = &mut known[batch.frame as usize];
        let took = batch.end_ns - batch.begin_ns;
        *count += 1;
        let side = if profile.plans[batch.plan as usize].gpu_eligible { yes_ns } else { no_ns };
        *side = side.saturating_add(took);
    }
    let mut eligible = vec![0; frames.len()];
    let mut inside = vec![false; frames.len()];
    for (at, frame) in frames.iter().enumerate() {
        inside[at] = frame.parent.is_some_and(|parent| inside[parent as usize]);
        if inside[at] || frame.kind != FrameKind::Batch {
            continue;
        }
        let (count, yes_ns, no_ns) = known[at];
        // Of batches that were not kept it is not known; they are counted, so that the bound is not too small.
        eligible[at] = frame.total_ns.saturating_sub(no_ns);
        if count < frame.count {
            *assumed_ns += eligible[at].saturating_sub(yes_ns);
        }
        inside[at] = no_ns == 0;
    }
    // Batches in a batch that is not eligible are their own; together they are no more than what they lie in.
    let mut below: Vec<u64> = vec![0; frames.len()];
    for (at, frame) in frames.iter().enumerate().rev() {
        eligible[at] = eligible[at].min(frame.total_ns.saturating_sub(below[at]));
        if let Some(parent) = frame.parent {
            below[parent as usize] += below[at] + eligible[at];
        }
    }
    eligible
}

/// What a thread waited outside of eligible batches; within them it goes with them.
fn waited(thread: &ThreadRecord, eligible: &[u64]) -> u64 {
    let mut waited: Vec<u64> =
        thread.frames.iter().map(|frame| if frame.kind.is_waiting() { frame.self_ns } else { 0 }).collect();
    let mut taken = eligible.to_vec();
    for (at, frame) in thread.frames.iter().enumerate().rev() {
        // Where batches of both kinds share a frame it is not known which of them waited.
        waited[at] = waited[at].min(frame.total_ns.saturating_sub(taken[at]));
        if let Some(parent) = frame.parent {
            waited[parent as usize] += waited[at];
            taken[parent as usize] += taken[at];
        }
    }
    waited.first().copied().unwrap_or(0)
}

#[cfg(test)]
#[path = "amdahl_tests.rs"]
mod tests;
