//! What this machine makes of no difference: the cases of a null test enter, whether it saw one and how large one has to
//! be to be told leave.

use super::words::percent;
use super::{Level, Null, NullCase, Ratio};

/// A case whose interval leaves out 1 by more than this shows a difference. Samples of a thousand runs may tell code from
/// itself by some thousandths, which nobody asks about.
const SEEN: f64 = 0.01;

impl Null {
    /// The verdict about cases that were measured. Cases without samples say nothing.
    ///
    /// ```
    /// use breakeven_report::bench::{Null, NullCase};
    /// let samples = |ns: u64| vec![vec![ns; 9]];
    /// let case = |second| NullCase { first: samples(100), second: samples(second), ..NullCase::default() };
    /// assert!(!Null::of(vec![case(100)]).differs);
    /// let null = Null::of(vec![case(100), case(104)]);
    /// assert_eq!((null.differs, null.floor), (true, 0.04));
    /// assert!(null.words().contains("this machine can't tell differences below 4.0 %"));
    /// ```
    pub fn of(cases: Vec<NullCase>) -> Null {
        // By the measure that sees less in nothing: it is the one that changes are judged by.
        let ratios = Level::ALL.map(|level| ratios(&cases, level, |_| true));
        let [typical, fastest] = ratios.each_ref().map(|ratios| floor(ratios));
        let (ratios, floor) = if fastest < typical { (&ratios[1], fastest) } else { (&ratios[0], typical) };
        let differs = ratios.iter().any(|r| r.low > 1.0 + SEEN || r.high < 1.0 - SEEN);
        Null { differs, floor, cases, loaded: false }
    }

    /// Below which part of a time differences of this measure can't be told on a device; if it was not asked, on all.
    pub(super) fn floor_of(&self, device: &str, level: Level) -> f64 {
        let ratios = ratios(&self.cases, level, |case| case.device == device);
        if ratios.is_empty() { self.floor } else { floor(&ratios) }
    }

    /// The verdict in a sentence.
    pub fn words(&self) -> String {
        if self.cases.is_empty() {
            return "The null test was not run.".to_owned();
        }
        let floor = percent(self.floor);
        let loaded = if self.loaded { " It ran while the machine was busy with something else." } else { "" };
        if self.differs {
            return format!(
                "The same code run twice looked different: this machine can't tell differences below {floor}.{loaded}"
            );
        }
        format!("The same code run twice looked the same, to within {floor}.{loaded}")
    }
}

fn ratios(cases: &[NullCase], level: Level, wanted: impl Fn(&NullCase) -> bool) -> Vec<Ratio> {
    cases.iter().filter(|case| wanted(case)).filter_map(|case| case.ratio(level)).collect()
}

/// The largest difference that these leave possible.
fn floor(ratios: &[Ratio]) -> f64 {
    let off = ratios.iter().flat_map(|r| [r.ratio, r.low, r.high]).map(|r| (r - 1.0).abs()).fold(0.0, f64::max);
    // A tenth of a percent is what is shown; what is a hair over it by rounding alone is not a tenth more.
    (off * 1000.0 - 1e-6).ceil().max(0.0) / 1000.0
}

impl NullCase {
    /// The second over the first; `None` if there are no samples.
    ///
    /// ```
    /// use breakeven_report::bench::{Level, NullCase};
    /// let case = NullCase { first: vec![vec![50]], second: vec![vec![51]], ..NullCase::default() };
    /// assert_eq!(case.ratio(Level::Typical).map(|ratio| ratio.ratio), Some(1.02));
    /// ```
    pub fn ratio(&self, level: Level) -> Option<Ratio> {
        Ratio::of_pairs(level, &self.first, &self.second)
    }
}

#[cfg(test)]
#[path = "null_tests.rs"]
mod tests;
