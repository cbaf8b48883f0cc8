//! Batches of many rows: a plan enters; whether its rows can be shared, in which steps, and the plans of the parts leave.
//!
//! Shares go in steps, so that a plan is made ready for a few of them and not for every one that the figures of the last
//! batch suggest.

use super::{Shares, lock};
use breakeven_ir::plan::{Plan, Rows};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Shares are so many parts of the whole.
const STEPS: usize = 16;
/// Each side has so many rows at least. With fewer, a CPU may sum in another order, and what a row is would matter more
/// than how many there are.
const LEAST: usize = 64;

/// A plan whose rows can be shared.
pub(crate) struct ByRows {
    pub(crate) rows: Rows,
    /// Bytes of the inputs that all sides need.
    pub(crate) whole_bytes: u64,
    /// The plans of so many rows, made when first asked for: devices know a plan by its address.
    plans: Mutex<HashMap<usize, Option<Arc<Plan>>>>,
}

impl ByRows {
    /// `None` if the plan can't be divided by rows, or has too few.
    pub(crate) fn of(plan: &Plan) -> Option<ByRows> {
        let rows = plan.rows().filter(|rows| rows.count >= 2 * LEAST)?;
        let whole = plan.input_infos().iter().zip(&rows.cut_inputs).filter(|(_, cut)| !**cut);
        let whole_bytes = whole.map(|(info, _)| info.bytes() as u64).sum();
        Some(ByRows { rows, whole_bytes, plans: Mutex::default() })
    }

    /// Shares as they can be had: in steps, and so that whoever has some rows has enough of them.
    pub(crate) fn rounded(&self, shares: &Shares) -> Shares {
        let least = (LEAST * STEPS).div_ceil(self.rows.count);
        let mut steps = shares.map(|share| match (share * STEPS as f64).round() as usize {
            steps if steps >= least => steps,
            // Nearer to that than to nothing.
            _ if share * STEPS as f64 * 2.0 >= least as f64 => least,
            _ => 0,
        });
        // Rounding may have made too much or too little of it.
        loop {
            let (sum, largest) = (steps.iter().sum::<usize>(), largest(&steps));
            match sum.cmp(&STEPS) {
                Ordering::Equal => break,
                Ordering::Less if sum == 0 => break,
                Ordering::Less => steps[largest] += 1,
                Ordering::Greater if steps[largest] > least => steps[largest] -= 1,
                // All have the least: the last of them has to go.
                Ordering::Greater => steps[last(&steps)] = 0,
            }
        }
        steps.map(|steps| steps as f64 / STEPS as f64)
    }

    /// How many rows each share has, one after the other. The last of them has what is left.
    pub(crate) fn counts(&self, shares: impl ExactSizeIterator<Item = f64>) -> Vec<usize> {
        let (parts, rows) = (shares.len(), self.rows.count);
        let (mut steps, mut begin) = (0, 0);
        let count = |(number, share): (usize, f64)| {
            steps += (share * STEPS as f64).round() as usize;
            // In this order there is no overflow.
            let end = if number + 1 == parts { rows } else { rows / STEPS * steps + rows % STEPS * steps / STEPS };
            let count = end.min(rows) - begin;
            begin = end.min(rows);
            count
        };
        shares.enumerate().map(count).collect()
    }

    /// The plan for so many of the rows.
    pub(crate) fn plan(&self, whole: &Plan, count: usize) -> Option<Arc<Plan>> {
        let mut plans = lock(&self.plans);
        plans.entry(count).or_insert_with(|| whole.of_rows(&self.rows, count).map(Arc::new)).clone()
    }
}

fn largest(steps: &[usize]) -> usize {
    (0..steps.len()).max_by_key(|at| steps[*at]).unwrap_or(0)
}

/// The last one that has some.
fn last(steps: &[usize]) -> usize {
    steps.iter().rposition(|steps| *steps > 0).unwrap_or(0)
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
