//! The groups of the suite: a run enters, a panel of charts and a table of numbers for each group leave. Cases with
//! several sizes have a chart, the others a bar for each device.

use super::label;
use crate::bench::{Bench, Group, Row};
use crate::crossover::of_op;
use crate::curves::{Curves, Line};
use crate::lists::{List, known, samples};
use crate::page::{self, Axes, Look};
use crate::words::{rate, ratio, sized, time};
use maud::{Markup, html};

/// Every group with its charts.
pub(super) fn charts(bench: &Bench, looks: &[Look]) -> Markup {
    html! {
        section {
            h2 { "Group by group" }
            @if bench.groups.is_empty() { p { "Nothing was measured." } } @else {
                p.guide {
                    "Lower is faster. Lines are medians, bands reach from P10 to P90, a hollow dot marks a spread that "
                    "stayed wide; a ring marks where a device overtakes the CPU. Cases without sizes are bars, each as "
                    "long as its share of the case's slowest device. "
                    span.screen { "Point at a chart, or focus it and use the arrow keys, for every time." }
                }
                (page::legend(looks))
                div.groups { @for group in &bench.groups { (panel(bench, group, looks)) } }
            }
        }
    }
}

/// One group.
fn panel(bench: &Bench, group: &Group, looks: &[Look]) -> Markup {
    let curves = curves(bench, group);
    let figure = |of: &Curves<'_>| {
        let same = curves.iter().filter(|other| other.unit == of.unit);
        page::figure(of, &of_op(&bench.devices, of), &Axes::over(same), looks)
    };
    let mut figures: Vec<Markup> = curves.iter().map(figure).collect();
    let others: Vec<&Row> = group.rows.iter().filter(|row| !curves.iter().any(|of| is_of(of, row))).collect();
    if !others.is_empty() {
        figures.push(bars(bench, &others, looks));
    }
    if figures.is_empty() {
        let why = group.troubles.first().map_or("no row", |trouble| trouble.kind.word());
        figures.push(html! { div.absent { p { strong.missing { "nothing measured" } } p.quiet { (why) } } });
    }
    let heading = if group.is_sound() { group.name.clone() } else { format!("{}: not sound", group.name) };
    page::group(&heading, &figures)
}

/// Is this row a point of these curves?
fn is_of(curves: &Curves<'_>, row: &Row) -> bool {
    row.size > 0 && (curves.op, curves.unit) == (row.case.as_str(), row.unit.as_str())
}

/// Cases that were measured at two sizes or more, as curves. Rows of devices that the run does not tell about are only in
/// the table.
fn curves<'b>(bench: &Bench, group: &'b Group) -> Vec<Curves<'b>> {
    let mut all: Vec<Curves<'b>> = Vec::new();
    for row in group.rows.iter().filter(|row| row.size > 0) {
        let Some(device) = bench.devices.iter().position(|known| known.id == row.device) else { continue };
        let number = all.iter().position(|of| is_of(of, row)).unwrap_or_else(|| {
            all.push(Curves { op: &row.case, class: &group.name, unit: &row.unit, lines: Vec::new() });
            all.len() - 1
        });
        let lines = &mut all[number].lines;
        match lines.iter_mut().find(|line| line.device == device) {
            Some(line) => line.points.push((row.size, &row.stats)),
            None => lines.push(Line { device, points: vec![(row.size, &row.stats)] }),
        }
    }
    for line in all.iter_mut().flat_map(|of| &mut of.lines) {
        line.points.sort_by_key(|point| point.0);
        line.points.dedup_by_key(|point| point.0);
    }
    all.iter_mut().for_each(|of| of.lines.sort_by_key(|line| line.device));
    all.retain(|of| of.sizes().len() > 1);
    all
}

/// Cases without sizes, or with one: a bar for each device, as long as its share of the slowest.
fn bars(bench: &Bench, rows: &[&Row], looks: &[Look]) -> Markup {
    // Cases differ by thousands of times: each has its own scale.
    let longest = |cases: &[&Row]| cases.iter().map(|row| row.stats.median_ns).max().unwrap_or(0).max(1);
    let share = |ns: u64, of: u64| format!("width:{:.2}%", 100.0 * ns as f64 / of as f64);
    let class = |id: &str| looks.iter().find(|look| look.id == id).map_or("", |look| look.class.as_str());
    html! {
        div.bars.cases {
            @for cases in rows.chunk_by(|a, b| a.name() == b.name()) {
                div.case {
                    @if let Some(first) = cases.first() { h4 { (first.name()) } }
                    @for row in cases {
                        div.times {
                            span.quiet { (label(bench, &row.device)) }
                            span.length { i class=(class(&row.device)) style=(share(row.stats.median_ns, longest(cases))) {} }
                            span.number { (mark(row)) (time(row.stats.median_ns)) }
                        }
                    }
                }
            }
        }
    }
}

/// Marks a median that is uncertain.
fn mark(row: &Row) -> &'static str {
    if row.is_noisy() || row.stats.wide { "~" } else { "" }
}

/// Every number of every group.
pub(super) fn data(bench: &Bench) -> Markup {
    html! {
        section {
            h2 { "All measurements" }
            @for group in bench.groups.iter().filter(|group| !group.rows.is_empty()) {
                details open {
                    summary {
                        (group.name) ", " (group.rows.len()) @if group.rows.len() == 1 { " row" } @else { " rows" }
                        @if group.seconds > 0.0 { ", " (time((group.seconds * 1e9) as u64)) }
                    }
                    (page::table(&group.name, "data", &table(bench, group)))
                }
            }
            p.quiet { "~ marks medians that are uncertain. The interval is where the median lies, 19 times of 20." }
        }
    }
}

/// A group's rows as words; columns that no row has anything in are left out.
fn table(bench: &Bench, group: &Group) -> List {
    let has_bytes = group.rows.iter().any(|row| row.bytes.is_some());
    let has_beside = group.rows.iter().any(|row| row.beside.is_some());
    let mut header = vec!["case", "size", "device", "median", "interval", "min", "P90", "max", "MAD", "samples"];
    header.extend(has_bytes.then_some(["rate", "share of memcpy"]).into_iter().flatten());
    let numbers = 3..header.len();
    header.extend(has_beside.then_some("beside"));
    header.push("marks");
    let row = |row: &Row| {
        let s = &row.stats;
        let size = if row.size == 0 { String::new() } else { sized(row.size, &row.unit) };
        let median = format!("{}{}", mark(row), time(s.median_ns));
        let interval = format!("{} to {}", time(row.interval.0), time(row.interval.1));
        let mut cells = vec![row.case.clone(), size, label(bench, &row.device), median, interval];
        cells.extend([s.min_ns, s.p90_ns, s.max_ns, s.mad_ns].map(|ns| known(s, ns)));
        cells.push(samples(s));
        if has_bytes {
            cells.push(row.bytes.map_or_else(String::new, |bytes| rate(bytes, s.median_ns)));
            let share = |memcpy_ns: u64| super::percent(memcpy_ns as f64 / s.median_ns.max(1) as f64);
            cells.push(row.memcpy_ns.map_or_else(String::new, share));
        }
        if has_beside {
            cells.push(beside(group, row));
        }
        let marks = [(row.is_noisy(), "noisy"), (s.wide, "wide"), (row.loaded, "under load")];
        cells.push(marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect::<Vec<_>>().join(", "));
        cells
    };
    List { header, rows: group.rows.iter().map(row).collect(), numbers }
}

/// How long a row takes of the one that it is to be read beside.
fn beside(group: &Group, row: &Row) -> String {
    let Some(case) = &row.beside else { return String::new() };
    let is_it = |other: &&Row| other.case == *case && (other.size, &other.device) == (row.size, &row.device);
    match group.rows.iter().find(is_it) {
        Some(other) => {
            let times = row.stats.median_ns as f64 / other.stats.median_ns.max(1) as f64;
            format!("{} the time of {case}", ratio(times))
        }
        None => format!("{case} was not measured"),
    }
}
