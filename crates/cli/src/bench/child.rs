//! A job in its process: a [`Job`] enters, [`Said`] leave. A group has a fresh engine and fresh devices, which are compared
//! before and after it.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use breakeven::{Config, Device, Engine, QueueConfig, Status};
use breakeven_report::bench::{Missing, Trouble, TroubleKind};

use super::guard::Guard;
use super::inject::{self, Injected};
use super::job::{Ask, Fault, Job, Said};
use super::measure::{Arm, Work};
use super::{cold, groups, null};
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::scan::facts;

/// What a process whose parent has gone may take to come to its end.
const FAREWELL: Duration = Duration::from_secs(3);
/// What a group keeps that is to leave something behind.
const LEAK_BYTES: usize = 1 << 20;

/// Does the job that comes in on stdin, and says on stdout what comes of it. It ends early when stdin ends: then whoever
/// asked for it has gone, or wants no more.
pub fn run() -> Result<(), Failure> {
    let interrupt = Interrupt::catch();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let job: Job =
        serde_json::from_str(&line).map_err(|error| Failure::mistake(format_args!("this is no job: {error}")))?;
    let abandoned = Arc::new(AtomicBool::new(false));
    let flag = abandoned.clone();
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        flag.store(true, Relaxed);
        // A device that hangs must not keep a process that nobody waits for.
        std::thread::sleep(FAREWELL);
        std::process::exit(interrupt::CODE.into());
    });
    let stop = || interrupt.is_set() || abandoned.load(Relaxed);
    work(&job, &mut say, &stop);
    say(Said::Done);
    Ok(())
}

/// One line of JSON. Without anybody who listens there is nobody to tell, and stdin says so, too.
fn say(said: Said) {
    if let Ok(line) = serde_json::to_string(&said) {
        let mut stdout = io::stdout().lock();
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }
}

/// Does a job in this process.
pub fn work(job: &Job, tell: &mut dyn FnMut(Said), stop: &dyn Fn() -> bool) {
    if let Err(fault) = try_work(job, tell, stop) {
        tell(Said::Trouble(Trouble { kind: fault.kind, pass: job.pass, device: None, why: fault.why }));
    }
}

fn try_work(job: &Job, tell: &mut dyn FnMut(Said), stop: &dyn Fn() -> bool) -> Result<(), Fault> {
    match &job.ask {
        Ask::Devices => devices(job, tell),
        Ask::First { remembered } => {
            let devices = wishes(job)?;
            let first = devices.first().copied().ok_or_else(|| Fault::failed("no device was named"))?;
            let config = config(&devices, job.threads)?;
            let cache_dir = config.cache_dir.clone().filter(|_| *remembered);
            tell(Said::First(cold::first(Config { cache_dir, ..config }, first)?));
            Ok(())
        }
        Ask::Null => on_devices(job, tell, stop, null::measure),
        Ask::Group(name) => {
            let group = groups::find(name).ok_or_else(|| Fault::failed(format_args!("there is no group {name}")))?;
            on_devices(job, tell, stop, |work| {
                work.group(group);
                Ok(())
            })
        }
    }
}

/// The devices of a job.
fn wishes(job: &Job) -> Result<Vec<Device>, Fault> {
    job.devices.iter().map(|id| id.parse().map_err(Fault::failed)).collect()
}

/// How an engine is set up for measuring on these devices: nothing runs elsewhere than it is told, and nothing looks for
/// other devices or better kernels meanwhile. Kernels that were tuned before are used. Without a GPU among the devices no
/// driver is loaded.
pub fn config(devices: &[Device], threads: Option<usize>) -> Result<Config, Fault> {
    let config = Config::from_env()?;
    let has_gpu = devices.iter().any(|device| *device != Device::Cpu);
    Ok(Config {
        threads: threads.or(config.threads),
        device: Device::Cpu,
        strict: true,
        apis: if has_gpu { config.apis } else { Vec::new() },
        tune: false,
        explore: 0.0,
        verify: 0.0,
        slow_cpu: 1,
        queue: QueueConfig { devices: devices.to_vec(), ..QueueConfig::default() },
        ..config
    })
}

/// Which devices there are.
fn devices(job: &Job, tell: &mut dyn FnMut(Said)) -> Result<(), Fault> {
    let wishes = wishes(job)?;
    let config = match *wishes {
        [Device::Cpu] => config(&wishes, job.threads)?,
        _ => {
            let config = Config::from_env()?;
            Config { tune: false, threads: job.threads.or(config.threads), ..config }
        }
    };
    let engine = Engine::with_config(config)?;
    tell(Said::Machine(facts::machine(&engine)));
    tell(Said::Device(facts::cpu()));
    for info in engine.devices().iter().skip(1) {
        if info.health.status == Status::Lost {
            tell(Said::Missing(Missing { device: info.id.clone(), why: info.health.reason.clone() }));
        } else {
            tell(Said::Device(facts::device(info, false)));
        }
    }
    Ok(())
}

/// Measures something with a fresh engine, and compares its devices with what they were before.
fn on_devices(
    job: &Job,
    tell: &mut dyn FnMut(Said),
    stop: &dyn Fn() -> bool,
    measure: impl FnOnce(&mut Work<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let wishes = wishes(job)?;
    let engine = Engine::with_config(inject::patience(config(&wishes, job.threads)?, &job.inject))?;
    let told = |kind: TroubleKind, device: &str, why: String, tell: &mut dyn FnMut(Said)| {
        tell(Said::Trouble(Trouble { kind, pass: job.pass, device: Some(device.to_owned()), why }));
    };
    let (guard, refused) = Guard::new(&engine, &job.devices);
    let is_open = |id: &String| !refused.iter().any(|(refused, _)| refused == id);
    let arms: Vec<Arm> = job
        .devices
        .iter()
        .zip(&wishes)
        .filter(|(id, _)| is_open(id))
        .map(|(id, device)| Arm { id: id.clone(), device: *device, lost: false })
        .collect();
    for (id, fault) in refused {
        told(fault.kind, &id, fault.why, tell);
    }
    let last = arms.last().map(|arm| arm.device);
    let mut work = Work::new(&engine, arms, job, tell, stop);
    let done = measure(&mut work);
    let leaked =
        last.filter(|_| job.inject.contains(&Injected::Leak)).map(|device| engine.allocate(device, LEAK_BYTES));
    for (id, fault) in guard.leftovers(&engine) {
        told(fault.kind, &id, fault.why, tell);
    }
    drop(leaked);
    done
}
