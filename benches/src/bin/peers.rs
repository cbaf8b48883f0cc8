//! `cargo run --release -p benches --bin peers`: arguments enter, the table of all workloads leaves on stdout.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its purpose")]

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use benches::arm::Fallible;
use benches::limits::Limits;
use benches::measure::{Effort, measure};
use benches::ours::Ours;
use benches::peers::python::Python;
use benches::report::{Report, Row};
use benches::{chart, peers, table, workload};

const HELP: &str = "\
Breakeven beside other libraries, on the same inputs, in one run.

  --quick          fewer rounds, no 2048 x 2048 product
  --filter TEXT    only workloads whose name contains TEXT, such as W1.add or matmul; TEXT:N only at that size
  --json FILE      everything that was measured
  --markdown FILE  the table for the documentation
  --svg FILE       the picture for the README
  --no-python      without numpy, numexpr, JAX and torch
  --gate           exit 1 where a bar is missed

BREAKEVEN_PYTHON names the interpreter that has the Python libraries; python3 otherwise.";

struct Options {
    quick: bool,
    filter: Option<String>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
    svg: Option<PathBuf>,
    python: bool,
    gate: bool,
}

fn main() -> ExitCode {
    let mut arguments = pico_args::Arguments::from_env();
    if arguments.contains(["-h", "--help"]) {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let outcome = options(arguments).and_then(|options| run(&options));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::from(2)
        }
    }
}

fn options(mut arguments: pico_args::Arguments) -> Fallible<Options> {
    let options = Options {
        quick: arguments.contains("--quick"),
        python: !arguments.contains("--no-python"),
        gate: arguments.contains("--gate"),
        filter: arguments.opt_value_from_str("--filter")?,
        json: arguments.opt_value_from_str("--json")?,
        markdown: arguments.opt_value_from_str("--markdown")?,
        svg: arguments.opt_value_from_str("--svg")?,
    };
    match arguments.finish().first() {
        Some(unknown) => Err(format!("unknown argument {}; see --help", unknown.display()).into()),
        None => Ok(options),
    }
}

/// Whether the run may end well: bars count only where `--gate` asks for them.
fn run(options: &Options) -> Fallible<bool> {
    let specs: Vec<workload::Spec> =
        workload::specs(options.quick).into_iter().filter(|spec| wanted(spec, options.filter.as_deref())).collect();
    if specs.is_empty() {
        return Err("no workload has that name; W1.add is one".into());
    }
    let load = load_average();
    let ours = Ours::start()?;
    let python = if options.python { Some(Python::start()?) } else { None };
    let limits_before = Limits::measure();
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let mut rows = Vec::new();
    for spec in specs {
        let workload = spec.prepare();
        let mut arms = ours.arms(&workload)?;
        arms.extend(peers::arms(&workload));
        if let Some(python) = &python {
            arms.extend(python.arms(&workload)?);
        }
        let row = Row::new(&workload, measure(arms, &workload.expected, effort));
        if std::io::stderr().is_terminal() {
            eprintln!("{}", table::progress(&row));
        }
        rows.push(row);
    }
    let mut notes = python.map(|python| python.notes.clone()).unwrap_or_default();
    notes.extend(load_warning(load));
    // At both ends of the run: the better of both is nearer to what the machine can do.
    let limits = limits_before.better_of(&Limits::measure());
    let report = Report::new(machine(), notes, limits, rows);
    println!("{}", table::terminal(&report));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, chart::svg(&report))?;
    }
    if let Some(path) = &options.markdown {
        std::fs::write(path, table::markdown(&report))?;
    }
    Ok(report.passes() || !options.gate)
}

fn wanted(spec: &workload::Spec, filter: Option<&str>) -> bool {
    let Some(filter) = filter else { return true };
    match filter.rsplit_once(':') {
        Some((name, n)) => spec.kind.name().contains(name) && n.parse() == Ok(spec.n),
        None => spec.kind.name().contains(filter),
    }
}

/// Runnable processes over the last minute, before this run adds its own.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

fn load_warning(load: Option<f64>) -> Option<String> {
    let load = load.filter(|&load| load > 0.5)?;
    Some(format!("the machine was busy when this run began (load {load:.1}): times are not to be quoted"))
}

/// The CPU's name, where the system tells it.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
