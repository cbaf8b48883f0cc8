//! Proves that nothing is lost on its way through the ring and that nobody sleeps through it:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p breakeven --lib queue::ring`.

use super::super::sync::{AtomicU64, Ordering};
use super::{Refused, Ring};
use loom::sync::Arc;

type Jobs = Ring<Box<u64>, 2>;

/// Submits one job to the first door; the number it got.
fn submit(ring: &Jobs, job: u64) -> u64 {
    let number = ring.number(|| 0).unwrap();
    assert!(ring.put(number, Box::new(job), 1).is_none());
    number.id
}

#[test]
fn whoever_sleeps_is_woken_and_finds_every_job_once() {
    loom::model(|| {
        let ring = Arc::new(Jobs::new(2));
        let threads = [7, 8].map(|job| {
            let ring = ring.clone();
            loom::thread::spawn(move || submit(&ring, job))
        });
        let mut found = Vec::new();
        while found.len() < 2 {
            // Would never return if it were missed: loom reports a deadlock.
            ring.sleep(0, None, || (!ring.is_empty()).then_some(()));
            ring.drain(|| (), |_| (), |job| found.push(*job));
            if found.len() < 2 {
                // One may be on its way.
                loom::thread::yield_now();
            }
        }
        let numbers = threads.map(|thread| thread.join().unwrap());
        // In the order of their numbers.
        assert_eq!(found, if numbers == [1, 2] { [7, 8] } else { [8, 7] });
        assert!(ring.is_empty());
    });
}

#[test]
fn a_place_is_given_again_when_its_job_has_left() {
    loom::model(|| {
        let shared = Arc::new((Jobs::new(1), AtomicU64::new(0)));
        let producer = shared.clone();
        let thread = loom::thread::spawn(move || {
            let (ring, left) = &*producer;
            for job in [7, 8] {
                let number = loop {
                    match ring.number(|| left.load(Ordering::Acquire)) {
                        Ok(number) => break number,
                        Err(refused) => assert_eq!(refused, Refused::Full),
                    }
                    loom::thread::yield_now();
                };
                // Nobody's job is in its place.
                assert!(ring.put(number, Box::new(job), 1).is_none());
            }
        });
        let (ring, left) = &*shared;
        let mut found = Vec::new();
        while found.len() < 2 {
            let before = found.len();
            ring.drain(|| (), |_| (), |job| found.push(*job));
            left.fetch_add((found.len() - before) as u64, Ordering::AcqRel);
            loom::thread::yield_now();
        }
        thread.join().unwrap();
        assert_eq!(found, [7, 8]);
    });
}

#[test]
fn what_was_done_before_ringing_is_seen_by_whoever_is_about_to_sleep() {
    loom::model(|| {
        let shared = Arc::new((Jobs::new(1), AtomicU64::new(0)));
        let ringer = shared.clone();
        let thread = loom::thread::spawn(move || {
            ringer.1.store(7, Ordering::Relaxed);
            ringer.0.ring(0b10);
        });
        let found = shared.0.sleep(1, None, || Some(shared.1.load(Ordering::Relaxed)).filter(|value| *value == 7));
        assert_eq!(found, Some(7));
        thread.join().unwrap();
    });
}

#[test]
fn one_ring_wakes_two() {
    loom::model(|| {
        let shared = Arc::new((Jobs::new(1), AtomicU64::new(0)));
        let sleep = |shared: Arc<(Jobs, AtomicU64)>| {
            shared.0.sleep(0, None, || (shared.1.load(Ordering::Relaxed) == 1).then_some(()))
        };
        let other = shared.clone();
        let thread = loom::thread::spawn(move || sleep(other));
        let ringer = shared.clone();
        let ringing = loom::thread::spawn(move || {
            ringer.1.store(1, Ordering::Relaxed);
            ringer.0.ring(1);
        });
        sleep(shared.clone());
        thread.join().unwrap();
        ringing.join().unwrap();
    });
}

#[test]
fn a_job_has_its_number_before_the_end_or_is_refused() {
    loom::model(|| {
        let ring = Arc::new(Jobs::new(2));
        let producer = ring.clone();
        let thread = loom::thread::spawn(move || producer.number(|| 0).map(|number| number.id));
        ring.close();
        let numbered = ring.numbered();
        assert_eq!(thread.join().unwrap(), if numbered == 1 { Ok(1) } else { Err(Refused::Closed) });
    });
}

#[test]
fn a_job_that_is_seen_can_be_taken() {
    loom::model(|| {
        let ring = Arc::new(Jobs::new(2));
        let producer = ring.clone();
        let thread = loom::thread::spawn(move || [7, 8].map(|job| submit(&producer, job)));
        let mut found = Vec::new();
        while found.len() < 2 {
            // Awake: the counter is not looked at.
            while !ring.has_next() {
                loom::thread::yield_now();
            }
            let before = found.len();
            ring.drain(|| (), |_| (), |job| found.push(*job));
            assert!(found.len() > before, "seen and not there");
        }
        thread.join().unwrap();
        assert_eq!(found, [7, 8]);
        assert!(!ring.has_next() && ring.is_empty());
    });
}
