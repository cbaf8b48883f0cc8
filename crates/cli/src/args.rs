//! The arguments: what the shell hands over enters, a checked [`Args`] leaves, or clap says what was wrong.

use breakeven::Device;
use clap::{Parser, Subcommand};

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
    /// List the functions and operators that expressions are made of
    Ops(OpsArgs),
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

    /// Where to run: auto, cpu, gpu or gpu:N; a GPU that was asked for must do it, or the command fails
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Option<Device>,

    /// Say where it ran and why, and show the plan
    #[arg(long)]
    pub explain: bool,

    /// Run N times and report median, p90, min and max
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,

    /// Print one JSON document on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,

    /// Print the result even if it is written to a file
    #[arg(long)]
    pub print: bool,
}

fn device(text: &str) -> Result<Device, String> {
    match text {
        "all" => Err("running on several devices at once is not there yet; use gpu:N for each".to_owned()),
        _ => text.parse().map_err(|expected| format!("expected {expected}")),
    }
}

/// `breakeven devices`.
#[derive(Debug, clap::Args)]
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
        for device in ["auto", "cpu", "gpu", "gpu:0", "gpu:12"] {
            assert!(parse(device).is_ok(), "{device}");
        }
        for device in ["tpu", "gpu:", "gpu:x", "all"] {
            assert!(parse(device).is_err(), "{device}");
        }
    }
}
