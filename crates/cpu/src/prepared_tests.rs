//! Work that is told to stop: it ends long before it would have, nothing is harmed by it, and a stop that nobody tells
//! changes no bit of any result.

use crate::{Cpu, Level};
use breakeven_ir::backend::{Backend, Made, Prepared, RunError, Source, Stop};
use breakeven_ir::plan::{Class, Plan};
use breakeven_ir::{DType, Tensor};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A plan with inputs that suit it.
struct Case {
    prepared: Arc<dyn Prepared>,
    inputs: Vec<Vec<u8>>,
    whole: Duration,
}

impl Case {
    fn new(cpu: &Cpu, plan: Plan) -> Result<Case, RunError> {
        let plan = Arc::new(plan);
        let value = |i: usize| i as f32 * 0.001 - 0.4;
        let some: Vec<u8> = (0..1013).flat_map(|i| value(i).to_ne_bytes()).collect();
        let bytes = |bytes: usize| some.iter().copied().cycle().take(bytes).collect();
        let inputs = plan.input_infos().iter().map(|info| bytes(info.bytes())).collect();
        Ok(Case { prepared: cpu.prepare(&plan)?, inputs, whole: Duration::MAX })
    }

    /// Runs it with a stop, or without one.
    fn run(&self, threads: bool, stop: Option<&Stop>) -> Result<Vec<Vec<u8>>, RunError> {
        let mut results = self.blank();
        self.run_into(&mut results, threads, stop)?;
        Ok(results)
    }

    /// Memory for its results. To make it takes longer than some of the work, and nobody can stop that.
    fn blank(&self) -> Vec<Vec<u8>> {
        self.prepared.plan().output_buffers().map(|info| vec![7; info.bytes()]).collect()
    }

    fn run_into(&self, results: &mut [Vec<u8>], threads: bool, stop: Option<&Stop>) -> Result<(), RunError> {
        let inputs: Vec<&[u8]> = self.inputs.iter().map(Vec::as_slice).collect();
        let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Vec::as_mut_slice).collect();
        match stop {
            None => self.prepared.run(&inputs, &mut slices, threads)?,
            Some(stop) => self.prepared.run_until(&inputs, &mut slices, threads, stop)?,
        };
        Ok(())
    }

    /// It ends early when it is told to, and afterwards computes the same as before.
    fn stops(&mut self, threads: bool) -> Outcome {
        let expected = self.run(threads, None)?;
        for _ in 0..3 {
            let mut results = self.blank();
            let begun = Instant::now();
            self.run_into(&mut results, threads, Some(&Stop::new()))?;
            self.whole = self.whole.min(begun.elapsed());
            assert!(results == expected, "a stop that nobody told changed something");
        }
        // Other work on the machine may delay whoever tells: once in time is enough, which no run brought to its end is.
        let early = (0..50).any(|_| {
            let took = self.stopped_after(threads, self.whole / 10);
            took.is_some_and(|took| took < self.whole * 6 / 10)
        });
        assert!(early, "it did not stop: the whole takes {:?}", self.whole);
        assert!(self.run(threads, Some(&Stop::new()))? == expected, "it did not recover");
        Ok(())
    }

    /// How long it took until it stopped, told after a pause; `None` if it came to its end before. Then it shows how long the whole
    /// takes on a machine that has become quieter.
    fn stopped_after(&mut self, threads: bool, pause: Duration) -> Option<Duration> {
        let stop = Stop::new();
        let mut results = self.blank();
        let begun = Instant::now();
        let (outcome, took) = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(pause);
                stop.stop();
            });
            (self.run_into(&mut results, threads, Some(&stop)), begun.elapsed())
        });
        match outcome {
            Err(error) => {
                assert_eq!(error, RunError::Stopped);
                Some(took)
            }
            Ok(()) => {
                self.whole = self.whole.min(took);
                None
            }
        }
    }
}

fn input(shape: &[usize]) -> Result<Tensor, breakeven_ir::Error> {
    Tensor::input(&format!("x{shape:?}"), DType::F32, shape)
}

/// A body that takes its time.
fn dear(x: &Tensor) -> Result<Tensor, breakeven_ir::Error> {
    (0..4).try_fold(x.clone(), |x, _| x.exp()?.tanh())
}

#[test]
fn maps_stop() -> Outcome {
    let cpu = Cpu::new(2)?;
    let mut case = Case::new(&cpu, Plan::new(&[&dear(&input(&[2 << 20])?)?])?)?;
    case.stops(true)?;
    case.stops(false)
}

#[test]
fn reductions_stop() -> Outcome {
    let cpu = Cpu::new(2)?;
    // Long rows, which are split; short ones; few columns, which are split; many columns.
    for (shape, axis) in [([2, 1 << 20], 1), ([1 << 16, 32], 1), ([1 << 15, 64], 0), ([32, 64 << 10], 0)] {
        let mut case = Case::new(&cpu, Plan::new(&[&dear(&input(&shape)?)?.sum(&[axis], false)?])?)?;
        case.stops(true)?;
    }
    Ok(())
}

#[test]
fn scans_and_rows_of_several_phases_stop() -> Outcome {
    let cpu = Cpu::new(2)?;
    Case::new(&cpu, Plan::new(&[&dear(&input(&[1, 2 << 20])?)?.cumsum(1)?])?)?.stops(true)?;
    Case::new(&cpu, Plan::new(&[&dear(&input(&[1 << 12, 512])?)?.softmax(1)?])?)?.stops(true)
}

#[test]
fn products_stop() -> Outcome {
    let cpu = Cpu::new(2)?;
    let square = input(&[2048, 2048])?;
    let mut case = Case::new(&cpu, Plan::new(&[&square.matmul(&square)?])?)?;
    case.stops(true)?;
    case.stops(false)?;
    // Operands that are packed and an end that is fused; many small ones.
    let plan = Plan::new(&[&dear(&square)?.matmul(&(&square + 1.0)?)?.tanh()?])?;
    Case::new(&cpu, plan)?.stops(true)?;
    let many = input(&[1 << 10, 96, 96])?;
    Case::new(&cpu, Plan::new(&[&many.matmul(&many)?])?)?.stops(true)
}

#[test]
fn plans_of_several_kernels_stop() -> Outcome {
    let cpu = Cpu::new(2)?;
    let plan = Plan::unfused(&[&dear(&input(&[2 << 20])?)?])?;
    assert!(plan.kernels.len() > 6, "{plan}");
    Case::new(&cpu, plan)?.stops(true)
}

#[test]
fn nothing_runs_that_was_told_before() -> Outcome {
    let cpu = Cpu::new(2)?;
    let case = Case::new(&cpu, Plan::new(&[&input(&[100])?.exp()?])?)?;
    let stop = Stop::new();
    stop.stop();
    let mut output = vec![7; 400];
    let stopped = case.prepared.run_until(&[&case.inputs[0]], &mut [&mut output], true, &stop);
    assert_eq!(stopped.map(|_| ()), Err(RunError::Stopped));
    assert!(output.iter().all(|byte| *byte == 7), "something was written");
    let source = [Source::Bytes(&case.inputs[0])];
    let stopped = case.prepared.run_batch_until(&source, false, &stop);
    assert!(matches!(stopped, Err(RunError::Stopped)));
    let (made, _) = case.prepared.run_batch_until(&source, false, &Stop::new())?;
    let expected = case.run(true, None)?;
    assert!(matches!(&made[..], [Made::Host(buffer)] if buffer.as_bytes() == expected[0]));
    Ok(())
}

/// Products of all shapes are cut in other places with a stop, and yet come out the same.
#[test]
fn a_stop_that_nobody_tells_changes_no_bit_of_a_product() -> Outcome {
    let sizes = [[600, 700, 1300], [520, 1, 3000], [1, 1100, 3000], [97, 65, 5000], [64, 64, 5000], [1030, 33, 7]];
    for level in Level::all() {
        let cpu = Cpu::with_level(2, level)?;
        for [m, n, k] in sizes {
            let (a, b) = (input(&[m, k])?, input(&[k, n])?);
            let across = Tensor::input("c", DType::F32, [n, k])?.transpose()?;
            for plan in [Plan::new(&[&a.matmul(&b)?])?, Plan::new(&[&a.matmul(&across)?.exp()?])?] {
                assert!(plan.kernels.iter().any(|kernel| kernel.class() == Class::Contract), "{plan}");
                let case = Case::new(&cpu, plan)?;
                for threads in [false, true] {
                    let same = case.run(threads, Some(&Stop::new()))? == case.run(threads, None)?;
                    assert!(same, "{m} x {n} x {k}, {}, threads: {threads}", level.name());
                }
            }
        }
    }
    Ok(())
}

/// A run that was stopped says nothing about how long the whole takes.
#[test]
fn nothing_is_learned_from_half_a_run() -> Outcome {
    let cpu = Cpu::new(2)?;
    let mut case = Case::new(&cpu, Plan::new(&[&dear(&input(&[1 << 20])?)?])?)?;
    for _ in 0..3 {
        let begun = Instant::now();
        case.run(false, None)?;
        case.whole = begun.elapsed();
    }
    let known = case.prepared.estimate_ns();
    let soon = Duration::from_micros(10);
    let stopped = (0..4).filter(|_| case.stopped_after(false, soon).is_some_and(|took| took < case.whole / 2)).count();
    assert!(stopped == 0 || case.prepared.estimate_ns() > known / 2, "{known} {}", case.prepared.estimate_ns());
    Ok(())
}
