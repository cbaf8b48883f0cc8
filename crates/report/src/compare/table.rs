//! A comparison for the terminal: it enters, text leaves.

use super::{Comparison, lists};
use crate::table::{aligned, name_once};
use crate::words::plain;

/// Columns of a usual terminal.
const WIDEST: usize = 120;

/// Crossovers side by side, who is the fastest, pairs of sides and contradictions, as aligned columns.
///
/// ```
/// use breakeven_report::{Row, Scan, Stats, compare::{Comparison, table}};
/// let row = Row { op: "exp".into(), size: 10, device: "cpu".into(), stats: Stats::partial(850), ..Row::default() };
/// let scan = Scan { rows: vec![row], ..Scan::default() };
/// let comparison = Comparison::of(vec![("a".into(), scan.clone()), ("b".into(), scan)])?;
/// assert!(table(&comparison).contains("no contradictions"));
/// # Ok::<(), breakeven_report::compare::CompareError>(())
/// ```
pub fn table(comparison: &Comparison) -> String {
    let mut parts = vec![plain(&comparison.about) + "\n"];
    let mut crossovers = lists::crossovers(comparison);
    name_once(&mut crossovers.rows);
    let wide = aligned(&crossovers);
    parts.push(match wide.lines().any(|line| line.chars().count() > WIDEST) {
        true => named_once(lists::crossovers_by_row(comparison)),
        false => wide,
    });
    parts.extend(Some(named_once(lists::stretches(comparison))).filter(|_| !comparison.fastest.is_empty()));
    let mut claims = lists::claims(comparison);
    // The evidence is a sentence: where it is against the claim, it is among the warnings.
    claims.header.pop();
    claims.rows.iter_mut().for_each(|row| drop(row.pop()));
    parts.extend([lists::ratios(comparison), claims].iter().filter(|list| !list.rows.is_empty()).map(aligned));
    let cautions = lists::cautions(comparison).into_iter();
    let only = comparison.only.iter().map(|only| format!("not on all sides: {}", only.words()));
    let remarks: String = cautions.chain(only).map(|line| plain(&line) + "\n").collect();
    parts.extend(Some(remarks).filter(|remarks| !remarks.is_empty()));
    let found = comparison.contradictions.iter().map(|c| format!("warning: {}: {}\n", c.kind.words(), plain(&c.words)));
    let found: String = found.collect();
    parts.push(if found.is_empty() { "no contradictions\n".to_owned() } else { found });
    parts.join("\n")
}

/// Rows whose first words stand on the first of them only.
fn named_once(mut list: lists::Sides) -> String {
    name_once(&mut list.rows);
    aligned(&list)
}
