//! Commands and their answers: one by one, many at once, from several threads, into a worker that is slow, and refused.

use std::time::Duration;

use super::Row;
use crate::arm::Fallible;
use crate::case::{Case, together};
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_pipe};
use crate::report::{Bar, Limit};
use crate::request::Request;

/// What the slow worker takes for a command.
const SLOW: Duration = Duration::from_micros(10);
/// The capacity that a slow worker keeps full.
const TIGHT: usize = 64;

pub(super) fn round_trip() -> Vec<Row> {
    let row = Row::new("round trip", "1 command", || with_every_pipe(&InSequence(1)));
    vec![row.bar(Bar::below("round trip < 5 us", 5e3))]
}

pub(super) fn sequence() -> Vec<Row> {
    vec![Row::new("sequence", "100 commands", || with_every_pipe(&InSequence(100))).commands(100)]
}

pub(super) fn throughput() -> Vec<Row> {
    let row = |count: usize| {
        let at_once = AtOnce { count, capacity: CAPACITY, request: Request::Synchronize };
        Row::new("throughput", format!("{count} commands"), move || with_every_pipe(&at_once)).commands(count)
    };
    [10, 100, 1_000, 10_000]
        .into_iter()
        .map(|count| match count {
            1_000 => row(count).bar(Bar::below("> 500,000 commands/s", 2e6)),
            _ => row(count),
        })
        .collect()
}

pub(super) fn backpressure() -> Vec<Row> {
    let at_once = AtOnce { count: 1_000, capacity: TIGHT, request: Request::Busy(SLOW) };
    let row = Row::new("backpressure", "1000 of 10 us, capacity 64", move || with_every_pipe(&at_once));
    vec![row.commands(1_000)]
}

pub(super) fn producers() -> Vec<Row> {
    let row = Row::new("producers", "4 x 250", || with_every_pipe(&Producers { threads: 4, each: 250 }));
    let equal = Bar { promise: "as fast as the best channel", limit: Limit::BestChannel };
    vec![row.commands(1_000).bar(Bar::below("4 x 250 in < 5 ms", 5e6)).bar(equal)]
}

pub(super) fn errors() -> Vec<Row> {
    vec![
        Row::new("errors", "one that succeeds", || with_every_pipe(&InSequence(1))),
        Row::new("errors", "one that fails", || with_every_pipe(&Failing)),
    ]
}

/// Each command waits for the answer of the one before.
struct InSequence(usize);

impl Experiment for InSequence {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let (pipe, count) = (P::open(CAPACITY)?, self.0);
        Ok(Case::whole(P::NAME, "", move || {
            for _ in 0..count {
                pipe.call(Request::Synchronize)?;
            }
            Ok(())
        }))
    }
}

/// All are sent, then all answers are waited for.
struct AtOnce {
    count: usize,
    capacity: usize,
    request: Request,
}

impl Experiment for AtOnce {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let (pipe, count, request) = (P::open(self.capacity)?, self.count, self.request.clone());
        let mut replies = Vec::with_capacity(count);
        Ok(Case::whole(P::NAME, "", move || {
            replies.extend((0..count).map(|_| pipe.submit(request.clone())));
            for reply in replies.drain(..) {
                P::wait(reply)?;
            }
            Ok(())
        }))
    }
}

/// As [`AtOnce`], from several threads.
struct Producers {
    threads: usize,
    each: usize,
}

impl Experiment for Producers {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let (pipe, threads, each) = (P::open(CAPACITY)?, self.threads, self.each);
        Ok(Case::new(P::NAME, "", move |iterations| {
            let mut time = Duration::ZERO;
            for _ in 0..iterations {
                time += together(threads, |_| {
                    let replies: Vec<P::Reply> = (0..each).map(|_| pipe.submit(Request::Synchronize)).collect();
                    for reply in replies {
                        P::wait(reply)?;
                    }
                    Ok(())
                })?;
            }
            Ok(time)
        }))
    }
}

/// A command whose answer is an error.
struct Failing;

impl Experiment for Failing {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let pipe = P::open(CAPACITY)?;
        Ok(Case::whole(P::NAME, "", move || match pipe.call(Request::Fail) {
            Err(_) => Ok(()),
            Ok(_) => Err("a command that can't be done was done".into()),
        }))
    }
}
