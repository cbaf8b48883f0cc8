//! The same code twice: devices enter, the samples of two arms that are one leave. A machine that makes a difference of
//! them makes one of everything.

use std::time::{Duration, Instant};

use breakeven::Engine;
use breakeven_report::bench::NullCase;
use breakeven_report::words;

use super::job::{Fault, Said};
use super::measure::Work;
use crate::scan::cell::{self, Care, Rules};
use crate::scan::ops::{self, Load};

/// Elements of the array: it fits into the caches of a core, and a run takes longer than a clock needs to be read.
const ELEMENTS: u64 = 100_000;

fn load(engine: &Engine) -> Result<Load, Fault> {
    Ok(ops::batch(engine, &ops::data(&[ELEMENTS])?.exp()?)?)
}

/// Measures it on each device. Both arms are the same program over the same data: what differs between processes is told by
/// their passes.
pub fn measure(work: &mut Work<'_>) -> Result<(), Fault> {
    let arms = work.arms.clone();
    for (done, arm) in arms.iter().enumerate() {
        if (work.stop)() {
            return Ok(());
        }
        work.doing("the same code twice", done, arms.len());
        let load = load(work.engine)?;
        let left = work.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        let until = Instant::now() + left / (arms.len() - done) as u32;
        let rules = Rules { samples: work.job.samples, until, stop: work.stop, care: Care::BENCH };
        let mut run = |_: usize| load.run(arm.device).map_err(|error| error.to_string());
        let mut sides = cell::measure(&[false, false], &rules, &mut run);
        if let Some(fault) = sides.iter_mut().find_map(|side| side.fault.take()) {
            return Err(Fault::failed(fault));
        }
        let [first, second] = [0, 1].map(|at| vec![std::mem::take(&mut sides[at].samples)]);
        let case = format!("exp of {} on {}", words::sized(ELEMENTS, "elements"), arm.id);
        (work.tell)(Said::Null(NullCase { case, device: arm.id.clone(), first, second }));
    }
    Ok(())
}
