//! Two devices at once: commands go to both in turn, all answers are waited for.

use bytes::Bytes;

use super::Row;
use crate::arm::Fallible;
use crate::broadcast::Broadcast;
use crate::case::Case;
use crate::pipe::{CAPACITY, Experiment, Pipe, with_every_peer};
use crate::request::Request;

/// Commands to each device.
pub(crate) const EACH: usize = 50;

/// What goes to each of them.
#[derive(Clone, Copy)]
pub enum ToDevice {
    /// A command without a payload.
    Synchronize,
    /// 4 bytes into its memory.
    Write,
}

pub(super) fn rows() -> Vec<Row> {
    let row = |case: &str, to_device| {
        let row = Row::new("two devices", case, move || cases(to_device)).commands(2 * EACH);
        row.job(
            "2 x 50 commands in turn, all 100 answered; ours has two simulated devices, the others two queues, each \
                 with a worker",
        )
    };
    vec![row("2 x 50", ToDevice::Synchronize), row("2 x 50 writes of 4 B", ToDevice::Write)]
}

impl ToDevice {
    fn request(self) -> Request {
        match self {
            ToDevice::Synchronize => Request::Synchronize,
            ToDevice::Write => Request::Write(Bytes::from_static(&[7; 4])),
        }
    }
}

fn cases(to_device: ToDevice) -> Fallible<Vec<Case>> {
    let mut cases = crate::ours::cases::devices(to_device)?;
    cases.extend(with_every_peer(&Alternate(to_device))?);
    let both = Broadcast::open(CAPACITY, 2)?;
    let mut replies = Vec::with_capacity(EACH);
    cases.push(Case::whole(Broadcast::NAME, "", move || {
        replies.extend((0..EACH).map(|_| both.submit(to_device.request())));
        for reply in replies.drain(..) {
            both.wait(reply)?;
        }
        Ok(())
    }));
    Ok(cases)
}

struct Alternate(ToDevice);

impl Experiment for Alternate {
    fn case<P: Pipe>(&self) -> Fallible<Case> {
        let to_device = self.0;
        let devices = [P::open(CAPACITY)?, P::open(CAPACITY)?];
        let mut replies = Vec::with_capacity(2 * EACH);
        Ok(Case::whole(P::NAME, P::VARIANT, move || {
            for _ in 0..EACH {
                replies.extend(devices.iter().map(|device| device.submit(to_device.request())));
            }
            for reply in replies.drain(..) {
                P::wait(reply)?;
            }
            Ok(())
        }))
    }
}
