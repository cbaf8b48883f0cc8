//! The report of mixed batches for people: a finished report enters, a terminal table or Markdown leaves.

use super::verdict::{Mean, Report, Row};
use super::ways::{ONE, SEPARATE};
use crate::grid::{Grid, time};
use crate::measure::Outcome;

/// The table and its summary for a terminal.
pub fn terminal(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine);
    text.extend(report.places.iter().map(|place| format!("{place}\n")));
    text += &grid(report).terminal();
    text.extend(summary(report).iter().map(|line| format!("{line}\n")));
    text
}

/// The same as Markdown, for the documentation.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("{}\n\n", report.machine);
    text.extend(report.places.iter().map(|place| format!("- {place}\n")));
    text += &format!("\n{}\n", grid(report).markdown());
    text.extend(summary(report).iter().map(|line| format!("- {line}\n")));
    text
}

/// One line of progress, while the run goes on.
pub fn progress(row: &Row) -> String {
    format!("{}, {}, {}: {} | {}", row.place, row.op, row.shape, cell(row, SEPARATE), cell(row, ONE))
}

fn grid(report: &Report) -> Grid {
    let mut lines = Vec::new();
    let mut before = None;
    for row in &report.rows {
        let key = (row.place.as_str(), row.op);
        if let Some(before) = before.filter(|&before| before != key) {
            lines.extend(mean_line(report, before));
        }
        let (place, op) = if before == Some(key) { ("", "") } else { key };
        before = Some(key);
        lines.push(vec![
            place.to_owned(),
            op.to_owned(),
            row.shape.to_owned(),
            cell(row, SEPARATE),
            cell(row, ONE),
            cell(row, "one-into"),
            ratio(row.ratio),
            ratio(row.fastest_ratio),
            row.bar.map_or(String::new(), |bar| format!(">= {bar:.2}")),
            verdict(row.passes()).to_owned(),
        ]);
    }
    lines.extend(before.and_then(|before| mean_line(report, before)));
    let header = vec![
        "device",
        "op",
        "tasks",
        "separate",
        "one batch",
        "one, into",
        "separate / one",
        "of the fastest",
        "bar",
        "verdict",
    ];
    Grid { header, numeric: vec![3, 4, 5, 6, 7], lines }
}

fn mean_line(report: &Report, (place, op): (&str, &str)) -> Option<Vec<String>> {
    let mean: &Mean = report.means.iter().find(|mean| mean.place == place && mean.op == op)?;
    let mut line = vec![String::new(); 10];
    line[2] = "geometric mean".to_owned();
    line[6] = ratio(mean.ratio);
    line[8] = mean.bar.map_or(String::new(), |bar| format!(">= {bar:.2}"));
    line[9] = verdict(mean.passes()).to_owned();
    Some(line)
}

fn cell(row: &Row, name: &str) -> String {
    match row.arms.iter().find(|arm| arm.name == name).map(|arm| &arm.outcome) {
        Some(Outcome::Timed(stats)) => time(stats.median_ns),
        Some(Outcome::Wrong(_)) => "wrong".to_owned(),
        Some(Outcome::Failed(_)) => "failed".to_owned(),
        None => "-".to_owned(),
    }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn verdict(passes: Option<bool>) -> &'static str {
    match passes {
        Some(true) => "kept",
        Some(false) => "MISSED",
        None => "",
    }
}

fn summary(report: &Report) -> Vec<String> {
    let mut lines = vec![
        "Medians of interleaved samples of a whole batch, from host memory to host memory; the simulated device tells \
         virtual times. Bars are for adapters (3 % noise taken off) and for the simulated device; the CPU has none."
            .to_owned(),
    ];
    lines.extend(report.notes.iter().cloned());
    for row in &report.rows {
        let name = format!("{}, {}, {}", row.place, row.op, row.shape);
        lines.extend(row.failure.iter().map(|why| format!("failed: {name}: {why}")));
        for arm in &row.arms {
            match &arm.outcome {
                Outcome::Timed(_) => {}
                Outcome::Wrong(why) => lines.push(format!("wrong: {name}, {}: {why}", arm.name)),
                Outcome::Failed(why) => lines.push(format!("failed: {name}, {}: {why}", arm.name)),
            }
        }
    }
    let verdicts = report.rows.iter().filter_map(Row::passes).chain(report.means.iter().filter_map(Mean::passes));
    let (kept, missed): (Vec<bool>, Vec<bool>) = verdicts.partition(|&passes| passes);
    lines.push(format!("{} bars kept, {} missed", kept.len(), missed.len()));
    lines
}
