//! Runs the queue under load for some minutes: `soak [--minutes 10]`. A line every 10 s; exit 1 if an answer was wrong or
//! missing, the counters don't add up, or memory has grown.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it reports to whoever runs it")]

use breakeven_tests::soak::soak;
use std::process::ExitCode;
use std::time::Duration;

fn minutes() -> Option<f64> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some(10.0),
        ["--minutes", minutes] => minutes.parse().ok().filter(|minutes: &f64| *minutes > 0.0 && *minutes < 1e5),
        _ => None,
    }
}

fn main() -> ExitCode {
    let Some(minutes) = minutes() else {
        eprintln!("expected: soak [--minutes 10]");
        return ExitCode::from(2);
    };
    let done = soak(Duration::from_secs_f64(60.0 * minutes), Duration::from_secs(10), |line| {
        let (mib, stats) = (line.resident_bytes as f64 / f64::from(1 << 20), &line.stats);
        println!(
            "{:6.0} s {:9.0} jobs/s {mib:8.1} MiB  submitted {} completed {} cancelled {} late {} failed {} \
             fallbacks {} gathered {}/{}",
            line.elapsed.as_secs_f64(),
            line.jobs_per_s,
            stats.submitted,
            stats.completed,
            stats.cancelled,
            stats.late,
            stats.failed,
            stats.fallbacks,
            stats.gathered_jobs,
            stats.gathered_batches,
        );
    });
    match done {
        Ok(tally) => {
            println!("all {} answers were right: {tally:?}", tally.total());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
