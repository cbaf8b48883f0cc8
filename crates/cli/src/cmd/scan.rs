//! `breakeven scan`: this machine enters, a table of crossovers and the files of a report leave; what devices cost is
//! remembered for the router.

use std::{
    fs,
    io::{self, Write},
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use breakeven::{Config, Device, Engine, Status, cost::Effort};
use breakeven_report as report;
use breakeven_report::{How, Scan};

use crate::args::ScanArgs;
use crate::arrays;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::regret;
use crate::scan::ops::{self, Op};
use crate::scan::sweep::{Arm, Sweep};
use crate::scan::transfers::{self, Transfers};
use crate::scan::{facts, sizes};
use crate::simulate;

/// What a whole scan may take unless it is told, quick or not. On two cores with two software adapters they stay below
/// 20 seconds and three minutes, which leaves some for opening devices and writing files.
const BUDGET: [Duration; 2] = [Duration::from_secs(19), Duration::from_secs(170)];
/// The part of it for the curves that the router uses.
const CURVES: f64 = 0.65;
/// The part of it for transfers, at most: two software adapters take about a second if it is quick, six if not.
const TRANSFERS: f64 = 0.06;
/// One part in so many of it is for what a reader sees in any case.
const ROWS_AT_LEAST: u32 = 4;
/// Runs that are timed, quick or not.
const SAMPLES: [u32; 2] = [7, 15];

/// Runs the subcommand.
pub fn run(args: &ScanArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::catch();
    let config = Config::from_env()?;
    if let Some(expressions) = args.regret {
        return regret(args, &config, expressions as usize, &interrupt);
    }
    let engine = match &args.simulate {
        Some(profile) => simulate::engine(profile, config)?,
        None => Engine::with_config(config)?,
    };
    let started = Instant::now();
    let mut scan = Scan { machine: facts::machine(&engine), ..Scan::default() };
    let arms = devices(args, &engine, &mut scan)?;
    // Whoever can't write there should know before the measuring, not after it.
    fs::create_dir_all(&args.output)
        .map_err(|error| Failure::failed(format_args!("cannot create {}: {error}", args.output.display())))?;

    let budget = args.budget.map_or(BUDGET[usize::from(!args.quick)], |seconds| Duration::from_secs(seconds.into()));
    let mut work = Work { engine: &engine, interrupt: &interrupt, started, budget, progress: Progress::new(0) };
    work.curves(args, &arms, &mut scan);
    work.transfers(args, &arms, &mut scan);
    work.rows(args, &arms, &mut scan);
    drop(work);

    let costs = |arm: &Arm| engine.costs(&arm.id).map(|costs| facts::overhead(&arm.id, &costs));
    scan.overheads = arms.iter().filter_map(costs).collect();
    scan.how.seconds = started.elapsed().as_secs_f64();
    scan.how.interrupted = interrupt.is_set();
    let files = write(&args.output, &scan)?;

    let table = format!("{}{}", report::table(&scan), notes(&scan.how, &files));
    let mut stdout = io::stdout().lock();
    if args.json {
        io::stderr().write_all(table.as_bytes())?;
        stdout.write_all(scan.to_json().as_bytes())?;
    } else {
        stdout.write_all(table.as_bytes())?;
    }
    stdout.flush()?;
    if scan.how.interrupted {
        return Err(Failure::Interrupted("interrupted: what was measured until then is kept".to_owned()));
    }
    Ok(())
}

/// How good the choice of a device is, as a table or as JSON.
fn regret(args: &ScanArgs, config: &Config, expressions: usize, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut progress = Progress::new(0);
    let mut told = |share: f64, what: &str| {
        progress.show_share(share, Duration::ZERO, what);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let regrets = regret::run(config, &args.devices, effort, expressions, &mut told)?;
    drop(progress);
    let mut stdout = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &regrets).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else if regrets.is_empty() && !interrupt.is_set() {
        writeln!(stdout, "there is nothing to choose from: no GPU was found. {}", breakeven::driver_hint())?;
    } else {
        stdout.write_all(regret::table(&regrets).as_bytes())?;
    }
    stdout.flush()?;
    if interrupt.is_set() {
        return Err(Failure::Interrupted("interrupted: what was measured until then is shown".to_owned()));
    }
    Ok(())
}

/// The devices to measure. They are written into the scan, as is how it will be done.
fn devices(args: &ScanArgs, engine: &Engine, scan: &mut Scan) -> Result<Vec<Arm>, Failure> {
    let samples = args.samples.unwrap_or(SAMPLES[usize::from(!args.quick)]);
    scan.how = How { samples, quick: args.quick, date: facts::date(), ..How::default() };
    let wanted = |device: &Device| args.devices.is_empty() || args.devices.contains(device);
    // Whoever wants the CPU alone does not wait for drivers.
    let infos = if args.devices == [Device::Cpu] { Vec::new() } else { engine.devices() };
    let mut arms = Vec::new();
    if wanted(&Device::Cpu) {
        scan.devices.push(facts::cpu());
        arms.push(Arm { id: "cpu".into(), device: Device::Cpu, told: false });
    }
    let told = args.simulate.is_some();
    for (number, info) in infos.iter().skip(1).enumerate() {
        let device = Device::Gpu(Some(number));
        if !wanted(&device) {
            continue;
        }
        if info.health.status == Status::Lost {
            scan.how.notes.push(format!("{} was not measured: {}", info.id, info.health.reason));
            continue;
        }
        scan.devices.push(facts::device(info, told));
        arms.push(Arm { id: info.id.clone(), device, told });
    }
    let known = |device: &&Device| **device == Device::Cpu || infos.iter().any(|info| info.id == device.to_string());
    if let Some(unknown) = args.devices.iter().find(|device| !known(device)) {
        let ids: Vec<&str> = infos.iter().map(|info| info.id.as_str()).collect();
        let hint = if ids.len() == 1 { format!("; {}", breakeven::driver_hint()) } else { String::new() };
        return Err(Failure::mistake(format_args!("there is no {unknown} here, only {}{hint}", ids.join(", "))));
    }
    if arms.is_empty() {
        return Err(Failure::failed(scan.how.notes.join("; ")));
    }
    if infos.len() == 1 {
        scan.how.notes.push(format!("no GPU was found, so that there is only the CPU. {}", breakeven::driver_hint()));
    }
    Ok(arms)
}

/// What a scan works with.
struct Work<'a> {
    engine: &'a Engine,
    interrupt: &'a Interrupt,
    started: Instant,
    budget: Duration,
    progress: Progress,
}

impl Work<'_> {
    /// What devices cost, for the router; it is remembered as it is measured.
    fn curves(&mut self, args: &ScanArgs, arms: &[Arm], scan: &mut Scan) {
        let effort = if args.quick { Effort::Quick } else { Effort::Full };
        let until = self.started + self.budget.mul_f64(CURVES);
        for (number, arm) in arms.iter().enumerate() {
            let now = Instant::now();
            let end = now + until.saturating_duration_since(now) / (arms.len() - number) as u32;
            let (progress, interrupt, started, budget) =
                (&mut self.progress, self.interrupt, self.started, self.budget);
            let mut at = (0, 0);
            let mut watch = |step: &breakeven::cost::Progress| {
                at = (step.done, step.total);
                let part = (number as f64 + step.done as f64 / step.total.max(1) as f64) / arms.len() as f64;
                let most = budget.saturating_sub(started.elapsed());
                progress.show_share(CURVES * part, most, &format!("{}, {}", step.device, step.what));
                if interrupt.is_set() || Instant::now() > end {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            if interrupt.is_set() {
                return;
            }
            match self.engine.measure(&arm.id, effort, &mut watch) {
                Ok(measured) if measured.complete || interrupt.is_set() => {}
                Ok(_) => {
                    let (done, total) = at;
                    let what = format!("{done} of {total} measurements of what {} costs", arm.id);
                    scan.how.notes.push(format!("the time was up after {what}, which the router makes do with"));
                }
                Err(error) => scan.how.notes.push(format!("the costs of {} could not be measured: {error}", arm.id)),
            }
        }
    }

    /// How fast bytes go to each adapter and come back.
    fn transfers(&mut self, args: &ScanArgs, arms: &[Arm], scan: &mut Scan) {
        let stop = || self.interrupt.is_set();
        // Not what is left of the curves' part: on a slow machine nothing is.
        let deadline = Instant::now() + self.budget.mul_f64(TRANSFERS);
        let transfers = Transfers { engine: self.engine, arms, samples: scan.how.samples, deadline, stop: &stop };
        let most = self.budget.saturating_sub(self.started.elapsed());
        let (measured, notes) = transfers.run(&transfers::sizes(args.quick), &mut |done, total, what| {
            let share = CURVES + TRANSFERS * done as f64 / total.max(1) as f64;
            self.progress.show_share(share, most, what);
        });
        scan.transfers = measured;
        scan.how.notes.extend(notes);
    }

    /// What a reader sees.
    fn rows(&mut self, args: &ScanArgs, arms: &[Arm], scan: &mut Scan) {
        let mut list: Vec<Op> = if args.ops.is_empty() { ops::OPS.to_vec() } else { args.ops.clone() };
        let mut seen = Vec::new();
        list.retain(|op| {
            !seen.contains(&op.name) && {
                seen.push(op.name);
                true
            }
        });
        if arms.len() > 1 && seen.contains(&ops::CHAIN.name) {
            list.push(ops::CALLS);
        }
        let elements = if args.sizes.is_empty() { sizes::usual(args.quick) } else { args.sizes.clone() };
        let stop = || self.interrupt.is_set();
        let samples = scan.how.samples as usize;
        // Devices that are slow to open, or one measurement that takes long, must not leave a reader without a row.
        let deadline = (self.started + self.budget).max(Instant::now() + self.budget / ROWS_AT_LEAST);
        let sweep = Sweep { engine: self.engine, arms, samples, deadline, stop: &stop };
        let swept = sweep.run(&list, &elements, &mut |done, total, op| {
            let before = CURVES + TRANSFERS;
            let share = before + (1.0 - before) * done as f64 / total.max(1) as f64;
            self.progress.show_share(share, deadline.saturating_duration_since(Instant::now()), op);
        });
        scan.fused = facts::fused(&scan.devices, &swept.rows);
        scan.rows = swept.rows.into_iter().filter(|row| row.op != ops::CALLS.name).collect();
        scan.how.notes.push("devices took turns, run by run; what was warming up is left out".to_owned());
        scan.how.notes.extend(swept.notes);
    }
}

/// The files of a report; their paths leave.
fn write(folder: &Path, scan: &Scan) -> Result<Vec<String>, Failure> {
    let files = [
        ("scan.csv", report::csv(scan)),
        ("transfers.csv", report::transfers_csv(scan)),
        ("scan.json", scan.to_json()),
        ("summary.md", report::markdown(scan)),
        ("report.html", report::html(scan)),
    ];
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        arrays::save_file(&path, |file| file.write_all(text.as_bytes())).map_err(Failure::writing)?;
        paths.push(path.display().to_string());
    }
    Ok(paths)
}

/// How it was measured, and where it is.
fn notes(how: &How, files: &[String]) -> String {
    let notes: String = how.notes.iter().map(|note| format!("note: {note}\n")).collect();
    format!("\n{notes}{}\nwritten: {}\n", how.summary(), files.join(", "))
}
