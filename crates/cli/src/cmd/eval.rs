//! `breakeven eval`: an expression and its inputs enter, results leave as files, text or one JSON document.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    time::Instant,
};

use breakeven::{Array, Engine, Program, Tensor};
use serde::Serialize;

use crate::args::{Device, EvalArgs};
use crate::expr;
use crate::failure::Failure;
use crate::outputs::{self, Output};
use crate::progress::Progress;
use crate::record::{self, Mistake};
use crate::timing::{Timing, duration};
use crate::{inputs, memory, print};

/// Why it ran where it ran, as long as there is one place.
const ONLY_DEVICE: &str = "the only device of this build";

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

    let engine = Engine::new()?;
    let tensors: Vec<&Tensor> = outputs.iter().map(|output| &output.tensor).collect();
    let program = engine.compile(&[], &tensors)?;
    memory::check(program.plan())?;
    let (arrays, samples_ns) = repeat(&program, args.repeat as usize)?;
    outputs::write(&outputs, &arrays)?;

    let report = Report::new(&outputs, &arrays, &program, args.device, &samples_ns);
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

/// Runs the program and times each run. The last run's results are kept; the others' memory serves the next run.
fn repeat(program: &Program, runs: usize) -> Result<(Vec<Array>, Vec<u64>), Failure> {
    let mut progress = Progress::new(runs);
    let mut samples_ns = Vec::with_capacity(runs);
    let mut arrays = Vec::new();
    for done in 1..=runs {
        arrays.clear();
        let start = Instant::now();
        arrays = program.run(&[])?;
        samples_ns.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        progress.show(done);
    }
    Ok((arrays, samples_ns))
}

/// The document of `--json`.
#[derive(Serialize)]
struct Report<'a> {
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

/// Where the last run ran, why, and what it took.
#[derive(Serialize)]
struct Decision {
    device: &'static str,
    reason: String,
    /// Empty where nothing has been measured yet: a guess would not be told from a measurement.
    predicted_ns: BTreeMap<&'static str, u64>,
    actual_ns: u64,
    kernels: usize,
    dispatches: u64,
    submits: u64,
    upload_bytes: u64,
    readback_bytes: u64,
    fallbacks: u64,
}

impl<'a> Report<'a> {
    fn new(outputs: &'a [Output], arrays: &[Array], program: &Program, device: Device, samples_ns: &[u64]) -> Self {
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
        let decision = Decision {
            device: "cpu",
            reason: match device {
                Device::Auto => ONLY_DEVICE.to_owned(),
                Device::Cpu => format!("asked for, and {ONLY_DEVICE}"),
            },
            // What the runs before the last one took is the only thing that foretells it.
            predicted_ns: Timing::of(before).map(|timing| ("cpu", timing.median_ns)).into_iter().collect(),
            actual_ns,
            kernels: program.plan().kernels.len(),
            dispatches: 0,
            submits: 0,
            upload_bytes: 0,
            readback_bytes: 0,
            fallbacks: 0,
        };
        Report { outputs: outputs.iter().zip(arrays).map(output).collect(), decision, timing: Timing::of(samples_ns) }
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
        text += &explanation(report, engine, program);
    }
    text
}

fn explanation(report: &Report<'_>, engine: &Engine, program: &Program) -> String {
    let decision = &report.decision;
    let stats = program.plan().stats();
    let predicted = match decision.predicted_ns.get("cpu") {
        Some(ns) => format!("predicted {} from the runs before it, ", duration(*ns)),
        None => String::new(),
    };
    format!(
        "device      {}: {} ({})\n\
         time        {predicted}took {}\n\
         kernels     {}\n\
         operations  {}\n\
         read        {}\n\
         written     {}\n\
         scratch     {}\n\
         \n{}",
        decision.device,
        decision.reason,
        engine.device_name(),
        duration(decision.actual_ns),
        stats.kernels,
        stats.flops,
        memory::size(stats.bytes_read),
        memory::size(stats.bytes_written),
        memory::size(stats.peak_scratch_bytes as u64),
        program.plan(),
    )
}
