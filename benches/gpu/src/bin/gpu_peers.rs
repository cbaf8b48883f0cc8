//! `cargo run --release -p gpu-benches --bin gpu_peers`: arguments enter, the table of all workloads leaves on stdout.
//!
//! Each row is measured in a process of its own: what a library leaves behind, threads that poll, kernels that are still being
//! tuned, memory, belongs to the row that it was left by.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its purpose")]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use gpu_benches::arm::{Arm, Fallible};
use gpu_benches::attempt::checked;
use gpu_benches::burn::Burn;
use gpu_benches::hand::Hand;
use gpu_benches::measure::{ArmReport, Effort, measure};
use gpu_benches::ours::Ours;
use gpu_benches::report::{Report, Row};
use gpu_benches::trueno::Trueno;
use gpu_benches::workload::{Kind, Spec, Workload, specs};
use gpu_benches::{adapter, table};
use serde::{Deserialize, Serialize};

const HELP: &str = "\
Breakeven's GPU side beside a hand-written wgpu program, burn and trueno, on lavapipe, in one run.

  --quick          fewer rounds, and no trueno where it takes seconds
  --filter TEXT    only workloads whose name contains TEXT, such as relu; TEXT:N only at that size
  --without NAMES  leaves arms out: some of ours, hand, burn, trueno, separated by commas
  --json FILE      everything that was measured
  --markdown FILE  the table for the documentation
  --gate           exit 1 where a bar is missed
  --row NAME:N     measures this row in this process and prints its arms as JSON: what a whole run starts for each row";

/// For numbers that are quoted. A call takes up to half a second here, so rounds count more than a budget.
const FULL: Effort = Effort { min_rounds: 11, max_rounds: 41, scout_rounds: 2, budget: Duration::from_secs(4) };
/// For a look while working.
const QUICK: Effort = Effort { min_rounds: 3, max_rounds: 9, scout_rounds: 1, budget: Duration::from_millis(700) };

struct Options {
    quick: bool,
    filter: Option<String>,
    without: Vec<String>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
    gate: bool,
    row: Option<String>,
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
            eprintln!("gpu_peers: {error}");
            ExitCode::from(2)
        }
    }
}

fn options(mut arguments: pico_args::Arguments) -> Fallible<Options> {
    let without: Option<String> = arguments.opt_value_from_str("--without")?;
    let options = Options {
        quick: arguments.contains("--quick"),
        gate: arguments.contains("--gate"),
        filter: arguments.opt_value_from_str("--filter")?,
        row: arguments.opt_value_from_str("--row")?,
        without: without.map(|names| names.split(',').map(str::to_owned).collect()).unwrap_or_default(),
        json: arguments.opt_value_from_str("--json")?,
        markdown: arguments.opt_value_from_str("--markdown")?,
    };
    match arguments.finish().first() {
        Some(unknown) => Err(format!("unknown argument {}; see --help", unknown.display()).into()),
        None => Ok(options),
    }
}

/// Everyone who takes part.
struct Arms {
    ours: Option<Ours>,
    hand: Option<Hand>,
    burn: Option<Burn>,
    trueno: Option<Trueno>,
}

impl Arms {
    /// Opens the adapter for each. A peer that can't open it is a note; without ours there is nothing to compare.
    fn open(adapter: &adapter::Adapter, options: &Options, notes: &mut Vec<String>) -> Fallible<Arms> {
        let name = adapter.handle.get_info().name;
        let wanted = |arm: &str| !options.without.iter().any(|without| without == arm);
        let mut noted = |arm: &str, why: String| notes.push(format!("{arm} takes no part: {why}"));
        let hand = wanted("hand").then(|| Hand::open(&adapter.handle)).transpose()?;
        let ours = wanted("ours").then(Ours::open).transpose()?;
        let burn = wanted("burn").then(|| Burn::open(&name)).transpose();
        let burn = burn.unwrap_or_else(|why| {
            noted("burn", why.to_string());
            None
        });
        let trueno = wanted("trueno").then(|| Trueno::open(&name)).transpose();
        let trueno = trueno.unwrap_or_else(|why| {
            noted("trueno", why.to_string());
            None
        });
        Ok(Arms { ours, hand, burn, trueno })
    }

    fn for_workload<'w>(&self, workload: &'w Workload, quick: bool) -> Fallible<Vec<Arm<'w>>> {
        let mut arms = self.ours.as_ref().map(|ours| ours.arms(workload)).transpose()?.unwrap_or_default();
        arms.extend(self.hand.iter().flat_map(|hand| hand.arms(workload)));
        arms.extend(self.burn.iter().flat_map(|burn| burn.arms(workload)));
        arms.extend(self.trueno.iter().flat_map(|trueno| trueno.arms(workload, quick)));
        Ok(arms.into_iter().map(|arm| checked(arm, &workload.expected)).collect())
    }
}

/// What the process of one row tells.
#[derive(Deserialize, Serialize)]
struct Measured {
    adapter: String,
    notes: Vec<String>,
    arms: Vec<ArmReport>,
}

/// Whether the run may end well: bars count only where `--gate` asks for them.
fn run(options: &Options) -> Fallible<bool> {
    if let Some(row) = &options.row {
        let spec = specs().into_iter().find(|spec| id(*spec) == *row);
        let spec = spec.ok_or_else(|| format!("there is no row {row}; relu:256 is one"))?;
        println!("{}", serde_json::to_string(&measure_here(spec, options)?)?);
        return Ok(true);
    }
    let specs: Vec<Spec> = specs().into_iter().filter(|spec| wanted(spec, options.filter.as_deref())).collect();
    if specs.is_empty() {
        return Err("no workload has that name; relu is one".into());
    }
    let load = load_average();
    let mut report = Report { adapter: String::new(), machine: machine(), notes: Vec::new(), rows: Vec::new() };
    for spec in specs {
        let Measured { adapter, notes, arms } = measure_apart(spec, options)?;
        let row = Row::new(spec, arms);
        // The rows take minutes: whoever waits sees them one by one.
        eprintln!("{}", table::progress(&row));
        report.rows.push(row);
        report.adapter = adapter;
        let new = notes.into_iter().filter(|note| !report.notes.contains(note)).collect::<Vec<_>>();
        report.notes.extend(new);
    }
    report.notes.extend(load_warning(load));
    println!("{}", table::terminal(&report));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &options.markdown {
        std::fs::write(path, table::markdown(&report))?;
    }
    Ok(report.passes() || !options.gate)
}

/// A row's name on the command line.
fn id(spec: Spec) -> String {
    format!("{}:{}", spec.kind.name(), spec.n)
}

/// One row in a process of its own.
fn measure_apart(spec: Spec, options: &Options) -> Fallible<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--row", &id(spec)]);
    if options.quick {
        command.arg("--quick");
    }
    if !options.without.is_empty() {
        command.args(["--without", &options.without.join(",")]);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the process of row {} ended with {}", id(spec), output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// One row in this process.
fn measure_here(spec: Spec, options: &Options) -> Fallible<Measured> {
    let adapter = adapter::find()?;
    let mut notes = Vec::new();
    let arms = Arms::open(&adapter, options, &mut notes)?;
    let effort = if options.quick { QUICK } else { FULL };
    let workload = spec.prepare();
    // A bar of 10x is judged by an arm that is far behind: it stays for all rounds, or its time and ours would come
    // from different minutes. Where a call takes seconds, few rounds say enough.
    let slow = spec.kind == Kind::RowSoftmax;
    let effort = Effort { scout_rounds: if slow { effort.scout_rounds } else { effort.max_rounds }, ..effort };
    let arms = measure(arms.for_workload(&workload, options.quick)?, &workload.expected, effort);
    Ok(Measured { adapter: adapter.description, notes, arms })
}

fn wanted(spec: &Spec, filter: Option<&str>) -> bool {
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
