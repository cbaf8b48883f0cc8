//! The report for people: a finished report enters, a terminal table or Markdown leaves.

use comfy_table::{CellAlignment, Table, presets};

use crate::OURS;
use crate::measure::{ArmReport, Outcome};
use crate::report::{Report, Row, Verdict};

const HEADER: [&str; 8] = ["workload", "n", "arm", "median us", "+- us", "time / ours", "bar", "verdict"];

/// The table and its summary for a terminal.
pub fn terminal(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(HEADER);
    for row in &report.rows {
        for line in lines(row) {
            table.add_row(line);
        }
    }
    for numeric in [1, 3, 4, 5] {
        if let Some(column) = table.column_mut(numeric) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!("{}\n{}\n{table}\n\n", report.machine, report.adapter);
    for line in summary(report) {
        text += &format!("{line}\n");
    }
    text
}

/// The same as Markdown, for the documentation.
pub fn markdown(report: &Report) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("{}\n\n{}\n\n", report.machine, report.adapter);
    text += &line(&HEADER.map(str::to_owned));
    text += "|---|---:|---|---:|---:|---:|---|---|\n";
    for row in &report.rows {
        for cells in lines(row) {
            text += &line(&cells);
        }
    }
    text.push('\n');
    for entry in summary(report) {
        text += &format!("- {entry}\n");
    }
    text
}

/// One line of progress, while the run goes on.
pub fn progress(row: &Row) -> String {
    let arms: Vec<String> = row.arms.iter().map(|arm| format!("{} {}", arm.name, time(arm))).collect();
    format!("{:<14} {:>8}  {}", row.workload, row.n, arms.join(" | "))
}

/// One line an arm: ours first, then the others by their time.
fn lines(row: &Row) -> Vec<Vec<String>> {
    let mut arms: Vec<&ArmReport> = row.arms.iter().collect();
    arms.sort_by(|a, b| {
        let key = |arm: &ArmReport| (arm.library != OURS, arm.median_ns().unwrap_or(f64::INFINITY));
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let mut lines = Vec::new();
    for (i, arm) in arms.into_iter().enumerate() {
        let judged = row.bars.iter().find(|judged| judged.arm.as_deref() == Some(arm.name.as_str()));
        let (bar, verdict) = match judged.map(|judged| (judged.bar.promise, &judged.verdict)) {
            Some((promise, Verdict::Kept)) => (promise, "kept"),
            Some((promise, Verdict::Missed)) => (promise, "MISSED"),
            Some((promise, Verdict::Void(_))) => (promise, "void"),
            None => ("", ""),
        };
        let spread = match &arm.outcome {
            Outcome::Timed(stats) => us(stats.mad_ns),
            Outcome::Wrong(_) | Outcome::Failed(_) => String::new(),
        };
        let (workload, n) = if i == 0 { (row.workload, row.n.to_string()) } else { ("", String::new()) };
        let ratio = row.ratio(arm).map_or(String::new(), |ratio| format!("{ratio:.2}"));
        lines.push(vec![
            workload.to_owned(),
            n,
            arm.name.clone(),
            time(arm),
            spread,
            ratio,
            bar.to_owned(),
            verdict.to_owned(),
        ]);
    }
    lines
}

fn summary(report: &Report) -> Vec<String> {
    let mut lines = vec![
        "Medians of interleaved samples, +- their median deviation. A bar is judged by the fastest right arm of its \
         library; noise between equal arms is about 5 %, so \"at least equal\" begins at 0.95."
            .to_owned(),
    ];
    lines.extend(report.notes.iter().cloned());
    let (mut kept, mut missed) = (0, 0);
    for row in &report.rows {
        for arm in &row.arms {
            match &arm.outcome {
                Outcome::Timed(_) => {}
                Outcome::Wrong(why) => lines.push(format!("wrong: {} {} {}: {why}", row.workload, row.n, arm.name)),
                Outcome::Failed(why) => lines.push(format!("failed: {} {} {}: {why}", row.workload, row.n, arm.name)),
            }
        }
        for judged in &row.bars {
            match &judged.verdict {
                Verdict::Kept => kept += 1,
                Verdict::Missed => {
                    missed += 1;
                    let ratio = judged.ratio.unwrap_or_default();
                    let (promise, least) = (judged.bar.promise, judged.bar.least_ratio);
                    lines
                        .push(format!("MISSED: {} {}: {promise}: {ratio:.2}, must be {least:.2}", row.workload, row.n));
                }
                Verdict::Void(why) => {
                    lines.push(format!("void: {} {}: {}: {why}", row.workload, row.n, judged.bar.promise));
                }
            }
        }
    }
    lines.push(format!("{kept} bars kept, {missed} missed"));
    lines
}

fn time(arm: &ArmReport) -> String {
    match &arm.outcome {
        Outcome::Timed(stats) => us(stats.median_ns),
        Outcome::Wrong(_) => "wrong".to_owned(),
        Outcome::Failed(_) => "failed".to_owned(),
    }
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
