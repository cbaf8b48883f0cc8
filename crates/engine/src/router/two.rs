//! Batches on two devices: a plan enters, the cheapest way to divide it leaves, if one is worth it.

use super::{BOTH, ByRows, CUT, Choice, DEVICES, Routed, Router, State, lock};
use crate::cost::{Costs, Prediction, Work};
use breakeven_ir::plan::{Cut, Plan};
use std::sync::Arc;

/// Two devices must be this much better than one to be tried: what is not counted is on their side.
const WORTH_TWO: f64 = 0.85;
/// Fewer tasks are not shared.
const SHARED_TASKS: usize = 32;
/// Rows are not shared unless that saves more than so much beyond [`WORTH_TWO`]: a thread is woken, results are put
/// together.
const SHARED_ROWS_NS: f64 = 30_000.0;
/// Longer plans are not cut: there is no end of edges.
const CUT_KERNELS: usize = 24;

/// A plan in two halves.
pub(super) struct Edge {
    cut: Arc<Cut>,
    front: Work,
    back: Work,
}

/// Two halves and where they run.
#[derive(Clone)]
pub(crate) struct Halves {
    pub(crate) cut: Arc<Cut>,
    pub(crate) front: usize,
    pub(crate) back: usize,
}

/// A plan cut at every edge.
fn edges(plan: &Arc<Plan>) -> Vec<Edge> {
    let count = if plan.kernels.len() <= CUT_KERNELS { plan.kernels.len() } else { 0 };
    let edge = |at: usize| {
        let cut = plan.cut(at)?;
        let (front, back) = (Work::of(&cut.front), Work::of(&cut.back));
        Some(Edge { cut: Arc::new(cut), front, back })
    };
    (1..count).filter_map(edge).collect()
}

impl Router {
    /// How the tasks of a batch, or the rows of one, are best shared between the CPU and the best other device: so that
    /// both are done at once. `resident` tells how many bytes of the inputs lie on a device.
    pub(super) fn share(
        &self,
        routed: &Routed,
        state: &mut State,
        choice: &Choice,
        resident: &impl Fn(usize) -> u64,
    ) -> (usize, f64) {
        state.sides[BOTH].prediction = None;
        let others = (1..DEVICES).filter(|device| choice.expected_ns[*device] > 0);
        let Some(device) = others.min_by_key(|device| choice.expected_ns[*device]) else { return (0, 0.0) };
        let by_rows = if routed.tasks == 1 { routed.by_rows() } else { None };
        if routed.tasks < SHARED_TASKS && by_rows.is_none() {
            return (0, 0.0);
        }
        let (cpu, whole) = (choice.expected_ns[0] as f64, choice.expected_ns[device] as f64);
        let predicted = &choice.predicted[device];
        let sent_whole = by_rows.map_or(0.0, |by_rows| {
            let resident = resident(device).min(by_rows.whole_bytes);
            let (fixed, all) = (by_rows.whole_bytes - resident, routed.work.upload_bytes.saturating_sub(resident));
            predicted.upload_ns * fixed as f64 / all.max(1) as f64
        });
        let fixed = (predicted.fixed_ns + sent_whole).min(whole * 0.9);
        // Its fixed cost, and its share of the rest, take as long as the CPU's share.
        let mut share = ((cpu - fixed) / (cpu + whole - fixed)).clamp(0.0, 1.0);
        let mut both = (1.0 - share) * cpu;
        if let Some(by_rows) = by_rows {
            share = by_rows.rounded(share);
            both = ((1.0 - share) * cpu).max(fixed + share * (whole - fixed)) + SHARED_ROWS_NS;
        }
        if cpu <= 0.0 || both > WORTH_TWO * cpu.min(whole) {
            return (0, 0.0);
        }
        state.sides[BOTH].prediction = Some(Prediction { kernels_ns: both, ..Prediction::default() });
        (device, share)
    }

    /// The halves that a plan is to be run in.
    pub(crate) fn halves(&self, routed: &Routed) -> Option<Halves> {
        lock(&routed.state).halves.clone()
    }

    /// The cheapest cut of a plan: its front on one device, its back on another, and what crosses between them.
    pub(super) fn cut(&self, routed: &Routed, state: &mut State) {
        state.halves = None;
        state.sides[CUT].prediction = None;
        if routed.tasks > 1 || routed.work.kernels.len() < 2 {
            return;
        }
        let single = (0..DEVICES).filter_map(|device| Some(state.sides[device].prediction?.total_ns()));
        let mut best = single.min().unwrap_or(0) as f64 * WORTH_TWO;
        let known: Vec<(usize, Arc<Costs>)> =
            (0..DEVICES).filter_map(|device| Some((device, self.costs(device)?))).collect();
        for edge in routed.edges.get_or_init(|| edges(&routed.plan)) {
            for (front, front_costs) in &known {
                for (back, back_costs) in known.iter().filter(|(back, _)| back != front) {
                    let (a, b) = (front_costs.predict(&edge.front, 0), back_costs.predict(&edge.back, 0));
                    let total = (a.total_ns() + b.total_ns()) as f64;
                    if total < best {
                        best = total;
                        state.halves = Some(Halves { cut: edge.cut.clone(), front: *front, back: *back });
                        state.sides[CUT].prediction = Some(a.and(&b));
                    }
                }
            }
        }
    }
}

impl Routed {
    /// How the rows of the plan can be shared, if they can be.
    pub(crate) fn by_rows(&self) -> Option<&ByRows> {
        self.by_rows.get_or_init(|| ByRows::of(&self.plan)).as_ref()
    }
}
