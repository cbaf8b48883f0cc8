//! Which transfers are measured, how often, and when it ends: on a device of the tests' own.

use super::*;
use breakeven::backend::{Backend, Direction, Prepared, RunError, Way};
use breakeven::{Config, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Moves bytes in two ways, and fails beyond 1 MiB.
struct Mover;

impl Backend for Mover {
    fn id(&self) -> &str {
        "gpu:0"
    }

    fn name(&self) -> &str {
        "a mover"
    }

    fn prepare(&self, _plan: &Arc<Plan>) -> Result<Arc<dyn Prepared>, RunError> {
        Err(RunError::Unsupported { device: "gpu:0".into(), why: "it only moves".into() })
    }

    fn transfers(&self, bytes: usize, samples: usize) -> Result<Vec<backend::Transfer>, RunError> {
        if bytes > 1 << 20 {
            return Err(RunError::OutOfMemory { bytes });
        }
        let of = |direction, way| backend::Transfer { direction, way, bytes, samples_ns: vec![1000; samples] };
        Ok(vec![of(Direction::Upload, Way::Staged), of(Direction::Readback, Way::Staged)])
    }
}

fn run(told: bool, time: Duration, stop: &dyn Fn() -> bool) -> (Vec<Transfer>, Vec<String>) {
    let engine = Engine::with_backends(Config::default(), vec![Arc::new(Mover)]).unwrap();
    let arm = |id: &str, told| Arm { id: id.into(), device: id.parse().unwrap(), told };
    let arms = [arm("cpu", false), arm("gpu:0", told)];
    let transfers = Transfers { engine: &engine, arms: &arms, samples: 5, deadline: Instant::now() + time, stop };
    transfers.run(&sizes(false), &mut |done, total, what| {
        assert!(done < total && total == FULL.len() && what.starts_with("gpu:0, transfers of "), "{what}");
    })
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn every_size_is_measured_until_the_device_fails() {
    let (all, notes) = run(false, LONG, &|| false);
    let up: Vec<u64> = all.iter().filter(|t| t.direction == "upload").map(|t| t.bytes).collect();
    assert_eq!(up, [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20]);
    assert_eq!(all.len(), 2 * up.len());
    assert!(all.iter().all(|t| t.way == "staged" && t.device == "gpu:0" && t.stats.samples == 5));
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("transfers of 4 MiB and more with gpu:0: 4194304 bytes of memory"), "{notes:?}");
}

#[test]
fn without_time_nothing_is_measured_and_that_is_said() {
    let (all, notes) = run(false, Duration::ZERO, &|| false);
    assert!(all.is_empty());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("4 KiB and more") && notes[0].contains("--budget"), "{notes:?}");
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let asked = AtomicUsize::new(0);
    let (all, notes) = run(false, LONG, &|| asked.fetch_add(1, Ordering::Relaxed) == 2);
    assert_eq!(all.iter().map(|t| t.bytes).collect::<Vec<_>>(), [1 << 12, 1 << 12, 1 << 14, 1 << 14]);
    assert!(notes.is_empty());
}

#[test]
fn devices_that_are_not_there_have_no_transfers() {
    assert_eq!(run(true, LONG, &|| false), (Vec::new(), Vec::new()));
}

#[test]
fn a_round_grows_by_what_further_bytes_take() {
    let arm = Arm { id: "gpu:0".into(), device: "gpu:0".parse().unwrap(), told: false };
    let mut track = Track { arm: &arm, rounds: Vec::new(), ended: false };
    let ms = Duration::from_millis;
    track.rounds.push((ms(10), 1000));
    assert_eq!(track.expected(64_000), Duration::ZERO, "one size says nothing about the next");
    track.rounds.push((ms(13), 4000));
    assert_eq!(track.expected(16_000), ms(25));
    // Noise: it never gets faster.
    track.rounds.push((ms(12), 16_000));
    assert_eq!(track.expected(64_000), ms(12));
}

#[test]
fn fewer_samples_are_taken_where_they_take_long() {
    let ms = Duration::from_millis;
    assert_eq!(affordable(15, Duration::ZERO, LONG), 15);
    assert_eq!(affordable(15, ms(75), LONG), 9);
    assert_eq!(affordable(15, ms(75), ms(400)), 4);
    assert_eq!(affordable(15, ms(5000), LONG), LEAST);
    assert_eq!(affordable(2, ms(5000), LONG), 2);
}

#[test]
fn the_sizes_go_up() {
    assert_eq!((sizes(false).first(), sizes(false).last()), (Some(&4096), Some(&(64 << 20))));
    assert!(sizes(true).len() < sizes(false).len() && sizes(true).iter().all(|size| sizes(false).contains(size)));
}
