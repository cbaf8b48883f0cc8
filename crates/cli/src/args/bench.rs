//! The arguments of `breakeven bench`.

use std::path::PathBuf;

use breakeven::Device;

use super::one_device;
use crate::bench::inject::Injection;

const BENCH_HELP: &str = "\
Each group runs in a fresh process with a fresh engine; before and after it its devices are drained and compared with how
they were, and what it leaves behind is its failure. A group that hangs, crashes or loses its device is reported, and the
rest runs on. Before each group calm is waited for; what is measured without it is marked. First the same code is measured
against itself: differences that this shows can't be told here. Devices take turns, run by run; results are compared before
times. Ctrl-C keeps what was measured until then, a second one ends at once.

Examples:
  breakeven bench --quick
  breakeven bench matmul unary/exp --devices cpu,gpu:0
  breakeven bench --list
  breakeven bench --quick -o bench.json --html bench.html --markdown bench.md
  breakeven bench --quick --save-baseline main
  breakeven bench --quick --baseline main --max-regression 10%
  breakeven bench queue --json | jq '.groups[].rows[] | [.case, .device, .stats.median_ns]'

Exit codes: 0 success, 1 a group failed or something became slower, 2 a mistake of yours, 130 Ctrl-C.";

/// `breakeven bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = BENCH_HELP)]
pub struct BenchArgs {
    /// Groups, such as unary, or some of their cases, such as unary/exp; all of them by default
    #[arg(value_name = "GROUP[/CASE]")]
    pub groups: Vec<String>,

    /// Fewer sizes, samples and passes: below four minutes on two cores with two software adapters
    #[arg(long)]
    pub quick: bool,

    /// Which devices, such as cpu,gpu:0; all by default
    #[arg(long, value_name = "DEVICE,..", value_delimiter = ',', value_parser = one_device)]
    pub devices: Vec<Device>,

    /// Threads of the CPU [default: all; one where a baseline is saved or compared with, because what several take
    /// depends on who else is on the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,

    /// How many samples of each case a pass takes [default: 25, or 15 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub samples: Option<u32>,

    /// How often each group runs, in a fresh process each time [default: 3, or 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub passes: Option<u32>,

    /// What the order of the groups is made from; printed, so that it can be had again
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,

    /// The order of the groups: `shuffled`, anew in each pass, or as they are `given`
    #[arg(long, value_name = "ORDER", default_value = "shuffled", value_parser = ["shuffled", "given"])]
    pub order: String,

    /// Everything in this process, for debugging: a crash is the end of it
    #[arg(long)]
    pub in_process: bool,

    /// How long to wait for calm before each group [default: 10, or 3 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=3600))]
    pub calm: Option<u32>,

    /// What a group may take in one pass before it counts as hung [default: 300, or 60 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: Option<u32>,

    /// Print the result as JSON on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,

    /// Write the result as JSON
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write the result as one HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the result as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the result as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Remember the result under this name, from 12 passes or more: what is compared with it can't be surer than it is
    #[arg(long, value_name = "NAME", value_parser = baseline_name)]
    pub save_baseline: Option<String>,

    /// Compare with the result that was remembered under this name. What looks slower is measured again, up to six times
    #[arg(long, value_name = "NAME", value_parser = baseline_name)]
    pub baseline: Option<String>,

    /// Where baselines are: one JSON file for each name
    #[arg(long, value_name = "DIR", default_value = "breakeven-baselines")]
    pub baseline_dir: PathBuf,

    /// How much slower than the baseline is too slow
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub max_regression: f64,

    /// Compare with a baseline of another machine or driver, too
    #[arg(long)]
    pub foreign_baseline: bool,

    /// Try the gate on this machine: measures a baseline, then compares N runs of unchanged code with it and N in which one
    /// case takes 15 % longer, and says how many raised an alarm. It takes N times as long as two comparisons
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100),
          conflicts_with_all = ["baseline", "save_baseline", "inject", "output", "html", "markdown", "csv", "json"])]
    pub try_gate: Option<u32>,

    /// List the groups and their cases
    #[arg(long)]
    pub list: bool,

    /// Let something go wrong, for tests
    #[arg(long, value_name = "GROUP=WHAT", hide = true, conflicts_with = "in_process")]
    pub inject: Vec<Injection>,
}

/// A share that is given in hundredths: `10%`, or `10`. What may be meant as a part of 1 is not guessed at.
fn percent(text: &str) -> Result<f64, String> {
    if let Ok(part) = text.trim().parse::<f64>()
        && part > 0.0
        && part < 1.0
    {
        return Err(format!("is this {text} % or {} %? Write it with its sign, such as 10%", 100.0 * part));
    }
    let number: Option<f64> = text.trim().trim_end_matches('%').trim_end().parse().ok();
    let share = number.map(|number| number / 100.0).filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "expected a percentage such as 10%".to_owned())
}

/// A name that is a file's in any system.
fn baseline_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(is_plain) {
        return Err("a name is made of letters, digits, `.`, `_` and `-`".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::args::{Args, Command};
    use clap::Parser;

    #[test]
    fn benches_are_asked_for_by_name() {
        let parse = |args: &[&str]| Args::try_parse_from([&["breakeven", "bench"], args].concat());
        let Command::Bench(args) =
            parse(&["unary/exp", "--quick", "--devices", "cpu", "--max-regression", "7.5%", "--inject", "unary=kill"])
                .unwrap()
                .command
        else {
            panic!("a bench")
        };
        assert_eq!(
            (args.groups, args.max_regression, args.order.as_str()),
            (vec!["unary/exp".into()], 0.075, "shuffled")
        );
        let bad = [["--samples", "2"], ["--passes", "0"], ["--order", "best"], ["--max-regression", "much"]];
        let bad = bad.into_iter().chain([["--max-regression", "0.1"]]);
        let names = ["--save-baseline", "--baseline"].map(|flag| [flag, "../main"]);
        let bad = bad.chain(names);
        for bad in bad.chain([["--devices", "gpu"], ["--timeout", "0"], ["--inject", "unary=burn"]]) {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
