//! What a run says: the times of both ways enter, ratios and the verdicts on them leave.

use serde::Serialize;

use super::place::Kind;
use super::shape::{Op, Shape};
use super::ways::{ONE, SEPARATE};
use crate::measure::{ArmReport, Outcome, Stats};

/// One batch is never slower: noise between equal arms is taken off.
pub const NEVER_SLOWER: f64 = 0.97;
/// What one batch gains on an adapter, in the geometric mean of all shapes.
pub const MEAN_GAIN: f64 = 1.2;
/// What it gains on the simulated device for each of the small shapes.
pub const SIMULATED_GAIN: f64 = 1.5;

/// One shape of one operation at one place.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The place.
    pub place: String,
    /// The operation.
    pub op: &'static str,
    /// The shape.
    pub shape: &'static str,
    /// Every arm, nanoseconds a batch.
    pub arms: Vec<ArmReport>,
    /// The time of separate runs over that of one batch.
    pub ratio: Option<f64>,
    /// The same of the fastest samples, which others on the machine disturb least. No bar is judged by it.
    pub fastest_ratio: Option<f64>,
    /// What the ratio must be at least, where something is promised.
    pub bar: Option<f64>,
    /// Why there are no times.
    pub failure: Option<String>,
}

impl Row {
    /// Judges what was measured, or says why nothing was.
    pub fn new(place: (&str, Kind), op: Op, shape: &Shape, arms: Result<Vec<ArmReport>, String>) -> Row {
        let (arms, failure) = match arms {
            Ok(arms) => (arms, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let ratio = ratio_of(&arms, |stats| stats.median_ns);
        let fastest_ratio = ratio_of(&arms, |stats| stats.min_ns);
        let bar = match place.1 {
            Kind::Cpu => None,
            Kind::Adapter => Some(NEVER_SLOWER),
            Kind::Simulated => shape.small.then_some(SIMULATED_GAIN),
        };
        let (place, op, shape) = (place.0.to_owned(), op.name(), shape.name);
        Row { place, op, shape, arms, ratio, fastest_ratio, bar, failure }
    }

    /// Whether the promise is kept; a ratio that is missing keeps none.
    pub fn passes(&self) -> Option<bool> {
        self.bar.map(|bar| self.ratio.is_some_and(|ratio| ratio >= bar))
    }
}

/// The time of separate runs over that of one batch.
fn ratio_of(arms: &[ArmReport], ns: impl Fn(&Stats) -> f64) -> Option<f64> {
    let time = |name: &str| match &arms.iter().find(|arm| arm.name == name)?.outcome {
        Outcome::Timed(stats) => Some(ns(stats)),
        Outcome::Wrong(_) | Outcome::Failed(_) => None,
    };
    Some(time(SEPARATE)? / time(ONE)?)
}

/// The geometric mean over the shapes of one operation at one place.
#[derive(Clone, Debug, Serialize)]
pub struct Mean {
    /// The place.
    pub place: String,
    /// The operation.
    pub op: &'static str,
    /// The mean, where every shape has a ratio.
    pub ratio: Option<f64>,
    /// What it must be at least, where something is promised.
    pub bar: Option<f64>,
}

impl Mean {
    /// The mean of rows that belong together.
    pub fn of(kind: Kind, rows: &[Row]) -> Option<Mean> {
        let first = rows.first()?;
        let logs: Option<Vec<f64>> = rows.iter().map(|row| row.ratio.map(f64::ln)).collect();
        let ratio = logs.map(|logs| (logs.iter().sum::<f64>() / logs.len() as f64).exp());
        let bar = (kind == Kind::Adapter).then_some(MEAN_GAIN);
        Some(Mean { place: first.place.clone(), op: first.op, ratio, bar })
    }

    /// Whether the promise is kept.
    pub fn passes(&self) -> Option<bool> {
        self.bar.map(|bar| self.ratio.is_some_and(|ratio| ratio >= bar))
    }
}

/// Everything that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The CPU.
    pub machine: String,
    /// The places, in words.
    pub places: Vec<String>,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The means.
    pub means: Vec<Mean>,
}

impl Report {
    /// Whether no bar is missed.
    pub fn passes(&self) -> bool {
        let rows = self.rows.iter().filter_map(Row::passes);
        rows.chain(self.means.iter().filter_map(Mean::passes)).all(|passes| passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixed::shape::shapes;

    fn row(kind: Kind, separate: f64, one: f64) -> Row {
        let arm = |name: &str, ns| ArmReport {
            library: name.to_owned(),
            name: name.to_owned(),
            outcome: Outcome::Timed(Stats::of(&[ns])),
        };
        Row::new(("x", kind), Op::Add, &shapes()[0], Ok(vec![arm(SEPARATE, separate), arm(ONE, one)]))
    }

    #[test]
    fn each_kind_of_place_has_its_own_bar() {
        assert_eq!(row(Kind::Cpu, 1.0, 2.0).passes(), None);
        assert_eq!(row(Kind::Adapter, 98.0, 100.0).passes(), Some(true));
        assert_eq!(row(Kind::Adapter, 96.0, 100.0).passes(), Some(false));
        assert_eq!(row(Kind::Simulated, 149.0, 100.0).passes(), Some(false));
        let mean = Mean::of(Kind::Adapter, &[row(Kind::Adapter, 1.0, 1.0), row(Kind::Adapter, 4.0, 1.0)]).unwrap();
        assert_eq!((mean.ratio, mean.passes()), (Some(2.0), Some(true)));
        let failed = Row::new(("x", Kind::Adapter), Op::Add, &shapes()[0], Err("no".into()));
        assert_eq!(failed.passes(), Some(false));
    }
}
