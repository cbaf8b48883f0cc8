//! Proves that a place is filled once and that no waiter misses it:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p breakeven --lib queue::place`.

use super::super::sync::{AtomicUsize, Ordering};
use super::{Place, Rest, Word};
use loom::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A place as a whole.
struct Whole(Word, Rest<u32>);

impl Whole {
    fn new() -> Arc<Whole> {
        Arc::new(Whole(Word::new(), Rest::new()))
    }

    fn place(&self) -> Place<'_, u32> {
        Place { word: &self.0, rest: &self.1 }
    }
}

#[test]
fn of_two_answers_one_counts_and_the_waiter_has_it() {
    loom::model(|| {
        let place = Whole::new();
        let fill = |value: u32| {
            let place = place.clone();
            loom::thread::spawn(move || place.place().fill(value))
        };
        let (first, second) = (fill(1), fill(2));
        let found = place.place().wait(None, |value| value.take()).flatten();
        let outcomes = [first.join().unwrap(), second.join().unwrap()];
        match found {
            Some(1) => assert_eq!(outcomes, [Ok(()), Err(2)]),
            Some(2) => assert_eq!(outcomes, [Err(1), Ok(())]),
            other => panic!("{other:?} was never given"),
        }
    });
}

#[test]
fn of_a_value_and_the_default_one_counts_and_the_waiter_has_it() {
    loom::model(|| {
        let place = Whole::new();
        let (valued, plain) = (place.clone(), place.clone());
        let valued = loom::thread::spawn(move || valued.place().fill_marked(7));
        let plain = loom::thread::spawn(move || plain.place().fill_default());
        let found = place.place().wait(None, |value| value.take()).flatten();
        // Whoever sees the value sees the mark, and takes it once.
        let marked = [place.0.take_mark(), place.0.take_mark()];
        let outcomes = (valued.join().unwrap(), plain.join().unwrap());
        match found {
            Some(7) => assert_eq!((outcomes, marked), ((Ok(()), false), [true, false])),
            Some(0) => assert_eq!((outcomes, marked), ((Err(7), true), [false, false])),
            other => panic!("{other:?} was never given"),
        }
    });
}

#[test]
fn two_who_sleep_are_woken_by_the_default() {
    loom::model(|| {
        let place = Whole::new();
        let (filler, other) = (place.clone(), place.clone());
        let filling = loom::thread::spawn(move || assert!(filler.place().fill_default()));
        let waiting = loom::thread::spawn(move || other.place().wait(None, |value| *value));
        assert_eq!(place.place().wait(None, |value| *value), Some(Some(0)));
        assert_eq!(waiting.join().unwrap(), Some(Some(0)));
        filling.join().unwrap();
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
    let with_and_without_value = |with_value: bool| {
        let place = Whole::new();
        let told = Arc::new(AtomicUsize::new(0));
        let filler = (place.clone(), told.clone());
        let thread = loom::thread::spawn(move || {
            if with_value {
                filler.0.place().fill(7).unwrap();
            } else {
                assert!(filler.0.place().fill_default());
            }
            filler.1.store(1, Ordering::Release);
        });
        let count = std::sync::Arc::new(Count(std::sync::atomic::AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let polled = place.place().poll(&Context::from_waker(&waker), |value| value.take());
        thread.join().unwrap();
        let woken = count.0.load(Ordering::SeqCst);
        match polled {
            Poll::Ready(value) => assert_eq!((value, woken), (Some(if with_value { 7 } else { 0 }), 0)),
            Poll::Pending => assert_eq!(woken, 1),
        }
    };
    loom::model(move || with_and_without_value(true));
    loom::model(move || with_and_without_value(false));
}
