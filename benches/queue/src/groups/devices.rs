//! Two devices at once: commands go to both in turn, all answers are waited for.

use super::Row;
use crate::arm::Fallible;
use crate::broadcast::Broadcast;
use crate::case::Case;
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_peer};
use crate::request::Request;

/// Commands to each device.
pub(crate) const EACH: usize = 50;

pub(super) fn rows() -> Vec<Row> {
    vec![Row::new("two devices", "2 x 50", cases).commands(2 * EACH)]
}

fn cases() -> Fallible<Vec<Case>> {
    let mut cases = crate::ours::device_cases()?;
    cases.extend(with_every_peer(&Alternate)?);
    let both = Broadcast::open(CAPACITY, 2)?;
    let mut replies = Vec::with_capacity(EACH);
    cases.push(Case::whole(Broadcast::NAME, "", move || {
        replies.extend((0..EACH).map(|_| both.submit(Request::Synchronize)));
        for reply in replies.drain(..) {
            both.wait(reply)?;
        }
        Ok(())
    }));
    Ok(cases)
}

struct Alternate;

impl Experiment for Alternate {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let devices = [P::open(CAPACITY)?, P::open(CAPACITY)?];
        let mut replies = Vec::with_capacity(2 * EACH);
        Ok(Case::whole(P::NAME, "", move || {
            for _ in 0..EACH {
                replies.extend(devices.iter().map(|device| device.submit(Request::Synchronize)));
            }
            for reply in replies.drain(..) {
                P::wait(reply)?;
            }
            Ok(())
        }))
    }
}
