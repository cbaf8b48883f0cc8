//! What recording a profile costs, measured on this machine: nothing enters, a table leaves, and exit code 1 if the bar is
//! missed: `cargo run --release -p breakeven --example profile_overhead`.
//!
//! Arms take turns of 1,000 batches: without a profile, without one again (the null: what differs there is noise), and with
//! one. Each round compares its own turns, so that a machine that becomes slower or faster meanwhile matters little; what is
//! shown are medians of 101 rounds, in an order that changes from round to round. Each profile is checked, too.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use breakeven::{Config, DType, Engine, RunOptions, Tensor, View, span};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rounds in which each arm takes a turn.
const ROUNDS: usize = 101;
/// Batches of a turn.
const BATCHES: usize = 1000;
/// What a profile may cost: this part of what batches take without one.
const BAR: f64 = 0.03;
/// Batches from here on are to keep the bar: a profile costs about as much whatever the batch does, and of a shorter one
/// that is more than the bar.
const SMALL_NS: f64 = 10_000.0;

fn chain(x: &Tensor) -> Result<Tensor> {
    let t = ((x * 1.5)? + 0.5)?;
    let t = ((t * x.sigmoid())? - 0.25)?.abs()?.sqrt()?;
    Ok((t + x)?.gelu()?)
}

/// An arm: is a profile recorded?
const ARMS: [bool; 3] = [false, false, true];

/// What was found of one kind of batch: medians.
struct Found {
    /// Nanoseconds of a batch without a profile.
    off_ns: f64,
    /// What the second arm without a profile took more than the first, as a part of it.
    null: f64,
    /// What the arm with a profile took more than both.
    part: f64,
}

fn compare(engine: &Engine, batches: usize, mut batch: impl FnMut()) -> Result<Found> {
    let mut rounds: Vec<[f64; 3]> = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let mut took = [0.0; 3];
        for turn in 0..ARMS.len() {
            let arm = (round + turn) % ARMS.len();
            let recorder = if ARMS[arm] { Some(engine.profile()?) } else { None };
            // Untimed ones bring data, threads and the profile's memory back.
            (0..batches / 10 + 1).for_each(|_| batch());
            let start = Instant::now();
            (0..batches).for_each(|_| batch());
            took[arm] = start.elapsed().as_nanos() as f64 / batches as f64;
            if let Some(recorder) = recorder {
                recorder.finish().check()?;
            }
        }
        rounds.push(took);
    }
    let median = |of: fn(&[f64; 3]) -> f64| {
        let mut list: Vec<f64> = rounds.iter().map(of).collect();
        list.sort_by(f64::total_cmp);
        list[ROUNDS / 2]
    };
    Ok(Found {
        off_ns: median(|[off, ..]| *off),
        null: median(|[off, again, _]| again / off - 1.0),
        part: median(|[off, again, on]| 2.0 * on / (off + again) - 1.0),
    })
}

/// Prints a row. Does it keep the bar, or need not?
fn print(name: &str, Found { off_ns, null, part }: Found) -> bool {
    let (verdict, is_kept) = match () {
        () if part <= BAR => ("kept", true),
        () if off_ns < SMALL_NS => ("too short for the bar", true),
        () if null.abs() > BAR / 2.0 => ("too noisy to say", true),
        () => ("MISSED", false),
    };
    println!(
        "{name:38} off {off_ns:9.0} ns, null {:5.1} %, on {:5.1} %, {:5.0} ns a batch: {verdict}",
        100.0 * null,
        100.0 * part,
        part * off_ns,
    );
    is_kept
}

fn main() -> Result<ExitCode> {
    // Without GPUs, which would be measured in the background meanwhile.
    let engine = Engine::with_config(Config { apis: Vec::new(), ..Config::default() })?;
    println!(
        "{}; medians of {ROUNDS} rounds of {BATCHES} batches; bar: at most {:.0} % for batches of {:.0} us or more",
        engine.device_name("cpu"),
        100.0 * BAR,
        SMALL_NS / 1e3
    );
    print("span! alone", compare(&engine, BATCHES, || drop(black_box(span!("nothing"))))?);
    let mut is_kept = true;
    // As many as take a few milliseconds, so that the largest do not take minutes.
    for (size, batches) in [(256, BATCHES), (4096, BATCHES), (65_536, BATCHES / 10)] {
        let values: Vec<f32> = (0..size).map(|i| (i % 1000) as f32 / 100.0 - 5.0).collect();
        let data = Tensor::from_slice(&values, [size])?;
        let x = Tensor::input("x", DType::F32, [size])?;
        let program = engine.compile(&[&x], &[&chain(&x)?])?;
        let recorded = || drop(black_box(engine.run(&[&chain(&data).expect("it records")]).expect("it runs")));
        is_kept &= print(&format!("chain of {size}, recorded and run"), compare(&engine, batches, recorded)?);
        let compiled = || drop(black_box(program.run(&[View::from(&values)]).expect("it runs")));
        is_kept &= print(&format!("chain of {size}, program.run"), compare(&engine, batches, compiled)?);
        let options = RunOptions::default();
        let routed = || drop(black_box(program.run_with(&[View::from(&values)], &options).expect("it runs")));
        is_kept &= print(&format!("chain of {size}, program.run_with"), compare(&engine, batches, routed)?);
        let tasks: Vec<[View<'_>; 1]> = (0..100).map(|_| [View::from(&values)]).collect();
        let many = || drop(black_box(program.run_many(&tasks).expect("it runs")));
        // A hundred tasks are one batch.
        is_kept &= print(&format!("100 chains of {size}, program.run_many"), compare(&engine, batches / 20, many)?);
    }
    println!("{}", if is_kept { "the bar is kept" } else { "the bar is MISSED" });
    Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
