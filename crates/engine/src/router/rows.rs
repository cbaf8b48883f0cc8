//! Batches of many rows: a plan enters; whether its rows can be shared, in which steps, and the two plans of a share
//! leave.
//!
//! Shares go in steps, so that a plan is made ready for a few of them and not for every one that the figures of the last
//! batch suggest.

use breakeven_ir::plan::{Plan, Rows};
use std::sync::{Arc, OnceLock};

/// Shares are so many parts of the whole.
const STEPS: usize = 16;
/// Each side has so many rows at least. With fewer, a CPU may sum in another order, and what a row is would matter more
/// than how many there are.
const LEAST: usize = 64;

/// A plan whose rows can be shared.
pub(crate) struct ByRows {
    pub(crate) rows: Rows,
    /// Bytes of the inputs that both sides need.
    pub(crate) whole_bytes: u64,
    /// The plans of each share, made when first asked for.
    parts: [OnceLock<Option<Arc<RowParts>>>; STEPS],
}

/// A plan's first rows, and its others.
pub(crate) struct RowParts {
    /// How many are first.
    pub(crate) count: usize,
    /// The first ones, for a device.
    pub(crate) there: Arc<Plan>,
    /// The others, for the CPU.
    pub(crate) here: Arc<Plan>,
}

impl ByRows {
    /// `None` if the plan can't be divided by rows, or has too few.
    pub(crate) fn of(plan: &Plan) -> Option<ByRows> {
        let rows = plan.rows().filter(|rows| rows.count >= 2 * LEAST)?;
        let whole = plan.input_infos().iter().zip(&rows.cut_inputs).filter(|(_, cut)| !**cut);
        let whole_bytes = whole.map(|(info, _)| info.bytes() as u64).sum();
        Some(ByRows { rows, whole_bytes, parts: [const { OnceLock::new() }; STEPS] })
    }

    /// The step that is next to a share and leaves both sides enough rows.
    fn step(&self, share: f64) -> usize {
        let least = (LEAST * STEPS).div_ceil(self.rows.count);
        ((share * STEPS as f64).round() as usize).clamp(least, STEPS - least)
    }

    /// A share as it can be had.
    pub(crate) fn rounded(&self, share: f64) -> f64 {
        self.step(share) as f64 / STEPS as f64
    }

    /// The two plans of a share.
    pub(crate) fn parts(&self, plan: &Plan, share: f64) -> Option<Arc<RowParts>> {
        let step = self.step(share);
        let make = || {
            // Beyond 2^60 rows this is no matter of overflow: there is no such memory.
            let count = self.rows.count.checked_mul(step)? / STEPS;
            let (there, here) = (plan.of_rows(&self.rows, count)?, plan.of_rows(&self.rows, self.rows.count - count)?);
            Some(Arc::new(RowParts { count, there: Arc::new(there), here: Arc::new(here) }))
        };
        self.parts.get(step)?.get_or_init(make).clone()
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
