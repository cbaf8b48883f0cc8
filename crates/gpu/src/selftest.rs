//! The self-test: what a driver gets wrong, found once and remembered for as long as the driver stays the same. A device
//! that was just opened enters, its quirks leave.
//!
//! It runs on the owner thread, through the same calls as every batch: a hand-written probe for loops, denormals and
//! submissions, and one small plan of each kernel class, whose exact results the host knows.

use crate::adapters::Kind;
use crate::health::Quirks;
use crate::job::Core;
use crate::lower::lower;
use crate::owner::Owner;
use crate::stage::{Binding, Limits, Lowered, Slot, Stage, Turns, Variants};
use crate::store::fingerprint;
use crate::trial::Tried;
use breakeven_ir::backend::RunError;
use breakeven_ir::plan::{BufferId, Class, Plan};
use breakeven_ir::{DType, Tensor};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Turns of the probe's loop: more than Mesa 22.3's software drivers let an invocation make, 65,535.
const TURNS: u32 = 70_000;

/// Elements of the plan whose results are also read for the speed of reading.
const MANY: usize = 1 << 16;

/// Mapped memory that is read at less than this share of ordinary memory's speed is slow: it is not cached.
const SLOW_SHARE: u32 = 4;

/// How long a submission takes while it is found out whether a second one waits for it.
const LONG: Duration = Duration::from_millis(3);

/// A plan whose exact results are known.
struct Case {
    class: Class,
    plan: Arc<Plan>,
    inputs: Vec<Vec<u32>>,
    expected: Vec<f32>,
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Small integers, so that every order of summation gives the same.
fn integers(count: usize, period: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7) % period) as f32 - (period / 2) as f32).collect()
}

/// One plan of each class.
fn cases() -> Result<Vec<Case>, breakeven_ir::Error> {
    let input = |name, shape: &[usize]| Tensor::input(name, DType::F32, shape);
    let plan = |output: Tensor| Plan::new(&[&output]).map(Arc::new);

    let (a, b) = (integers(MANY, 97), integers(MANY, 31));
    let (x, y) = (input("x", &[MANY])?, input("y", &[MANY])?);
    let map = Case {
        class: Class::Map,
        plan: plan((&(&x * 2.0)? - &y)?.relu()?)?,
        expected: a.iter().zip(&b).map(|(a, b)| (a * 2.0 - b).max(0.0)).collect(),
        inputs: vec![bits(&a), bits(&b)],
    };

    let rows = integers(16 * 300, 89);
    let x = input("x", &[16, 300])?;
    let below_largest = |row: &[f32]| {
        let most = row.iter().copied().fold(f32::MIN, f32::max);
        row.iter().map(|v| v - most).sum::<f32>()
    };
    let reduce = Case {
        class: Class::Reduce,
        plan: plan((&x - &x.max(&[1], true)?)?.sum(&[1], false)?)?,
        expected: rows.chunks(300).map(below_largest).collect(),
        inputs: vec![bits(&rows)],
    };

    let rows = integers(4 * 100, 41);
    let running = |row: &[f32]| {
        let sums = row.iter().scan(0.0, |sum: &mut f32, v| {
            *sum += v;
            Some(*sum)
        });
        sums.collect::<Vec<f32>>()
    };
    let scan = Case {
        class: Class::Scan,
        plan: plan(input("x", &[4, 100])?.cumsum(1)?)?,
        expected: rows.chunks(100).flat_map(running).collect(),
        inputs: vec![bits(&rows)],
    };

    let (a, b) = (integers(20 * 30, 23), integers(30 * 25, 19));
    let dot = |at: usize| (0..30).map(|k| a[at / 25 * 30 + k] * b[k * 25 + at % 25]).sum::<f32>();
    let contract = Case {
        class: Class::Contract,
        plan: plan(input("x", &[20, 30])?.matmul(&input("y", &[30, 25])?)?)?,
        expected: (0..20 * 25).map(dot).collect(),
        inputs: vec![bits(&a), bits(&b)],
    };
    Ok(vec![map, reduce, scan, contract])
}

/// Tells the kernels of this build from others: what is remembered about others is not believed.
pub(crate) fn kernels(limits: &Limits, variants: &Variants) -> String {
    let cases = cases().unwrap_or_default();
    let lowered: Vec<Lowered> = cases.iter().filter_map(|case| lower(&case.plan, limits, variants).ok()).collect();
    let sources = lowered.iter().flat_map(|lowered| &lowered.stages).map(|stage| &*stage.source);
    fingerprint(sources.chain([include_str!("shaders/probe.wgsl")]))
}

/// Finds the quirks of a device. Fails if the device fails, or gets everything wrong.
pub(crate) fn run(owner: &mut Owner, limits: &Limits, variants: &Variants) -> Result<Quirks, RunError> {
    let kind = owner.driver.info.kind;
    let mut quirks = Quirks { loop_cap: None, in_flight: 1, ..Quirks::assumed(kind) };
    let probe = probe(owner)?;
    let tried = owner.trial(&probe, &[question(TURNS)])?;
    let (answer, ns) = (tried.words(), tried.ns());
    drop(tried);
    let [state, product, half, ..] = answer[..] else { return Err(owner.refusal("the probe has no result".into())) };
    quirks.loop_cap = loop_cap(owner, state)?;
    quirks.flushes_denormals = product == 0 || half == 0;
    // Software runs on the cores that the callers need: a second submission gains nothing even where it does not wait.
    if kind != Kind::Software {
        quirks.in_flight = in_flight(owner, &probe, ns)?;
    }
    owner.forget_trial(&probe);

    let limits = Limits { loop_cap: quirks.loop_cap, ..*limits };
    let cases = cases().map_err(|error| owner.refusal(error.to_string()))?;
    let count = cases.len();
    for case in cases {
        let Ok(lowered) = lower(&case.plan, &limits, variants) else { continue };
        let core = owner.trial_core(&case.plan, lowered);
        match owner.trial(&core, &case.inputs) {
            Ok(tried) => {
                let right = tried.words().iter().zip(&case.expected).all(|(f, e)| f32::from_bits(*f) == *e);
                if !right {
                    quirks.broken.push(case.class);
                }
                if case.class == Class::Map {
                    quirks.slow_mapped_reads = reads_slowly(&tried);
                }
            }
            // The driver refuses this class: the others may do.
            Err(RunError::Device { .. }) => quirks.broken.push(case.class),
            Err(error) => return Err(error),
        }
        owner.forget_trial(&core);
    }
    // Batches begin with a pool that holds nothing of this.
    owner.driver.reclaim();
    owner.driver.trim(true);
    if quirks.broken.len() == count {
        return Err(owner.refusal("the self-test got no right result from any kernel".into()));
    }
    Ok(quirks)
}

impl Owner {
    fn refusal(&self, message: String) -> RunError {
        RunError::Device { device: self.driver.info.id.clone(), message }
    }
}

/// The probe, with its input and its output of eight words each.
fn probe(owner: &mut Owner) -> Result<Arc<Core>, RunError> {
    let x = Tensor::input("x", DType::F32, [8]);
    let plan = x.and_then(|x| Plan::new(&[&(&x * 2.0)?])).map_err(|error| owner.refusal(error.to_string()))?;
    let binding = |id, writes| Binding { slot: Slot::Buffer(BufferId(id)), writes, element_bytes: 4, window: 0..8 };
    let stage = Stage {
        kernel: 0,
        class: Class::Map,
        source: include_str!("shaders/probe.wgsl").into(),
        bindings: vec![binding(0, false), binding(1, true)],
        params: vec![],
        units: 1,
        group_units: 1,
        turns: Turns::once(1),
        work: 1,
        run: None,
    };
    Ok(owner.trial_core(&Arc::new(plan), Lowered { stages: vec![stage], ..Lowered::default() }))
}

const SEED: u32 = 12_345;
const STEP: u32 = 2_891_336_453;

fn question(turns: u32) -> Vec<u32> {
    // A denormal by one, and the least normal number by a half.
    let numbers = [f32::from_bits(1 << 20), 1.0, f32::MIN_POSITIVE, 0.5].map(f32::to_bits);
    [&[turns, SEED, STEP], &numbers[..], &[0]].concat()
}

/// The probe's loop, as far as it is asked to go.
fn states() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(SEED), |state| Some((state ^ (state >> 7)).wrapping_mul(747_796_405).wrapping_add(STEP)))
}

/// After how many turns the loop was stopped, by the state that it had then.
fn loop_cap(owner: &Owner, state: u32) -> Result<Option<u32>, RunError> {
    let turns = states().take(TURNS as usize + 1).zip(0u32..).filter(|(s, _)| *s == state).map(|(_, turns)| turns);
    match turns.last() {
        Some(TURNS) => Ok(None),
        Some(cap) if cap > 0 => Ok(Some(cap)),
        _ => Err(owner.refusal("the self-test's loop gave a result that no number of turns gives".into())),
    }
}

/// How many submissions may be in flight: two, if the second one can be sent while the first one runs. A driver that is
/// too quick to tell is given one at a time.
pub(crate) fn in_flight(owner: &mut Owner, probe: &Arc<Core>, ns_of_turns: u64) -> Result<u32, RunError> {
    let times = (LONG.as_nanos() as u64 / ns_of_turns.max(1)).clamp(1, 64) as u32;
    let question = question(TURNS * times);
    drop(owner.trial(probe, std::slice::from_ref(&question))?);
    // In every attempt: one in which the driver did not seem to wait may be the clock's doing, and one at a time is safe.
    let mut apart = true;
    for _ in 0..5 {
        let begun = Instant::now();
        let first = owner.start_trial(probe, std::slice::from_ref(&question))?;
        let sent = begun.elapsed();
        let second = owner.start_trial(probe, std::slice::from_ref(&question))?;
        let both_sent = begun.elapsed();
        owner.drain();
        let each = begun.elapsed() / 2;
        for answer in [first, second] {
            answer.try_recv().unwrap_or_else(|_| Err(owner.lost_error()))?;
        }
        apart &= each > LONG / 10 && sent < each / 2 && both_sent - sent < each / 2;
    }
    Ok(if apart { 2 } else { 1 })
}

/// Is the mapped output read much more slowly than ordinary memory?
fn reads_slowly(tried: &Tried) -> bool {
    let mapped = tried.mapped();
    let ordinary = mapped.to_vec();
    let mut target = vec![0u8; mapped.len()];
    let mut best = |from: &[u8]| {
        let times = (0..3).map(|_| {
            let begun = Instant::now();
            target.copy_from_slice(black_box(from));
            black_box(&mut target);
            begun.elapsed()
        });
        times.min().unwrap_or_default()
    };
    let (slow, quick) = (best(mapped), best(&ordinary));
    // Less than this is noise of the clock.
    slow > quick * SLOW_SHARE && slow > Duration::from_micros(100)
}

#[cfg(test)]
#[path = "selftest_tests.rs"]
mod tests;
