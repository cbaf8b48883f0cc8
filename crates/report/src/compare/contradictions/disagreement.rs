//! Sides that do not agree who is faster: an op with its curves on each side enters, one contradiction for each pair of
//! sides and kind of device leaves.

use super::{Contradiction, ContradictionKind, Duel, duels, evidence};
use crate::compare::{Side, join::Joined};

/// Pairs of sides where the same kind of device beats the CPU on one, and is beaten on the other, at the same size.
pub(super) fn find(sides: &[Side], op: &Joined<'_>) -> Vec<Contradiction> {
    let of_sides: Vec<Vec<Duel<'_>>> =
        sides.iter().zip(&op.sides).map(|(side, of)| of.as_ref().map_or_else(Vec::new, |of| duels(side, of))).collect();
    let mut found = Vec::new();
    for (a, first) in of_sides.iter().enumerate() {
        for second in &of_sides[a + 1..] {
            for (x, y) in first.iter().flat_map(|x| second.iter().map(move |y| (x, y))) {
                found.extend(of_pair(x, y));
            }
        }
    }
    found
}

/// The kind of a duel's device.
fn kind<'d>(duel: &'d Duel<'_>) -> &'d str {
    duel.side.scan.device(duel.device).map_or("", |device| device.kind.as_str())
}

/// Two devices of the same kind on two sides.
fn of_pair(x: &Duel<'_>, y: &Duel<'_>) -> Option<Contradiction> {
    if kind(x) != kind(y) {
        return None;
    }
    let both = x.rows.iter().filter_map(|row| Some((row, y.rows.iter().find(|other| other.0 == row.0)?)));
    let disagree: Vec<_> = both
        .filter(|((_, c0, d0), (_, c1, d1))| {
            (d0.clearly_faster_than(c0) && c1.clearly_faster_than(d1))
                || (c0.clearly_faster_than(d0) && d1.clearly_faster_than(c1))
        })
        .collect();
    // The largest size says the most: costs of a call no longer count there.
    let (row, other) = disagree.last()?;
    let more = match disagree.len() - 1 {
        0 => String::new(),
        1 => "; one more size is like this".to_owned(),
        more => format!("; {more} more sizes are like this"),
    };
    let (first, second) = (&x.side.label, &y.side.label);
    let words = format!(
        "{first} and {second} disagree about {} on {} devices: on {first}, {}; on {second}, {}{more}",
        x.op,
        kind(x),
        evidence(x, row),
        evidence(y, other)
    );
    Some(Contradiction {
        kind: ContradictionKind::Disagreement,
        sides: vec![first.clone(), second.clone()],
        op: x.op.to_owned(),
        device: kind(x).to_owned(),
        sizes: disagree.iter().map(|(row, _)| row.0).collect(),
        words,
    })
}
