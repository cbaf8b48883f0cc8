//! Which device a batch runs on: what the plan asks for, what devices cost and what batches took lately enter; a choice
//! with its reason leaves, and learns from what it took.
//!
//! Devices are numbered: 0 is the CPU, 1 is `gpu:0`, and so on. A choice for a plan that was seen before takes two
//! uncontended locks and allocates nothing.

use crate::cost::history::History;
use crate::cost::{Costs, Prediction, Work};
use breakeven_ir::plan::Plan;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Another device must be this much better before a plan moves there: a tenth, which is about the noise between equals.
const BETTER: f64 = 0.9;
/// A device whose fixed cost alone is this many times what the CPU takes is not thought about.
const HOPELESS: f64 = 2.0;
/// Exploring begins after so many batches of a plan: before that every batch says something anyway.
const SETTLED: u64 = 8;
/// Batches in a row that confirm what a surprising exploration has found.
const CONFIRM: u32 = 2;
/// Devices beyond this number are not routed to.
pub(crate) const MOST: usize = 8;

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
}

/// A plan on its way to devices.
pub(crate) struct Routed {
    /// Kept, because the plan is known by its address.
    _plan: Arc<Plan>,
    pub(crate) work: Work,
    pub(crate) tasks: usize,
    /// One more than the version of the costs at which the CPU was found to be beyond doubt.
    settled: AtomicU64,
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
}

#[derive(Clone, Copy, Default)]
struct Side {
    prediction: Option<Prediction>,
    history: History,
}

/// A plan by its address, and the order of magnitude of how many tasks there are of it.
type Key = (usize, u32);

fn key(plan: &Arc<Plan>, tasks: usize) -> Key {
    (Arc::as_ptr(plan) as usize, tasks.max(1).ilog2())
}

/// What is known about devices, and what plans took on them.
pub(crate) struct Router {
    known: RwLock<Vec<Option<Arc<Costs>>>>,
    /// Changes when costs do.
    version: AtomicU64,
    /// Is anything but the CPU known?
    open: AtomicBool,
    plans: Mutex<HashMap<Key, Arc<Routed>>>,
    capacity: usize,
    /// Of all time, this share may go into looking whether another device has become better.
    explore: f64,
    spent_ns: AtomicU64,
    explored_ns: AtomicU64,
    biases: Mutex<[Bias; MOST]>,
}

/// How far off the model was lately, on one device: logarithms of measured over predicted.
#[derive(Clone, Copy)]
struct Bias {
    logs: [f32; Bias::WINDOW],
    len: usize,
    next: usize,
}

impl Bias {
    const WINDOW: usize = 15;
    /// Fewer say nothing about the next plan.
    const ENOUGH: usize = 5;

    fn push(&mut self, log: f64) {
        // One batch says no more than a factor of eight, whatever happened to it.
        self.logs[self.next] = log.clamp(-2.1, 2.1) as f32;
        self.next = (self.next + 1) % Bias::WINDOW;
        self.len = (self.len + 1).min(Bias::WINDOW);
    }

    fn factor(&self) -> f64 {
        if self.len < Bias::ENOUGH {
            return 1.0;
        }
        let mut sorted = self.logs;
        let known = &mut sorted[..self.len];
        known.sort_unstable_by(f32::total_cmp);
        f64::from(known[self.len / 2]).exp()
    }
}

impl Default for Bias {
    fn default() -> Bias {
        Bias { logs: [0.0; Bias::WINDOW], len: 0, next: 0 }
    }
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
            biases: Mutex::new([Bias::default(); MOST]),
        }
    }

    /// May a batch run elsewhere than on the CPU?
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }

    /// What a device costs, from now on.
    pub(crate) fn set_costs(&self, device: usize, costs: Costs) {
        if device >= MOST {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() <= device {
            known.resize(device + 1, None);
        }
        known[device] = Some(Arc::new(costs));
        let open = known.iter().skip(1).any(Option::is_some);
        drop(known);
        lock(&self.biases)[device] = Bias::default();
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

    /// Chooses among the devices whose bit is set in `usable` (the CPU always is). `resident` tells how many bytes of
    /// the inputs a device has already, `wait_ns` until when it is busy.
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
        };
        let biases = lock(&self.biases);
        let mut best = (0, u64::MAX);
        for device in 0..MOST {
            if device > 0 && usable >> device & 1 == 0 {
                continue;
            }
            let side = &state.sides[device];
            let Some(mut prediction) = side.prediction else { continue };
            let bytes = resident(device).min(routed.work.upload_bytes);
            if bytes > 0 {
                // In proportion: the curve was asked for all of them.
                prediction.upload_ns *= 1.0 - bytes as f64 / routed.work.upload_bytes.max(1) as f64;
            }
            prediction.wait_ns = wait_ns(device) as f64;
            choice.predicted[device] = prediction;
            let factor = biases[device].factor();
            let modelled = match objective {
                Objective::Latency => prediction.total_ns(),
                Objective::Throughput => prediction.busy_ns(),
            };
            let expected = match side.history.expected_ns() {
                Some(ns) => {
                    choice.measured |= 1 << device;
                    ns + prediction.wait_ns as u64
                }
                None => (modelled as f64 * factor) as u64,
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
            if state.sides[0].history.expected_ns().is_some() && (1..MOST).all(hopeless) {
                routed.settled.store(version + 1, Relaxed);
            }
        }
        choice
    }

    /// The best, or the one in use, or one that is worth a look.
    fn settle(&self, state: &mut State, best: usize, expected_ns: &[u64; MOST]) -> (usize, Why) {
        if let Some((device, left)) = state.confirm
            && expected_ns[device] > 0
        {
            state.confirm = (left > 1).then_some((device, left - 1));
            return (device, Why::Explores);
        }
        let current = state.current.filter(|device| expected_ns[*device] > 0).unwrap_or(best);
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
        let more = |other: usize| expected_ns[other].saturating_sub(expected_ns[device]) as f64;
        let heard = |other: usize| state.sides[other].history.last_batch;
        let candidates = (0..MOST).filter(|other| *other != device && expected_ns[*other] > 0);
        let other = candidates.min_by_key(|other| heard(*other))?;
        // What was heard just now would only be heard again.
        (state.batches - heard(other) > SETTLED && more(other) <= room).then_some(other)
    }

    fn predict(&self, routed: &Routed, state: &mut State, version: u64) {
        for device in 0..MOST {
            state.sides[device].prediction = self.costs(device).map(|costs| match routed.tasks {
                1 => costs.predict(&routed.work, 0),
                tasks => costs.predict_many(&routed.work, tasks),
            });
        }
        state.version = version;
    }

    /// Learns what a batch took. `is_first` if something had to be made for it, which the next one will find.
    pub(crate) fn learn(&self, routed: &Routed, choice: &Choice, device: usize, actual_ns: u64, is_first: bool) {
        let mut state = lock(&routed.state);
        self.spent_ns.fetch_add(actual_ns, Relaxed);
        if choice.why == Why::Explores && device == choice.device {
            let usual = state.current.map_or(0, |current| choice.expected_ns[current]);
            self.explored_ns.fetch_add(actual_ns.saturating_sub(usual), Relaxed);
            // A pleasant surprise is looked at again at once; a window of old times would hide it.
            let surprise = usual > 0 && (actual_ns as f64) < BETTER * usual as f64;
            if surprise && state.confirm.is_none() && state.sides[device].history.expected_ns() > Some(usual) {
                state.confirm = Some((device, CONFIRM));
            }
        }
        if is_first || device >= MOST {
            return;
        }
        let batch = state.batches;
        let side = &mut state.sides[device];
        let is_new = side.history.last_ns().is_none();
        side.history.push(actual_ns, batch);
        let predicted = choice.predicted[device].total_ns();
        if is_new && predicted > 0 && actual_ns > 0 {
            lock(&self.biases)[device].push((actual_ns as f64 / predicted as f64).ln());
        }
    }
}

impl Routed {
    fn new(plan: &Arc<Plan>, tasks: usize) -> Routed {
        let state =
            State { version: u64::MAX, sides: [Side::default(); MOST], current: None, batches: 0, confirm: None };
        Routed {
            work: Work::of(plan),
            tasks: tasks.max(1),
            _plan: plan.clone(),
            settled: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }
}
