//! A comparison as `summary.md`: it enters, Markdown leaves that reads well as plain text and as a page.

use super::{Comparison, lists};
use crate::markdown::{section, text};

/// The summary of a comparison as Markdown.
///
/// ```
/// use breakeven_report::{Row, Scan, Stats, compare::{Comparison, markdown}};
/// let row = Row { op: "exp".into(), size: 10, device: "cpu".into(), stats: Stats::partial(850), ..Row::default() };
/// let scan = Scan { rows: vec![row], ..Scan::default() };
/// let comparison = Comparison::of(vec![("a".into(), scan.clone()), ("b".into(), scan)])?;
/// assert!(markdown(&comparison).starts_with("# Side by side: a, b\n"));
/// # Ok::<(), breakeven_report::compare::CompareError>(())
/// ```
pub fn markdown(comparison: &Comparison) -> String {
    let labels: Vec<String> = comparison.sides.iter().map(|side| text(&side.label)).collect();
    let mut out = format!("# Side by side: {}\n\n{}.\n", labels.join(", "), text(&comparison.about));
    let differences = comparison.differences.iter().map(super::Difference::sentence);
    bullets(&mut out, None, differences.chain(lists::cautions(comparison)));
    section(&mut out, "Sides", &lists::sides(comparison));
    let found = comparison.contradictions.iter().map(|c| format!("{}: {}", c.kind.words(), c.words));
    if comparison.contradictions.is_empty() {
        out.push_str("\n## Contradictions\n\nNone was found.\n");
    }
    bullets(&mut out, Some("Contradictions"), found);
    section(&mut out, "Claims against rows", &lists::claims(comparison));
    section(&mut out, "From which size on a device is faster than its CPU", &lists::crossovers(comparison));
    section(&mut out, "Who is the fastest of all", &lists::fastest(comparison));
    if comparison.fastest.is_empty() {
        out.push_str("\n## Who is the fastest of all\n\nNo size of any operation was measured on two sides.\n");
    }
    section(&mut out, "Pairs of sides", &lists::ratios(comparison));
    bullets(&mut out, Some("Not on all sides"), comparison.only.iter().map(super::Only::words));
    out.push_str(
        "\nTimes are medians from the call to its results on the host, as each side reports them. Only sizes that were \
         measured on both are compared; means are geometric.\n",
    );
    out
}

/// A list under a heading, unless it is empty.
fn bullets(out: &mut String, heading: Option<&str>, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("- {}\n", text(&line))).collect();
    if lines.is_empty() {
        return;
    }
    out.push_str(&heading.map_or_else(String::new, |heading| format!("\n## {heading}\n")));
    out.push_str(&format!("\n{}", lines.concat()));
}
