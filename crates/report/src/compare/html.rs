//! A comparison as one HTML page: it enters, a file leaves that needs nothing else. All sides share one chart for each
//! op; below, each side has a panel of its own, whose charts have the axes of all sides.

mod panels;
mod tiles;

use super::{Comparison, Side, SideBySide, join::Joined, join::join, lists};
use crate::crossover::{Crossover, of_op};
use crate::curves::{Curves, Line};
use crate::page::{self, Axes, COLOURS, Look, Page, class_words};
use crate::words::{ratio, sized};
use maud::{Markup, html};

/// How pairs of sides are compared.
const MEAN: &str = "Over all rows that both have, by the geometric mean of their medians.";

/// An op with all sides' devices as its lines.
struct Entry<'s> {
    curves: Curves<'s>,
    crossovers: Vec<Crossover>,
}

/// The report of a comparison: one self-contained page.
///
/// ```
/// use breakeven_report::{Row, Scan, Stats, compare::{Comparison, html}};
/// let row = Row { op: "exp".into(), size: 10, device: "cpu".into(), stats: Stats::partial(850), ..Row::default() };
/// let scan = Scan { rows: vec![row], ..Scan::default() };
/// let comparison = Comparison::of(vec![("<b>".into(), scan.clone()), ("b".into(), scan)])?;
/// let page = html(&comparison);
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("&lt;b&gt;") && !page.contains("<b>"));
/// # Ok::<(), breakeven_report::compare::CompareError>(())
/// ```
pub fn html(comparison: &Comparison) -> String {
    let looks = looks(&comparison.sides);
    let joined = join(&comparison.sides);
    let entries: Vec<Entry> = joined.iter().map(|op| together(&comparison.sides, op)).collect();
    let main = html! {
        (tiles::tiles(comparison))
        (contradictions(comparison))
        (crossovers(comparison, &entries, &looks))
        (charts(&entries, &looks))
        (panels::panels(comparison, &joined))
        (listed("Pairs of sides", MEAN, &lists::ratios(comparison)))
        (fastest(comparison))
        (listed("Claims against rows", "", &lists::claims(comparison)))
        (only(comparison))
        (differences(comparison))
        (listed("Where and how it was measured", "", &lists::sides(comparison)))
        (data(comparison))
    };
    let labels: Vec<&str> = comparison.sides.iter().map(|side| side.label.as_str()).collect();
    let title = format!("Side by side: {}", labels.join(", "));
    let rows: usize = comparison.sides.iter().map(|side| side.scan.rows.len()).sum();
    let how = format!("{rows} rows of {} sides", comparison.sides.len());
    let cautions = html! { @for caution in lists::cautions(comparison) { p { (caution) } } };
    let head = page::head("Side by side", &comparison.about, &how, cautions);
    Page { title, breakeven: "", style: &[page::PARTS, include_str!("style.css")], head, main }.into_string()
}

/// How each device of each side is drawn where all of them share a chart: sides have colours, kinds have dashes.
fn looks(sides: &[Side]) -> Vec<Look> {
    let of_side = |(number, side): (usize, &Side)| {
        let look = |device: &crate::Device| {
            let dashes = if device.is_cpu() { " host" } else { page::dashes(device) };
            let class = format!("{}{dashes}", colour(number));
            Look { id: id(number, &device.id), label: side.device_label(&device.id), class }
        };
        side.scan.devices.iter().map(look).collect::<Vec<_>>()
    };
    sides.iter().enumerate().flat_map(of_side).collect()
}

/// The class of a side's colour.
fn colour(side: usize) -> String {
    format!("d{}", side % COLOURS + 1)
}

/// A device's id among those of all sides.
fn id(side: usize, device: &str) -> String {
    format!("{side}/{device}")
}

/// The curves of all sides as if they were one scan's.
fn together<'s>(sides: &[Side], op: &Joined<'s>) -> Entry<'s> {
    let before: Vec<usize> =
        (0..sides.len()).map(|n| sides[..n].iter().map(|side| side.scan.devices.len()).sum()).collect();
    let line =
        |(side, line): (usize, &Line<'s>)| Line { device: before[side] + line.device, points: line.points.clone() };
    let lines = op.lines().map(line).collect();
    let of_side = |(number, curves): (usize, &Option<Curves<'s>>)| {
        let found = curves.as_ref().map_or_else(Vec::new, |curves| of_op(&sides[number].scan.devices, curves));
        found.into_iter().map(move |c| Crossover { device: id(number, &c.device), ..c }).collect::<Vec<_>>()
    };
    let crossovers = op.sides.iter().enumerate().flat_map(of_side).collect();
    Entry { curves: Curves { op: op.op, class: op.class, unit: op.unit, lines }, crossovers }
}

/// What the rows contradict, each with its evidence.
fn contradictions(comparison: &Comparison) -> Markup {
    html! {
        section {
            h2 { "Contradictions" }
            @if comparison.contradictions.is_empty() {
                p.quiet {
                    "None was found: the rows show every crossover that is claimed, and no two sides disagree by more "
                    "than they spread."
                }
            } @else {
                ul.flags {
                    @for found in &comparison.contradictions {
                        li { span.flag { (found.kind.words()) } " " (found.words) }
                    }
                }
            }
        }
    }
}

/// Every op in one line: who is the fastest of all, and from where on each side's devices pay.
fn crossovers(comparison: &Comparison, entries: &[Entry<'_>], looks: &[Look]) -> Markup {
    html! {
        section {
            h2 { "Crossovers side by side" }
            p.guide {
                "From which size on a side's device is faster than its own CPU. The strip shows the fastest of all sides' "
                "devices; pale is a CPU."
            }
            (page::legend(looks))
            div.scroll tabindex="0" role="region" aria-label="Crossovers side by side" {
                table.glance {
                    thead { tr {
                        th scope="col" { "Operation" }
                        th scope="col" { "Fastest, from small to large" }
                        @for side in &comparison.sides { th scope="col" { (side.label) } }
                    } }
                    tbody { @for row in &comparison.crossovers { (crossover_row(comparison, row, entries, looks)) } }
                }
            }
        }
    }
}

/// One op of the overview, or another device at it.
fn crossover_row(comparison: &Comparison, row: &SideBySide, entries: &[Entry<'_>], looks: &[Look]) -> Markup {
    let (device, cells) = lists::crossover_cells(comparison, row);
    let is_it = |entry: &&Entry<'_>| {
        let curves = &entry.curves;
        (curves.op, curves.class, curves.unit) == (&row.op, &row.class, &row.unit)
    };
    // The strip holds all devices: it stands on the first line of an op only.
    let entry = entries.iter().find(is_it).filter(|_| row.device == 0);
    html! {
        tr {
            th scope="row" { (row.op) div.quiet { (device) } }
            td.where { @if let Some(entry) = entry { (page::strip(&entry.curves, looks)) } }
            @for ((side, cell), words) in comparison.sides.iter().zip(&row.cells).zip(cells) {
                @let crossover = cell.crossover.as_ref();
                @let pays = crossover.is_some_and(|crossover| crossover.verdict.pays());
                td data-device=(side.label) class=[(!pays).then_some("quiet")] {
                    (words)
                    @if let Some(largest) = crossover.and_then(|crossover| crossover.largest.as_ref()) {
                        div.quiet { (ratio(largest.speedup())) " at " (sized(largest.size, &row.unit)) }
                    }
                }
            }
        }
    }
}

/// All sides in one chart for each op.
fn charts(entries: &[Entry<'_>], looks: &[Look]) -> Markup {
    let mut classes: Vec<&str> = entries.iter().map(|entry| entry.curves.class).collect();
    classes.dedup();
    html! {
        section {
            h2 { "All sides in one chart" }
            p.guide {
                "Lower is faster. A side has a colour; its CPU is the thin line. Lines are medians, bands reach from P10 to "
                "P90 where both are known; a ring marks where a device overtakes its own CPU, a hollow dot a spread that "
                "stayed wide. "
                span.screen { "Point at a chart, or focus it and use the arrow keys, for every time." }
            }
            (page::legend(looks))
            div.groups {
                @for class in classes {
                    @let of_class: Vec<&Entry> = entries.iter().filter(|e| e.curves.class == class).collect();
                    @let figure = |entry: &&Entry| {
                        let same = of_class.iter().map(|e| &e.curves).filter(|c| c.unit == entry.curves.unit);
                        page::figure(&entry.curves, &entry.crossovers, &Axes::over(same), looks)
                    };
                    (page::group(class_words(class), &of_class.iter().map(figure).collect::<Vec<_>>()))
                }
            }
        }
    }
}

/// A list under its heading, unless it is empty.
fn listed(heading: &str, guide: &str, list: &lists::Sides) -> Markup {
    html! {
        @if !list.rows.is_empty() {
            section {
                h2 { (heading) }
                @if !guide.is_empty() { p.guide { (guide) } }
                (page::table(heading, "", list))
            }
        }
    }
}

/// Who is the fastest at every size, folded away.
fn fastest(comparison: &Comparison) -> Markup {
    let list = lists::fastest(comparison);
    html! {
        section {
            h2 { "Who is the fastest of all" }
            @if list.rows.is_empty() { p { "No size of any operation was measured on two sides." } } @else {
                (page::table("Who is the fastest of all", "", &lists::stretches(comparison)))
                details {
                    summary { "Size by size: " (list.rows.len()) " rows" }
                    div.tall { (page::table("Who is the fastest at each size", "data", &list)) }
                }
            }
        }
    }
}

/// What the sides differ in.
fn differences(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.differences.is_empty() {
            section {
                h2 { "What the sides differ in" }
                ul.notes {
                    @for difference in &comparison.differences { li { (difference.sentence()) } }
                }
            }
        }
    }
}

/// What only some sides have.
fn only(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.only.is_empty() {
            section {
                h2 { "Not on all sides" }
                ul.notes { @for only in &comparison.only { li { (only.words()) } } }
            }
        }
    }
}

/// Every measurement, folded away.
fn data(comparison: &Comparison) -> Markup {
    let rows: usize = comparison.sides.iter().map(|side| side.scan.rows.len()).sum();
    html! {
        section {
            h2 { "All measurements" }
            details {
                summary { (rows) " rows; compare.csv has them in nanoseconds" }
                div.tall { (page::table("All measurements", "data", &lists::measurements(comparison))) }
            }
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
