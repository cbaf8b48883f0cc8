//! Proves that a place is filled once and that no waiter misses it:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p breakeven --lib queue::place`.

use super::super::sync::{AtomicUsize, Ordering};
use super::Place;
use loom::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

#[test]
fn of_two_answers_one_counts_and_the_waiter_has_it() {
    loom::model(|| {
        let place = Arc::new(Place::new());
        let fill = |value: u32| {
            let place = place.clone();
            loom::thread::spawn(move || place.fill(value))
        };
        let (first, second) = (fill(1), fill(2));
        let found = place.wait(None, |value| value.take()).flatten();
        let outcomes = [first.join().unwrap(), second.join().unwrap()];
        match found {
            Some(1) => assert_eq!(outcomes, [Ok(()), Err(2)]),
            Some(2) => assert_eq!(outcomes, [Err(1), Ok(())]),
            other => panic!("{other:?} was never given"),
        }
    });
}

#[test]
fn a_future_is_woken_or_finds_the_value() {
    struct Count(std::sync::atomic::AtomicUsize);
    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    loom::model(|| {
        let place = Arc::new(Place::new());
        let told = Arc::new(AtomicUsize::new(0));
        let filler = (place.clone(), told.clone());
        let thread = loom::thread::spawn(move || {
            filler.0.fill(7).unwrap();
            filler.1.store(1, Ordering::Release);
        });
        let count = std::sync::Arc::new(Count(std::sync::atomic::AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let polled = place.poll(&Context::from_waker(&waker), |value| value.take());
        thread.join().unwrap();
        let woken = count.0.load(Ordering::SeqCst);
        match polled {
            Poll::Ready(value) => assert_eq!((value, woken), (Some(7), 0)),
            Poll::Pending => assert_eq!(woken, 1),
        }
    });
}
