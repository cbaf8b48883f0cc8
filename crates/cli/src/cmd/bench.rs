//! `breakeven bench`: this machine enters, what groups of operations take on every device leaves, as a table and as files.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use breakeven::Config;
use breakeven_report::bench::{self, Bench, Gate, TroubleKind};

use crate::args::BenchArgs;
use crate::arrays;
use crate::bench::judge::Against;
use crate::bench::suite::Suite;
use crate::bench::{baselines, groups, trial};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Samples of a pass, quick or not.
const SAMPLES: [u32; 2] = [15, 25];
/// Passes, quick or not.
const PASSES: [u32; 2] = [2, 3];
/// Seconds that calm is waited for before a group, quick or not.
const CALM: [u32; 2] = [3, 10];
/// Seconds after which a group counts as hung, quick or not.
const TIMEOUT: [u32; 2] = [60, 300];

/// Runs the subcommand.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    if args.list {
        io::stdout().write_all(groups::list().as_bytes())?;
        return Ok(());
    }
    // A setting that makes no sense is a mistake wherever it is met, not a failure of each group.
    Config::from_env()?;
    let interrupt = Interrupt::catch();
    let suite = suite(args, &interrupt)?;
    if let Some(times) = args.try_gate {
        return try_gate(suite, times, args.max_regression);
    }
    // Whoever can't be compared with, and what can't be written, should be known before the measuring, not after it.
    let baseline = args.baseline.as_deref().map(|name| baselines::read(&args.baseline_dir, name)).transpose()?;
    writable(args)?;
    let accept = |now: &Bench| match &baseline {
        Some(baseline) if !args.foreign_baseline => bench::matches(baseline, now).map_err(Failure::mistake),
        _ => Ok(()),
    };
    if let Some(caution) = args.save_baseline.as_ref().and_then(|_| baselines::caution(suite.passes)) {
        say(io::stderr(), &format!("note: {caution}\n"))?;
    }
    say(io::stderr(), &format!("seed {}\n", suite.seed))?;
    let against = baseline.as_ref().map(|baseline| Against { baseline, limit: args.max_regression });
    let (bench, gate) = suite.run(accept, against)?;
    drop(suite);
    // The table first: what can't be written after all has been seen.
    let json = gate.as_ref().map_or_else(|| bench.to_json(), |gate| bench::document(&bench, gate));
    print(args, &bench, gate.as_ref(), &json)?;
    write(args, &bench, gate.as_ref(), &json)?;
    let verdict = verdict(&bench, gate.as_ref());
    let Some(name) = &args.save_baseline else { return verdict };
    // What is not whole, or slower than what it is compared with, is nothing to compare others with.
    let path = match verdict {
        Ok(()) => baselines::write(&args.baseline_dir, name, &bench)?,
        Err(failure) => return Err(failure.and(&format!("the baseline {name} was not saved"))),
    };
    say(io::stderr(), &format!("written: {}\n", path.display()))
}

/// Tries the gate, and says how often it was right.
fn try_gate(mut suite: Suite<'_>, times: u32, limit: f64) -> Result<(), Failure> {
    let case = trial::slowed_case(&suite).map_or("", |(_, case)| case);
    let tally = trial::run(&mut suite, times, limit, &mut |line| say(io::stderr(), &format!("{line}\n")))?;
    say(io::stdout().lock(), &tally.words(case))?;
    if tally.is_good() { Ok(()) } else { Err(Failure::failed("the gate was not always right on this machine")) }
}

/// Writes to a stream. Whoever has gone, as `head` does, is not told: files, baseline and verdict are there nevertheless.
fn say(mut stream: impl Write, text: &str) -> Result<(), Failure> {
    match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

/// Can everything be written that is to be?
fn writable(args: &BenchArgs) -> Result<(), Failure> {
    let files = [&args.output, &args.html, &args.markdown, &args.csv];
    for path in files.into_iter().flatten() {
        arrays::can_save(path).map_err(Failure::writing)?;
    }
    args.save_baseline.as_deref().map_or(Ok(()), |name| baselines::writable(&args.baseline_dir, name))
}

fn suite<'a>(args: &BenchArgs, interrupt: &'a Interrupt) -> Result<Suite<'a>, Failure> {
    let usual = |of: [u32; 2]| of[usize::from(!args.quick)];
    let seconds = |given: Option<u32>, of| Duration::from_secs(given.unwrap_or_else(|| usual(of)).into());
    let wanted = groups::select(&args.groups).map_err(Failure::mistake)?;
    let is_known = |group: &str| wanted.iter().any(|wanted| wanted.group.name == group);
    if let Some(injection) = args.inject.iter().find(|injection| !is_known(&injection.group)) {
        return Err(Failure::mistake(format_args!("nothing can go wrong in {}, which is not run", injection.group)));
    }
    Ok(Suite {
        wanted,
        devices: args.devices.clone(),
        threads: threads(args)?,
        quick: args.quick,
        samples: args.samples.unwrap_or_else(|| usual(SAMPLES)),
        passes: args.passes.unwrap_or_else(|| match args.save_baseline {
            Some(_) => usual(PASSES).max(bench::BASELINE_PASSES),
            None => usual(PASSES),
        }),
        seed: args.seed.unwrap_or_else(|| fastrand::u32(..)).into(),
        shuffled: args.order == "shuffled",
        in_process: args.in_process,
        calm: seconds(args.calm, CALM),
        timeout: seconds(args.timeout, TIMEOUT),
        inject: args.inject.clone(),
        interrupt,
    })
}

/// How many threads the CPU has, if that is not left to the environment and the machine.
fn threads(args: &BenchArgs) -> Result<Option<usize>, Failure> {
    let compares = args.save_baseline.is_some() || args.baseline.is_some() || args.try_gate.is_some();
    let usual = compares && Config::from_env()?.threads.is_none();
    Ok(args.threads.map(usize::from).or(usual.then_some(1)))
}

/// Prints what was measured.
fn print(args: &BenchArgs, bench: &Bench, gate: Option<&Gate>, json: &str) -> Result<(), Failure> {
    let mut table = bench::table(bench);
    if let Some(gate) = gate {
        table = format!("{table}\n{}", bench::gate_table(gate));
    }
    if args.json {
        say(io::stderr(), &table)?;
        say(io::stdout().lock(), json)
    } else {
        say(io::stdout().lock(), &table)
    }
}

/// Writes what was measured.
fn write(args: &BenchArgs, bench: &Bench, gate: Option<&Gate>, json: &str) -> Result<(), Failure> {
    let files: [(&Option<PathBuf>, &dyn Fn() -> String); 4] = [
        (&args.output, &|| json.to_owned()),
        (&args.html, &|| bench::html(bench, gate)),
        (&args.markdown, &|| bench::markdown(bench, gate)),
        (&args.csv, &|| bench::csv(bench)),
    ];
    for (path, text) in files.into_iter().filter_map(|(path, text)| Some((path.as_ref()?, text()))) {
        arrays::save_file(path, |file| file.write_all(text.as_bytes())).map_err(Failure::writing)?;
    }
    Ok(())
}

/// Whether all went well. What there was no time for is told, and is no failure.
fn verdict(bench: &Bench, gate: Option<&Gate>) -> Result<(), Failure> {
    if bench.how.interrupted {
        return Err(Failure::Interrupted("interrupted: what was measured until then is kept".to_owned()));
    }
    let failed = |group: &&bench::Group| group.troubles.iter().any(|trouble| trouble.kind != TroubleKind::OutOfTime);
    let failed: Vec<&str> = bench.groups.iter().filter(failed).map(|group| group.name.as_str()).collect();
    match failed.len() {
        0 if gate.is_some_and(Gate::failed) => Err(Failure::failed("the gate is shut: see what changed")),
        0 => Ok(()),
        1 => Err(Failure::failed(format_args!("the group {} failed", failed[0]))),
        _ => Err(Failure::failed(format_args!("the groups {} failed", failed.join(", ")))),
    }
}
