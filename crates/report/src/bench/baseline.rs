//! Whether two runs can be compared: both enter, nothing leaves, or every way in which one is from another machine.

use super::Bench;

/// A baseline that was measured on another machine or through another driver.
///
/// ```
/// use breakeven_report::Machine;
/// use breakeven_report::bench::{Bench, matches};
/// let run = |threads| Bench { machine: Machine { threads, ..Machine::default() }, ..Bench::default() };
/// let foreign = matches(&run(2), &run(8)).unwrap_err();
/// assert_eq!(foreign.differences, ["threads: 2 then, 8 now"]);
/// assert!(foreign.to_string().contains("--foreign-baseline"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", refusal(.differences))]
pub struct Foreign {
    /// What differs, one sentence each.
    pub differences: Vec<String>,
}

/// Are both runs from the same machine, as far as times are concerned? A device that one of them does not have is no
/// obstacle: its rows are gone or new. Neither is another kernel of the same operating system, or another Breakeven.
///
/// ```
/// use breakeven_report::bench::{Bench, matches};
/// assert_eq!(matches(&Bench::default(), &Bench::default()), Ok(()));
/// ```
pub fn matches(baseline: &Bench, now: &Bench) -> Result<(), Foreign> {
    let mut differences = Vec::new();
    let mut same = |what: &str, then: &str, now: &str| {
        if then != now {
            let shown = |text: &str| if text.is_empty() { "none".to_owned() } else { crate::words::plain(text) };
            differences.push(format!("{what}: {} then, {} now", shown(then), shown(now)));
        }
    };
    let (a, b) = (&baseline.machine, &now.machine);
    same("CPU", &a.cpu, &b.cpu);
    same("threads", &a.threads.to_string(), &b.threads.to_string());
    same("vector instructions", &a.simd, &b.simd);
    same("operating system", kind(&a.os), kind(&b.os));
    for then in baseline.devices.iter().filter(|device| !device.is_cpu()) {
        let Some(now) = now.devices.iter().find(|device| device.id == then.id) else { continue };
        same(&format!("adapter {}", then.id), &then.name, &now.name);
        same(&format!("kind of {}", then.id), &then.kind, &now.kind);
        same(&format!("interface of {}", then.id), &then.backend, &now.backend);
        same(&format!("driver of {}", then.id), &then.driver, &now.driver);
    }
    if differences.is_empty() { Ok(()) } else { Err(Foreign { differences }) }
}

fn refusal(differences: &[String]) -> String {
    format!(
        "this baseline is from another machine or driver, so that its times say nothing about the code: {}; save one \
         here with `--save-baseline NAME`, or pass `--foreign-baseline` to compare nevertheless",
        differences.join("; ")
    )
}

/// The name of an operating system without its release.
fn kind(os: &str) -> &str {
    os.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
