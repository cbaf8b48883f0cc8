//! Which device a batch runs on: what the plan asks for, what devices cost and what batches took lately enter; a choice
//! with its reason leaves, and learns from what it took.
//!
//! Devices are numbered: 0 is the CPU, 1 is `gpu:0`, and so on. A choice for a plan that was seen before takes two
//! uncontended locks and allocates nothing.

mod bias;
mod divide;
mod home;
mod key;
mod learn;
mod rows;

pub(crate) use divide::{Halves, Shares};
pub(crate) use rows::ByRows;

use crate::cost::history::History;
use crate::cost::{Costs, Prediction, Work};
use bias::{About, Biases};
use breakeven_ir::plan::Plan;
use key::{Key, Mix, key};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// Another device must be this much better before a plan moves there: a tenth, which is about the noise between equals.
const BETTER: f64 = 0.9;
/// A device whose fixed cost alone is this many times what the CPU takes is not thought about.
const HOPELESS: f64 = 2.0;
/// Exploring begins after so many batches of a plan: before that every batch says something anyway.
const SETTLED: u64 = 8;
/// Batches of a plan after which what they took is compared with the model; and after twice as many, and so on.
const TELLING: u64 = 5;
/// Batches in a row that confirm what a surprising exploration has found.
const CONFIRM: u32 = 2;
/// Devices beyond this number are not routed to.
pub(crate) const DEVICES: usize = 6;
/// The number under which a plan's two halves on two devices are a device of their own: with a prediction, a history,
/// and all that follows from it.
pub(crate) const CUT: usize = DEVICES;
/// The number under which several devices at once, each with a share of the tasks or of the rows, are a device of their
/// own.
pub(crate) const SEVERAL: usize = DEVICES + 1;
/// All of them.
pub(crate) const MOST: usize = DEVICES + 2;
/// A device that failed for a plan again and again is tried after this many batches at the latest.
const LONGEST_AWAY: u64 = 64;

/// What is to be small.
///
/// ```
/// assert_eq!("throughput".parse(), Ok(breakeven::Objective::Throughput));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Objective {
    /// The time from the call to the results.
    #[default]
    Latency,
    /// What a batch keeps busy, when batches come without a pause: the transfers of one overlap the kernels of another.
    Throughput,
}

impl std::str::FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Objective, String> {
        match text {
            "latency" => Ok(Objective::Latency),
            "throughput" => Ok(Objective::Throughput),
            _ => Err("latency or throughput".into()),
        }
    }
}

/// Why a device was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// Nothing but the CPU is known.
    OnlyCpu,
    /// It is expected to be done first.
    Cheapest,
    /// Another one is a little better, but not by enough to move.
    Stays,
    /// To learn what it takes there now.
    Explores,
}

/// A choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) device: usize,
    pub(crate) why: Why,
    /// What each device is expected to take; 0 where it was not thought about.
    pub(crate) expected_ns: [u64; MOST],
    /// The devices, as bits, whose expectation comes from batches of this very plan.
    pub(crate) measured: u32,
    /// What the model said, before anything was learned from this plan's own batches.
    pub(crate) predicted: [Prediction; MOST],
    /// What each device has of the tasks or of the rows, if they are shared.
    pub(crate) shares: Shares,
}

/// A plan on its way to devices.
pub(crate) struct Routed {
    /// Kept, because the plan is known by its address.
    plan: Arc<Plan>,
    pub(crate) work: Work,
    pub(crate) tasks: usize,
    /// What the model's errors depend on.
    about: About,
    /// One more than the version of the costs at which the CPU was found to be beyond doubt.
    settled: AtomicU64,
    /// The plan cut at every edge, when first asked for.
    edges: OnceLock<Vec<divide::Edge>>,
    /// How its rows can be shared, when first asked for.
    by_rows: OnceLock<Option<ByRows>>,
    state: Mutex<State>,
}

struct State {
    /// The costs that the predictions come from.
    version: u64,
    sides: [Side; MOST],
    current: Option<usize>,
    batches: u64,
    /// Explorations that still confirm the last one.
    confirm: Option<(usize, u32)>,
    /// The cheapest cut, if one is worth it.
    halves: Option<Halves>,
}

#[derive(Clone, Copy, Default)]
struct Side {
    /// If everything has to be sent there, and nothing is waited for.
    prediction: Option<Prediction>,
    /// What batches took, as if everything had been sent and nothing waited for.
    history: History,
    /// Batches in a row that it was chosen for and did not do.
    failures: u32,
    /// It is not thought about before this batch.
    away_until: u64,
    /// Batches that it did.
    batches: u64,
    /// Where it is noted how far off the model was.
    told: Option<u64>,
}

impl Side {
    /// What the model says for a batch of which everything has to be sent.
    fn whole_ns(&self) -> f64 {
        self.prediction.as_ref().map_or(0.0, without_wait_ns)
    }
}

fn without_wait_ns(prediction: &Prediction) -> f64 {
    prediction.fixed_ns + prediction.upload_ns + prediction.kernels_ns + prediction.readback_ns
}

/// What is known about devices, and what plans took on them.
pub(crate) struct Router {
    known: RwLock<Vec<Option<Arc<Costs>>>>,
    /// Changes when costs do.
    version: AtomicU64,
    /// Is anything but the CPU known?
    open: AtomicBool,
    plans: Mutex<HashMap<Key, Arc<Routed>, BuildHasherDefault<Mix>>>,
    capacity: usize,
    /// Of all time, this share may go into looking whether another device has become better.
    explore: f64,
    spent_ns: AtomicU64,
    explored_ns: AtomicU64,
    biases: Mutex<Biases>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is figures, none of which depends on another.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Router {
    pub(crate) fn new(capacity: usize, explore: f64) -> Router {
        Router {
            known: RwLock::default(),
            version: AtomicU64::new(0),
            open: AtomicBool::new(false),
            plans: Mutex::default(),
            capacity: capacity.max(1),
            explore,
            spent_ns: AtomicU64::new(0),
            explored_ns: AtomicU64::new(0),
            biases: Mutex::default(),
        }
    }

    /// May a batch run elsewhere than on the CPU?
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }

    /// What a device costs, from now on.
    pub(crate) fn set_costs(&self, device: usize, costs: Costs) {
        if device >= DEVICES {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() <= device {
            known.resize(device + 1, None);
        }
        known[device] = Some(Arc::new(costs));
        let open = known.iter().skip(1).any(Option::is_some);
        drop(known);
        lock(&self.biases).forget(device);
        self.version.fetch_add(1, Relaxed);
        self.open.store(open, Relaxed);
    }

    /// What a device costs, if that is known.
    pub(crate) fn costs(&self, device: usize) -> Option<Arc<Costs>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(device).cloned().flatten()
    }

    /// What is known about a plan, of which a batch has so many tasks.
    pub(crate) fn routed(&self, plan: &Arc<Plan>, tasks: usize) -> Arc<Routed> {
        let key = key(plan, tasks);
        if let Some(routed) = lock(&self.plans).get(&key) {
            return routed.clone();
        }
        let routed = Arc::new(Routed::new(plan, tasks));
        let mut plans = lock(&self.plans);
        if plans.len() >= self.capacity {
            plans.clear();
        }
        plans.insert(key, routed.clone());
        routed
    }

    /// Is it beyond doubt that the CPU is best? Then nothing needs to be noted either.
    pub(crate) fn is_settled(&self, plan: &Arc<Plan>, tasks: usize) -> bool {
        let settled = lock(&self.plans).get(&key(plan, tasks)).map(|routed| routed.settled.load(Relaxed));
        settled == Some(self.version.load(Relaxed) + 1)
    }

    /// Chooses among the devices, and the ways to use two, whose bit is set in `usable` (the CPU always is). `resident`
    /// tells how many bytes of the inputs a device has already, `wait_ns` until when it is busy.
    pub(crate) fn choose(
        &self,
        routed: &Routed,
        usable: u32,
        objective: Objective,
        resident: impl Fn(usize) -> u64,
        wait_ns: impl Fn(usize) -> u64,
    ) -> Choice {
        let version = self.version.load(Relaxed);
        let mut state = lock(&routed.state);
        if state.version != version {
            self.predict(routed, &mut state, version);
        }
        let mut choice = Choice {
            device: 0,
            why: Why::OnlyCpu,
            expected_ns: [0; MOST],
            measured: 0,
            predicted: [Prediction::default(); MOST],
            shares: divide::NOBODY,
        };
        let biases = lock(&self.biases);
        let mut best = (0, u64::MAX);
        for device in 0..MOST {
            let is_usable = |device: usize| device == 0 || usable >> device & 1 == 1;
            if device == SEVERAL && is_usable(SEVERAL) {
                choice.shares = self.share(routed, &mut state, &choice, &resident);
            }
            if state.sides[device].away_until > state.batches {
                continue;
            }
            let may = match (device, &state.halves) {
                (CUT, halves) => {
                    is_usable(CUT) && halves.as_ref().is_some_and(|h| is_usable(h.front) && is_usable(h.back))
                }
                (SEVERAL, _) => is_usable(SEVERAL) && choice.shares != divide::NOBODY,
                (device, _) => is_usable(device),
            };
            if !may {
                continue;
            }
            let side = &state.sides[device];
            let Some(mut prediction) = side.prediction else { continue };
            let bytes = if device < DEVICES { resident(device) } else { 0 }.min(routed.work.upload_bytes);
            if bytes > 0 {
                // In proportion: the curve was asked for all of them.
                prediction.upload_ns *= 1.0 - bytes as f64 / routed.work.upload_bytes.max(1) as f64;
            }
            prediction.wait_ns = if device < DEVICES { wait_ns(device) } else { 0 } as f64;
            choice.predicted[device] = prediction;
            let modelled = match objective {
                Objective::Latency => prediction.total_ns(),
                Objective::Throughput => prediction.busy_ns(),
            };
            let expected = match (side.history.expected_ns(), objective) {
                (Some(_), _) if side.whole_ns() == 0.0 => modelled,
                (Some(ns), objective) => {
                    choice.measured |= 1 << device;
                    // In proportion to what it would be by the model: what lies there already is not sent.
                    let whole = ns as f64 / side.whole_ns();
                    match objective {
                        Objective::Latency => (whole * without_wait_ns(&prediction) + prediction.wait_ns) as u64,
                        Objective::Throughput => (whole * prediction.busy_ns() as f64) as u64,
                    }
                }
                (None, _) => (modelled as f64 * biases.factor(device, &routed.about)) as u64,
            };
            choice.expected_ns[device] = expected.max(1);
            if expected < best.1 {
                best = (device, expected);
            }
        }
        drop(biases);
        state.batches += 1;
        if choice.expected_ns[1..].iter().all(|ns| *ns == 0) {
            return choice;
        }
        (choice.device, choice.why) = self.settle(&mut state, best.0, &choice.expected_ns);
        if choice.device == 0 && choice.why == Why::Cheapest {
            let hopeless = |device: usize| match state.sides[device].prediction {
                Some(prediction) => prediction.fixed_ns > HOPELESS * choice.expected_ns[0] as f64,
                None => true,
            };
            if state.sides[0].history.expected_ns().is_some() && (1..DEVICES).all(hopeless) {
                routed.settled.store(version + 1, Relaxed);
            }
        }
        choice
    }

    /// What a device is expected to take, if it is known: from batches of this very plan, or by the model.
    pub(crate) fn expected_ns(&self, routed: &Routed, device: usize) -> Option<u64> {
        let version = self.version.load(Relaxed);
        let mut state = lock(&routed.state);
        if state.version != version {
            self.predict(routed, &mut state, version);
        }
        let side = &state.sides[device];
        let modelled = side.prediction?.total_ns() as f64;
        let expected = side.history.expected_ns();
        Some(expected.unwrap_or_else(|| (modelled * lock(&self.biases).factor(device, &routed.about)) as u64))
    }

    /// The best, or the one in use, or one that is worth a look.
    fn settle(&self, state: &mut State, best: usize, expected_ns: &[u64; MOST]) -> (usize, Why) {
        if let Some((device, left)) = state.confirm
            && expected_ns[device] > 0
        {
            state.confirm = (left > 1).then_some((device, left - 1));
            return (device, Why::Explores);
        }
        // A plan begins on the CPU: what is about as good elsewhere is as likely worse, and a guess about a device is the
        // wilder one.
        let current = state.current.filter(|device| expected_ns[*device] > 0).unwrap_or(0);
        let stays = current != best && expected_ns[best] as f64 > BETTER * expected_ns[current] as f64;
        let device = if stays { current } else { best };
        state.current = Some(device);
        if let Some(other) = self.worth_a_look(state, device, expected_ns) {
            return (other, Why::Explores);
        }
        (device, if stays { Why::Stays } else { Why::Cheapest })
    }

    /// The device of which least is known lately, if the budget has room for what it may cost more.
    fn worth_a_look(&self, state: &State, device: usize, expected_ns: &[u64; MOST]) -> Option<usize> {
        if state.batches <= SETTLED || self.explore <= 0.0 {
            return None;
        }
        let room = self.explore * self.spent_ns.load(Relaxed) as f64 - self.explored_ns.load(Relaxed) as f64;
        let more = |other: usize| {
            let history = &state.sides[other].history;
            // One time is no opinion, but what it took once it may take again.
            let once = if history.expected_ns().is_none() { history.last_ns().unwrap_or(0) } else { 0 };
            expected_ns[other].max(once).saturating_sub(expected_ns[device]) as f64
        };
        let heard = |other: usize| state.sides[other].history.last_batch;
        let candidates = (0..MOST).filter(|other| *other != device && expected_ns[*other] > 0);
        // What was heard just now would only be heard again, and one that is too dear hides no other.
        let affordable = candidates.filter(|other| state.batches - heard(*other) > SETTLED && more(*other) <= room);
        affordable.min_by_key(|other| heard(*other))
    }

    fn predict(&self, routed: &Routed, state: &mut State, version: u64) {
        for device in 0..DEVICES {
            // A CPU that was not measured is a common one: what others are compared with is never left out.
            let costs = self.costs(device).or_else(|| (device == 0).then(Arc::default));
            state.sides[device].told = None;
            state.sides[device].prediction = costs.map(|costs| match routed.tasks {
                1 => costs.predict(&routed.work, 0),
                tasks => costs.predict_many(&routed.work, tasks),
            });
        }
        self.cut(routed, state);
        state.version = version;
    }
}

impl Routed {
    fn new(plan: &Arc<Plan>, tasks: usize) -> Routed {
        let state = State {
            version: u64::MAX,
            sides: [Side::default(); MOST],
            current: None,
            batches: 0,
            confirm: None,
            halves: None,
        };
        let work = Work::of(plan);
        Routed {
            about: About::new(work.largest()),
            work,
            tasks: tasks.max(1),
            plan: plan.clone(),
            edges: OnceLock::new(),
            by_rows: OnceLock::new(),
            settled: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
