//! The subcommands, one file each: checked arguments enter, output leaves.

mod bench;
mod cache;
mod compare;
mod devices;
mod eval;
mod explain;
mod ops;
mod profile;
mod scan;

use crate::args::{Args, Command};
use crate::failure::Failure;

/// Runs what was asked for.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Devices(args) => devices::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Scan(args) => scan::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Profile(args) => profile::run(args),
        Command::BenchJob => crate::bench::child::run(),
        Command::Ops(args) => ops::run(args),
        Command::Cache(args) => cache::run(args),
    }
}
