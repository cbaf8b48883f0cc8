//! Values that several hold: who may write, who drops, and where it lies.

use super::Held;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

/// Counts how often it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_last_holder_drops_it_once() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let held = Held::new(Counted(dropped.clone()));
    let (one, other) = held.twice();
    let watching = one.watch();
    let third = other.clone();
    drop(one);
    drop(other);
    assert_eq!((dropped.load(Ordering::Relaxed), third.holders()), (0, 1));
    drop(watching.hold());
    drop(third);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert!(watching.hold().is_none());
    drop(watching);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn only_who_is_alone_writes() {
    let mut held = Held::new(1);
    let watching = held.watch();
    assert!(held.get_mut().is_none(), "a watcher could hold it at any time");
    drop(watching);
    let (mut one, other) = held.twice();
    let (other, third) = other.twice();
    assert!(one.get_mut().is_none() && one.holders() == 3);
    drop((other, third));
    *one.get_mut().expect("the others are gone") = 2;
    assert_eq!(*one, 2);
}

#[test]
fn it_lies_at_the_beginning_of_a_cache_line_with_its_count() {
    let many: Vec<Held<[u8; 100]>> = (0..100).map(|_| Held::new([7; 100])).collect();
    for held in &many {
        let (line, value) = (held.address() as usize, held.as_ptr() as usize);
        assert_eq!((line % crate::ahead::LINE, value - line), (0, 8));
    }
}

/// Two threads race for the last handle, many times over; under a sanitizer or Miri every mistake shows.
#[test]
fn two_threads_that_let_go_at_once_drop_it_once() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let rounds = if cfg!(miri) { 50 } else { 2_000 };
    for _ in 0..rounds {
        let (one, other) = Held::new(Counted(dropped.clone())).twice();
        let (watching, start) = (one.watch(), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                drop(other);
            });
            start.wait();
            drop(one);
            drop(watching.hold());
        });
    }
    assert_eq!(dropped.load(Ordering::Relaxed), rounds);
}
