//! Batches on several devices: a plan enters, the cheapest way to divide it leaves, if one is worth it.

use super::{ByRows, CUT, Choice, DEVICES, Routed, Router, SEVERAL, State, lock};
use crate::cost::{Costs, Prediction, Work};
use breakeven_ir::plan::{Cut, Plan};
use smallvec::SmallVec;
use std::sync::Arc;

/// Several devices must be this much better than one to be tried: what is not counted is on their side.
const WORTH_IT: f64 = 0.85;
/// Fewer tasks are not shared.
const SHARED_TASKS: usize = 32;
/// Rows are not shared unless that saves more than so much for each device but one, beyond [`WORTH_IT`]: a thread is woken,
/// results are put together.
const SHARED_ROWS_NS: f64 = 30_000.0;
/// Longer plans are not cut: there is no end of edges.
const CUT_KERNELS: usize = 24;

/// The share of the tasks or rows of a batch that each device has; of the CPU it is the first one.
pub(crate) type Shares = [f64; DEVICES];
/// Nothing is shared.
pub(super) const NOBODY: Shares = [0.0; DEVICES];

/// What a share of a batch takes on a device: so much in any case, and so much for all of the rest.
struct Line {
    device: usize,
    fixed_ns: f64,
    rest_ns: f64,
}

type Lines = SmallVec<[Line; DEVICES]>;

impl Line {
    fn whole_ns(&self) -> f64 {
        self.fixed_ns + self.rest_ns
    }
}

/// Shares with which all are done at once. Whoever has not even begun by then has none.
fn balance(lines: &[Line]) -> Shares {
    let mut order: SmallVec<[&Line; DEVICES]> = lines.iter().filter(|line| line.rest_ns > 0.0).collect();
    order.sort_by(|a, b| a.fixed_ns.total_cmp(&b.fixed_ns));
    // Of time t a device does (t - fixed) / rest, and all of them together do 1.
    let (mut speed, mut lost, mut done_ns) = (0.0, 0.0, f64::INFINITY);
    for line in &order {
        if line.fixed_ns >= done_ns {
            break;
        }
        speed += 1.0 / line.rest_ns;
        lost += line.fixed_ns / line.rest_ns;
        done_ns = (1.0 + lost) / speed;
    }
    let mut shares = NOBODY;
    for line in order {
        shares[line.device] = ((done_ns - line.fixed_ns) / line.rest_ns).clamp(0.0, 1.0);
    }
    shares
}

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
    /// How the tasks of a batch, or the rows of one, are best shared between devices: so that all of them are done at
    /// once. `resident` tells how many bytes of the inputs lie on a device. No shares at all if one is better alone.
    pub(super) fn share(
        &self,
        routed: &Routed,
        state: &mut State,
        choice: &Choice,
        resident: &impl Fn(usize) -> u64,
    ) -> Shares {
        state.sides[SEVERAL].prediction = None;
        let by_rows = if routed.tasks == 1 { routed.by_rows() } else { None };
        if routed.tasks < SHARED_TASKS && by_rows.is_none() {
            return NOBODY;
        }
        let line = |device: usize| {
            let (whole, predicted) = (choice.expected_ns[device] as f64, &choice.predicted[device]);
            if device == 0 {
                // A call of the CPU is no more than its kernels.
                return Line { device, fixed_ns: 0.0, rest_ns: whole };
            }
            let sent_whole = by_rows.map_or(0.0, |by_rows| {
                let resident = resident(device).min(by_rows.whole_bytes);
                let (fixed, all) = (by_rows.whole_bytes - resident, routed.work.upload_bytes.saturating_sub(resident));
                predicted.upload_ns * fixed as f64 / all.max(1) as f64
            });
            let fixed_ns = (predicted.fixed_ns + sent_whole).min(whole * 0.9);
            Line { device, fixed_ns, rest_ns: whole - fixed_ns }
        };
        let mut lines: Lines = (0..DEVICES).filter(|device| choice.expected_ns[*device] > 0).map(line).collect();
        lines.sort_by(|a, b| a.whole_ns().total_cmp(&b.whole_ns()));
        let Some(alone) = lines.first().map(Line::whole_ns) else { return NOBODY };
        let mut best = (WORTH_IT * alone, NOBODY);
        for count in 2..=lines.len() {
            let mut shares = balance(&lines[..count]);
            let mut extra_ns = 0.0;
            if let Some(by_rows) = by_rows {
                shares = by_rows.rounded(&shares);
                extra_ns =
                    SHARED_ROWS_NS * shares.iter().filter(|share| **share > 0.0).count().saturating_sub(1) as f64;
            }
            let part = |line: &Line| match shares[line.device] {
                share if share > 0.0 => line.fixed_ns + share * line.rest_ns,
                _ => 0.0,
            };
            let together = lines.iter().map(part).fold(0.0, f64::max) + extra_ns;
            if together < best.0 && shares.iter().filter(|share| **share > 0.0).count() > 1 {
                best = (together, shares);
            }
        }
        if best.1 != NOBODY {
            state.sides[SEVERAL].prediction = Some(Prediction { kernels_ns: best.0, ..Prediction::default() });
        }
        best.1
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
        let mut best = single.min().unwrap_or(0) as f64 * WORTH_IT;
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
