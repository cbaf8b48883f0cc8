//! The bare containers: a number is pushed and one is popped by the same thread, alone or with three others beside it.
//!
//! No answers and nobody who waits: what is left is the price of the lock, or of doing without one. Ours takes no part: its
//! ring can't be used apart from its queue. The others are compared with crossbeam's `ArrayQueue`.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Row;
use crate::arm::Fallible;
use crate::case::{Case, scaled, together};
use crate::pipe::CAPACITY;

/// Push-pops a thread does at most in one sample.
const MOST: u64 = 16_384;
/// The arm that the others are compared with.
const RING: &str = "array-queue";

pub(super) fn rows() -> Vec<Row> {
    let row = |case: &str, threads| {
        let row = Row { ours: RING, ..Row::new("push and pop", case, move || Ok(cases(threads))) };
        row.job("a bare container each; our ring can't be used apart from its queue and takes no part")
    };
    vec![row("1 thread", 1), row("4 threads", 4)]
}

fn cases(threads: usize) -> Vec<Case> {
    let list = Arc::new(Mutex::new(VecDeque::<u64>::with_capacity(CAPACITY)));
    let popped = list.clone();
    let crossbeam = crossbeam_channel::bounded::<u64>(CAPACITY);
    let flume = ::flume::bounded::<u64>(CAPACITY);
    let kanal = ::kanal::bounded::<u64>(CAPACITY);
    let pushed = move |n| {
        lock(&list).push_back(n);
        true
    };
    let ring = Arc::new(crossbeam_queue::ArrayQueue::<u64>::new(CAPACITY));
    let taken = ring.clone();
    let mut cases = vec![
        case(RING, threads, move |n| ring.push(n).is_ok(), move || taken.pop()),
        case("mutex", threads, pushed, move || lock(&popped).pop_front()),
        case("crossbeam", threads, move |n| crossbeam.0.try_send(n).is_ok(), move || crossbeam.1.try_recv().ok()),
        case("flume", threads, move |n| flume.0.try_send(n).is_ok(), move || flume.1.try_recv().ok()),
        case("kanal", threads, move |n| kanal.0.try_send(n).is_ok(), move || kanal.1.try_recv().ok().flatten()),
    ];
    // Its receiver is one thread's.
    if threads == 1 {
        let (sender, mut receiver) = ::tokio::sync::mpsc::channel::<u64>(CAPACITY);
        cases.push(Case::whole("tokio", "", move || {
            done(sender.try_send(black_box(1)).is_ok() && receiver.try_recv().is_ok())
        }));
    }
    cases
}

fn case(
    library: &'static str,
    threads: usize,
    push: impl Fn(u64) -> bool + Sync + 'static,
    pop: impl Fn() -> Option<u64> + Sync + 'static,
) -> Case {
    if threads == 1 {
        return Case::whole(library, "", move || done(push(black_box(1)) && pop().is_some()));
    }
    Case::new(library, "", move |iterations| {
        scaled(iterations, MOST, |each| {
            together(threads, |_| {
                // Whoever has pushed finds a number: none that pops has taken more than it brought.
                (0..each).try_for_each(|number| done(push(black_box(number)) && pop().is_some()))
            })
        })
    })
}

fn done(both: bool) -> Fallible<()> {
    if both { Ok(()) } else { Err("a number got lost".into()) }
}

/// Nothing panics while it holds the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
