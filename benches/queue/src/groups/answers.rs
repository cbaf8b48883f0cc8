//! Commands and their answers: one by one, many at once, from several threads, into a worker that is slow, and refused.

use std::time::Duration;

use super::Row;
use crate::arm::Fallible;
use crate::case::{Case, together};
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_pipe};
use crate::report::{Bar, Limit};
use crate::request::{Request, write_of};

/// What the slow worker takes for a command.
const SLOW: Duration = Duration::from_micros(10);
/// The capacity that a slow worker keeps full.
const TIGHT: usize = 64;
/// A command whose answer carries something.
const READ: Request = Request::Read(4);

const JOB: &str = "request and answer: every command reaches a worker on another thread, and every answer is waited for. \
                   Ours keeps order, turns of producers, deadlines and cancelling besides";

pub(super) fn round_trip() -> Vec<Row> {
    let row = |case: &str, request: Request| {
        let in_sequence = InSequence { count: 1, request };
        let row = Row::new("round trip", case, move || with_every_pipe(&in_sequence));
        row.bar(Bar::below("round trip < 5 us", 5e3)).job(JOB)
    };
    vec![row("1 command", Request::Synchronize), row("1 read of 4 B", READ)]
}

pub(super) fn sequence() -> Vec<Row> {
    let in_sequence = InSequence { count: 100, request: Request::Synchronize };
    vec![Row::new("sequence", "100 commands", move || with_every_pipe(&in_sequence)).commands(100)]
}

pub(super) fn throughput() -> Vec<Row> {
    let row = |count: usize, what: &str, request: Request| {
        let at_once = AtOnce { count, capacity: CAPACITY, request };
        Row::new("throughput", format!("{count} {what}"), move || with_every_pipe(&at_once)).commands(count)
    };
    let commands = |count: usize| row(count, "commands", Request::Synchronize);
    let bar = Bar::below("> 500,000 commands/s", 2e6);
    vec![
        commands(10),
        commands(100),
        commands(1_000).bar(bar),
        row(1_000, "reads of 4 B", READ).bar(bar),
        commands(10_000),
    ]
}

pub(super) fn backpressure() -> Vec<Row> {
    let build = || with_every_pipe(&AtOnce { count: 1_000, capacity: TIGHT, request: Request::Write(write_of(SLOW)) });
    let row = Row::new("backpressure", "1000 writes of about 10 us, capacity 64", build).commands(1_000);
    vec![row.job("the same bytes are copied by all workers, so many as take about 10 us here; senders wait for room")]
}

pub(super) fn producers() -> Vec<Row> {
    let row = Row::new("producers", "4 x 250", || with_every_pipe(&Producers { threads: 4, each: 250 }));
    let equal = Bar { promise: "as fast as the best channel", limit: Limit::BestChannel };
    let row = row.commands(1_000).bar(Bar::below("4 x 250 in < 5 ms", 5e6)).bar(equal);
    vec![row.job(
        "four threads submit 250 commands each and wait for all of their answers, from the first start to the \
                  last end; the best channel is the fastest arm of any channel library",
    )]
}

pub(super) fn errors() -> Vec<Row> {
    vec![
        Row::new("errors", "a read of 4 B", || with_every_pipe(&InSequence { count: 1, request: READ })),
        Row::new("errors", "a read beyond the memory", || with_every_pipe(&Failing))
            .job("the error is typed and carries its numbers; nobody makes a text of it"),
    ]
}

/// Each command waits for the answer of the one before.
struct InSequence {
    count: usize,
    request: Request,
}

impl Experiment for InSequence {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let (pipe, count, request) = (P::open(CAPACITY)?, self.count, self.request.clone());
        Ok(Case::whole(P::NAME, P::VARIANT, move || {
            for _ in 0..count {
                pipe.call(request.clone())?;
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
        Ok(Case::whole(P::NAME, P::VARIANT, move || {
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
        Ok(Case::new(P::NAME, P::VARIANT, move |iterations| {
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
        Ok(Case::whole(P::NAME, P::VARIANT, move || match pipe.call(Request::Fail) {
            Err(_) => Ok(()),
            Ok(_) => Err("a command that can't be done was done".into()),
        }))
    }
}
