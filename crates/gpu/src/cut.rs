//! Long work in pieces: whatever is predicted to take longer than the limit of one submission is cut by units into
//! several, each measured before the next, so that no operating system's watchdog fires.

use crate::batch::{Blocks, Order, count};
use crate::buffers::Block;
use crate::encode::Recording;
use crate::owner::Owner;
use crate::session::check;
use crate::stage::Stage;
use breakeven_ir::backend::{RunError, Timings};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// A part of a stage.
pub(crate) struct Part {
    pub(crate) group: usize,
    pub(crate) stage: usize,
    pub(crate) pipeline: usize,
    pub(crate) units: Range<u64>,
    pub(crate) work: u64,
}

impl Owner {
    /// Runs parts of work, submission after submission, until what is left fits into one: that is returned. Told to stop,
    /// it sends no more of them; nothing is under way then.
    pub(crate) fn run_parts(
        &mut self,
        Order { groups, stop, .. }: Order<'_>,
        blocks: &Blocks,
        slices: &mut Vec<Block>,
        parts: Vec<Part>,
        copies_in: &mut Recording<'_>,
        timings: &mut Timings,
    ) -> Result<Vec<Part>, RunError> {
        let mut left: VecDeque<Part> = parts.into();
        let mut now: Vec<Part> = Vec::new();
        let mut room_ns = self.dispatch_limit_ns;
        while let Some(part) = left.pop_front() {
            let stage = &groups[part.group].core.lowered.stages[part.stage];
            let splits = groups[part.group].many.is_none();
            // What was never measured begins with a small part.
            let known = self.pipelines.get(part.pipeline).speed.is_known();
            let room = if known { room_ns } else { room_ns.min(self.dispatch_limit_ns / 8.0) };
            let (fits, rest) = if splits { cut(part, stage, room, |part| self.predict_ns(part)) } else { (part, None) };
            room_ns -= self.predict_ns(&fits);
            now.push(fits);
            let more = rest.is_some();
            if let Some(rest) = rest {
                left.push_front(rest);
            }
            let full = more || left.front().is_some_and(|next| self.predict_ns(next) > room_ns);
            if full && !left.is_empty() {
                let dispatches = self.dispatches(groups, blocks, slices, &now, timings)?;
                let recording = Recording { dispatches, ..std::mem::take(copies_in) };
                let submitted = Instant::now();
                let index = self.submit(&recording)?;
                count(timings, &recording);
                self.wait(&index)?;
                let ns = submitted.elapsed().as_nanos() as u64;
                self.life.progress(ns);
                self.learn(&now, ns);
                now.clear();
                slices.drain(..).for_each(|block| self.driver.pool.give(block, None));
                check(stop)?;
                room_ns = self.dispatch_limit_ns;
            }
        }
        Ok(now)
    }

    /// Shares a measured time among the pipelines that it was spent in.
    pub(crate) fn learn(&mut self, parts: &[Part], ns: u64) {
        let predicted: Vec<f64> = parts.iter().map(|part| self.predict_ns(part)).collect();
        let total: f64 = predicted.iter().sum();
        for (part, predicted) in parts.iter().zip(predicted) {
            self.pipelines.learn(part.pipeline, part.work, ns as f64 * predicted / total.max(1.0));
        }
    }
}

/// Cuts as many units off a part as are predicted to fit into `room_ns`.
fn cut(part: Part, stage: &Stage, room_ns: f64, predict_ns: impl Fn(&Part) -> f64) -> (Part, Option<Part>) {
    let units = part.units.end - part.units.start;
    let fitting = (units as f64 * room_ns / predict_ns(&part).max(1.0)) as u64;
    let step = u64::from(stage.group_units.max(1));
    let fitting = (fitting / step * step).max(step);
    if fitting >= units {
        return (part, None);
    }
    let work = (part.work as u128 * fitting as u128 / units as u128) as u64;
    let middle = part.units.start + fitting;
    let rest = Part { units: middle..part.units.end, work: part.work - work, ..part };
    (Part { units: part.units.start..middle, work, ..part }, Some(rest))
}
