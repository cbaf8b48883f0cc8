//! `breakeven eval`: an expression and its inputs enter, results leave as files, text or one JSON document.

use std::{
    io::{self, IsTerminal, Write},
    ops::ControlFlow,
    time::{Duration, Instant},
};

use breakeven::cost::{CostsFile, Effort};
use breakeven::{Answer, Array, Config, Device, Engine, Error, Job, Predicted, Program, Ran, RunOptions, Tensor, span};
use serde::Serialize;

use super::explain::Decision;
use crate::args::EvalArgs;
use crate::arrays as files;
use crate::expr;
use crate::failure::Failure;
use crate::outputs::{self, Output};
use crate::progress::Progress;
use crate::record::{self, Mistake};
use crate::timing::{Timing, duration};
use crate::{inputs, memory, print, simulate};

/// Runs the subcommand.
pub fn run(args: &EvalArgs) -> Result<(), Failure> {
    let source = &*args.expression;
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mistake = |mistake: Mistake| Failure::Mistake(mistake.render(source, color));

    let ast = expr::parse(source).map_err(|error| mistake(error.into()))?;
    let (inputs, notices) = inputs::read(&args.inputs, &record::names(&ast))?;
    let mut stderr = io::stderr();
    for notice in &notices {
        // A notice that cannot be delivered is no reason to compute nothing.
        let _ = writeln!(stderr, "notice: {notice}");
    }
    let recorded = record::record(&ast, &inputs).map_err(mistake)?;
    let outputs = outputs::choose(&recorded, &args.outputs, source, color)?;

    let (engine, notice) = engine(args)?;
    if let Some(notice) = notice {
        let _ = writeln!(stderr, "notice: {notice}");
    }
    let tensors: Vec<&Tensor> = outputs.iter().map(|output| &output.tensor).collect();
    let recorder = args.profile.as_ref().map(|_| engine.profile()).transpose()?;
    let program = {
        let _stage = span!("compile");
        engine.compile(&[], &tensors)?
    };
    memory::check(program.plan())?;
    let (arrays, mut decision, samples_ns) = repeat(args, &engine, &program)?;
    if let (Some(recorder), Some(path)) = (recorder, &args.profile) {
        let profile = recorder.title(source).finish();
        files::save_file(path, |file| file.write_all(profile.to_json().as_bytes())).map_err(Failure::writing)?;
    }
    if decision.predicted.is_empty() {
        // The choice was not ours; what each would have taken is worth knowing all the same.
        let known = |(device, parts): (String, breakeven::cost::Prediction)| Predicted {
            device,
            expected_ns: parts.total_ns(),
            parts,
            measured: false,
        };
        decision.predicted = engine.predict(&tensors)?.into_iter().map(known).collect();
    }
    outputs::write(&outputs, &arrays)?;
    if decision.fallbacks > 0 {
        let _ = writeln!(stderr, "notice: ran on {}: {}", decision.device, decision.reason);
    }

    let report = Report::new(&outputs, &arrays, decision, &samples_ns);
    let text = text(args, &report, &engine, &program, &arrays);
    let mut stdout = io::stdout().lock();
    if args.json {
        stderr.write_all(text.as_bytes())?;
        serde_json::to_writer(&mut stdout, &report).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(text.as_bytes())?;
    }
    Ok(stdout.flush()?)
}

/// The engine that was asked for, and why what was measured before is not used.
fn engine(args: &EvalArgs) -> Result<(Engine, Option<String>), Failure> {
    let config = Config::from_env()?;
    let device = args.device.unwrap_or(config.device);
    // A device that is named here must do it; one that the environment prefers may be stood in for.
    let strict = matches!(args.device, Some(Device::Gpu(_)));
    let objective = args.objective.unwrap_or(config.objective);
    let config = Config { device, strict, objective, ..config };
    if let Some(profile) = &args.simulate {
        return Ok((simulated(profile, config)?, None));
    }
    let engine = Engine::with_config(config)?;
    // Looking for drivers takes longer than most expressions: only for those who run it often, or want to know.
    let known = match device {
        Device::Cpu => false,
        Device::All => true,
        Device::Auto | Device::Gpu(_) => args.explain || args.repeat > 1,
    };
    let notice = if known { engine.load_costs() } else { None };
    Ok((engine, notice))
}

/// What measuring a device before a simulated run may take: twice what it takes on two cores. The most telling comes
/// first.
const MEASURING: Duration = Duration::from_secs(3);

/// An engine with a simulated device, whose costs and the CPU's are known.
fn simulated(profile: &str, config: Config) -> Result<Engine, Failure> {
    let cache_dir = config.cache_dir.clone();
    let engine = simulate::engine(profile, config)?;
    let processor = breakeven::cpu_name();
    let remembered = cache_dir.and_then(|dir| {
        let (file, _) = CostsFile::read(&dir, &processor, engine.threads());
        let key = file.keys().find(|key| key.backend == "cpu" && key.driver == engine.device_name("cpu"))?;
        file.get(key).cloned()
    });
    let mut progress = Progress::new(0);
    let mut measure = |device: &str, part: f64| {
        let end = Instant::now() + MEASURING;
        let mut watch = |step: &breakeven::cost::Progress| {
            let share = part + 0.5 * step.done as f64 / step.total.max(1) as f64;
            progress.show_share(share, 2 * MEASURING, &format!("{}, {}", step.device, step.what));
            if Instant::now() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        engine.measure(device, Effort::Quick, &mut watch).map(|_| ())
    };
    match remembered {
        Some(costs) => engine.set_costs("cpu", costs)?,
        None => measure("cpu", 0.0)?,
    }
    measure(simulate::ID, 0.5)?;
    drop(progress);
    Ok(engine)
}

/// Runs the program and times each run. The last run's results are kept; the others' memory serves the next run.
fn repeat(
    args: &EvalArgs,
    engine: &Engine,
    program: &Program,
) -> Result<(Vec<Array>, breakeven::Decision, Vec<u64>), Failure> {
    let runs = args.repeat as usize;
    let mut progress = Progress::new(runs);
    let mut samples_ns = Vec::with_capacity(runs);
    loop {
        let start = Instant::now();
        let ran = match args.deadline {
            None => program.run_with(&[], &RunOptions::default())?,
            Some(deadline) => run_until(engine, program, deadline)?,
        };
        let wall_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // A simulated device tells what it took.
        samples_ns.push(if args.simulate.is_some() { ran.decision.actual_ns } else { wall_ns });
        progress.show(samples_ns.len());
        if samples_ns.len() == runs {
            return Ok((ran.outputs, ran.decision, samples_ns));
        }
    }
}

/// Runs the program through the queue, which keeps deadlines.
fn run_until(engine: &Engine, program: &Program, deadline: Duration) -> Result<Ran, Failure> {
    let answer = engine.submit(Job::program(program, []).deadline(deadline).explained())?.wait();
    match answer.map_err(|error| if let Error::Failed { why } = error { *why } else { error })? {
        Answer::Arrays { outputs, decision: Some(decision), .. } => Ok(Ran { outputs, decision: *decision }),
        other => Err(Failure::failed(format_args!("the queue answered {other:?}"))),
    }
}

/// The document of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    /// It goes up when a field changes its meaning: see docs/formats.md.
    version: u32,
    outputs: Vec<OutputReport<'a>>,
    decision: Decision,
    timing: Option<Timing>,
}

#[derive(Serialize)]
struct OutputReport<'a> {
    name: &'a str,
    shape: Vec<usize>,
    dtype: &'static str,
    path: Option<&'a str>,
}

impl<'a> Report<'a> {
    fn new(outputs: &'a [Output], arrays: &[Array], ran: breakeven::Decision, samples_ns: &[u64]) -> Self {
        let output = |(output, array): (&'a Output, &Array)| OutputReport {
            name: &output.name,
            shape: array.shape().to_vec(),
            dtype: array.dtype().name(),
            path: output.path.as_deref(),
        };
        let (before, actual_ns) = match samples_ns {
            [before @ .., last] => (before, *last),
            [] => (&[][..], 0),
        };
        let decision = Decision::new(ran, actual_ns, before);
        let outputs = outputs.iter().zip(arrays).map(output).collect();
        Report { version: 1, outputs, decision, timing: Timing::of(samples_ns) }
    }
}

/// What people read: values, times, and the explanation, as far as they were asked for.
fn text(args: &EvalArgs, report: &Report<'_>, engine: &Engine, program: &Program, arrays: &[Array]) -> String {
    let mut text = String::new();
    let to_print = args.print || args.outputs.is_empty() && !args.json;
    for (output, array) in report.outputs.iter().zip(arrays).filter(|_| to_print) {
        let elements = print::elements(array);
        match (arrays.len(), array.shape().rank()) {
            (1, 0) => {}
            (1, _) => text += &format!("{}{}\n", array.dtype(), array.shape()),
            (_, 0) => text += &format!("{} = ", output.name),
            _ => text += &format!("{} = {}{}\n", output.name, array.dtype(), array.shape()),
        }
        text += &elements;
        text.push('\n');
    }
    if let Some(timing) = report.timing.filter(|timing| timing.samples > 1) {
        text += &format!(
            "{} runs: median {}, p90 {}, min {}, max {}\n",
            timing.samples,
            duration(timing.median_ns),
            duration(timing.p90_ns),
            duration(timing.min_ns),
            duration(timing.max_ns),
        );
    }
    if args.explain {
        text += &report.decision.explanation(engine, program);
    }
    text
}
