//! The report for people: a finished report enters, a terminal table or Markdown leaves.

use crate::grid::{Grid, time};
use crate::measure::{ArmReport, Outcome};
use crate::report::{Judged, Measured, Report, Verdict};
use crate::side_by_side::Paired;

/// The table and its summary for a terminal.
pub fn terminal(report: &Report) -> String {
    let mut text = format!("{}\n{}\n", report.machine, grid(report).terminal());
    text.extend(summary(report).iter().map(|line| format!("{line}\n")));
    text
}

/// The same as Markdown, for the documentation.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("{}\n\n{}\n", report.machine, grid(report).markdown());
    text.extend(summary(report).iter().map(|line| format!("- {line}\n")));
    text
}

/// One line of progress, while the run goes on.
pub fn progress(row: &Measured) -> String {
    let arms: Vec<String> = row.arms.iter().map(|arm| format!("{} {}", arm.name, median(arm))).collect();
    format!("{}, {}: {}", row.group, row.case, arms.join(" | "))
}

fn grid(report: &Report) -> Grid {
    let ratio = if report.rows.iter().any(|row| row.has_ours && row.base.as_deref() == Some(crate::OURS)) {
        "time / ours"
    } else {
        "time / fastest"
    };
    Grid {
        header: vec!["group", "case", "arm", "median", "P90", ratio, "commands/s", "bar", "verdict"],
        numeric: vec![3, 4, 5, 6],
        lines: report.rows.iter().flat_map(lines).collect(),
    }
}

/// One line an arm: the base first, then the others by their time.
fn lines(row: &Measured) -> Vec<Vec<String>> {
    let mut arms: Vec<&ArmReport> = row.arms.iter().collect();
    let key = |arm: &ArmReport| (row.base.as_ref() != Some(&arm.name), arm.median_ns().unwrap_or(f64::INFINITY));
    arms.sort_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
    let count = arms.len().max(row.bars.len());
    (0..count)
        .map(|at| {
            let (group, case) = if at == 0 { (row.group, row.case.as_str()) } else { ("", "") };
            let arm = arms.get(at).copied();
            let cell = |text: Option<String>| text.unwrap_or_default();
            let (bar, verdict) = row.bars.get(at).map_or_else(Default::default, bar_cells);
            vec![
                group.to_owned(),
                case.to_owned(),
                cell(arm.map(|arm| arm.name.clone())),
                cell(arm.map(median)),
                cell(arm.and_then(p90)),
                cell(arm.and_then(|arm| row.ratio(arm)).map(|ratio| format!("{ratio:.2}"))),
                cell(arm.and_then(|arm| per_second(row, arm))),
                bar,
                verdict,
            ]
        })
        .collect()
}

fn bar_cells(judged: &Judged) -> (String, String) {
    let verdict = match &judged.verdict {
        Verdict::Kept => "kept".to_owned(),
        Verdict::Missed(measured) => format!("MISSED: {measured}"),
        Verdict::Void(_) => "void".to_owned(),
    };
    (judged.bar.promise.to_owned(), verdict)
}

fn summary(report: &Report) -> Vec<String> {
    let mut lines = vec![
        "Medians of interleaved samples. A bar is judged by our arm; noise between equal arms is about 5 %, so \"as fast \
         as\" begins at 0.95 of the other's speed."
            .to_owned(),
    ];
    lines.push(
        "The plain arms are what each library's documentation shows. Awake means that the worker looks for more for 200 us \
         and whoever waits for an answer for 60 us before they sleep, as in ours; that after 2 us of that others may have \
         the core; and that the answer comes through a cell that is looked at without a lock."
            .to_owned(),
    );
    lines.extend(report.notes.iter().cloned());
    lines.extend(jobs(report));
    let (mut kept, mut missed, mut void) = (0, 0, 0);
    for row in &report.rows {
        for arm in &row.arms {
            match &arm.outcome {
                Outcome::Timed(_) => {}
                Outcome::Wrong(why) => lines.push(format!("wrong: {}, {} {}: {why}", row.group, row.case, arm.name)),
                Outcome::Failed(why) => lines.push(format!("failed: {}, {} {}: {why}", row.group, row.case, arm.name)),
            }
        }
        lines.extend(row.faster_than_ours());
        lines.extend(row.metrics.map(|paired| metrics(&paired)));
        for judged in &row.bars {
            match &judged.verdict {
                Verdict::Kept => kept += 1,
                Verdict::Missed(measured) => {
                    missed += 1;
                    lines.push(format!("MISSED: {}, {}: {}: {measured}", row.group, row.case, judged.bar.promise));
                }
                Verdict::Void(why) => {
                    void += 1;
                    lines.push(format!("void: {}, {}: {}: {why}", row.group, row.case, judged.bar.promise));
                }
            }
        }
    }
    lines.push(format!("{kept} bars kept, {missed} missed, {void} void"));
    lines
}

/// What the arms of each group do, once a text.
fn jobs(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in report.rows.iter().filter(|row| !row.job.is_empty()) {
        let line = format!("the job of {}: {}", row.group, row.job);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn metrics(paired: &Paired) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let (low, high) = (percent(paired.low), percent(paired.high));
    let middle = percent(paired.ratio);
    format!("our metrics cost {middle} of a round trip ({low} to {high}, 19 times of 20; {} rounds)", paired.pairs)
}

fn median(arm: &ArmReport) -> String {
    match &arm.outcome {
        Outcome::Timed(stats) => time(stats.median_ns),
        Outcome::Wrong(_) => "wrong".to_owned(),
        Outcome::Failed(_) => "failed".to_owned(),
    }
}

fn p90(arm: &ArmReport) -> Option<String> {
    match &arm.outcome {
        Outcome::Timed(stats) => Some(time(stats.p90_ns)),
        Outcome::Wrong(_) | Outcome::Failed(_) => None,
    }
}

/// Where an iteration is many commands.
fn per_second(row: &Measured, arm: &ArmReport) -> Option<String> {
    let each_ns = arm.median_ns().filter(|_| row.commands > 1)? / row.commands as f64;
    Some(format!("{:.0}k", 1e6 / each_ns))
}
