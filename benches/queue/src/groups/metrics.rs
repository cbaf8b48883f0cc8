//! The cost of being watched: round trips with and without metrics, and with subscribers to events.
//!
//! For ours its own metrics are switched. The peers have none, so that theirs are what a caller would add: a count, and
//! the time from submit to answer in buckets by powers of two.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::Row;
use crate::arm::Fallible;
use crate::case::Case;
use crate::pipe::{AWAKE, CAPACITY, Experiment, Pipe, with_every_peer_awake};
use crate::report::{Bar, Limit, ON};
use crate::request::Request;

/// Of two equal engines the one that is opened and measured first is quicker by up to 1.4 %, and where memory lies makes one quicker for as
/// long as it lives: with five openings, always in one order, the result was anywhere between 1.0 and 4.3 %.
const OPENINGS: usize = 20;

pub(super) fn rows() -> Vec<Row> {
    let bar = Bar { promise: "metrics <= 2 % of a round trip", limit: Limit::Metrics { most: 1.02 } };
    let with_first = Cell::new(false);
    let cases = move || crate::ours::cases::metrics(with_first.replace(!with_first.get()));
    let ours = Row::new("metrics", "ours, on and off", cases).bar(bar).opened(OPENINGS).job(
        "a round trip each. Where two arms differ by less than the noise of a sample, engines are opened many times, each of both \
              first in turn, and the median of the ratios within one round decides",
    );
    let theirs = Row::new("metrics", "what callers would add", || {
        let mut cases = with_every_peer_awake(&Plain)?;
        cases.extend(with_every_peer_awake(&Counted)?);
        Ok(cases)
    });
    let subscribers = Row::new("metrics", "subscribers to events", crate::ours::cases::subscribers);
    vec![ours, theirs, subscribers]
}

struct Plain;

impl Experiment for Plain {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let pipe = P::open(CAPACITY)?;
        Ok(Case::whole(P::NAME, P::VARIANT, move || Ok(pipe.call(Request::Synchronize).map(drop)?)))
    }
}

struct Counted;

impl Experiment for Counted {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let pipe = P::open(CAPACITY)?;
        let count = AtomicU64::new(0);
        let buckets: [AtomicU64; 64] = std::array::from_fn(|_| AtomicU64::new(0));
        Ok(Case::whole(P::NAME, &format!("{AWAKE}-{ON}"), move || {
            let start = Instant::now();
            let outcome = pipe.call(Request::Synchronize);
            count.fetch_add(1, Relaxed);
            let ns = start.elapsed().as_nanos() as u64;
            buckets[(ns | 1).ilog2() as usize].fetch_add(1, Relaxed);
            Ok(outcome.map(drop)?)
        }))
    }
}
