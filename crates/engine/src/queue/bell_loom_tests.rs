//! Proves that no ring is missed: `RUSTFLAGS="--cfg loom" cargo test --release -p breakeven --lib queue::bell`.

use super::super::sync::{AtomicUsize, Ordering};
use super::Bell;
use loom::sync::Arc;

#[test]
fn a_change_before_the_ring_is_always_seen() {
    loom::model(|| {
        let shared = Arc::new((Bell::default(), AtomicUsize::new(0)));
        let ringer = shared.clone();
        let thread = loom::thread::spawn(move || {
            ringer.1.store(7, Ordering::Relaxed);
            ringer.0.ring();
        });
        // Would never return if the ring were missed: loom reports a deadlock.
        let found = shared.0.wait(None, || Some(shared.1.load(Ordering::Relaxed)).filter(|value| *value == 7));
        assert_eq!(found, Some(7));
        thread.join().unwrap();
    });
}

#[test]
fn one_ring_wakes_two() {
    loom::model(|| {
        let shared = Arc::new((Bell::default(), AtomicUsize::new(0)));
        let wait = |shared: Arc<(Bell, AtomicUsize)>| {
            shared.0.wait(None, || (shared.1.load(Ordering::Relaxed) == 1).then_some(()))
        };
        let other = shared.clone();
        let thread = loom::thread::spawn(move || wait(other));
        let ringer = shared.clone();
        let ringing = loom::thread::spawn(move || {
            ringer.1.store(1, Ordering::Relaxed);
            ringer.0.ring();
        });
        wait(shared.clone());
        thread.join().unwrap();
        ringing.join().unwrap();
    });
}
