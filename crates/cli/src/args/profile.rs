//! The arguments of `breakeven profile`.

use std::path::PathBuf;

const PROFILE_HELP: &str = "\
FILE is a profile as JSON. Self times add up to the time of their threads, waiting is shown as waiting, and a file whose
shares do not add up to 100 % is refused. What the run measured is called `measured`, what was run again `rerun`, and what is
only expected `predicted`.

With --measure-baseline the plans that took most time are run again on made-up data of the same shapes, on the CPU and on
every device of this machine, in turns; medians stand beside what the run measured. Ctrl-C keeps what was measured until
then, a second one ends at once.

Examples:
  breakeven profile run.json
  breakeven profile run.json --top 5 --depth 3 --thread worker-0
  breakeven profile run.json --measure-baseline -o with-baseline.json
  breakeven profile run.json --chrome trace.json      # opens in https://ui.perfetto.dev
  breakeven profile run.json --folded - | inferno-flamegraph > flame.svg
  breakeven profile run.json --json | jq .amdahl.bound

Exit codes: 0 success, 2 a mistake of yours or a file that is no profile, 1 a failure, 130 Ctrl-C.";

/// `breakeven profile`.
#[derive(Debug, clap::Args)]
#[command(after_help = PROFILE_HELP)]
pub struct ProfileArgs {
    /// The profile
    pub file: PathBuf,

    /// Only the tree, the top list and the stages of threads of this name
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,

    /// How many entries the top list has
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,

    /// How deep the tree is shown; what lies deeper is summed up
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,

    /// Run the plans that took most time again, on the CPU and on every device of this machine
    #[arg(long)]
    pub measure_baseline: bool,

    /// How many samples of each are taken on each device
    #[arg(long, value_name = "N", default_value_t = 15, requires = "measure_baseline", value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub samples: u32,

    /// Write the profile with what was run again
    #[arg(short, long = "output", value_name = "FILE", requires = "measure_baseline")]
    pub output: Option<PathBuf>,

    /// Write a timeline for Perfetto or chrome://tracing; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub chrome: Option<PathBuf>,

    /// Write folded stacks for flame graphs; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,

    /// Write metrics in Prometheus' text format; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<PathBuf>,

    /// Print the analysis as one JSON document on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use crate::args::{Args, Command};
    use clap::Parser;

    #[test]
    fn profiles_are_asked_for() {
        let parse = |args: &[&str]| Args::try_parse_from([&["breakeven", "profile"], args].concat());
        let Command::Profile(args) = parse(&["run.json", "--depth", "0", "--measure-baseline"]).unwrap().command else {
            panic!("a profile")
        };
        assert_eq!((args.top, args.depth, args.samples, args.output), (12, Some(0), 15, None));
        let bad: [&[&str]; 5] =
            [&[], &["a", "b"], &["a", "--top", "0"], &["a", "-o", "b"], &["a", "--measure-baseline", "--samples", "2"]];
        for bad in bad {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
