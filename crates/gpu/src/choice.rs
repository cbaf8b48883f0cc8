//! What tuning chooses from, and how: variants with their times enter, a winner leaves. Plain data, as it is remembered.

use crate::stage::{MapVariant, RowsVariant, TileVariant, Variants};
use serde::{Deserialize, Serialize};

/// Measurements of each variant.
pub(crate) const ROUNDS: usize = 7;

/// A variant wins if it is quicker than the one in use by more than this share.
const MARGIN: f64 = 0.05;

/// A variant of one class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    Map(MapVariant),
    Rows(RowsVariant),
    Tile(TileVariant),
}

/// The classes that have variants.
pub(crate) const FAMILIES: [&str; 3] = ["map", "rows", "tile"];

impl Choice {
    pub(crate) fn family(&self) -> usize {
        match self {
            Choice::Map(_) => 0,
            Choice::Rows(_) => 1,
            Choice::Tile(_) => 2,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Choice::Map(map) => format!("{} invocations of {} points, {} times", map.workgroup, map.points, map.turns),
            Choice::Rows(rows) => format!("{} invocations, {} a row", rows.workgroup, rows.threads),
            Choice::Tile(tile) => {
                let TileVariant { rows, columns, thread_rows, thread_columns, depth } = tile;
                let staged = if *depth == 0 { "direct".into() } else { format!("staged by {depth}") };
                format!("{rows}x{columns} tiles of {thread_rows}x{thread_columns}, {staged}")
            }
        }
    }

    /// All variants of a family that there are.
    pub(crate) fn all(family: usize) -> Vec<Choice> {
        match family {
            0 => MapVariant::ALL.iter().copied().map(Choice::Map).collect(),
            1 => RowsVariant::ALL.iter().copied().map(Choice::Rows).collect(),
            _ => TileVariant::ALL.iter().copied().map(Choice::Tile).collect(),
        }
    }

    /// The one that is in use.
    pub(crate) fn of(variants: &Variants, family: usize) -> Choice {
        match family {
            0 => Choice::Map(variants.map),
            1 => Choice::Rows(variants.rows),
            _ => Choice::Tile(variants.tile),
        }
    }

    pub(crate) fn apply(self, variants: &mut Variants) {
        match self {
            Choice::Map(map) => variants.map = map,
            Choice::Rows(rows) => variants.rows = rows,
            Choice::Tile(tile) => variants.tile = tile,
        }
    }
}

/// A variant with its times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    pub(crate) choice: Choice,
    pub(crate) ns: Vec<u64>,
    /// Why it is out.
    pub(crate) out: Option<String>,
}

impl Measured {
    pub(crate) fn is_open(&self) -> bool {
        self.out.is_none() && self.ns.len() < ROUNDS
    }

    pub(crate) fn median_ns(&self) -> Option<u64> {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().filter(|_| self.out.is_none())
    }
}

/// What is known about a class.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tuned {
    pub(crate) class: String,
    pub(crate) measured: Vec<Measured>,
    pub(crate) winner: Option<Choice>,
    pub(crate) why: String,
}

impl Tuned {
    pub(crate) fn new(family: usize, choices: &[Choice]) -> Tuned {
        let measured = choices.iter().map(|choice| Measured { choice: *choice, ns: Vec::new(), out: None });
        Tuned { class: FAMILIES[family].into(), measured: measured.collect(), winner: None, why: String::new() }
    }

    /// Does it tell of variants that there are?
    pub(crate) fn is_sound(&self) -> bool {
        let Some(family) = FAMILIES.iter().position(|name| *name == self.class) else { return false };
        let (known, chosen) = (Choice::all(family), self.measured.iter().map(|measured| measured.choice));
        chosen.chain(self.winner).all(|choice| known.contains(&choice))
            && self.measured.iter().all(|measured| measured.ns.len() <= ROUNDS)
    }

    pub(crate) fn is_done(&self) -> bool {
        !self.measured.iter().any(Measured::is_open)
    }

    /// Of those that were measured least, the first.
    pub(crate) fn next(&self, accepted: impl Fn(&Choice) -> bool) -> Option<Choice> {
        let open = self.measured.iter().filter(|measured| measured.is_open() && accepted(&measured.choice));
        open.min_by_key(|measured| measured.ns.len()).map(|measured| measured.choice)
    }

    /// The quickest, if it is quicker than the present one by more than the margin.
    pub(crate) fn decide(&mut self, present: Choice) {
        let times = self.measured.iter().filter_map(|m| Some((m.median_ns()?, m.choice)));
        let Some((best_ns, best)) = times.min_by_key(|(ns, _)| *ns) else { return };
        let present_ns = self.measured.iter().find(|m| m.choice == present).and_then(Measured::median_ns);
        let us = |ns: u64| ns as f64 / 1000.0;
        let (winner, why) = match present_ns {
            Some(ns) if best_ns as f64 > ns as f64 * (1.0 - MARGIN) => {
                (present, format!("{:.0} us, and no other is quicker by more than {:.0} %", us(ns), MARGIN * 100.0))
            }
            Some(ns) => (best, format!("{:.0} us, against {:.0} us of {}", us(best_ns), us(ns), present.name())),
            None => (best, format!("{:.0} us, and {} does not work here", us(best_ns), present.name())),
        };
        (self.winner, self.why) = (Some(winner), why);
    }
}
