//! Faults for tests of the suite: `GROUP=WHAT` enters, something really goes wrong in that group.

use std::str::FromStr;
use std::time::{Duration, Instant};

use breakeven::{Command, Config, Device, Engine, Job, Kernel, Memory, Ticket};
use breakeven_report::bench::TroubleKind;
use serde::{Deserialize, Serialize};

use super::job::Fault;

/// A fault of a group.
#[derive(Clone, PartialEq, Debug)]
pub struct Injection {
    /// The group.
    pub group: String,
    /// The fault.
    pub what: Injected,
}

/// What can be made to go wrong.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Injected {
    /// Its process is killed after its first row.
    Kill,
    /// After its first row its device computes for hours, and it waits for that.
    Hang,
    /// After its first row its device does not answer any more, and is given up.
    Lose,
    /// It keeps memory.
    Leak,
    /// A case takes longer, by waiting.
    Slow {
        /// The case.
        case: String,
        /// By this part of its time.
        by: f64,
    },
}

const EXPECTED: &str = "GROUP=kill, GROUP=hang, GROUP=lose, GROUP=leak or GROUP=slow:CASE=15%";

impl FromStr for Injection {
    type Err = String;

    fn from_str(text: &str) -> Result<Injection, String> {
        let expected = || format!("expected {EXPECTED}");
        let (group, what) = text.split_once('=').ok_or_else(expected)?;
        let what = match what {
            "kill" => Injected::Kill,
            "hang" => Injected::Hang,
            "lose" => Injected::Lose,
            "leak" => Injected::Leak,
            slow => {
                let (case, by) =
                    slow.strip_prefix("slow:").and_then(|slow| slow.split_once('=')).ok_or_else(expected)?;
                let by: f64 = by.strip_suffix('%').and_then(|by| by.parse().ok()).ok_or_else(expected)?;
                Injected::Slow { case: case.to_owned(), by: by / 100.0 }
            }
        };
        Ok(Injection { group: group.to_owned(), what })
    }
}

/// How long a process waits that is to be killed: longer than that takes on any machine.
pub const UNTIL_KILLED: Duration = Duration::from_secs(60);

/// Some drivers end an invocation after 65,535 turns of all its loops, so that it takes many of them. The sum keeps
/// compilers from leaving them out.
const BUSY: &str = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        var sum = id.x ^ id.y;
        for (var i = 0u; i < 60000u; i++) { sum = sum * 1664525u + i; }
        if (sum == 7u) { x[0] = sum; }
    }";
/// Hours of that, on a software adapter.
const HOURS: [u32; 3] = [65_535, 4096, 1];
/// Some seconds.
const SECONDS: [u32; 3] = [4096, 1, 1];

/// How patient the group's engine is with its devices.
pub fn patience(config: Config, injected: &[Injected]) -> Config {
    let sync_timeout = match () {
        () if injected.contains(&Injected::Hang) => Duration::from_secs(86_400),
        () if injected.contains(&Injected::Lose) => Duration::from_millis(200),
        () => config.sync_timeout,
    };
    Config { sync_timeout, ..config }
}

/// Keeps a device busy.
fn keep_busy(engine: &Engine, device: Device, workgroups: [u32; 3]) -> Result<(Ticket, Memory), Fault> {
    let memory = engine.allocate(device, 4)?;
    let kernel = Kernel::wgsl(BUSY, "main", workgroups);
    let launch = Command::Launch { kernel, inputs: Vec::new(), outputs: vec![memory.clone()] };
    Ok((engine.submit(Job::command(launch))?, memory))
}

/// Hangs: waits for the first of these devices that is a GPU, or for nothing.
pub fn hang(engine: &Engine, devices: &[Device]) -> Result<(), Fault> {
    let gpu = devices.iter().find(|device| matches!(device, Device::Gpu(_)));
    match gpu {
        Some(gpu) => {
            let (ticket, _memory) = keep_busy(engine, *gpu, HOURS)?;
            ticket.wait()?;
            Err(Fault::failed("it was to hang, and did not"))
        }
        None => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
    }
}

/// Makes the first GPU stop answering for a while, until it is given up; `run` uses it meanwhile.
pub fn lose(engine: &Engine, gpu: Device, run: &mut dyn FnMut() -> Result<u64, Fault>) -> Fault {
    let _busy = match keep_busy(engine, gpu, SECONDS) {
        Ok(busy) => busy,
        Err(fault) => return fault,
    };
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        match run() {
            Err(fault) if fault.kind == TroubleKind::DeviceLost => return fault,
            _ => {}
        }
    }
    Fault::failed("it was to be lost, and was not")
}

/// Waits as much longer as is asked for; what it took altogether leaves.
pub fn slowed(ns: u64, by: f64) -> u64 {
    let begun = Instant::now();
    let more = Duration::from_nanos((ns as f64 * by) as u64);
    while begun.elapsed() < more {
        std::hint::spin_loop();
    }
    ns + begun.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named() {
        let parse = |text: &str| text.parse::<Injection>();
        assert_eq!(parse("unary=kill"), Ok(Injection { group: "unary".into(), what: Injected::Kill }));
        let slow = Injected::Slow { case: "exp".into(), by: 0.15 };
        assert_eq!(parse("unary=slow:exp=15%"), Ok(Injection { group: "unary".into(), what: slow }));
        for bad in ["unary", "unary=burn", "unary=slow:exp", "unary=slow:exp=15"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn slower_is_slower_by_as_much() {
        let ns = slowed(1_000_000, 0.5);
        assert!(ns >= 1_500_000, "{ns}");
    }
}
