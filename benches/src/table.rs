//! The report for people: a finished report enters, a terminal table or Markdown leaves.

use comfy_table::{CellAlignment, Table, presets};

use crate::limits::Limits;
use crate::measure::Outcome;
use crate::report::{Report, Row, Timed};

const HEADER: [&str; 10] =
    ["workload", "n", "ours us", "by", "best peer us", "by", "ratio", "verdict", "limit share", "runners-up us"];
/// Libraries named behind the best peer.
const RUNNERS_UP: usize = 3;

/// The table and its summary for a terminal.
pub fn terminal(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(HEADER);
    for row in &report.rows {
        table.add_row(cells(row));
    }
    for numeric in [1, 2, 4, 6, 8] {
        if let Some(column) = table.column_mut(numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!("{}\n{}\n{table}\n\n", report.machine, limits_line(&report.limits));
    text += "Microseconds are medians of interleaved samples. The limit is the nearer of FMA peak and bandwidth at the \
             row's working set\n(of the best peer where ours is missing).\n";
    for line in summary(report) {
        text += &format!("{line}\n");
    }
    text
}

/// The same as Markdown, for the documentation.
pub fn markdown(report: &Report) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("{}\n\n{}\n\n", report.machine, limits_line(&report.limits));
    text += &line(&HEADER.map(str::to_owned));
    text += "|---|---:|---:|---|---:|---|---:|---|---:|---|\n";
    for row in &report.rows {
        text += &line(&cells(row));
    }
    text.push('\n');
    for entry in summary(report) {
        text += &format!("- {entry}\n");
    }
    text
}

/// One line of progress, while the run goes on.
pub fn progress(row: &Row) -> String {
    let timed = |timed: &Option<Timed>| timed.as_ref().map_or("-".to_owned(), |t| format!("{} {}", t.name, us(t.ns)));
    format!("{:<20} {:>9}  {} | {}", row.workload, row.n, timed(&row.ours), timed(&row.best_peer))
}

fn cells(row: &Row) -> Vec<String> {
    let time = |timed: &Option<Timed>| timed.as_ref().map_or("-".to_owned(), |timed| us(timed.ns));
    let name = |timed: &Option<Timed>| timed.as_ref().map_or("-".to_owned(), |timed| timed.name.clone());
    vec![
        row.workload.to_owned(),
        row.n.to_string(),
        time(&row.ours),
        name(&row.ours),
        time(&row.best_peer),
        name(&row.best_peer),
        row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
        row.passes.map_or("-", |passes| if passes { "ok" } else { "LOST" }).to_owned(),
        row.share.map_or("-".to_owned(), |share| format!("{:.0} % {}", share.of_limit * 100.0, share.bound)),
        runners_up(row),
    ]
}

/// The best variant of the next libraries, so that the reader sees who is behind whom.
fn runners_up(row: &Row) -> String {
    let mut best: Vec<Timed> = Vec::new();
    let mut libraries: Vec<&str> = row.arms.iter().map(|arm| arm.library.as_str()).collect();
    libraries.sort_unstable();
    libraries.dedup();
    let first = row.best_peer.as_ref().map(|timed| timed.name.as_str());
    for library in libraries.into_iter().filter(|&library| library != crate::OURS) {
        best.extend(row.best_of(library).filter(|timed| Some(timed.name.as_str()) != first));
    }
    best.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let names = best.iter().take(RUNNERS_UP).map(|timed| format!("{} {}", timed.name, us(timed.ns)));
    names.collect::<Vec<_>>().join(" · ")
}

fn summary(report: &Report) -> Vec<String> {
    let mut lines = report.notes.clone();
    for row in &report.rows {
        for arm in &row.arms {
            match &arm.outcome {
                Outcome::Timed(_) => {}
                Outcome::Wrong(why) => lines.push(format!("wrong: {} {} {}: {why}", row.workload, row.n, arm.name)),
                Outcome::Failed(why) => lines.push(format!("failed: {} {} {}: {why}", row.workload, row.n, arm.name)),
            }
        }
    }
    for bar in &report.bars {
        let verdict = if bar.passes { "pass" } else { "FAIL" };
        lines.push(match bar.value {
            Some(value) => format!("{verdict}: {} is {value:.2}, bar {:.2}", bar.promise, bar.target),
            None => format!("not measured: {}, bar {:.2}", bar.promise, bar.target),
        });
    }
    lines
}

fn limits_line(limits: &Limits) -> String {
    let curve = limits.bandwidth.iter().map(|point| {
        let kib = point.working_set_bytes / 1024;
        let size = if kib >= 1024 { format!("{} MiB", kib / 1024) } else { format!("{kib} KiB") };
        format!("{size} {:.0}/{:.0}", point.read_gbps, point.triad_gbps)
    });
    format!(
        "FMA peak ({}): {:.0} GFLOP/s on 1 thread, {:.0} on {}. Read/triad GB/s by working set: {}",
        limits.lanes,
        limits.fma_gflops_1_thread,
        limits.fma_gflops_all_threads,
        limits.threads,
        curve.collect::<Vec<_>>().join(", ")
    )
}

/// Microseconds with three digits that count.
fn us(ns: f64) -> String {
    let us = ns / 1000.0;
    match us {
        us if us < 10.0 => format!("{us:.2}"),
        us if us < 100.0 => format!("{us:.1}"),
        us => format!("{us:.0}"),
    }
}
