//! An analysis for people: it enters, text leaves. Shares are of the time of all threads that are shown, and those of self
//! times add up to 100 %, sums of what is not shown included.

use breakeven::profile::{Analysis, Basis, Figure, FrameKind, Node, PlanRow, apportion};

use super::columns::Columns;
use crate::timing::duration;

/// How much is shown.
pub struct Shown {
    /// Entries of the top list and of the table of plans.
    pub top: usize,
    /// Levels of the tree below the threads.
    pub depth: Option<usize>,
}

/// All of it.
pub fn text(analysis: &Analysis, shown: &Shown) -> String {
    let parts = [head(analysis), tree(&analysis.tree, shown.depth), top(analysis, shown.top), stages(analysis)];
    let mut text = parts.join("\n");
    if analysis.threads.len() > 1 {
        text += &format!("\n{}", threads(analysis));
    }
    if !analysis.plans.is_empty() {
        text += &format!("\n{}", plans(&analysis.plans, shown.top));
    }
    text + "\n" + &conclusions(analysis)
}

fn head(analysis: &Analysis) -> String {
    let machine = &analysis.machine;
    let devices: String = machine.devices.iter().map(|(id, name)| format!(", {id} {name}")).collect();
    let mut of = counted(analysis.threads.len(), "thread");
    if analysis.threads.len() != 1 {
        of += &format!(", {} of thread time", duration(analysis.thread_ns));
    }
    format!(
        "{}: {} wall time, {of}\nmeasured on {}, {}{}\n\n{}\n",
        one_line(&analysis.title),
        duration(analysis.wall_ns),
        one_line(&machine.cpu),
        counted(machine.threads, "thread"),
        one_line(&devices),
        one_line(&analysis.headline)
    )
}

fn tree(nodes: &[Node], depth: Option<usize>) -> String {
    let deepest = depth.unwrap_or(usize::MAX);
    let indent = |depth: usize| "  ".repeat(depth);
    // Total, own time, count and name; percentages are of what is shown, once that is known.
    let mut rows: Vec<(String, u64, String, String)> = Vec::new();
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        let name = format!("{}{}{}", indent(node.depth), node.name, waits(node.kind));
        rows.push((duration(node.total_ns), node.self_ns, node.count.to_string(), name));
        at += 1;
        if node.depth == deepest {
            // Nodes below follow at once; what they took is shown in one line, so that nothing is missing from the sum.
            let below: Vec<&Node> = nodes[at..].iter().take_while(|below| below.depth > node.depth).collect();
            if !below.is_empty() {
                let name = format!("{}({} below)", indent(node.depth + 1), below.len());
                let own = below.iter().map(|node| node.self_ns).sum();
                rows.push((String::new(), own, String::new(), name));
            }
            at += below.len();
        }
    }
    let mut columns = Columns::new(&["total", "self", "self %", "count", "tree"], &[0, 1, 2, 3]);
    let own: Vec<u64> = rows.iter().map(|(_, own, ..)| *own).collect();
    for ((total, own, count, name), part) in rows.into_iter().zip(shares(&own)) {
        columns.row(vec![total, duration(own), part, count, name]);
    }
    columns.text()
}

fn top(analysis: &Analysis, most: usize) -> String {
    let mut columns = Columns::new(&["self", "self %", "count", "top by self time"], &[0, 1, 2]);
    let mut rows: Vec<(u64, String, String)> = Vec::new();
    for row in analysis.top.iter().take(most) {
        rows.push((row.self_ns, row.count.to_string(), format!("{}{}", row.path, waits(row.kind))));
    }
    let rest: Vec<u64> = analysis.top.iter().skip(most).map(|row| row.self_ns).collect();
    if !rest.is_empty() {
        rows.push((rest.iter().sum(), String::new(), format!("({} others)", rest.len())));
    }
    let own: Vec<u64> = rows.iter().map(|(own, ..)| *own).collect();
    for ((own, count, name), part) in rows.into_iter().zip(shares(&own)) {
        columns.row(vec![duration(own), part, count, name]);
    }
    columns.text()
}

fn stages(analysis: &Analysis) -> String {
    let mut columns = Columns::new(
        &["own", "own %", "waiting", "GPU-eligible", "count", "stage (without those within)"],
        &[0, 1, 2, 3, 4],
    );
    for stage in &analysis.stages {
        let name = if stage.is_stage { stage.path.clone() } else { "(in no stage)".to_owned() };
        let none = |ns: u64| if ns == 0 { "-".to_owned() } else { duration(ns) };
        columns.row(vec![
            duration(stage.own_ns),
            share(stage.thousandths),
            none(stage.device_wait_ns + stage.other_wait_ns),
            none(stage.eligible_ns),
            stage.count.to_string(),
            name,
        ]);
    }
    columns.text()
}

fn threads(analysis: &Analysis) -> String {
    let header = ["total", "work", "for devices", "idle", "other waiting", "thread"];
    let mut columns = Columns::new(&header, &[0, 1, 2, 3, 4]);
    for thread in &analysis.threads {
        let times = [thread.total_ns, thread.work_ns, thread.device_wait_ns, thread.idle_ns, thread.wait_ns];
        columns.row(times.into_iter().map(duration).chain([thread.name.clone()]).collect());
    }
    columns.text()
}

fn plans(rows: &[PlanRow], most: usize) -> String {
    let header = ["stage", "plan", "tasks", "batches", "time", "device", "median", "where that comes from"];
    let mut columns = Columns::new(&header, &[2, 3, 4, 6]);
    for row in rows.iter().take(most) {
        let mut names = vec![
            row.stage.clone(),
            format!("{}{}", row.title, if row.gpu_eligible { "" } else { " (not for GPUs)" }),
            row.tasks.to_string(),
            row.batches.to_string(),
            duration(row.total_ns),
        ];
        for figure in &row.figures {
            let median = figure.median_ns.map_or("-".to_owned(), duration);
            names.extend([figure.device.clone(), median, source(figure)]);
            columns.row(std::mem::replace(&mut names, vec![String::new(); 5]));
        }
        if let Some(only) = row.only_on.as_ref().filter(|_| row.gpu_eligible) {
            names.extend([String::new(), String::new(), format!("only {only} was run: see --measure-baseline")]);
            columns.row(names);
        }
    }
    let rest = rows.get(most..).unwrap_or_default();
    if !rest.is_empty() {
        let sum = |of: fn(&PlanRow) -> u64| rest.iter().map(of).fold(0, u64::saturating_add);
        let name = format!("({} others)", rest.len());
        let (batches, time) = (sum(|row| row.batches), sum(|row| row.total_ns));
        columns.row(vec![String::new(), name, String::new(), batches.to_string(), duration(time)]);
    }
    columns.text()
}

/// Where a figure comes from, in words that can't be mistaken for another.
fn source(figure: &Figure) -> String {
    let count =
        |what: &str| if figure.samples == 1 { format!("1 {what}") } else { format!("{} {what}s", figure.samples) };
    let text = match (figure.basis, figure.median_ns) {
        (Basis::Measured, _) => format!("measured ({})", count("batch").replace("batchs", "batches")),
        (Basis::Rerun, Some(_)) => format!("measured on {} (rerun, {})", figure.device, count("sample")),
        (Basis::Rerun, None) => "rerun without a result".to_owned(),
        (basis @ (Basis::Predicted | Basis::Calculated), _) => basis.name().to_owned(),
    };
    figure.note.as_ref().map_or(text.clone(), |note| format!("{text}: {note}"))
}

fn conclusions(analysis: &Analysis) -> String {
    let line =
        |advice: &breakeven::profile::Advice| format!("- {} [{}]\n", one_line(&advice.text), advice.basis.name());
    analysis.advice.iter().map(line).collect()
}

fn waits(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::DeviceWait => " (waiting for a device)",
        FrameKind::Idle => " (waiting, idle)",
        FrameKind::Wait => " (waiting)",
        _ => "",
    }
}

/// What each of these is of all of them, in percentages that add up. Sums of what is not shown are rounded once, as sums.
fn shares(parts: &[u64]) -> Vec<String> {
    apportion(parts, 1000).into_iter().map(share).collect()
}

/// Thousandths as a percentage.
fn share(thousandths: u64) -> String {
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// So many of something.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A text from a file: it must not end a line or move a terminal's cursor.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
