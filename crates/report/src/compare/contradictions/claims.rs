//! Claims against rows: what the sides claim enters, each claim with its outcome, and the contradictions leave.

use super::{Contradiction, ContradictionKind, Duel, Row, duels, evidence};
use crate::claim::Claim;
use crate::compare::{Side, join::Joined};
use crate::curves::ln;
use crate::scan::Fused;
use serde::Serialize;

/// What became of a claim.
///
/// ```
/// assert_eq!(breakeven_report::compare::Outcome::Untested.words(), "can't be tested");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No row contradicts it.
    Holds,
    /// Rows contradict it by more than they spread, or none of those that should show it does.
    Contradicted,
    /// There are no rows to test it with.
    Untested,
}

impl Outcome {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Outcome::Holds => "holds",
            Outcome::Contradicted => "contradicted",
            Outcome::Untested => "can't be tested",
        }
    }
}

/// A claim that was tested on a side.
///
/// ```
/// use breakeven_report::{Claim, compare::{Checked, Outcome}};
/// let claim = Claim::parse("add=100k", "--claim")?;
/// let checked = Checked {
///     side: "vk".into(), claim, op: "add".into(), device: "gpu:0".into(), unit: "elements".into(),
///     outcome: Outcome::Holds, why: "8 of 8 sizes agree".into(),
/// };
/// assert_eq!(checked.outcome.words(), "holds");
/// # Ok::<(), breakeven_report::ClaimError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Checked {
    /// The side's label.
    pub side: String,
    /// What is claimed.
    pub claim: Claim,
    /// The op that it was tested with.
    pub op: String,
    /// The device, by its id; nothing if there was none.
    pub device: String,
    /// What sizes count.
    pub unit: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The evidence.
    pub why: String,
}

/// Every claim of every side, and what the rows contradict.
pub(super) fn check(sides: &[Side], joined: &[Joined<'_>]) -> (Vec<Checked>, Vec<Contradiction>) {
    let (mut all, mut contradictions) = (Vec::new(), Vec::new());
    for (number, side) in sides.iter().enumerate() {
        let duels: Vec<Duel<'_>> =
            joined.iter().filter_map(|op| op.sides[number].as_ref()).flat_map(|curves| duels(side, curves)).collect();
        for claim in &side.scan.claims {
            let about: Vec<&Duel<'_>> = duels.iter().filter(|duel| claim.is_about(duel.op, duel.device)).collect();
            if about.is_empty() {
                all.push(untested(side, claim));
            }
            for duel in about {
                let (checked, found) = test(duel, claim, ContradictionKind::Claim);
                contradictions.extend(found);
                all.push(checked);
            }
        }
        for (fused, duel, claim) in side.scan.fused.iter().flat_map(|fused| of_fused(fused, &duels)) {
            let (_, found) = test(duel, &Claim { unit: fused.unit.clone(), ..claim }, ContradictionKind::Fused);
            contradictions.extend(found);
        }
    }
    (all, contradictions)
}

/// A claim that no row has to do with.
fn untested(side: &Side, claim: &Claim) -> Checked {
    let why =
        if side.gpu_missing { side.why_missing() } else { "no row of this op on this device and the CPU".to_owned() };
    Checked {
        side: side.label.clone(),
        claim: claim.clone(),
        op: claim.op.clone(),
        device: String::new(),
        unit: claim.unit.clone(),
        outcome: Outcome::Untested,
        why,
    }
}

/// One claim against the rows of one op on one device.
fn test(duel: &Duel<'_>, claim: &Claim, kind: ContradictionKind) -> (Checked, Option<Contradiction>) {
    let (outcome, against, why) = outcome(duel, claim);
    let contradiction = (outcome == Outcome::Contradicted).then(|| {
        let said = claim.words(duel.unit);
        let (side, op, label) = (&duel.side.label, duel.op, &duel.label);
        let words = format!("{side}: {} says of {op} on {label} that it {said}, but {why}", claim.source);
        duel.contradiction(kind, against, words)
    });
    let checked = Checked {
        side: duel.side.label.clone(),
        claim: claim.clone(),
        op: duel.op.to_owned(),
        device: duel.device.to_owned(),
        unit: duel.unit.to_owned(),
        outcome,
        why,
    };
    (checked, contradiction)
}

/// What becomes of a claim, the sizes that contradict it, and the evidence.
fn outcome(duel: &Duel<'_>, claim: &Claim) -> (Outcome, Vec<u64>, String) {
    let reached = |row: &Row<'_>| claim.is_reached(row.0, duel.unit);
    let contradicts = |row: &&Row<'_>| match reached(row) {
        Some(true) => row.1.clearly_faster_than(row.2),
        Some(false) => row.2.clearly_faster_than(row.1),
        None => false,
    };
    let against: Vec<&Row<'_>> = duel.rows.iter().filter(contradicts).collect();
    // The row that differs the most says it best.
    let apart = |row: &Row<'_>| (ln(row.1.median_ns) - ln(row.2.median_ns)).abs();
    let verdict = duel.crossover.words();
    if let Some(worst) = against.iter().max_by(|a, b| apart(a).total_cmp(&apart(b))) {
        let more = match against.len() - 1 {
            0 => String::new(),
            1 => ", and one more size contradicts it".to_owned(),
            more => format!(", and {more} more sizes contradict it"),
        };
        let why = format!("{}{more}; the rows say: {verdict}", evidence(duel, worst));
        return (Outcome::Contradicted, against.iter().map(|row| row.0).collect(), why);
    }
    let testable = duel.rows.iter().filter(|row| reached(row).is_some()).count();
    let beyond: Vec<&Row<'_>> = duel.rows.iter().filter(|row| reached(row) == Some(true)).collect();
    let untested = |why: String| (Outcome::Untested, Vec::new(), why);
    if duel.rows.is_empty() {
        return untested("no size was measured on both".to_owned());
    }
    if testable == 0 {
        return untested(format!("nobody knows how many {} are so many {}", claim.unit, duel.unit));
    }
    if claim.at.is_some() && beyond.is_empty() {
        return untested("no size was measured there; no smaller one contradicts it".to_owned());
    }
    if claim.at.is_some() && !beyond.iter().any(|row| row.2.clearly_faster_than(row.1)) {
        let sizes: Vec<u64> = beyond.iter().map(|row| row.0).collect();
        let last = beyond.last().map_or_else(String::new, |row| evidence(duel, row));
        let why = format!("no size shows it beyond the noise: {last}; the rows say: {verdict}");
        return (Outcome::Contradicted, sizes, why);
    }
    (Outcome::Holds, Vec::new(), format!("none of {testable} sizes contradicts it"))
}

/// What an entry about fusing claims of ops that there are rows of: `a chain of ten ops` is told by the rows of `chain`
/// as one batch, and by those of `chain as 10 calls` as separate calls.
fn of_fused<'d, 'f>(fused: &'f Fused, duels: &'d [Duel<'d>]) -> Vec<(&'f Fused, &'d Duel<'d>, Claim)> {
    let (together, apart) = ("the fused crossover", "the crossover of separate calls");
    let is_whole = |op: &str| op == fused.what || fused.what.starts_with(&format!("a {op} of "));
    let is_calls =
        |op: &str| op.strip_suffix(" calls").and_then(|op| op.split_once(" as ")).is_some_and(|(op, _)| is_whole(op));
    let claim = |duel: &'d Duel<'d>| {
        let (at, source) = match () {
            () if duel.device != fused.device => return None,
            () if is_whole(duel.op) => (fused.fused_crossover, together),
            () if is_calls(duel.op) => (fused.separate_crossover, apart),
            () => return None,
        };
        let [op, device, source] = [duel.op, duel.device, source].map(str::to_owned);
        Some((fused, duel, Claim { op, device, at, unit: String::new(), source }))
    };
    duels.iter().filter_map(claim).collect()
}
