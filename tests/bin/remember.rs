//! Computes batches and remembers them on disk, for a test that kills it: `remember FOLDER roomy|tight ROUNDS SEED`. Writes a
//! line when it begins; exit 1 if a result could not be had, and tells the last fault of the disk.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it reports to whoever runs it")]

use breakeven_tests::remembered;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, room, rounds, seed] = &arguments[..] else {
        eprintln!("expected: remember FOLDER roomy|tight ROUNDS SEED");
        return ExitCode::from(2);
    };
    let (Ok(rounds), Ok(seed)) = (rounds.parse(), seed.parse()) else {
        eprintln!("expected numbers of rounds and of the seed");
        return ExitCode::from(2);
    };
    println!("begun");
    match remembered::fill(Path::new(folder), room == "roomy", rounds, seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
