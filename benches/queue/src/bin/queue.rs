//! `cargo run --release -p queue-benches --bin queue`: arguments enter, the table of all groups leaves on stdout.
//!
//! As the criterion benches, but with the arms of a row interleaved: on a machine that others use, too, their ratios
//! are what counts.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output is its purpose")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use queue_benches::arm::Fallible;
use queue_benches::groups::{Row, rows};
use queue_benches::measure::Effort;
use queue_benches::report::{Measured, Report};
use queue_benches::side_by_side::side_by_side;
use queue_benches::{machine, table};

const HELP: &str = "\
The engine's queue beside a mutex with a condvar, crossbeam, flume, kanal and tokio, in one run.

  --quick          fewer rounds
  --filter TEXT    only rows whose name contains TEXT, such as throughput or \"send/128 B\"
  --arm TEXT       only arms whose name contains TEXT, such as ours: for profiles
  --json FILE      everything that was measured
  --markdown FILE  the table for the documentation
  --list           the names of all rows";

// No arm is let go for being slow: all of them are in the table, from the same minutes.
/// For numbers that are quoted.
const FULL: Effort = Effort { min_rounds: 21, max_rounds: 201, scout_rounds: 201, budget: Duration::from_millis(1500) };
/// For a look while working.
const QUICK: Effort = Effort { min_rounds: 5, max_rounds: 15, scout_rounds: 15, budget: Duration::from_millis(200) };

struct Options {
    quick: bool,
    list: bool,
    filter: Option<String>,
    arm: Option<String>,
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
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("queue: {error}");
            ExitCode::from(2)
        }
    }
}

fn options(mut arguments: pico_args::Arguments) -> Fallible<Options> {
    let options = Options {
        quick: arguments.contains("--quick"),
        list: arguments.contains("--list"),
        filter: arguments.opt_value_from_str("--filter")?,
        arm: arguments.opt_value_from_str("--arm")?,
        json: arguments.opt_value_from_str("--json")?,
        markdown: arguments.opt_value_from_str("--markdown")?,
    };
    match arguments.finish().first() {
        Some(unknown) => Err(format!("unknown argument {}; see --help", unknown.display()).into()),
        None => Ok(options),
    }
}

fn run(options: &Options) -> Fallible<()> {
    machine::note_load();
    let before_ns = machine::store_ns();
    let filter = options.filter.as_deref().unwrap_or_default();
    let rows: Vec<Row> = rows().into_iter().filter(|row| row.name().contains(filter)).collect();
    if rows.is_empty() {
        return Err(format!("no row has {filter} in its name; see --list").into());
    }
    if options.list {
        rows.iter().for_each(|row| println!("{}", row.name()));
        return Ok(());
    }
    let effort = if options.quick { QUICK } else { FULL };
    let mut report = Report { machine: machine::description(), notes: Vec::new(), rows: Vec::new() };
    if !cfg!(feature = "ours") {
        report.notes.push("built without the feature `ours`: the peers among themselves".to_owned());
    }
    for row in rows {
        let measured = Measured::new(&row, side_by_side(&row, options.arm.as_deref().unwrap_or_default(), effort)?);
        // The rows take a minute or two: whoever waits sees them one by one.
        eprintln!("{}", table::progress(&measured));
        report.rows.push(measured);
    }
    report.notes.extend(machine::load_warning());
    report.notes.push(machine::distance(before_ns, machine::store_ns()));
    println!("{}", table::terminal(&report));
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    if let Some(path) = &options.markdown {
        std::fs::write(path, table::markdown(&report))?;
    }
    Ok(())
}
