//! `cargo run --release -p queue-benches --bin mixed`: arguments enter, the table of mixed batches leaves on stdout.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its purpose")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use queue_benches::arm::Fallible;
use queue_benches::attempt::caught;
use queue_benches::machine;
use queue_benches::measure::Effort;
use queue_benches::mixed::place::places;
use queue_benches::mixed::print;
use queue_benches::mixed::shape::{Inputs, Op, shapes};
use queue_benches::mixed::verdict::{Mean, Report, Row};
use queue_benches::mixed::ways::times;

const HELP: &str = "\
Tasks of several sizes, one program run after the other and as one batch, on the CPU, on every adapter and on a
simulated DX12 device.

  --quick          fewer rounds
  --device TEXT    only devices whose id contains TEXT, such as cpu, gpu:0 or simulated
  --json FILE      everything that was measured
  --markdown FILE  the table for the documentation
  --gate           exit 1 where a bar is missed";

/// For numbers that are quoted. A batch takes milliseconds on a software adapter, so rounds count more than a budget.
const FULL: Effort = Effort { min_rounds: 15, max_rounds: 61, scout_rounds: 61, budget: Duration::from_secs(2) };
/// For a look while working.
const QUICK: Effort = Effort { min_rounds: 5, max_rounds: 11, scout_rounds: 11, budget: Duration::from_millis(300) };

struct Options {
    quick: bool,
    gate: bool,
    device: Option<String>,
    json: Option<PathBuf>,
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    let mut arguments = pico_args::Arguments::from_env();
    if arguments.contains(["-h", "--help"]) {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match options(arguments).and_then(|options| run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mixed: {error}");
            ExitCode::from(2)
        }
    }
}

fn options(mut arguments: pico_args::Arguments) -> Fallible<Options> {
    let options = Options {
        quick: arguments.contains("--quick"),
        gate: arguments.contains("--gate"),
        device: arguments.opt_value_from_str("--device")?,
        json: arguments.opt_value_from_str("--json")?,
        markdown: arguments.opt_value_from_str("--markdown")?,
    };
    match arguments.finish().first() {
        Some(unknown) => Err(format!("unknown argument {}; see --help", unknown.display()).into()),
        None => Ok(options),
    }
}

/// Whether the run may end well: bars count only where `--gate` asks for them.
fn run(options: &Options) -> Fallible<bool> {
    machine::note_load();
    let before_ns = machine::store_ns();
    let effort = if options.quick { QUICK } else { FULL };
    let mut notes = Vec::new();
    let places = places(options.device.as_deref().unwrap_or_default(), &mut notes)?;
    let (mut rows, mut means) = (Vec::new(), Vec::new());
    for place in &places {
        for op in Op::ALL {
            let first = rows.len();
            for shape in shapes() {
                // A driver that fails, even by a panic, is a line of the report and not the end of the run.
                let times = caught(|| times(place, op, &Inputs::of(&shape), effort));
                let times = times.map_err(|error| error.to_string());
                let row = Row::new((&place.id, place.kind), op, &shape, times);
                eprintln!("{}", print::progress(&row));
                rows.push(row);
            }
            means.extend(Mean::of(place.kind, &rows[first..]));
        }
    }
    notes.extend(machine::load_warning());
    notes.push(machine::distance(before_ns, machine::store_ns()));
    let places = places.iter().map(|place| format!("{}: {}", place.id, place.name)).collect();
    let report = Report { machine: machine::description(), places, notes, rows, means };
    println!("{}", print::terminal(&report));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &options.markdown {
        std::fs::write(path, print::markdown(&report))?;
    }
    Ok(report.passes() || !options.gate)
}
