//! What several hold under loom: `RUSTFLAGS="--cfg loom" cargo test --release -p breakeven-cpu --lib held_loom`.
//!
//! The value is a cell of loom's without any synchronisation of its own, so that a write while somebody else reads, and a value
//! that is dropped before or twice, come out as a race.

use super::Held;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

struct Value {
    number: UnsafeCell<usize>,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: not claimed but tested: loom reports every access that is not ordered.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Value {
    fn read(&self) -> usize {
        // SAFETY: loom has checked that no write is concurrent before it hands out the pointer.
        self.number.with(|number| unsafe { *number })
    }

    fn write(&mut self, value: usize) {
        // SAFETY: loom has checked that no other access is concurrent.
        self.number.with_mut(|number| unsafe { *number = value });
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // A use of the value as a whole, which has to come after all others.
        let last = self.read();
        self.write(last + 1);
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn value() -> (Held<Value>, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    (Held::new(Value { number: UnsafeCell::new(1), dropped: dropped.clone() }), dropped)
}

#[test]
fn whoever_finds_itself_alone_may_write() {
    loom::model(|| {
        let (held, dropped) = value();
        let (mut one, other) = held.twice();
        let reader = loom::thread::spawn(move || assert_eq!(other.read(), 1));
        if let Some(value) = one.get_mut() {
            value.write(2);
        }
        drop(one);
        reader.join().unwrap();
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn of_three_who_let_go_the_last_one_drops_it() {
    loom::model(|| {
        let (held, dropped) = value();
        let (one, other) = held.twice();
        let third = other.clone();
        let read = |held: Held<Value>| loom::thread::spawn(move || held.read());
        let readers = [read(other), read(third)];
        assert_eq!(one.read(), 1);
        drop(one);
        readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), 1));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn who_watches_holds_it_or_finds_it_gone() {
    loom::model(|| {
        let (held, dropped) = value();
        let watching = held.watch();
        let watcher = loom::thread::spawn(move || match watching.hold() {
            Some(held) => held.read(),
            None => 1,
        });
        assert_eq!(held.read(), 1);
        drop(held);
        assert_eq!(watcher.join().unwrap(), 1);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn what_is_watched_is_not_written() {
    loom::model(|| {
        let (mut held, dropped) = value();
        let watching = held.watch();
        let watcher = loom::thread::spawn(move || watching.hold().map(|held| held.read()));
        // Given out only after the watcher has gone: what it read was not written meanwhile.
        if let Some(value) = held.get_mut() {
            value.write(2);
        }
        let seen = watcher.join().unwrap();
        assert_eq!(seen, Some(1));
        drop(held);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}
