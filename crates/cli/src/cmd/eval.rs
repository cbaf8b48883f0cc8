//! `breakeven eval`: an expression and its inputs enter, results leave as files, text or one JSON document.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    time::Instant,
};

use breakeven::{Array, Config, Device, Engine, Program, RunOptions, Tensor};
use serde::Serialize;

use crate::args::EvalArgs;
use crate::expr;
use crate::failure::Failure;
use crate::outputs::{self, Output};
use crate::progress::Progress;
use crate::record::{self, Mistake};
use crate::timing::{Timing, duration};
use crate::{inputs, memory, print};

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

    let config = Config::from_env()?;
    let device = args.device.unwrap_or(config.device);
    // A device that is named here must do it; one that the environment prefers may be stood in for.
    let strict = matches!(args.device, Some(Device::Gpu(_)));
    let engine = Engine::with_config(Config { device, strict, ..config })?;
    let tensors: Vec<&Tensor> = outputs.iter().map(|output| &output.tensor).collect();
    let program = engine.compile(&[], &tensors)?;
    memory::check(program.plan())?;
    let (arrays, decision, samples_ns) = repeat(&program, args.repeat as usize)?;
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

/// Runs the program and times each run. The last run's results are kept; the others' memory serves the next run.
fn repeat(program: &Program, runs: usize) -> Result<(Vec<Array>, breakeven::Decision, Vec<u64>), Failure> {
    let mut progress = Progress::new(runs);
    let mut samples_ns = Vec::with_capacity(runs);
    loop {
        let start = Instant::now();
        let ran = program.run_with(&[], &RunOptions::default())?;
        samples_ns.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        progress.show(samples_ns.len());
        if samples_ns.len() == runs {
            return Ok((ran.outputs, ran.decision, samples_ns));
        }
    }
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
    device: String,
    reason: String,
    /// Empty where nothing has been measured yet: a guess would not be told from a measurement.
    predicted_ns: BTreeMap<String, u64>,
    actual_ns: u64,
    kernels: usize,
    dispatches: u32,
    passes: u32,
    submits: u32,
    uploads: u32,
    readbacks: u32,
    upload_bytes: u64,
    readback_bytes: u64,
    /// Time on the device by its own clock; 0 where it has none.
    device_ns: u64,
    /// Buffers, pipelines and bind groups that had to be made.
    created: u32,
    fallbacks: u32,
    faults: Vec<String>,
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
        let decision = Decision {
            // What the runs before the last one took is the only thing that foretells it.
            predicted_ns: Timing::of(before).map(|t| (ran.device.clone(), t.median_ns)).into_iter().collect(),
            device: ran.device,
            reason: ran.reason,
            actual_ns,
            kernels: ran.kernels,
            dispatches: ran.timings.dispatches,
            passes: ran.timings.passes,
            submits: ran.timings.submits,
            uploads: ran.timings.uploads,
            readbacks: ran.timings.readbacks,
            upload_bytes: ran.timings.upload_bytes,
            readback_bytes: ran.timings.readback_bytes,
            device_ns: ran.timings.device_ns,
            created: ran.timings.created,
            fallbacks: ran.fallbacks,
            faults: ran.faults,
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
    let predicted = match decision.predicted_ns.get(&decision.device) {
        Some(ns) => format!("predicted {} from the runs before it, ", duration(*ns)),
        None => String::new(),
    };
    let mut text = format!(
        "device      {}: {} ({})\n\
         time        {predicted}took {}\n",
        decision.device,
        decision.reason,
        engine.device_name(&decision.device),
        duration(decision.actual_ns),
    );
    if decision.submits > 0 {
        text += &format!(
            "submitted   {} time{}: {} dispatches in {} pass{}, {} up, {} down, {} objects made\n",
            decision.submits,
            if decision.submits == 1 { "" } else { "s" },
            decision.dispatches,
            decision.passes,
            if decision.passes == 1 { "" } else { "es" },
            memory::size(decision.upload_bytes),
            memory::size(decision.readback_bytes),
            decision.created,
        );
    }
    text + &format!(
        "kernels     {}\n\
         operations  {}\n\
         read        {}\n\
         written     {}\n\
         scratch     {}\n\
         \n{}",
        stats.kernels,
        stats.flops,
        memory::size(stats.bytes_read),
        memory::size(stats.bytes_written),
        memory::size(stats.peak_scratch_bytes as u64),
        program.plan(),
    )
}
