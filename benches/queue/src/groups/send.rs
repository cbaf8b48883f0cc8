//! Sending alone: a command enters the queue while the worker drains it; waiting for its answer does not count.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Row, size};
use crate::arm::Fallible;
use crate::broadcast::Broadcast;
use crate::case::{Case, scaled};
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_pipe};
use crate::report::Bar;
use crate::request::Request;

/// More than any burst fills.
const LARGE: usize = 65_536;

#[derive(Clone)]
struct Send {
    capacity: usize,
    payload: Bytes,
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for capacity in [CAPACITY, LARGE] {
        for payload_bytes in [0, 128, 1 << 20] {
            let send = Send { capacity, payload: Bytes::from(vec![7; payload_bytes]) };
            let payload = if payload_bytes == 0 { "no payload".to_owned() } else { size(payload_bytes) };
            let row = Row::new("send", format!("{payload}, capacity {capacity}"), move || send.cases());
            // A payload's size must not count, as its bytes are shared: the bar is the same.
            let row = row.bar(Bar::below("send < 100 ns", 100.0));
            rows.push(row.job(
                "a command and the place of its answer are made and handed over while the worker drains; \
                               tokio's broadcast has no way back of its own and loses commands when it is full",
            ));
        }
    }
    rows
}

impl Send {
    fn cases(&self) -> Fallible<Vec<Case>> {
        let mut cases = with_every_pipe(self)?;
        let pipe = Broadcast::open(self.capacity, 1)?;
        let send = self.clone();
        cases.push(Case::new(Broadcast::NAME, "", move |iterations| {
            send.bursts(iterations, |request| pipe.submit(request), |answers| Ok(pipe.wait(answers)?))
        }));
        Ok(cases)
    }

    /// Bursts that never fill the queue: the time of a sender that has to wait is another group's.
    fn bursts<R>(
        &self,
        iterations: u64,
        submit: impl Fn(Request) -> R,
        wait: impl Fn(R) -> Fallible<()>,
    ) -> Fallible<Duration> {
        let large = self.payload.len() > 64 * 1024;
        // Copying 1 MB takes the worker about 100 us.
        let (burst, most) = if large { (16, 64) } else { (self.capacity / 4, 4096) };
        scaled(iterations, most, |iterations| {
            let mut left = iterations as usize;
            let mut replies = Vec::with_capacity(burst.min(left));
            let mut time = Duration::ZERO;
            while left > 0 {
                let count = left.min(burst);
                left -= count;
                let start = Instant::now();
                for _ in 0..count {
                    replies.push(submit(self.request()));
                }
                time += start.elapsed();
                for reply in replies.drain(..) {
                    wait(reply)?;
                }
            }
            Ok(time)
        })
    }

    fn request(&self) -> Request {
        if self.payload.is_empty() { Request::Synchronize } else { Request::Write(self.payload.clone()) }
    }
}

impl Experiment for Send {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let pipe = P::open(self.capacity)?;
        let send = self.clone();
        Ok(Case::new(P::NAME, P::VARIANT, move |iterations| {
            send.bursts(iterations, |request| pipe.submit(request), |reply| Ok(P::wait(reply).map(drop)?))
        }))
    }
}
