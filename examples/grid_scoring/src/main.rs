//! The binary: arguments enter, a report on stdout and an exit code leave.
#![forbid(unsafe_code)]

use clap::Parser;
use grid_scoring::{Args, INTERRUPTED, Progress, command};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let mut progress = Progress::catching();
    let report = match command::run(&args, &mut progress) {
        Ok(report) => report,
        Err(why) => {
            drop(progress);
            let _ = writeln!(std::io::stderr(), "error: {why}");
            return ExitCode::from(if why.is_mistake() { 2 } else { 1 });
        }
    };
    drop(progress);
    let text = if args.json {
        match serde_json::to_string_pretty(&report) {
            Ok(text) => text + "\n",
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "error: the report has no JSON form: {why}");
                return ExitCode::from(1);
            }
        }
    } else {
        report.to_string()
    };
    if std::io::stdout().write_all(text.as_bytes()).is_err() {
        // Whoever reads has gone.
        return ExitCode::from(1);
    }
    if let Some(why) = &report.not_written {
        let _ = writeln!(std::io::stderr(), "error: {why}");
    }
    match report {
        report if report.interrupted => ExitCode::from(INTERRUPTED),
        report if report.not_written.is_some() => ExitCode::from(2),
        report if report.compared.iter().any(|other| other.different > 0) => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    }
}
