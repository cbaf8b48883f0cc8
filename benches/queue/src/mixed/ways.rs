//! The ways of running a batch: a place, an operation and inputs enter; the times of separate runs and of one batch leave.
//!
//! Results are judged against f64 before anything is timed, and again after each sample on adapters: both ways give the
//! same, or there is no time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use breakeven::{Array, Many, Program, RunOptions, View};

use super::place::{Kind, Place};
use super::shape::{Inputs, Op};
use crate::arm::{Arm, Fallible};
use crate::attempt::{checked, returning};
use crate::measure::{ArmReport, Effort, Outcome, Stats, measure};
use crate::reference::Expected;

/// One `run` a task, one after the other.
pub const SEPARATE: &str = "separate";
/// One `run_many`.
pub const ONE: &str = "one";
/// The variant of one batch by `run_many_into`, over the results of the batch before.
const INTO: &str = "into";

/// What is run before the clock starts: pipelines are compiled and kernels tuned in the first batches.
const WARM_UP: Duration = Duration::from_millis(100);

/// The programs of a batch and its values.
struct Batch<'w> {
    /// One a task: tasks of one size share it.
    programs: Vec<Program>,
    tasks: Vec<[View<'w>; 2]>,
    device: &'w str,
}

/// Both ways at this place.
pub fn times(place: &Place, op: Op, inputs: &Inputs, effort: Effort) -> Fallible<Vec<ArmReport>> {
    let batch = Batch::new(place, op, inputs)?;
    let expected = inputs.expected(op);
    if place.kind == Kind::Simulated {
        return Ok(vec![
            told(SEPARATE, batch.told_separately(), &expected),
            told(ONE, batch.told_at_once(), &expected),
        ]);
    }
    // Neither a fallback nor the engine's own choice may slip in.
    batch.told_separately()?;
    batch.told_at_once()?;
    let mut arms = batch.arms();
    for arm in &mut arms {
        // What fails here fails again below, where it is reported.
        let start = Instant::now();
        while start.elapsed() < WARM_UP && arm.runner.sample(Duration::ZERO, 1).is_ok() {}
    }
    if place.kind == Kind::Adapter {
        arms = arms.into_iter().map(|arm| checked(arm, &expected)).collect();
    }
    Ok(measure(arms, &expected, effort))
}

/// A virtual time as an arm's: it is the same in every run.
fn told(library: &str, told: Fallible<(u64, Vec<f32>)>, expected: &Expected) -> ArmReport {
    let outcome = match told {
        Ok((ns, result)) => match expected.judge(&result) {
            Ok(()) => Outcome::Timed(Stats::of(&[ns as f64])),
            Err(why) => Outcome::Wrong(why),
        },
        Err(error) => Outcome::Failed(error.to_string()),
    };
    ArmReport { library: library.to_owned(), name: library.to_owned(), outcome }
}

impl<'w> Batch<'w> {
    fn new(place: &'w Place, op: Op, inputs: &'w Inputs) -> Fallible<Batch<'w>> {
        let mut by_size: HashMap<usize, Program> = HashMap::new();
        let (mut programs, mut tasks) = (Vec::new(), Vec::new());
        for [x, y] in &inputs.tasks {
            let program = match by_size.get(&x.len()) {
                Some(program) => program.clone(),
                None => {
                    let ([a, b], output) = op.record(x.len())?;
                    let program = place.engine.compile(&[&a, &b], &[&output])?;
                    by_size.insert(x.len(), program.clone());
                    program
                }
            };
            programs.push(program);
            tasks.push([View::from(x.as_slice()), View::from(y.as_slice())]);
        }
        Ok(Batch { programs, tasks, device: &place.device })
    }

    fn arms(&self) -> Vec<Arm<'w>> {
        let (programs, tasks) = (self.programs.clone(), self.tasks.clone());
        let separate = move || {
            let mut results = Vec::with_capacity(tasks.len());
            for (program, values) in programs.iter().zip(&tasks) {
                let outputs = program.run(values)?;
                // What stayed on a device is not done before someone looks at it.
                black_box(outputs[0].as_slice::<f32>()?);
                results.push(outputs);
            }
            Ok(results)
        };
        let read = |results: Vec<Vec<Array>>| {
            let slices = results.iter().map(|outputs| Ok(outputs[0].as_slice::<f32>()?.to_vec()));
            Ok(slices.collect::<Fallible<Vec<_>>>()?.concat())
        };
        let mut arms = vec![returning(SEPARATE, "", separate, read)];

        let (program, tasks) = (self.programs[0].clone(), self.tasks.clone());
        let one = move || {
            let many = program.run_many(&tasks)?;
            looked_at(&many)?;
            Ok(many)
        };
        arms.push(returning(ONE, "", one, |many| all_of(&many)));

        // The arm takes its results back by the cell that both closures know.
        let (program, tasks) = (self.programs[0].clone(), self.tasks.clone());
        let kept = Rc::new(RefCell::new(Many::default()));
        let results = kept.clone();
        let into = move || {
            let mut many = kept.borrow_mut();
            program.run_many_into(&tasks, &mut many)?;
            looked_at(&many)
        };
        arms.push(returning(ONE, INTO, into, move |()| all_of(&results.borrow())));
        arms
    }

    /// What the device tells of separate runs, and their results.
    fn told_separately(&self) -> Fallible<(u64, Vec<f32>)> {
        let (mut ns, mut results) = (0, Vec::new());
        for (program, values) in self.programs.iter().zip(&self.tasks) {
            let ran = program.run_with(values, &RunOptions::default())?;
            self.check_device(&ran.decision.device)?;
            ns += ran.decision.timings.total_ns;
            results.extend_from_slice(ran.outputs[0].as_slice::<f32>()?);
        }
        Ok((ns, results))
    }

    /// What the device tells of one batch, and its results.
    fn told_at_once(&self) -> Fallible<(u64, Vec<f32>)> {
        let mut many = Many::default();
        let decision = self.programs[0].run_many_with(&self.tasks, &mut many, &RunOptions::default())?;
        self.check_device(&decision.device)?;
        Ok((decision.timings.total_ns, all_of(&many)?))
    }

    fn check_device(&self, found: &str) -> Fallible<()> {
        if found == self.device {
            return Ok(());
        }
        Err(format!("it ran on {found} instead of {}", self.device).into())
    }
}

fn looked_at(many: &Many) -> Fallible<()> {
    for task in 0..many.len() {
        black_box(many.slice::<f32>(task, 0)?);
    }
    Ok(())
}

fn all_of(many: &Many) -> Fallible<Vec<f32>> {
    let slices = (0..many.len()).map(|task| Ok(many.slice::<f32>(task, 0)?.to_vec()));
    Ok(slices.collect::<Fallible<Vec<_>>>()?.concat())
}
