//! The gate, tried where it is to be used: a suite enters, how many runs of unchanged and of slowed code raised an alarm
//! leaves. Simulations say what the rule does on machines that were made up; this says what it does on this one.

use breakeven_report::bench::{BASELINE_PASSES, ChangeKind, Gate};

use super::groups::{How, is_wanted};
use super::inject::{Injected, Injection};
use super::judge::Against;
use super::suite::Suite;
use crate::failure::Failure;

/// By how much the slowed case takes longer.
const SLOWER: f64 = 0.15;

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Runs of unchanged code.
    pub unchanged: u32,
    /// Those of them in which something was called slower.
    pub alarms: u32,
    /// Runs in which one case took longer.
    pub slowed: u32,
    /// Those of them in which that was found.
    pub found: u32,
}

impl Tally {
    /// In words.
    pub fn words(&self, case: &str) -> String {
        format!(
            "unchanged: {} of {} raised a false alarm\n{case} slower by {:.0} %: {} of {} found\n",
            self.alarms,
            self.unchanged,
            100.0 * SLOWER,
            self.found,
            self.slowed
        )
    }

    /// No false alarm, and nothing missed?
    pub fn is_good(&self) -> bool {
        self.alarms == 0 && self.found == self.slowed
    }
}

/// The case that is slowed, the first that can be: its group and its name.
pub fn slowed_case(suite: &Suite<'_>) -> Option<(&'static str, &'static str)> {
    suite.wanted.iter().find_map(|wanted| {
        let mut cases = wanted.group.cases.iter().filter(|case| is_wanted(case.name, &wanted.cases));
        let case = cases.find(|case| matches!(case.how, How::Each(_)))?;
        Some((wanted.group.name, case.name))
    })
}

/// Measures a baseline, and compares `times` runs of either kind with it, in turns. `told` hears of each.
pub fn run(
    suite: &mut Suite<'_>,
    times: u32,
    limit: f64,
    told: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<Tally, Failure> {
    let Some((group, case)) = slowed_case(suite) else {
        return Err(Failure::mistake("transfers can't be slowed: name another group"));
    };
    let passes = suite.passes;
    suite.passes = passes.max(BASELINE_PASSES);
    let (baseline, _) = suite.run(|_| Ok(()), None)?;
    suite.passes = passes;
    told("the baseline is measured")?;
    let mut tally = Tally::default();
    for number in 0..2 * times {
        let slow = number % 2 == 1;
        let what = Injected::Slow { case: case.to_owned(), by: SLOWER };
        suite.inject = slow.then(|| Injection { group: group.to_owned(), what }).into_iter().collect();
        suite.seed = suite.seed.wrapping_add(1);
        let (_, gate) = suite.run(|_| Ok(()), Some(Against { baseline: &baseline, limit }))?;
        if suite.interrupt.is_set() {
            return Err(Failure::Interrupted(format!("interrupted; until then:\n{}", tally.words(case))));
        }
        let slower = gate.map(|gate| slower(&gate)).unwrap_or_default();
        let is_it = |(of, name): &(String, String)| slow && of == group && name == case;
        let other = slower.iter().filter(|row| !is_it(row)).count();
        let found = slower.iter().any(is_it);
        let (kind, names) = if slow { (&mut tally.slowed, "slowed") } else { (&mut tally.unchanged, "unchanged") };
        *kind += 1;
        tally.found += u32::from(found);
        // Of a slowed run what else is called slower is told, and not counted.
        tally.alarms += u32::from(!slow && other > 0);
        told(&format!("{names}: called slower {}, of them unchanged {other}", slower.len()))?;
    }
    Ok(tally)
}

/// The groups and cases that are called slower.
fn slower(gate: &Gate) -> Vec<(String, String)> {
    gate.of_kind(ChangeKind::Slower).into_iter().map(|change| (change.group.clone(), change.case.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_is_good_without_alarms_and_misses() {
        let good = Tally { unchanged: 20, alarms: 0, slowed: 20, found: 20 };
        assert!(good.is_good());
        assert!(!Tally { alarms: 1, ..good }.is_good() && !Tally { found: 19, ..good }.is_good());
        assert_eq!(good.words("exp"), "unchanged: 0 of 20 raised a false alarm\nexp slower by 15 %: 20 of 20 found\n");
    }
}
