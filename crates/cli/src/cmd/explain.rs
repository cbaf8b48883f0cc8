//! A decision for people and for programs: the engine's record enters, a document and an explanation leave.

use std::collections::BTreeMap;

use breakeven::cost::Prediction;
use breakeven::{Engine, Predicted, Program};
use serde::Serialize;

use crate::memory;
use crate::timing::{Timing, duration};

/// Where the last run ran, why, and what it took.
#[derive(Serialize)]
pub struct Decision {
    pub device: String,
    pub reason: String,
    /// What each device was expected to take. Empty where nothing has been measured: a guess would not be told from a
    /// measurement.
    predicted_ns: BTreeMap<String, u64>,
    /// Of what that is made up by the model.
    predicted_parts: BTreeMap<String, Parts>,
    pub actual_ns: u64,
    /// What it took longer than the best other device lately did, where that is known.
    regret_ns: Option<u64>,
    kernels: usize,
    /// Time of each kernel on the device; 0 where it was not timed.
    kernel_ns: Vec<u64>,
    dispatches: u32,
    passes: u32,
    submits: u32,
    uploads: u32,
    readbacks: u32,
    upload_bytes: u64,
    readback_bytes: u64,
    /// Time on the device by its own clock; 0 where it has none.
    device_ns: u64,
    /// Buffers, pipelines and bind groups that had to be made.
    created: u32,
    pub fallbacks: u32,
    faults: Vec<String>,
}

/// The parts of a prediction.
#[derive(Serialize)]
struct Parts {
    wait_ns: u64,
    fixed_ns: u64,
    upload_ns: u64,
    kernels_ns: u64,
    readback_ns: u64,
    /// Does what was expected come from runs of this very plan?
    measured: bool,
}

impl Parts {
    fn new(parts: &Prediction, measured: bool) -> Parts {
        let ns = |ns: f64| ns.round() as u64;
        Parts {
            wait_ns: ns(parts.wait_ns),
            fixed_ns: ns(parts.fixed_ns),
            upload_ns: ns(parts.upload_ns),
            kernels_ns: ns(parts.kernels_ns),
            readback_ns: ns(parts.readback_ns),
            measured,
        }
    }
}

impl Decision {
    /// Of the record of the last run; `before` is what the runs before it took.
    pub fn new(ran: breakeven::Decision, actual_ns: u64, before: &[u64]) -> Decision {
        let expected = |p: &Predicted| (p.device.clone(), p.expected_ns);
        let mut predicted_ns: BTreeMap<String, u64> = ran.predicted.iter().map(expected).collect();
        if let Some(timing) = Timing::of(before) {
            // What the runs before the last one took foretells it, too.
            predicted_ns.entry(ran.device.clone()).or_insert(timing.median_ns);
        }
        let parts = |p: &Predicted| (p.device.clone(), Parts::new(&p.parts, p.measured));
        Decision {
            predicted_ns,
            predicted_parts: ran.predicted.iter().map(parts).collect(),
            device: ran.device,
            reason: ran.reason,
            actual_ns,
            regret_ns: ran.regret_ns,
            kernels: ran.kernels,
            kernel_ns: ran.kernel_ns,
            dispatches: ran.timings.dispatches,
            passes: ran.timings.passes,
            submits: ran.timings.submits,
            uploads: ran.timings.uploads,
            readbacks: ran.timings.readbacks,
            upload_bytes: ran.timings.upload_bytes,
            readback_bytes: ran.timings.readback_bytes,
            device_ns: ran.timings.device_ns,
            created: ran.timings.created,
            fallbacks: ran.fallbacks,
            faults: ran.faults,
        }
    }

    /// All of it in words, with the plan.
    pub fn explanation(&self, engine: &Engine, program: &Program) -> String {
        let stats = program.plan().stats();
        let mut text = self.expectations();
        text += &format!(
            "device      {}: {} ({})\n\
             time        {}\n",
            self.device,
            self.reason,
            self.name(engine),
            self.time(),
        );
        if self.submits > 0 {
            text += &format!(
                "submitted   {} time{}: {} dispatches in {} pass{}, {} up, {} down, {} objects made\n",
                self.submits,
                if self.submits == 1 { "" } else { "s" },
                self.dispatches,
                self.passes,
                if self.passes == 1 { "" } else { "es" },
                memory::size(self.upload_bytes),
                memory::size(self.readback_bytes),
                self.created,
            );
        }
        text += &format!("kernels     {}\n", stats.kernels);
        if self.kernel_ns.iter().any(|ns| *ns > 0) {
            let known = |ns: &u64| if *ns == 0 { "not timed".to_owned() } else { duration(*ns) };
            let times: Vec<String> = self.kernel_ns.iter().map(known).collect();
            text += &format!("            in the plan's order: {}\n", times.join(", "));
        }
        text + &format!(
            "operations  {}\n\
             read        {}\n\
             written     {}\n\
             scratch     {}\n\
             \n{}",
            stats.flops,
            memory::size(stats.bytes_read),
            memory::size(stats.bytes_written),
            memory::size(stats.peak_scratch_bytes as u64),
            program.plan(),
        )
    }

    /// A table: a line for each device, the parts of its time side by side.
    fn expectations(&self) -> String {
        if self.predicted_parts.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "{:<12}{:>10}   {:>10}{:>10}{:>10}{:>10}{:>10}\n",
            "expected", "total", "wait", "fixed", "upload", "kernels", "readback"
        );
        for (device, parts) in &self.predicted_parts {
            let total = self.predicted_ns.get(device).map_or_else(String::new, |ns| duration(*ns));
            let cell = |ns: u64| if ns == 0 { "-".to_owned() } else { duration(ns) };
            let [wait, fixed, upload, kernels, readback] =
                [parts.wait_ns, parts.fixed_ns, parts.upload_ns, parts.kernels_ns, parts.readback_ns].map(cell);
            let chosen = if *device == self.device { " <" } else { "" };
            let how = if parts.measured { "measured" } else { "predicted" };
            text += &format!(
                "{device:<12}{total:>10} = {wait:>10}{fixed:>10}{upload:>10}{kernels:>10}{readback:>10}  {how}{chosen}\n"
            );
        }
        // The total of what was measured is no sum of what the model says.
        if self.predicted_parts.values().any(|parts| parts.measured) {
            text = text.replace(" = ", "   ");
        }
        text + "\n"
    }

    fn time(&self) -> String {
        let predicted = match self.predicted_ns.get(&self.device) {
            Some(ns) if !self.predicted_parts.contains_key(&self.device) => {
                format!("predicted {} from the runs before it, ", duration(*ns))
            }
            Some(ns) => format!("expected {}, ", duration(*ns)),
            None => String::new(),
        };
        let regret = match self.regret_ns {
            Some(0) => ", no other device was faster lately".to_owned(),
            Some(ns) => format!(", {} longer than another device lately took", duration(ns)),
            None => String::new(),
        };
        format!("{predicted}took {}{regret}", duration(self.actual_ns))
    }

    /// What the devices that worked on it are called.
    fn name(&self, engine: &Engine) -> String {
        let names: Vec<String> = self.device.split('+').map(|id| engine.device_name(id)).collect();
        names.join(" and ")
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
