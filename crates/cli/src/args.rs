//! The arguments: what the shell hands over enters, a checked [`Args`] leaves, or clap says what was wrong.

mod bench;
mod profile;

pub use bench::BenchArgs;
pub use profile::ProfileArgs;

use std::path::PathBuf;
use std::time::Duration;

use breakeven::{Device, Objective};
use breakeven_report::Claim;
use clap::{Parser, Subcommand};

use crate::scan::{ops, sizes};

/// Array computing that runs batches of work where they pay.
#[derive(Debug, Parser)]
#[command(name = "breakeven", version)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the CPU and every GPU: limits, memory, driver, health
    Devices(DevicesArgs),
    /// Compute an expression over arrays in .npy and .npz files
    Eval(EvalArgs),
    /// Measure this machine: from which size on each GPU is faster than the CPU
    Scan(ScanArgs),
    /// Set scans side by side: backends, machines or versions, and results of other tools
    Compare(CompareArgs),
    /// Measure groups of operations on every device, each in a process of its own, and compare with a baseline
    Bench(BenchArgs),
    /// Say where a run's time went, and what a faster GPU could gain at most
    Profile(ProfileArgs),
    /// A part of `bench`, in a process of its own
    #[command(hide = true)]
    BenchJob,
    /// List the functions and operators that expressions are made of
    Ops(OpsArgs),
    /// Show or clear what is remembered: measured costs, tuned kernels, pipelines
    Cache(CacheArgs),
}

const EVAL_HELP: &str = "\
Inputs:
  x=x.npy               an array; f64, f16 and other integers are converted with a notice
  x=archive.npz:member  one array of an archive
  archive.npz           all arrays of an archive, by their names
  x=3.5                 a number, which takes the dtype of the arrays beside it

Outputs:
  -o y.npy              the last statement's value
  -o h=h.npy            what the expression assigns to h
  -o all.npz            all assigned arrays and the last value, which is `out` if it has no name
  -o a=two.npz -o b=two.npz   only these, in one archive

Examples:
  breakeven eval 'softmax(relu(x @ w + b), axis=1)' x=x.npy w=w.npy b=b.npy -o y.npy
  breakeven eval 'h = relu(x @ w1); y = h @ w2' x=x.npy model.npz -o h=h.npy -o y=y.npy
  breakeven eval '(x - mean(x, axis=0)) / std(x, axis=0)' x=data.npz:train --repeat 100
  breakeven eval 'x[::2, None] * scale' x=x.npy scale=0.5 --explain
  breakeven eval 'gelu(x @ w)' x=x.npy w=w.npy --device all --objective throughput --repeat 100
  breakeven eval 'gelu(x @ w)' x=x.npy w=w.npy --simulate rtx4090 --explain

The language is Python's: + - * / // % ** @, comparisons, & | ^ ~, x[1:, ::-1, None], calls with keyword
arguments, and statements separated by `;`, of which the last one is the result. `breakeven ops` lists
the functions. Exit codes: 0 success, 2 a mistake of yours, 1 a failure.";

/// `breakeven eval`.
#[derive(Debug, clap::Args)]
#[command(after_help = EVAL_HELP)]
pub struct EvalArgs {
    /// What to compute, such as 'softmax(x @ w, axis=1)'
    #[arg(allow_hyphen_values = true)]
    pub expression: String,

    /// Inputs by name: files and numbers, see below
    #[arg(value_name = "NAME=FILE")]
    pub inputs: Vec<String>,

    /// Write the result to a file instead of printing it; may be repeated
    #[arg(short, long = "output", value_name = "[NAME=]FILE")]
    pub outputs: Vec<String>,

    /// Where to run: auto (where it pays), cpu, gpu, gpu:N, or all (where it pays, on several devices at once if that
    /// pays more); a GPU that was asked for must do it, or the command fails
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<Device>,

    /// What pays: `latency` is the time from the call to the results, `throughput` the work done when batches come
    /// without a pause
    #[arg(long, value_name = "WHAT", value_parser = objective)]
    pub objective: Option<Objective>,

    /// Pretend that this GPU is gpu:0, by its profile: rtx4090, dx12-laptop, modern-discrete or FILE.toml; results are
    /// the CPU's, times the profile's
    #[arg(long, value_name = "PROFILE")]
    pub simulate: Option<String>,

    /// Say what each device was expected to take, where it ran and why, and show the plan
    #[arg(long)]
    pub explain: bool,

    /// Run N times and report median, p90, min and max
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,

    /// Write a profile of it, for `breakeven profile FILE`
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Give up on a run that is not done in this time, such as 500ms or 2s, with exit code 1; what is left of it is not
    /// computed
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub deadline: Option<Duration>,

    /// Print one JSON document on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,

    /// Print the result even if it is written to a file
    #[arg(long)]
    pub print: bool,
}

fn device(text: &str) -> Result<Device, String> {
    text.parse().map_err(|expected| format!("expected {expected}"))
}

/// A time that is given by name.
fn time(text: &str) -> Result<Duration, String> {
    breakeven::parse_time(text).ok_or_else(|| format!("expected {}", breakeven::TIME))
}

fn objective(text: &str) -> Result<Objective, String> {
    text.parse().map_err(|expected| format!("expected {expected}"))
}

const SCAN_HELP: &str = "\
Writes scan.csv, transfers.csv, scan.json, summary.md and report.html, which needs no network. What devices cost is also
remembered in the cache folder, where `eval` and every program find it: from then on work runs where it pays. Devices
take turns, run by run; what is warming up is dropped; what spreads widely is measured again, and marked if it stays so.
Transfers of 4 KiB to 64 MiB to each adapter and back are timed in every way that it has, whatever sizes are asked for.
Ctrl-C keeps what was measured until then, a second one ends at once.

Sizes are elements of an array: 10, 64k, 1M, 64Ki. A matrix product is of matrices with so many elements, many tasks have
so many together.

Examples:
  breakeven scan
  breakeven scan --quick -o /tmp/scan
  breakeven scan --ops add,matmul --sizes 1k,64k,1M,16M --samples 31
  breakeven scan --devices cpu,gpu:1 --json | jq '.rows[] | [.op, .size, .device, .stats.median_ns]'
  breakeven scan --simulate rtx4090        # this CPU against a GPU that is not here
  breakeven scan --simulate my-card.toml

Exit codes: 0 success, 2 a mistake of yours, 1 a failure, 130 Ctrl-C.";

/// `breakeven scan`.
#[derive(Debug, clap::Args)]
#[command(after_help = SCAN_HELP)]
pub struct ScanArgs {
    /// Fewer sizes and samples: about 20 seconds instead of three minutes
    #[arg(long)]
    pub quick: bool,

    /// What to measure, of add, sigmoid, chain, sum, softmax, cumsum, matmul, many (tasks of 256 elements) and many4k (of 4096); all of it by default
    #[arg(long, value_name = "OP,..", value_delimiter = ',', value_parser = ops::parse)]
    pub ops: Vec<ops::Op>,

    /// How many elements, such as 1k,64k,1M; by default powers of two from 256 to 16M
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = sizes::parse)]
    pub sizes: Vec<u64>,

    /// How many runs of each are timed [default: 15, or 7 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub samples: Option<u32>,

    /// Which devices, such as cpu,gpu:0; all by default
    #[arg(long, value_name = "DEVICE,..", value_delimiter = ',', value_parser = one_device)]
    pub devices: Vec<Device>,

    /// Measure this GPU instead of those that are here, by its profile: rtx4090, dx12-laptop, modern-discrete or
    /// FILE.toml; its costs are not remembered
    #[arg(long, value_name = "PROFILE")]
    pub simulate: Option<String>,

    /// How long it may take; sizes for which there is no time are named in the report [default: 170, or 19 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub budget: Option<u32>,

    /// The folder for the files, which is created
    #[arg(short, long = "output", value_name = "DIR", default_value = "breakeven-scan")]
    pub output: PathBuf,

    /// Print scan.json on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,

    /// Instead of a scan: how often the right device is chosen, over N random expressions that no curve was fitted on,
    /// and with a CPU that is slowed 16, 64 and 256 times by waiting; takes minutes
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "200", conflicts_with_all = ["simulate", "ops", "sizes", "samples", "budget"],
          value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub regret: Option<u32>,
}

fn one_device(text: &str) -> Result<Device, String> {
    match text.parse() {
        Ok(device @ (Device::Cpu | Device::Gpu(Some(_)))) => Ok(device),
        _ => Err("expected some of cpu, gpu:0, gpu:1, ..; `breakeven devices` lists them".to_owned()),
    }
}

const COMPARE_HELP: &str = "\
Sides are told apart by what they hold:
  DIR or scan.json   what `breakeven scan -o DIR` wrote
  FILE.csv           a plain size scan: columns size, cpu_us, gpu_us; or cpu_median_us, cpu_p90_us, ..
  target/criterion   criterion's estimates, or one benchmark's folder below it
A side is called like its folder or file, or LABEL in LABEL=PATH.

Writes compare.csv (all rows), compare.json, summary.md and report.html, which needs no network. Contradictions are
flagged: claimed crossovers that the rows do not show, sides that disagree about who is faster, curves that cross more
than once, crossovers inside the noise. A claim is OP[@DEVICE]=SIZE: add=100k, add@gpu:0=never, *=100k (elements).

Examples:
  breakeven compare vulkan/scan.json gl/scan.json
  breakeven compare before=old/scan.json after=new/scan.json -o /tmp/compare
  breakeven compare laptop desktop server --json | jq '.ratios[]'
  breakeven compare old-results.csv breakeven-scan --claim 'add=100k'
  breakeven compare target/criterion breakeven-scan --claim '*=100k' --strict

Exit codes: 0 success, 2 a mistake of yours, 1 a failure, or a contradiction with --strict.";

/// `breakeven compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPARE_HELP)]
pub struct CompareArgs {
    /// What to compare, two or more: scan.json files, their folders, CSV of size scans, folders of criterion
    #[arg(value_name = "[LABEL=]PATH", required = true, num_args = 1..)]
    pub sides: Vec<String>,

    /// A crossover that somebody claims, to be tested against the rows of every side: add=100k, add@gpu:0=never, *=100k;
    /// may be repeated
    #[arg(long = "claim", value_name = "OP[@DEVICE]=SIZE", value_parser = claim)]
    pub claims: Vec<Claim>,

    /// The operation of CSV files that name none, such as add [default: one for all of them]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub op: Option<String>,

    /// The folder for the files, which is created
    #[arg(short, long = "output", value_name = "DIR", default_value = "breakeven-compare")]
    pub output: PathBuf,

    /// Print compare.json on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,

    /// Fail if there are contradictions, or if nothing could be compared
    #[arg(long)]
    pub strict: bool,
}

fn claim(text: &str) -> Result<Claim, String> {
    Claim::parse(text, "--claim").map_err(|error| error.to_string())
}

const CACHE_HELP: &str = "\
The folder is $BREAKEVEN_CACHE_DIR, or the user's cache folder. In it are what devices cost, their tuned kernels and
compiled pipelines, and results that programs remember (`Engine::cached`), with how often they were found. Nothing in it
is needed: what is missing is measured, tuned, compiled and computed again.

Examples:
  breakeven cache show
  breakeven cache show --json | jq .bytes
  breakeven cache clear";

/// `breakeven cache`.
#[derive(Debug, clap::Args)]
#[command(after_help = CACHE_HELP)]
pub struct CacheArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: CacheAction,
}

/// What to do with the cache folder.
#[derive(Debug, Subcommand)]
pub enum CacheAction {
    /// List what is remembered
    Show {
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
    /// Remove what is remembered, and nothing else that lies in the folder
    Clear {
        /// Print one JSON document on stdout
        #[arg(long)]
        json: bool,
    },
}

const DEVICES_EXAMPLES: &str = "\
Examples:
  breakeven devices
  breakeven devices --json | jq -r '.devices[].name'";

/// `breakeven devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = DEVICES_EXAMPLES)]
pub struct DevicesArgs {
    /// Print one JSON document on stdout
    #[arg(long)]
    pub json: bool,
}

const OPS_EXAMPLES: &str = "\
Examples:
  breakeven ops
  breakeven ops softmax
  breakeven ops --json | jq -r '.ops[].signature'";

/// `breakeven ops`.
#[derive(Debug, clap::Args)]
#[command(after_help = OPS_EXAMPLES)]
pub struct OpsArgs {
    /// Only this function, by its name or one that numpy has for it
    pub name: Option<String>,

    /// Print one JSON document on stdout
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_declaration_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_expression_may_start_with_a_minus() {
        let args = Args::try_parse_from(["breakeven", "eval", "-x + 1", "x=2"]).unwrap();
        assert!(matches!(args.command, Command::Eval(EvalArgs { expression, .. }) if expression == "-x + 1"));
    }

    #[test]
    fn devices_are_named() {
        let parse = |device: &str| Args::try_parse_from(["breakeven", "eval", "x", "--device", device]);
        for device in ["auto", "cpu", "gpu", "gpu:0", "gpu:12", "all"] {
            assert!(parse(device).is_ok(), "{device}");
        }
        for device in ["tpu", "gpu:", "gpu:x"] {
            assert!(parse(device).is_err(), "{device}");
        }
    }

    #[test]
    fn scans_are_asked_for_in_lists() {
        let parse = |args: &[&str]| Args::try_parse_from([&["breakeven", "scan"], args].concat());
        let Command::Scan(args) =
            parse(&["--ops", "add,many", "--sizes", "1k,64Ki", "--devices", "cpu,gpu:1"]).unwrap().command
        else {
            panic!("a scan")
        };
        assert_eq!(args.ops.iter().map(|op| op.name).collect::<Vec<_>>(), ["add", "many"]);
        assert_eq!((args.sizes, args.devices), (vec![1000, 65_536], vec![Device::Cpu, Device::Gpu(Some(1))]));
        assert_eq!((args.output.to_str(), args.samples), (Some("breakeven-scan"), None));
        let bad = [["--ops", "exp"], ["--ops", ""], ["--sizes", "1k,x"], ["--sizes", "0"], ["--samples", "2"]];
        for bad in bad.into_iter().chain([["--devices", "gpu"], ["--devices", "all"], ["--budget", "0"]]) {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn claims_are_checked_where_they_are_given() {
        let parse = |claim: &str| Args::try_parse_from(["breakeven", "compare", "a", "b", "--claim", claim]);
        assert!(parse("add=100k").is_ok() && parse("*=never").is_ok());
        assert!(parse("add").is_err_and(|error| error.to_string().contains("`add` is no claim")));
        assert!(Args::try_parse_from(["breakeven", "compare"]).is_err());
    }

    #[test]
    fn the_help_names_every_op_and_profile() {
        let help = |name| Args::command().find_subcommand_mut(name).unwrap().render_long_help().to_string();
        let (scan, eval) = (help("scan"), help("eval"));
        assert!(ops::OPS.iter().all(|op| scan.contains(op.name)), "{scan}");
        for (profile, _) in breakeven::SimProfile::shipped() {
            assert!(scan.contains(profile) && eval.contains(profile), "{profile}");
        }
    }
}
