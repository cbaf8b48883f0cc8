//! Rows that only the baseline has: one enters with what was asked for, whether it is missed and why leaves. A gate must not
//! be passed by what was not measured, and must not be shut by what nobody asked for.

use super::{Bench, ChangeKind, Row};

/// Was a row of the baseline to be measured again?
///
/// ```
/// use breakeven_report::bench::{Bench, ChangeKind, Expected, Gate, Group, Row};
/// let mut row = Row { case: "exp".into(), device: "cpu".into(), passes: vec![vec![9; 9]; 6], ..Row::default() };
/// row.settle();
/// let group = |rows| Group { name: "unary".into(), rows, ..Group::default() };
/// let run = |rows| Bench { groups: vec![group(rows)], ..Bench::default() };
/// let gate = |expected| Gate::expecting(&run(vec![row.clone()]), &run(vec![]), 0.10, &|_, _| expected);
/// assert!(gate(Expected::Asked).failed() && !gate(Expected::NotAsked).failed());
/// assert_eq!(gate(Expected::Unknown).changes[0].kind, ChangeKind::Gone);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// It was asked for: if it is not there it could not be measured.
    Asked,
    /// Another group, case, size or device was asked for: nothing is said about it.
    NotAsked,
    /// The suite does not have it any more, or what was asked for is not known.
    Unknown,
}

/// What became of a row of the baseline that this run does not have, and why; `None` if nobody asked for it.
pub(super) fn verdict(now: &Bench, group: &str, row: &Row, expected: Expected) -> Option<(ChangeKind, Option<String>)> {
    if expected == Expected::NotAsked {
        return None;
    }
    let why =
        trouble(now, group, &row.device).or_else(|| absent(now, &row.device)).or_else(|| left_out(now, group, row));
    match (why, expected) {
        (Some(why), _) => Some((ChangeKind::Unmeasured, Some(why))),
        (None, Expected::Asked) => Some((ChangeKind::Unmeasured, Some("it has no row in this run".to_owned()))),
        (None, _) => Some((ChangeKind::Gone, None)),
    }
}

/// What went wrong now in a group, as far as it concerns a device.
fn trouble(now: &Bench, group: &str, device: &str) -> Option<String> {
    let group = now.groups.iter().find(|other| other.name == group)?;
    let concerns = |of: &Option<String>| of.as_deref().is_none_or(|of| of == device);
    let trouble = group.troubles.iter().find(|trouble| concerns(&trouble.device))?;
    Some(format!("{}: {}", trouble.kind.word(), trouble.why))
}

/// Why a device is not there. A run that tells of no device at all says nothing about that.
fn absent(now: &Bench, device: &str) -> Option<String> {
    if now.devices.is_empty() || now.devices.iter().any(|known| known.id == device) {
        return None;
    }
    let known = |missing: &&super::Missing| missing.device == device;
    let any = |missing: &&super::Missing| missing.device == "gpu" && device.starts_with("gpu");
    let missing = now.missing.iter().find(known).or_else(|| now.missing.iter().find(any));
    Some(
        missing
            .map_or_else(|| format!("{device} is missing"), |missing| format!("{device} is missing: {}", missing.why)),
    )
}

fn left_out(now: &Bench, group: &str, row: &Row) -> Option<String> {
    let group = now.groups.iter().find(|other| other.name == group)?;
    let left = group.left_out.iter().find(|left| left.is_of(row))?;
    Some(format!("left out: {}", left.why))
}
