//! What a run says: the arms' times enter row by row, verdicts, ratios and the bars leave.
//!
//! The bars are those that the project promises: no row lost to the best peer, a lead over it on average, a larger
//! one over each single library, and the matrix product near the machine's peak.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::OURS;
use crate::limits::{Limits, Share};
use crate::measure::ArmReport;
use crate::peers::RUST_LIBRARIES;
use crate::workload::{Cost, Kind, Workload};

/// From here on a row is judged by its ratio, below by its difference: a call's fixed cost counts there.
const RATIO_FROM_NS: f64 = 10_000.0;
/// A row at least this fast, relative to the best peer, is not lost (noise between equal arms is about 5 %).
const LEAST_RATIO: f64 = 0.95;
/// What a call may cost more than the best peer's on small rows.
const MOST_EXTRA_NS: f64 = 200.0;
/// Sizes from which the bar against the Rust libraries counts.
const RUST_BAR_FROM: usize = 100_000;
/// Matrix sides from which the share of the FMA peak counts.
const MATMUL_BAR_FROM: usize = 512;

/// A name and a time.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// Library and variant.
    pub name: String,
    /// Median nanoseconds a call.
    pub ns: f64,
}

/// One row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The workload's name.
    pub workload: &'static str,
    /// Its size.
    pub n: usize,
    /// Our fastest arm, once there is one.
    pub ours: Option<Timed>,
    /// The fastest arm of all peers.
    pub best_peer: Option<Timed>,
    /// Best peer's time over ours.
    pub ratio: Option<f64>,
    /// Whether the row's bar is met.
    pub passes: Option<bool>,
    /// Share of the machine's limit: ours, or the best peer's where ours is missing.
    pub share: Option<Share>,
    /// Share of the FMA peak of that arm, for matrix products.
    pub fma_share: Option<f64>,
    /// What the machine must at least do.
    pub cost: Cost,
    /// Whether the row is a large matrix product, whose share of the FMA peak has a bar.
    pub is_product: bool,
    /// Whether the row counts for the bar against the Rust libraries.
    pub counts_for_rust_bar: bool,
    /// Every arm.
    pub arms: Vec<ArmReport>,
}

impl Row {
    /// Compares the arms of one workload; the shares of the limit are known at the end of the run.
    pub fn new(workload: &Workload, arms: Vec<ArmReport>) -> Row {
        let ours = fastest(arms.iter().filter(|arm| arm.library == OURS));
        let best_peer = fastest(arms.iter().filter(|arm| arm.library != OURS));
        let both = ours.as_ref().zip(best_peer.as_ref());
        Row {
            workload: workload.kind.name(),
            n: workload.n,
            ratio: both.map(|(ours, peer)| peer.ns / ours.ns),
            passes: both.map(|(ours, peer)| passes(ours.ns, peer.ns)),
            share: None,
            fma_share: None,
            cost: workload.cost,
            is_product: workload.kind == Kind::Matmul,
            counts_for_rust_bar: workload.kind.is_transcendental() && workload.n >= RUST_BAR_FROM,
            ours,
            best_peer,
            arms,
        }
    }

    fn share_of(self, limits: &Limits) -> Row {
        let ns = self.ours.as_ref().or(self.best_peer.as_ref()).map(|timed| timed.ns);
        Row {
            share: ns.map(|ns| limits.share(self.cost, ns)),
            fma_share: ns.filter(|_| self.is_product).map(|ns| self.cost.flops / ns / limits.fma_gflops_all_threads),
            ..self
        }
    }

    /// The fastest arm of one library.
    pub fn best_of(&self, library: &str) -> Option<Timed> {
        fastest(self.arms.iter().filter(|arm| arm.library == library))
    }
}

fn passes(ours_ns: f64, peer_ns: f64) -> bool {
    if peer_ns >= RATIO_FROM_NS { peer_ns / ours_ns >= LEAST_RATIO } else { ours_ns <= peer_ns + MOST_EXTRA_NS }
}

fn fastest<'a>(arms: impl Iterator<Item = &'a ArmReport>) -> Option<Timed> {
    arms.filter_map(|arm| Some(Timed { name: arm.name.clone(), ns: arm.median_ns()? }))
        .min_by(|a, b| a.ns.total_cmp(&b.ns))
}

/// Our lead over one library, over the rows that both have.
#[derive(Clone, Debug, Serialize)]
pub struct Lead {
    /// Geometric mean of its time over ours.
    pub geomean: f64,
    /// What it would be if ours took no more than the machine's limit in every row: what no library can be better than.
    pub ceiling: Option<f64>,
    /// The smallest ratio among the rows.
    pub least: f64,
    /// Rows that it comes from.
    pub rows: usize,
}

/// A promise and whether this run keeps it.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// What is promised.
    pub promise: String,
    /// What was measured; absent where the run has no row for it.
    pub value: Option<f64>,
    /// What it must reach.
    pub target: f64,
    /// Whether it does.
    pub passes: bool,
}

/// Everything that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The CPU's name.
    pub machine: String,
    /// Versions, and what was left out.
    pub notes: Vec<String>,
    /// What the machine can do at most.
    pub limits: Limits,
    /// The table.
    pub rows: Vec<Row>,
    /// Our lead over each library on all rows.
    pub leads: BTreeMap<String, Lead>,
    /// Our lead over each Rust library on sigmoid, gelu, softmax and the chain from 10^5 elements on.
    pub rust_leads: BTreeMap<String, Lead>,
    /// The promises.
    pub bars: Vec<Bar>,
}

impl Report {
    /// Draws the conclusions from the rows.
    pub fn new(machine: String, notes: Vec<String>, limits: Limits, rows: Vec<Row>) -> Report {
        let rows: Vec<Row> = rows.into_iter().map(|row| row.share_of(&limits)).collect();
        let mut leads = BTreeMap::new();
        let mut rust_leads = BTreeMap::new();
        let libraries: Vec<&str> =
            rows.iter().flat_map(|row| row.arms.iter().map(|arm| arm.library.as_str())).collect();
        for library in libraries.into_iter().filter(|&library| library != OURS) {
            if let Some(lead) = lead(rows.iter(), library) {
                leads.insert(library.to_owned(), lead);
            }
            let transcendental = rows.iter().filter(|row| row.counts_for_rust_bar);
            if let Some(lead) = lead(transcendental, library).filter(|_| RUST_LIBRARIES.contains(&library)) {
                rust_leads.insert(library.to_owned(), lead);
            }
        }
        let bars = bars(&rows, &leads, &rust_leads);
        Report { machine, notes, limits, rows, leads, rust_leads, bars }
    }

    /// Whether every bar is met.
    pub fn passes(&self) -> bool {
        self.bars.iter().all(|bar| bar.passes)
    }
}

fn lead<'a>(rows: impl Iterator<Item = &'a Row>, library: &str) -> Option<Lead> {
    let both: Vec<(f64, Option<f64>)> = rows
        .filter_map(|row| {
            let ratio = row.best_of(library)?.ns / row.ours.as_ref()?.ns;
            Some((ratio, row.share.as_ref().map(|share| ratio / share.of_limit)))
        })
        .collect();
    let ratios: Vec<f64> = both.iter().map(|(ratio, _)| *ratio).collect();
    let limits: Vec<f64> = both.iter().filter_map(|(_, limit)| *limit).collect();
    let (geomean, ceiling) = (geomean(&ratios)?, geomean(&limits));
    Some(Lead { geomean, ceiling, least: ratios.iter().copied().fold(f64::INFINITY, f64::min), rows: ratios.len() })
}

fn geomean(ratios: &[f64]) -> Option<f64> {
    let count = ratios.len();
    (count > 0).then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count as f64).exp())
}

fn bars(rows: &[Row], leads: &BTreeMap<String, Lead>, rust_leads: &BTreeMap<String, Lead>) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut bar = |promise: String, value: Option<f64>, target: f64| {
        bars.push(Bar { promise, value, target, passes: value.is_some_and(|value| value >= target) });
    };
    let verdicts: Vec<bool> = rows.iter().filter_map(|row| row.passes).collect();
    let kept = verdicts.iter().filter(|&&passes| passes).count();
    let share_kept = (!verdicts.is_empty()).then(|| kept as f64 / verdicts.len() as f64);
    bar(format!("share of rows not lost to the best peer ({kept} of {})", verdicts.len()), share_kept, 1.0);
    let ratios: Vec<f64> = rows.iter().filter_map(|row| row.ratio).collect();
    bar("geometric mean over the best peer of each row".to_owned(), geomean(&ratios), 1.25);
    for (library, lead) in leads {
        let ceiling = lead.ceiling.map_or(String::new(), |at| format!(", {at:.2} at the machine's limit in each"));
        bar(format!("geometric mean over {library} ({} rows{ceiling})", lead.rows), Some(lead.geomean), 2.0);
    }
    for (library, lead) in rust_leads {
        let promise = format!("over {library} on sigmoid, gelu, softmax, chain from 10^5 ({} rows)", lead.rows);
        bar(promise, Some(lead.geomean), 5.0);
    }
    let products = rows.iter().filter(|row| row.n >= MATMUL_BAR_FROM && row.ours.is_some());
    let least = products.filter_map(|row| row.fma_share).reduce(f64::min);
    bar(format!("least share of the FMA peak, matmul from {MATMUL_BAR_FROM}"), least, 0.88);
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rows_are_judged_by_difference_and_large_ones_by_ratio() {
        assert!(passes(290.0, 100.0));
        assert!(!passes(310.0, 100.0));
        assert!(passes(10_500.0, 10_000.0));
        assert!(!passes(10_600.0, 10_000.0));
    }

    #[test]
    fn geometric_mean_of_reciprocals_is_one() {
        assert!((geomean(&[4.0, 0.25]).unwrap() - 1.0).abs() < 1e-12);
        assert!(geomean(&[]).is_none());
    }
}
