//! A run of the suite for the terminal: it, or what changed since a baseline, enters, text leaves.

use super::lists::{changed, how, measurements, remarks, unmeasured, verdict};
use super::{Bench, ChangeKind, Gate};
use crate::table::aligned;
use crate::words::plain;

/// Sentences are broken before this column.
const WIDTH: usize = 118;

/// Every measurement in one table, then what must be known of it.
///
/// ```
/// use breakeven_report::bench::{Bench, table};
/// assert!(table(&Bench::default()).starts_with("nothing was measured\n"));
/// ```
pub fn table(bench: &Bench) -> String {
    let mut list = measurements(bench);
    let mut group = String::new();
    for row in &mut list.rows {
        // A group's name stands on the first of its lines only.
        if row[0] == group {
            row[0].clear();
        } else {
            group.clone_from(&row[0]);
        }
    }
    let rows = if list.rows.is_empty() { "nothing was measured\n".to_owned() } else { aligned(&list) };
    format!("{rows}\n{}\n{}", sentences(&remarks(bench)), sentences(&how(bench)))
}

/// What changed since a baseline: the verdict, what is slower, what could not be measured, what is faster, what is not sure.
///
/// ```
/// use breakeven_report::bench::{Gate, gate_table};
/// let text = gate_table(&Gate { limit: 0.1, ..Gate::default() });
/// assert_eq!(text, "Nothing is slower by more than 10.0 %. Compared by the faster half of the passes' medians.\n");
/// ```
pub fn gate_table(gate: &Gate) -> String {
    let mut parts = vec![sentences(&[verdict(gate)])];
    let lists = [
        changed(gate, ChangeKind::Slower),
        unmeasured(gate),
        changed(gate, ChangeKind::Faster),
        changed(gate, ChangeKind::Suspect),
    ];
    parts.extend(lists.iter().filter(|list| !list.rows.is_empty()).map(aligned));
    parts.join("\n")
}

/// One after the other, in lines that fit; what goes on is indented.
fn sentences(of: &[String]) -> String {
    let mut out = String::new();
    for sentence in of {
        let mut column = 0;
        for word in plain(sentence).split_whitespace() {
            let wide = word.chars().count();
            match column {
                0 => column = wide,
                _ if column + 1 + wide > WIDTH => {
                    out.push_str("\n  ");
                    column = 2 + wide;
                }
                _ => {
                    out.push(' ');
                    column += 1 + wide;
                }
            }
            out.push_str(word);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
