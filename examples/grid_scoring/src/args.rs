//! The arguments: what the shell hands over enters, checked settings leave, or clap says what was wrong.

use breakeven::Device;
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
Programs are steps with bars between them, one program in each line of a file:
  rot90 | recolour 3->5 | crop_bbox
  until_stable { spread 4 } | largest_region

A task file that can't be used is listed in the report, and the others go on. Exit codes: 0 success, 2 a mistake of
yours, 1 a failure or results that differ, 130 ended by Ctrl-C with what was done.";

/// Score programs of grid operations against many tiny tasks.
#[derive(Debug, Parser)]
#[command(name = "grid_scoring", version, after_help = HELP)]
pub struct Args {
    /// A folder of task files in the ARC format
    #[arg(long, value_name = "FOLDER", conflicts_with = "generate", required_unless_present = "generate")]
    pub tasks: Option<PathBuf>,

    /// Make up N tasks instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub generate: Option<u32>,

    /// The seed of made-up tasks
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,

    /// A file of programs; fifty are built in
    #[arg(long, value_name = "FILE")]
    pub programs: Option<PathBuf>,

    /// Pairs of each task: the first demonstrations, and a test pair
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub samples: u32,

    /// Where to run: auto (where it pays), cpu, gpu, gpu:N, or all (on several devices at once where that pays)
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device)]
    pub device: Device,

    /// What the loops of one sample may take
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = time)]
    pub deadline: Duration,

    /// What everything may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub run_deadline: Duration,

    /// Add so many programs that never end, as a share of the others, such as 1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub loopers: Option<f64>,

    /// Run the plain loop in Rust, numpy's (BREAKEVEN_PYTHON names the interpreter) and every device side by side, and check that
    /// all results are the same
    #[arg(long)]
    pub compare: bool,

    /// Remember outcomes on disk, and compute only what is new: in FOLDER, or where `breakeven cache` sees them
    #[arg(long, value_name = "FOLDER", num_args = 0..=1)]
    pub cache: Option<Option<PathBuf>>,

    /// Write the run's profile to FILE, for `breakeven profile`
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Print one JSON document on stdout, all else on stderr
    #[arg(long)]
    pub json: bool,
}

fn device(text: &str) -> Result<Device, String> {
    text.parse().map_err(|expected| format!("expected {expected}"))
}

fn time(text: &str) -> Result<Duration, String> {
    breakeven::parse_time(text).ok_or_else(|| format!("expected {}", breakeven::TIME))
}

fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = percent.map(|percent| percent / 100.0).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share such as 1%, up to 100%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("100 %"), Ok(1.0));
        for bad in ["1", "-1%", "101%", "%", "x%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
