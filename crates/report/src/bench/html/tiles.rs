//! The few numbers that matter: a run of the suite enters, four tiles leave.

use super::{label, percent};
use crate::bench::{Bench, Group, Row};
use crate::page::{self, Tile};
use maud::Markup;

/// The tiles on top of the page.
pub(super) fn tiles(bench: &Bench) -> Markup {
    page::tiles(&[sound(bench), floor(bench), fastest(bench), noise(bench)])
}

/// How many groups nothing happened to.
fn sound(bench: &Bench) -> Tile {
    let (sound, other): (Vec<&Group>, Vec<&Group>) = bench.groups.iter().partition(|group| group.is_sound());
    let told = |group: &Group| {
        let what = group.troubles.first().map_or("", |trouble| trouble.kind.word());
        format!("{} {what}", group.name)
    };
    let told: Vec<String> = other.into_iter().map(told).collect();
    let note = if told.is_empty() { "nothing went wrong".to_owned() } else { told.join(", ") };
    Tile { what: "Sound groups", value: format!("{} of {}", sound.len(), bench.groups.len()), note }
}

/// What this machine makes of no difference.
fn floor(bench: &Bench) -> Tile {
    let what = "Floor of the null test";
    match &bench.null {
        None => Tile { what, value: "-".to_owned(), note: "the same code was not measured against itself".to_owned() },
        Some(null) => {
            let note = if null.differs {
                "the same code differed from itself by more"
            } else {
                "smaller differences can't be told here"
            };
            Tile { what, value: percent(null.floor), note: note.to_owned() }
        }
    }
}

/// The device that is the fastest the most often, and that of each group.
fn fastest(bench: &Bench) -> Tile {
    let what = "Fastest device";
    let of_groups: Vec<(&str, &str)> =
        bench.groups.iter().filter_map(|group| Some((group.name.as_str(), winner(group)?))).collect();
    let count = |id: &str| of_groups.iter().filter(|(_, winner)| *winner == id).count();
    let ids = bench.devices.iter().map(|device| device.id.as_str());
    // Of devices with as many groups, the first.
    let Some(most) = ids.rev().max_by_key(|id| count(id)).filter(|_| !of_groups.is_empty()) else {
        return Tile { what, value: "-".to_owned(), note: "no case was measured on two devices".to_owned() };
    };
    let told: Vec<String> = of_groups.iter().map(|(group, id)| format!("{group}: {}", label(bench, id))).collect();
    let value = format!("{} in {} of {}", label(bench, most), count(most), of_groups.len());
    Tile { what, value, note: told.join(", ") }
}

/// The device that has the shortest time in the most cases that at least two devices ran.
fn winner(group: &Group) -> Option<&str> {
    let mut wins: Vec<(&str, usize)> = Vec::new();
    // Transfers have no CPU to be compared with: copying in its memory is no transfer.
    for row in group.rows.iter().filter(|row| row.bytes.is_none()) {
        let same = |other: &&Row| (&other.case, other.size, &other.unit) == (&row.case, row.size, &row.unit);
        let mut others = group.rows.iter().filter(same).filter(|other| other.device != row.device).peekable();
        let compared = others.peek().is_some();
        let wins_here = compared && others.all(|other| row.stats.median_ns < other.stats.median_ns);
        match wins.iter_mut().find(|(id, _)| *id == row.device) {
            Some((_, count)) => *count += usize::from(wins_here),
            None => wins.push((&row.device, usize::from(wins_here))),
        }
    }
    wins.into_iter().rev().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count).map(|(id, _)| id)
}

/// How many rows are uncertain.
fn noise(bench: &Bench) -> Tile {
    let rows = || bench.groups.iter().flat_map(|group| &group.rows);
    let (all, noisy) = (rows().count(), rows().filter(|row| row.is_noisy()).count());
    let loaded = rows().filter(|row| row.loaded).count();
    let under = if loaded == 0 { "none under load".to_owned() } else { format!("{loaded} under load") };
    let note = format!("more than {} of the median uncertain; {under}", percent(crate::bench::NOISY));
    Tile { what: "Noisy rows", value: format!("{noisy} of {all}"), note }
}
