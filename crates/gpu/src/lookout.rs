//! Looking out for a message instead of sleeping: a channel enters, its message leaves if it comes about when it should.
//!
//! To wake a thread takes 20 to 50 us on a machine whose idle cores sleep, and a batch needs its owner woken, then its
//! caller: as long as the whole batch takes on the device. So both stay awake for a little while when a message is
//! about to come, and the owner while the device has a short batch. They yield all the time, so that a thread with work to do
//! gets the core.

use crossbeam_channel::{Receiver, TryRecvError};
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread::{available_parallelism, yield_now};
use std::time::{Duration, Instant};

/// How long the owner looks out for the next command after a batch.
pub(crate) const LINGER: Duration = Duration::from_micros(100);

/// Answers that are predicted to take longer than this are slept for: waking up is lost in it.
const WORTH_LOOKING_NS: u64 = 2_000_000;

/// Batches that are predicted to take longer than this are slept for by the owner. One of 256 elements takes 36 us when it is
/// looked out for and 60 to 90 when it is not, one of 5,120 elements 42 and 72 to 132: what was slept for must not seem too
/// long to be looked out for the next time.
const SHORT_NS: u64 = 150_000;

/// Is a batch over in about the time that it takes to wake a thread?
pub(crate) fn is_short(predicted_ns: u64) -> bool {
    (1..=SHORT_NS).contains(&predicted_ns)
}

/// Until when it is looked out for the end of a batch that takes so long on the device.
pub(crate) fn awake_until(predicted_ns: u64) -> Option<Instant> {
    (is_short(predicted_ns) && is_parallel()).then(|| Instant::now() + Duration::from_nanos(2 * predicted_ns) + LINGER)
}

/// The message, if it comes before `until`. A channel whose other end is gone has none.
pub(crate) fn until<T>(messages: &Receiver<T>, until: Instant) -> Option<T> {
    if !is_parallel() {
        return None;
    }
    loop {
        match messages.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Empty) if Instant::now() < until => yield_now(),
            Err(_) => return None,
        }
    }
}

/// The answer to what began at `begun`, if it takes about as long as predicted: the first part is slept through.
pub(crate) fn soon<T>(answer: &Receiver<T>, begun: Instant, predicted_ns: u64) -> Option<T> {
    if predicted_ns > WORTH_LOOKING_NS {
        return None;
    }
    let asleep = Duration::from_nanos(predicted_ns - predicted_ns / 8).saturating_sub(LINGER);
    if !asleep.is_zero()
        && let Ok(message) = answer.recv_deadline(begun + asleep)
    {
        return Some(message);
    }
    until(answer, begun + Duration::from_nanos(predicted_ns * 2))
}

/// With one core the other side can't get ahead while this one looks out.
fn is_parallel() -> bool {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get)) > 1
}

#[cfg(test)]
#[path = "lookout_tests.rs"]
mod tests;
