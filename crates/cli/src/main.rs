//! The binary `breakeven`: arguments enter, an exit code leaves. 0 is success, 2 a user's mistake, 1 a failure.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use breakeven_cli::{args::Args, cmd};
use clap::Parser;

fn main() -> ExitCode {
    match cmd::run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
