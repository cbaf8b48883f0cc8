//! The few numbers that matter: a comparison enters, four tiles leave.

use crate::compare::{Comparison, PairRatio, lists::device_label};
use crate::page::{self, Tile};
use crate::words::ratio;
use maud::Markup;

/// The tiles on top of the page.
pub(super) fn tiles(comparison: &Comparison) -> Markup {
    page::tiles(&[sides(comparison), wins(comparison), apart(comparison), contradictions(comparison)])
}

fn sides(comparison: &Comparison) -> Tile {
    let missing: Vec<&str> = comparison.sides.iter().filter(|s| s.gpu_missing).map(|s| s.label.as_str()).collect();
    let differ: Vec<&str> = comparison.differences.iter().filter(|d| d.certain).map(|d| d.aspect.words()).collect();
    let mut note = if differ.is_empty() {
        "nothing is known to differ".to_owned()
    } else {
        format!("other {}", differ.join(", "))
    };
    if !missing.is_empty() {
        note.push_str(&format!("; GPU missing: {}", missing.join(", ")));
    }
    Tile { what: "Sides compared", value: comparison.sides.len().to_string(), note }
}

/// Whose devices are the fastest of all the most often.
fn wins(comparison: &Comparison) -> Tile {
    let what = "Fastest most often";
    let count = |label: &str| comparison.fastest.iter().filter(|f| f.best.side == label).count();
    let mut wins: Vec<(&str, usize)> = comparison.sides.iter().map(|s| (s.label.as_str(), count(&s.label))).collect();
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let total = comparison.fastest.len();
    let Some(((first, count), others)) = wins.split_first().filter(|_| total > 0) else {
        return Tile { what, value: "-".to_owned(), note: "no size was measured on two sides".to_owned() };
    };
    let others: Vec<String> = others.iter().map(|(label, count)| format!("{label} {count}")).collect();
    let unclear = comparison.fastest.iter().filter(|f| !f.clear).count();
    let noise = if unclear == 0 { String::new() } else { format!("; {unclear} within the noise") };
    Tile {
        what,
        value: (*first).to_owned(),
        note: format!("{count} of {total} common sizes; {}{noise}", others.join(", ")),
    }
}

/// The pair of sides that differs the most.
fn apart(comparison: &Comparison) -> Tile {
    let what = "Largest mean difference";
    let distance = |pair: &PairRatio| pair.first_over_second.max(1e-9).ln().abs();
    let known = comparison.ratios.iter().filter(|pair| pair.rows > 0);
    let Some(most) = known.max_by(|a, b| distance(a).total_cmp(&distance(b))) else {
        return Tile { what, value: "-".to_owned(), note: "no rows in common".to_owned() };
    };
    let label = |side: &str, device: &str| device_label(comparison, side, device);
    let mut pair = [label(&most.first, &most.first_device), label(&most.second, &most.second_device)];
    if most.first_over_second > 1.0 {
        pair.reverse();
    }
    let [faster, slower] = pair;
    let note = format!("{faster} over {slower}, {} rows", most.rows);
    Tile { what, value: ratio(distance(most).exp()), note }
}

fn contradictions(comparison: &Comparison) -> Tile {
    let all = &comparison.contradictions;
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for found in all {
        match kinds.iter_mut().find(|(kind, _)| *kind == found.kind.words()) {
            Some((_, count)) => *count += 1,
            None => kinds.push((found.kind.words(), 1)),
        }
    }
    let told: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    let note = if told.is_empty() { "the rows agree with what is claimed".to_owned() } else { told.join(", ") };
    Tile { what: "Contradictions", value: all.len().to_string(), note }
}
