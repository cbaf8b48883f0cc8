//! Plans run again: a profile enters, what its largest plans take on the CPU and on every device of this machine leaves.
//!
//! Devices take turns, sample by sample, as in a scan. Inputs are made up, of the same shapes and dtypes; values that places
//! are looked up with stay in range.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use breakeven::plan::Place;
use breakeven::profile::{MachineRecord, Profile, Rerun};
use breakeven::{DType, Device, Engine, Leaf, Many, Plan, Program, RecordError, Status, Tensor, View, parse_recipe};

use super::text::{counted, one_line};
use crate::interrupt::Interrupt;
use crate::memory;
use crate::progress::Progress;
use crate::scan::cell::{self, Care, Rules};
use crate::scan::ops;
use crate::scan::sweep::Arm;

/// Plans that are run again, those that took most time; the others are counted in a note.
const PLANS: usize = 8;
/// What one of them may take, all devices together.
const BUDGET: Duration = Duration::from_secs(10);
/// What a task takes beside its elements.
const TASK_BYTES: u64 = 1024;
/// One seed, so that the same profile is run again on the same data.
const SEED: u64 = 7;

/// What came of it.
#[derive(Default)]
pub struct Reran {
    /// What was measured, and why not where nothing was.
    pub reruns: Vec<Rerun>,
    /// What is to be known about it.
    pub notes: Vec<String>,
}

/// Runs the largest plans of a profile again.
pub fn rerun(engine: &Engine, profile: &Profile, samples: u32, interrupt: &Interrupt) -> Reran {
    let mut reran = Reran::default();
    let arms = arms(engine, &mut reran.notes);
    let elsewhere = elsewhere(&profile.machine, &machine(engine), &mut reran.notes);
    let (wanted, left_out) = wanted(profile, &mut reran.notes);
    let mut ran = 0;
    let mut progress = Progress::new(0);
    for (number, wanted) in wanted.iter().enumerate() {
        progress.show_share(
            number as f64 / wanted.of as f64,
            BUDGET * (wanted.of - number) as u32,
            &one_line(wanted.title),
        );
        let record = |device: &str| Rerun {
            plan: wanted.plan,
            tasks: wanted.tasks,
            device: device.to_owned(),
            samples: 0,
            median_ns: 0,
            mad_ns: 0,
            missing: None,
            elsewhere: elsewhere.clone(),
        };
        if interrupt.is_set() {
            reran.notes.push(format!("interrupted after {number} of {}", counted(wanted.of, "plan")));
            break;
        }
        let load = match Load::new(engine, wanted.recipe, wanted.tasks) {
            Ok(load) => load,
            Err(why) => {
                reran.notes.push(format!("`{}` can't be run again: {why}", wanted.title));
                continue;
            }
        };
        ran += 1;
        let stop = || interrupt.is_set();
        let rules = Rules { samples: samples as usize, until: Instant::now() + BUDGET, stop: &stop, care: Care::SCAN };
        let sides = cell::measure(&vec![false; arms.len()], &rules, &mut |arm| load.run(arms[arm].device));
        for (arm, side) in arms.iter().zip(sides) {
            match (side.stats, side.fault) {
                (_, Some(fault)) => reran.reruns.push(Rerun { missing: Some(fault), ..record(&arm.id) }),
                (Some(stats), None) => reran.reruns.push(Rerun {
                    samples: stats.samples as usize,
                    median_ns: stats.median_ns,
                    mad_ns: stats.mad_ns,
                    ..record(&arm.id)
                }),
                // Too few samples before Ctrl-C: nothing was measured, and nothing failed.
                (None, None) => {}
            }
        }
    }
    if left_out.0 > 0 {
        let (ran, time) = (counted(ran, "plan"), crate::timing::duration(left_out.1));
        reran.notes.push(format!(
            "of those that took most time {ran} could be run again; {} more, {time} together, were not tried",
            left_out.0
        ));
    }
    reran
}

/// Adds reruns to a profile; older ones of the same plan, tasks and device go.
pub fn add(profile: &mut Profile, reruns: &[Rerun]) {
    let key = |rerun: &Rerun| (rerun.plan, rerun.tasks, rerun.device.clone());
    profile.reruns.retain(|old| !reruns.iter().any(|new| key(new) == key(old)));
    profile.reruns.extend_from_slice(reruns);
}

/// A plan to run again, with so many tasks.
struct Wanted<'a> {
    plan: u32,
    tasks: u64,
    title: &'a str,
    recipe: &'a str,
    /// How many there are.
    of: usize,
}

/// The plans that took most time, as far as they can be run again and a GPU could run them; how many others there are, and
/// their time.
fn wanted<'a>(profile: &'a Profile, notes: &mut Vec<String>) -> (Vec<Wanted<'a>>, (usize, u64)) {
    let mut times: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    for batch in &profile.batches {
        let sum = times.entry((batch.plan, batch.tasks)).or_default();
        *sum = sum.saturating_add(batch.end_ns - batch.begin_ns);
    }
    let mut order: Vec<((u32, u64), u64)> = times.into_iter().collect();
    order.sort_by_key(|(key, ns)| (std::cmp::Reverse(*ns), *key));
    let plan = |key: &(u32, u64)| &profile.plans[key.0 as usize];
    let unknown = order.iter().filter(|(key, _)| plan(key).gpu_eligible && plan(key).recipe.is_none()).count();
    if unknown > 0 {
        let plans = counted(unknown, "plan");
        notes.push(format!("{plans} can't be run again: the profile has no recipe of what they compute"));
    }
    order.retain(|(key, _)| plan(key).gpu_eligible && plan(key).recipe.is_some());
    let others = order.get(PLANS..).unwrap_or_default();
    let left_out = (others.len(), others.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns)));
    if order.is_empty() {
        notes.push("there is no GPU-eligible plan to run again".to_owned());
    }
    order.truncate(PLANS);
    let of = order.len();
    let wanted = |((number, tasks), _): &((u32, u64), u64)| {
        let plan = &profile.plans[*number as usize];
        Some(Wanted { plan: *number, tasks: *tasks, title: &plan.title, recipe: plan.recipe.as_deref()?, of })
    };
    (order.iter().filter_map(wanted).collect(), left_out)
}

/// The CPU and every device that is there.
fn arms(engine: &Engine, notes: &mut Vec<String>) -> Vec<Arm> {
    let mut arms = vec![Arm { id: "cpu".into(), device: Device::Cpu, told: false }];
    let infos = engine.devices();
    for (number, info) in infos.iter().skip(1).enumerate() {
        if info.health.status == Status::Lost {
            notes.push(format!("{} was not measured: {}", info.id, info.health.reason));
            continue;
        }
        arms.push(Arm { id: info.id.clone(), device: Device::Gpu(Some(number)), told: false });
    }
    if infos.len() == 1 {
        notes.push(format!("no GPU was found, so that there is only the CPU. {}", breakeven::driver_hint()));
    }
    arms
}

/// This machine as a profile has it.
fn machine(engine: &Engine) -> MachineRecord {
    let devices = engine.devices();
    MachineRecord {
        cpu: breakeven::cpu_name(),
        threads: engine.threads(),
        devices: devices.iter().skip(1).map(|info| (info.id.clone(), info.name.clone())).collect(),
    }
}

/// This machine in words, if it is not the profile's; that is noted with what differs. Another number of threads alone is a
/// setting, and is noted as that.
fn elsewhere(profile: &MachineRecord, here: &MachineRecord, notes: &mut Vec<String>) -> Option<String> {
    let mut differences = Vec::new();
    if profile.cpu != here.cpu {
        differences.push(format!("{}, not {}", here.cpu, profile.cpu));
    }
    for (id, name) in &profile.devices {
        match here.devices.get(id) {
            Some(found) if found == name => {}
            Some(found) => differences.push(format!("{id} is {found}, not {name}")),
            None => differences.push(format!("{id} ({name}) is not here")),
        }
    }
    let threads = (profile.threads != here.threads)
        .then(|| format!("{}, not {}", counted(here.threads, "thread"), profile.threads));
    if differences.is_empty() {
        let setting =
            |threads: &String| format!("reruns on the CPU have {threads} as the profile's engine had, by its settings");
        threads.iter().for_each(|threads| notes.insert(0, setting(threads)));
        return None;
    }
    differences.extend(threads);
    let text = format!(
        "this is another machine than the profile's, and reruns say what plans take here: {}",
        differences.join("; ")
    );
    notes.insert(0, text);
    Some(format!("{}, {}", here.cpu, counted(here.threads, "thread")))
}

/// A plan with data to run it on.
struct Load {
    program: Program,
    /// The values of each task.
    values: Vec<Vec<Tensor>>,
}

impl Load {
    fn new(engine: &Engine, recipe: &str, tasks: u64) -> Result<Load, String> {
        let recipe = parse_recipe(recipe).map_err(|error| error.to_string())?;
        let outputs: Vec<&Tensor> = recipe.outputs.iter().collect();
        let plan = Plan::new(&outputs).map_err(|error| error.to_string())?;
        let needed_bytes = bytes(&plan, &recipe.leaves, tasks);
        if !memory::fits(needed_bytes) {
            let needed = memory::size(needed_bytes);
            let tasks = counted(usize::try_from(tasks).unwrap_or(usize::MAX), "task");
            return Err(format!("{tasks} of it take {needed} of memory, more than this machine has to give"));
        }
        let mut random = fastrand::Rng::with_seed(SEED);
        let bound = recipe.bound(|leaf| match leaf.is_data {
            true => made_up(leaf, &mut random).map(Some),
            false => Ok(None),
        });
        let bound = bound.map_err(|error| error.to_string())?;
        let inputs: Vec<&Leaf> = recipe.leaves.iter().filter(|leaf| !leaf.is_data).collect();
        let mut task = |_| inputs.iter().map(|leaf| made_up(leaf, &mut random)).collect();
        let values: Result<Vec<Vec<Tensor>>, RecordError> = (0..tasks.max(1)).map(&mut task).collect();
        let values = values.map_err(|error| error.to_string())?;
        let inputs: Vec<&Tensor> = inputs.iter().map(|leaf| &leaf.tensor).collect();
        let program = engine.compile(&inputs, &bound.iter().collect::<Vec<_>>()).map_err(|error| error.to_string())?;
        Ok(Load { program, values })
    }

    /// Runs it there and nowhere else; nanoseconds leave, from the call to the results.
    fn run(&self, device: Device) -> Result<u64, String> {
        let options = ops::only(device);
        fn views(task: &[Tensor]) -> Vec<View<'_>> {
            task.iter().filter_map(View::of).collect()
        }
        let ran = match &self.values[..] {
            [task] => self.program.run_with(&views(task), &options).map(|ran| ran.decision),
            tasks => {
                let tasks: Vec<Vec<View<'_>>> = tasks.iter().map(|task| views(task)).collect();
                let mut results = Many::default();
                let decision = self.program.run_many_with(&tasks, &mut results, &options);
                let failure = results.failures().next().map(|(_, error)| error.to_string());
                if let Some(failure) = failure {
                    return Err(failure);
                }
                decision
            }
        };
        ran.map(|decision| decision.actual_ns).map_err(|error| error.to_string())
    }
}

/// What so many tasks take on the host, with a device's copies.
fn bytes(plan: &Plan, leaves: &[Leaf], tasks: u64) -> u64 {
    let of = |leaf: &Leaf| (leaf.tensor.shape().elems() as u64).saturating_mul(leaf.tensor.dtype().size_bytes() as u64);
    let inputs: u64 = leaves.iter().map(of).fold(0, u64::saturating_add);
    let is_output = |place| matches!(place, Place::Output(_));
    let outputs = plan.buffers.iter().filter(|buffer| is_output(buffer.place)).map(|buffer| buffer.bytes() as u64);
    let each = outputs.fold(inputs, u64::saturating_add).saturating_add(plan.scratch_bytes as u64);
    // A task without elements is not for free either.
    (each.saturating_add(TASK_BYTES)).saturating_mul(tasks.max(1)).saturating_mul(2)
}

/// Values for a leaf. Numbers are a little above 0 and no larger than 1 (1 to 8 for integers), so that no logarithm, root or
/// division of them is an exception, which some processors take longer for.
fn made_up(leaf: &Leaf, random: &mut fastrand::Rng) -> Result<Tensor, RecordError> {
    let (shape, dtype) = (leaf.tensor.shape(), leaf.tensor.dtype());
    let elems = shape.elems();
    if let Some(below) = leaf.index_below {
        // Places are below 2^31 wherever they are looked up with an i32.
        let below = u32::try_from(below).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32);
        return match dtype {
            DType::I32 => Tensor::from_vec((0..elems).map(|_| random.u32(..below) as i32).collect(), shape),
            DType::U32 => Tensor::from_vec((0..elems).map(|_| random.u32(..below)).collect(), shape),
            DType::F32 => Tensor::from_vec(vec![0.0f32; elems], shape),
            DType::Bool => Tensor::from_vec(vec![false; elems], shape),
        };
    }
    match dtype {
        DType::F32 => Tensor::from_vec((0..elems).map(|_| 0.0625 + 0.9375 * random.f32()).collect(), shape),
        DType::I32 => Tensor::from_vec((0..elems).map(|_| random.i32(1..=8)).collect(), shape),
        DType::U32 => Tensor::from_vec((0..elems).map(|_| random.u32(1..=8)).collect(), shape),
        DType::Bool => Tensor::from_vec((0..elems).map(|_| random.bool()).collect(), shape),
    }
}

#[cfg(test)]
#[path = "rerun_tests.rs"]
mod tests;
