//! Which variants are quickest on a device: representative kernels enter, measured times and a choice for each class
//! leave, remembered on disk after every single measurement.
//!
//! Measurements are steps of the owner thread that it takes when it has had nothing to do for a while, one at a time, so
//! that a batch waits for one of them at most. Each is the quickest of a few runs.
//! Rounds go through all variants in turn, so that whatever else the machine
//! does hits all of them. A variant whose results differ from those of the variant in use is out.

use crate::adapters::{AdapterInfo, Kind};
use crate::choice::{Choice, FAMILIES, Measured, Tuned};
use crate::health::lock;
use crate::job::Core;
use crate::lower::lower;
use crate::owner::Owner;
use crate::stage::{Limits, Variants};
use crate::store::{Memory, Store};
use crate::tune_report::{TuneReport, TunedClass, TunedVariant};
use breakeven_ir::backend::RunError;
use breakeven_ir::plan::{Class, Plan};
use breakeven_ir::{DType, Tensor};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Batches of a class before it is worth tuning in the background.
const WORTH_TUNING: u32 = 4;

/// How long the device has to be idle before each measurement in the background.
pub(crate) const QUIET: Duration = Duration::from_millis(50);

/// Runs of a measurement, of which the quickest counts, and the time after which no more of them are begun: a batch may wait.
const RUNS: usize = 5;
const MEASURING: Duration = Duration::from_millis(3);

/// What is tuned on a device, through all its generations.
pub(crate) struct Tuner {
    store: Arc<Store>,
    limits: OnceLock<Limits>,
    software: bool,
    background: AtomicBool,
    /// Batches of each family.
    batches: [AtomicU32; 3],
    state: Mutex<State>,
}

struct State {
    variants: Variants,
    tuned: Vec<Tuned>,
}

/// How a step went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Taken,
    /// There is nothing left to measure.
    Done,
}

impl Tuner {
    pub(crate) fn new(info: &AdapterInfo, store: Arc<Store>, memory: &Memory, background: bool) -> Tuner {
        let software = info.kind == Kind::Software;
        let gl = info.backend == "gl";
        let mut variants = Variants::starting(info.kind, info.limits.int64);
        let tuned = (0..FAMILIES.len()).map(|family| {
            let choices: Vec<Choice> = candidates(family, Choice::of(&variants, family), software && gl);
            let same = |known: &&Tuned| {
                known.class == FAMILIES[family] && known.measured.iter().map(|m| m.choice).eq(choices.iter().copied())
            };
            memory.tuned.iter().find(same).cloned().unwrap_or_else(|| Tuned::new(family, &choices))
        });
        let tuned: Vec<Tuned> = tuned.collect();
        tuned.iter().filter_map(|tuned| tuned.winner).for_each(|winner| winner.apply(&mut variants));
        Tuner {
            store,
            limits: OnceLock::new(),
            software,
            background: AtomicBool::new(background),
            batches: Default::default(),
            state: Mutex::new(State { variants, tuned }),
        }
    }

    /// What the self-test leaves to use: there is no tuning before.
    pub(crate) fn begin(&self, limits: Limits) {
        let _ = self.limits.set(limits);
    }

    /// What new plans use.
    pub(crate) fn variants(&self) -> Variants {
        lock(&self.state).variants
    }

    /// A batch with kernels of this class was run.
    pub(crate) fn note(&self, class: Class) {
        let family = match class {
            Class::Map => 0,
            Class::Reduce | Class::Scan => 1,
            Class::Contract => 2,
        };
        self.batches[family].fetch_add(1, Relaxed);
    }

    /// Is there something to measure when the device is idle?
    pub(crate) fn is_waiting(&self) -> bool {
        self.background.load(Relaxed) && self.limits.get().is_some() && self.next(true).is_some()
    }

    /// No more in the background.
    pub(crate) fn stop(&self) {
        self.background.store(false, Relaxed);
    }

    fn next(&self, background: bool) -> Option<Choice> {
        let state = lock(&self.state);
        // Software's compilers take up to a second for rows and tiles, and a batch would wait for them: only on request.
        let accepted = |choice: &Choice| !(background && self.software) || matches!(choice, Choice::Map(_));
        let families = state
            .tuned
            .iter()
            .enumerate()
            .filter(|(family, _)| !background || self.batches[*family].load(Relaxed) >= WORTH_TUNING);
        families.filter_map(|(_, tuned)| tuned.next(accepted)).next()
    }

    /// Notes the outcome of a measurement, on disk too.
    fn record(&self, choice: Choice, outcome: Result<Option<u64>, String>) {
        let family = choice.family();
        let tuned = {
            let mut state = lock(&self.state);
            let present = Choice::of(&state.variants, family);
            let tuned = &mut state.tuned[family];
            let Some(measured) = tuned.measured.iter_mut().find(|measured| measured.choice == choice) else { return };
            match outcome {
                Ok(Some(ns)) => measured.ns.push(ns),
                Ok(None) => return,
                Err(why) => measured.out = Some(why),
            }
            if tuned.is_done() {
                tuned.decide(present);
            }
            let tuned = tuned.clone();
            if let Some(winner) = tuned.winner {
                winner.apply(&mut state.variants);
            }
            tuned
        };
        self.store.update(|memory| {
            memory.tuned.retain(|known| known.class != tuned.class);
            memory.tuned.push(tuned);
        });
    }

    /// What is known by now.
    pub(crate) fn report(&self, stopped: Option<String>) -> TuneReport {
        let state = lock(&self.state);
        let class = |(family, tuned): (usize, &Tuned)| TunedClass {
            class: tuned.class.clone(),
            variants: tuned.measured.iter().map(variant).collect(),
            winner: tuned.winner.map(|winner| winner.name()),
            why: tuned.why.clone(),
            in_use: Choice::of(&state.variants, family).name(),
        };
        let classes: Vec<TunedClass> =
            state.tuned.iter().enumerate().map(|(family, tuned)| class((family, tuned))).collect();
        TuneReport { complete: state.tuned.iter().all(Tuned::is_done), classes, stopped }
    }
}

fn variant(measured: &Measured) -> TunedVariant {
    TunedVariant {
        name: measured.choice.name(),
        median_ns: measured.median_ns(),
        measurements: measured.ns.len(),
        out: measured.out.clone(),
    }
}

/// The variants of a family that are worth a try, the one in use first.
fn candidates(family: usize, present: Choice, software_gl: bool) -> Vec<Choice> {
    let staged = |choice: &Choice| matches!(choice, Choice::Tile(tile) if tile.depth > 0);
    let others = Choice::all(family).into_iter().filter(|choice| *choice != present);
    [present].into_iter().chain(others).filter(|choice| !(software_gl && staged(choice))).collect()
}

/// What a class is measured with.
fn representative(family: usize) -> Result<(Arc<Plan>, Vec<Vec<u32>>), breakeven_ir::Error> {
    let noise =
        |count: usize| (0..count as u32).map(|i| (((i * 37) % 101) as f32 * 0.01).to_bits()).collect::<Vec<u32>>();
    let input = |name, shape: &[usize]| Tensor::input(name, DType::F32, shape);
    Ok(match family {
        0 => {
            let plan = Plan::new(&[&(&input("x", &[1 << 16])? + &input("y", &[1 << 16])?)?])?;
            (Arc::new(plan), vec![noise(1 << 16), noise(1 << 16)])
        }
        1 => {
            let x = input("x", &[256, 256])?;
            (Arc::new(Plan::new(&[&x.softmax(-1)?, &x.sum(&[0, 1], false)?])?), vec![noise(256 * 256)])
        }
        _ => {
            let plan = Plan::new(&[&input("x", &[128, 128])?.matmul(&input("y", &[128, 128])?)?])?;
            (Arc::new(plan), vec![noise(128 * 128), noise(128 * 128)])
        }
    })
}

/// What the owner keeps while it tunes.
#[derive(Default)]
pub(crate) struct Bench {
    cores: HashMap<Choice, Arc<Core>>,
    /// The results of the first variant of each family.
    results: [Vec<u32>; 3],
}

impl Owner {
    /// One measurement while there is nothing else to do.
    pub(crate) fn tune_in_background(&mut self) {
        let tuner = self.tuner.clone();
        if !matches!(tuner.next(true).map(|choice| self.tune(&tuner, choice)), Some(Ok(()))) {
            tuner.stop();
        }
    }

    /// One measurement that somebody waits for.
    pub(crate) fn tune_now(&mut self) -> Result<Step, RunError> {
        let tuner = self.tuner.clone();
        self.drain();
        match tuner.next(false) {
            Some(choice) => self.tune(&tuner, choice).map(|()| Step::Taken),
            None => Ok(Step::Done),
        }
    }

    /// Compiles a variant and looks at its results, or measures it if that was done.
    fn tune(&mut self, tuner: &Tuner, choice: Choice) -> Result<(), RunError> {
        let outcome = match self.measure(tuner, choice) {
            Ok(outcome) => outcome,
            // This variant is not for this device; the device itself may be well.
            Err(RunError::Device { message, .. }) => Err(message),
            Err(error) => return Err(error),
        };
        tuner.record(choice, outcome);
        if lock(&tuner.state).tuned[choice.family()].is_done() {
            let done: Vec<Choice> =
                self.bench.cores.keys().filter(|c| c.family() == choice.family()).copied().collect();
            for core in done.iter().filter_map(|choice| self.bench.cores.remove(choice)).collect::<Vec<_>>() {
                self.forget_trial(&core);
            }
        }
        Ok(())
    }

    fn measure(&mut self, tuner: &Tuner, choice: Choice) -> Result<Result<Option<u64>, String>, RunError> {
        let family = choice.family();
        let Ok((plan, inputs)) = representative(family) else { return Ok(Err("it has no plan".into())) };
        if let Some(core) = self.bench.cores.get(&choice).cloned() {
            return quickest(|| self.trial(&core, &inputs).map(|tried| tried.ns())).map(|ns| Ok(Some(ns)));
        }
        let Some(limits) = tuner.limits.get() else { return Ok(Ok(None)) };
        // A variant that was measured by another process has to be compared with, too.
        let first = lock(&tuner.state).tuned[family].measured.first().map_or(choice, |measured| measured.choice);
        for each in
            if self.bench.results[family].is_empty() && first != choice { vec![first, choice] } else { vec![choice] }
        {
            let mut variants = tuner.variants();
            each.apply(&mut variants);
            let lowered = match lower(&plan, limits, &variants) {
                Ok(lowered) => lowered,
                Err(error) => return Ok(Err(error.0)),
            };
            let core = self.trial_core(&plan, lowered);
            let results = self.trial(&core, &inputs)?.words();
            self.bench.cores.insert(each, core);
            if self.bench.results[family].is_empty() {
                self.bench.results[family] = results;
            } else if !agree(&self.bench.results[family], &results) {
                return Ok(Err("its results are wrong".into()));
            }
        }
        Ok(Ok(None))
    }
}

/// What a kernel takes at best in a few runs in a row. The first one finds a machine that has been idle: on software GL such runs
/// took 242 to 453 us where those after them took 180, and a variant was chosen that was slower by half from then on.
fn quickest<E>(mut run: impl FnMut() -> Result<u64, E>) -> Result<u64, E> {
    let begun = Instant::now();
    let mut best_ns = run()?;
    for _ in 1..RUNS {
        if begun.elapsed() > MEASURING {
            break;
        }
        best_ns = best_ns.min(run()?);
    }
    Ok(best_ns)
}

/// Are results the same, but for the order of summation?
fn agree(a: &[u32], b: &[u32]) -> bool {
    let near = |(a, b): (&u32, &u32)| {
        let (a, b) = (f32::from_bits(*a), f32::from_bits(*b));
        (a - b).abs() <= 1e-4 * a.abs().max(1.0)
    };
    a.len() == b.len() && a.iter().zip(b).all(near)
}

#[cfg(test)]
#[path = "tune_tests.rs"]
mod tests;
