//! What changed since a baseline: a run and the baseline enter, the verdict leaves. What looks slower runs again before that
//! is believed; what was asked for and is not there any more is missed.

use breakeven::Device;
use breakeven_report::bench::{Bench, Expected, Gate, Missing, ROUNDS, Row};

use super::groups::is_wanted;
use super::suite::{Run, Suite};
use crate::failure::Failure;

/// What a run is compared with.
pub struct Against<'a> {
    /// The baseline.
    pub baseline: &'a Bench,
    /// The part of its time by which a row may become slower.
    pub limit: f64,
}

impl Suite<'_> {
    /// Was a row of the baseline asked for now?
    fn expects(&self, group: &str, row: &Row) -> Expected {
        let Some(wanted) = self.wanted.iter().find(|wanted| wanted.group.name == group) else {
            return Expected::NotAsked;
        };
        let device = self.devices.is_empty() || self.devices.iter().map(Device::to_string).any(|id| id == row.device);
        if !device || !is_wanted(&row.case, &wanted.cases) {
            return Expected::NotAsked;
        }
        let Some(case) = wanted.group.cases.iter().find(|case| case.name == row.case) else {
            return Expected::Unknown;
        };
        match [self.quick, !self.quick].map(|quick| case.sizes(quick).contains(&row.size)) {
            [true, _] => Expected::Asked,
            // A size of the other choice.
            [false, true] => Expected::NotAsked,
            [false, false] => Expected::Unknown,
        }
    }
}

impl Run<'_> {
    /// Looks at the devices of the baseline before anything is measured: those that are missing are told, and a run that
    /// has nothing in common with the baseline is not worth its time.
    pub(super) fn compare_devices(&mut self, baseline: &Bench) -> Result<(), Failure> {
        let suite = self.suite;
        let here = |id: &str, bench: &Bench| bench.devices.iter().any(|device| device.id == id);
        let asked =
            |group: &str, row: &Row| suite.expects(group, row) == Expected::Asked && here(&row.device, &self.bench);
        if !baseline.groups.iter().any(|group| group.rows.iter().any(|row| asked(&group.name, row))) {
            let groups: Vec<&str> = baseline.groups.iter().map(|group| group.name.as_str()).collect();
            let devices: Vec<&str> = baseline.devices.iter().map(|device| device.id.as_str()).collect();
            return Err(Failure::mistake(format_args!(
                "this run has nothing in common with the baseline, which has {} on {}: name some of these, or save a \
                 baseline of what you name with `--save-baseline`",
                groups.join(", "),
                devices.join(", ")
            )));
        }
        for device in &baseline.devices {
            let asked = suite.devices.is_empty();
            let told = self.bench.missing.iter().any(|missing| missing.device == device.id);
            if asked && !told && !here(&device.id, &self.bench) {
                let why = format!("the baseline has it ({}), and it is not here now", device.name);
                self.bench.missing.push(Missing { device: device.id.clone(), why });
            }
        }
        Ok(())
    }

    fn gate(&self, against: &Against<'_>) -> Gate {
        let expected = |group: &str, row: &Row| self.suite.expects(group, row);
        Gate::expecting(against.baseline, &self.bench, against.limit, &expected)
    }

    /// Compares, and measures suspects again, each time in new processes.
    pub(super) fn judge(&mut self, against: &Against<'_>) -> Gate {
        let mut gate = self.gate(against);
        let mut pass = self.suite.passes;
        for _ in 0..ROUNDS {
            let names = gate.suspects();
            let at = |name: &str| self.suite.wanted.iter().position(|wanted| wanted.group.name == name);
            let suspects: Vec<usize> = names.iter().filter_map(|name| at(name)).collect();
            if suspects.is_empty() || self.suite.interrupt.is_set() {
                break;
            }
            let (more, names) = (gate.passes_again, names.join(", "));
            self.notes.insert(format!("{names} looked slower and ran again: passes {} to {}", pass + 1, pass + more));
            self.total += suspects.len() * more as usize;
            for _ in 0..more {
                for group in &suspects {
                    if !self.suite.interrupt.is_set() {
                        self.group(*group, pass);
                    }
                }
                pass += 1;
            }
            // A null test that was disturbed hides what it is to be compared with: it has as many passes more.
            if self.bench.null.as_ref().is_some_and(|null| null.floor > against.limit) {
                self.total += more as usize;
                self.null(more);
            }
            self.settle();
            gate = self.gate(against);
        }
        gate
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
