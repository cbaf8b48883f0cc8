//! The cost of metrics: round trips with and without them.
//!
//! For ours its own metrics are switched; the peers have none, so that theirs are what a caller would add: a count, and
//! the time from submit to answer in buckets by powers of two.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::Row;
use crate::arm::Fallible;
use crate::case::Case;
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_peer};
use crate::report::{Bar, Limit};
use crate::request::Request;

/// The variant with metrics, in an arm's name.
pub(crate) const ON: &str = "metrics";

pub(super) fn rows() -> Vec<Row> {
    let bar = Bar { promise: "metrics <= 2 % of a round trip", limit: Limit::Metrics { most: 1.02 } };
    let build = || {
        let mut cases = crate::ours::metrics_cases()?;
        cases.extend(with_every_peer(&Plain)?);
        cases.extend(with_every_peer(&Counted)?);
        Ok(cases)
    };
    vec![Row::new("metrics", "round trip, on and off", build).bar(bar)]
}

struct Plain;

impl Experiment for Plain {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let pipe = P::open(CAPACITY)?;
        Ok(Case::whole(P::NAME, "", move || Ok(pipe.call(Request::Synchronize).map(drop)?)))
    }
}

struct Counted;

impl Experiment for Counted {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let pipe = P::open(CAPACITY)?;
        let count = AtomicU64::new(0);
        let buckets: [AtomicU64; 64] = std::array::from_fn(|_| AtomicU64::new(0));
        Ok(Case::whole(P::NAME, ON, move || {
            let start = Instant::now();
            let outcome = pipe.call(Request::Synchronize);
            count.fetch_add(1, Relaxed);
            let ns = start.elapsed().as_nanos() as u64;
            buckets[(ns | 1).ilog2() as usize].fetch_add(1, Relaxed);
            Ok(outcome.map(drop)?)
        }))
    }
}
