//! The subcommands, one file each: checked arguments enter, output leaves.

mod cache;
mod devices;
mod eval;
mod explain;
mod ops;
mod scan;

use crate::args::{Args, Command};
use crate::failure::Failure;

/// Runs what was asked for.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Devices(args) => devices::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Scan(args) => scan::run(args),
        Command::Ops(args) => ops::run(args),
        Command::Cache(args) => cache::run(args),
    }
}
