//! Devices before and after a group: an engine enters, what the group left behind leaves. Memory in use, pending work and
//! health are compared once everything is drained and all values of the group are gone.

use std::time::{Duration, Instant};

use breakeven::{Engine, Health, Usage};
use breakeven_report::bench::TroubleKind;
use breakeven_report::words;

use super::job::Fault;

/// How long a device may take to drain. A batch takes no longer than a quarter of a second on its own.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);

/// How a device is.
#[derive(Clone, PartialEq, Debug)]
struct State {
    usage: Usage,
    health: Health,
}

/// Devices as they were before.
pub struct Guard {
    before: Vec<(String, State)>,
}

impl Guard {
    /// Opens these devices, drains them and notes how they are. Those that can't be opened come back, with the reason.
    pub fn new(engine: &Engine, devices: &[String]) -> (Guard, Vec<(String, Fault)>) {
        let mut guard = Guard { before: Vec::new() };
        let mut refused = Vec::new();
        for id in devices {
            match state(engine, id) {
                Ok(_) => guard.before.push((id.clone(), drained(engine, id, None))),
                Err(fault) => refused.push((id.clone(), fault)),
            }
        }
        (guard, refused)
    }

    /// What is not as it was before, device by device.
    pub fn leftovers(&self, engine: &Engine) -> Vec<(String, Fault)> {
        let found = self.before.iter().flat_map(|(id, before)| {
            let after = drained(engine, id, Some(before.usage.in_use_bytes));
            compare(before, &after).into_iter().map(|why| (id.clone(), Fault { kind: TroubleKind::Leftover, why }))
        });
        found.collect()
    }
}

fn state(engine: &Engine, id: &str) -> Result<State, Fault> {
    Ok(State { usage: engine.usage(id)?, health: engine.health(id)? })
}

/// A device that has nothing to do, and no more in use than that; or as it is when the patience is over.
fn drained(engine: &Engine, id: &str, in_use_bytes: Option<u64>) -> State {
    let until = Instant::now() + PATIENCE;
    loop {
        engine.release_memory();
        let lost = |why: Fault| State {
            usage: Usage::default(),
            health: Health { status: breakeven::Status::Lost, reason: why.why },
        };
        let state = state(engine, id).unwrap_or_else(lost);
        let is_less = in_use_bytes.is_none_or(|most| state.usage.in_use_bytes <= most);
        if (state.usage.is_idle() && is_less) || Instant::now() > until {
            return state;
        }
        std::thread::sleep(LOOK);
    }
}

/// What is worse than before, in words.
fn compare(before: &State, after: &State) -> Vec<String> {
    let mut worse = Vec::new();
    let kept = after.usage.in_use_bytes.saturating_sub(before.usage.in_use_bytes);
    if kept > 0 {
        worse.push(format!("{} of its memory are still in use", words::bytes(kept)));
    }
    if !after.usage.is_idle() {
        let (pending, ms) = (after.usage.pending, after.usage.pending_ns / 1_000_000);
        worse.push(format!("{pending} batches of about {ms} ms are still pending after {} s", PATIENCE.as_secs()));
    }
    if after.health.status > before.health.status {
        let (was, is) = (before.health.status.name(), after.health.status.name());
        worse.push(format!("it was {was} and is {is}: {}", after.health.reason));
    }
    worse
}

#[cfg(test)]
mod tests {
    use super::*;
    use breakeven::{Config, Device, SimBackend, SimProfile, Status};
    use std::sync::Arc;

    #[test]
    fn what_is_kept_is_told_and_what_is_given_back_is_not() {
        let sim = SimBackend::new("gpu:0", SimProfile::by_name("rtx4090").unwrap()).unwrap();
        let engine = Engine::with_backends(Config::default(), vec![Arc::new(sim.clone())]).unwrap();
        let ids = ["cpu".to_owned(), "gpu:0".to_owned()];
        let (guard, refused) = Guard::new(&engine, &ids);
        assert!(refused.is_empty());
        let load = crate::scan::ops::batch(&engine, &crate::scan::ops::data(&[1000]).unwrap().exp().unwrap()).unwrap();
        load.run(Device::Cpu).unwrap();
        load.run(Device::Gpu(Some(0))).unwrap();
        assert_eq!(guard.leftovers(&engine), []);

        let kept = [Device::Cpu, Device::Gpu(Some(0))].map(|device| engine.allocate(device, 1 << 20).unwrap());
        let left = guard.leftovers(&engine);
        assert_eq!(left.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["cpu", "gpu:0"]);
        assert!(left.iter().all(|(_, fault)| fault.why.contains("1 MiB")), "{left:?}");
        drop(kept);
        assert_eq!(guard.leftovers(&engine), []);

        sim.lose("a cable was pulled");
        let left = guard.leftovers(&engine);
        assert_eq!(left.len(), 1);
        assert!(left[0].1.why.contains("was healthy and is lost") && left[0].1.why.contains("cable"), "{left:?}");
    }

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        let engine = Engine::with_backends(Config::default(), Vec::new()).unwrap();
        let (guard, refused) = Guard::new(&engine, &["gpu:7".to_owned()]);
        assert_eq!((guard.before.len(), refused[0].0.as_str()), (0, "gpu:7"));
    }

    #[test]
    fn only_what_got_worse_counts() {
        let state = |in_use_bytes, pending, status| State {
            usage: Usage { in_use_bytes, pending, ..Usage::default() },
            health: Health { status, reason: "so it is".into() },
        };
        let before = state(100, 0, Status::Warning);
        assert!(compare(&before, &state(50, 0, Status::Warning)).is_empty());
        assert!(compare(&before, &state(100, 0, Status::Healthy)).is_empty());
        assert_eq!(compare(&before, &state(200, 2, Status::Critical)).len(), 3);
    }
}
