//! What the terminal and the Markdown both list of a run: it enters, headed rows of words and sentences leave. Each of them
//! decides what a row looks like, never what it says.

use super::words::{change, count, percent, sure};
use super::{Bench, Change, ChangeKind, Gate, Group, Row};
use crate::lists::List;
use crate::scan::Device;
use crate::words::{rate, ratio, time};

/// Every measurement: a line for each case and size, columns for each device.
pub(super) fn measurements(bench: &Bench) -> List<String> {
    let cpu = bench.devices.iter().find(|device| device.is_cpu());
    let columns: Vec<Column<'_>> = bench.devices.iter().map(|device| Column::of(bench, device, cpu)).collect();
    let mut header = vec!["group".to_owned(), "case".to_owned()];
    header.extend(columns.iter().flat_map(Column::header));
    let mut rows = Vec::new();
    for group in &bench.groups {
        for first in firsts(group) {
            let of = |device: &Device| group.rows.iter().find(|row| row.device == device.id && is_same(row, first));
            let mut cells = vec![group.name.clone(), first.name()];
            cells.extend(columns.iter().flat_map(|column| column.cells(of(column.device), cpu.and_then(of))));
            rows.push(cells);
        }
    }
    let numbers = 2..header.len();
    List { header, rows, numbers }
}

/// The first row of each case and size.
fn firsts(group: &Group) -> Vec<&Row> {
    let mut firsts: Vec<&Row> = Vec::new();
    for row in &group.rows {
        if !firsts.iter().any(|first| is_same(first, row)) {
            firsts.push(row);
        }
    }
    firsts
}

fn is_same(a: &Row, b: &Row) -> bool {
    (&a.case, a.size, &a.unit) == (&b.case, b.size, &b.unit)
}

/// What is shown of one device.
struct Column<'b> {
    device: &'b Device,
    /// Is there a CPU to compare it with?
    beside_cpu: bool,
    /// Does it have rows that move bytes?
    moves: bool,
}

impl<'b> Column<'b> {
    fn of(bench: &'b Bench, device: &'b Device, cpu: Option<&Device>) -> Column<'b> {
        let mut rows = bench.groups.iter().flat_map(|group| &group.rows).filter(|row| row.device == device.id);
        Column { device, beside_cpu: cpu.is_some() && !device.is_cpu(), moves: rows.any(|row| row.bytes.is_some()) }
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec![self.device.label()];
        header.extend(self.beside_cpu.then(|| "speedup".to_owned()));
        header.extend(self.moves.then(|| "rate".to_owned()));
        header
    }

    fn cells(&self, row: Option<&Row>, cpu: Option<&Row>) -> Vec<String> {
        let mut cells = vec![row.map_or_else(|| "-".to_owned(), measured)];
        if self.beside_cpu {
            let times = row.zip(cpu).map(|(row, cpu)| [cpu, row].map(|row| row.stats.median_ns.max(1) as f64));
            cells.push(times.map_or_else(String::new, |[cpu, device]| ratio(cpu / device)));
        }
        if self.moves {
            cells.push(row.map_or_else(String::new, moved));
        }
        cells
    }
}

/// A median, how far it could be off, and marks.
pub(super) fn measured(row: &Row) -> String {
    let (low, high) = row.interval;
    let half = high.saturating_sub(low) as f64 / 2.0 / row.stats.median_ns.max(1) as f64;
    let marks = format!("{}{}", if row.is_noisy() { "~" } else { "" }, if row.loaded { "!" } else { "" });
    format!("{marks}{} ±{}", time(row.stats.median_ns), percent(half))
}

/// How fast bytes go, and what part of a copy in memory that is.
pub(super) fn moved(row: &Row) -> String {
    let Some(bytes) = row.bytes else { return String::new() };
    let rate = rate(bytes, row.stats.median_ns);
    match row.memcpy_ns {
        Some(ns) => format!("{rate}, {:.0} % of memcpy", 100.0 * ns as f64 / row.stats.median_ns.max(1) as f64),
        None => rate,
    }
}

/// What must not be overlooked, one sentence each.
pub(super) fn remarks(bench: &Bench) -> Vec<String> {
    let mut remarks: Vec<String> = bench.groups.iter().flat_map(troubles).collect();
    remarks
        .extend(bench.missing.iter().map(|missing| format!("{} was not measured: {}.", missing.device, missing.why)));
    remarks.extend(bench.devices.iter().filter_map(Device::caution));
    remarks.push(bench.null.as_ref().map_or_else(|| "The null test was not run.".to_owned(), super::Null::words));
    let rows = || bench.groups.iter().flat_map(|group| &group.rows);
    let noisy = rows().filter(|row| row.is_noisy()).count();
    if noisy > 0 {
        let what = count(noisy, "median");
        let limit = percent(super::NOISY);
        remarks.push(format!("~ marks {what} of which more than {limit} is uncertain: take them with care."));
    }
    let loaded = rows().filter(|row| row.loaded).count();
    if loaded > 0 {
        remarks
            .push(format!("! marks {} taken while the machine was busy with something else.", count(loaded, "median")));
    }
    if bench.how.interrupted {
        remarks.push("The run was interrupted: what is missing was not measured.".to_owned());
    }
    remarks
}

/// What went wrong in a group.
fn troubles(group: &Group) -> Vec<String> {
    let words = |trouble: &super::Trouble| {
        let device = trouble.device.as_deref().map_or_else(String::new, |device| format!(" ({device})"));
        let of_device = |row: &Row| trouble.device.as_ref().is_none_or(|device| *device == row.device);
        let rest = match group.rows.iter().any(of_device) {
            true => "what was measured counts",
            false => "nothing was measured",
        };
        let (name, kind, pass) = (&group.name, trouble.kind.word(), u64::from(trouble.pass) + 1);
        format!("{name} {kind}{device} in pass {pass}: {}; {rest}.", trouble.why)
    };
    group.troubles.iter().map(words).collect()
}

/// How it was measured, one sentence each.
pub(super) fn how(bench: &Bench) -> Vec<String> {
    let how = &bench.how;
    let passes = count(how.passes as usize, "pass").replace("passs", "passes");
    let mut first = vec![how.date.clone(), passes, format!("up to {} each", count(how.samples as usize, "sample"))];
    first.extend(how.quick.then(|| "quick".to_owned()));
    first.push(
        if how.in_process { "all in one process" } else { "each group and pass in a process of its own" }.to_owned(),
    );
    // A cast saturates: a time that makes no sense is shown as one.
    first.push(format!("took {}", time((how.seconds * 1e9) as u64)));
    first.retain(|part| !part.is_empty());
    let mut sentences = vec![format!("{}.", first.join(", "))];
    if !how.order.is_empty() {
        let from = if how.order_given { "as given".to_owned() } else { format!("made from seed {}", how.seed) };
        sentences.push(format!("Groups ran in this order, {from}: {}.", how.order.join(", ")));
    }
    sentences.extend(notes(bench));
    sentences
}

/// What else is to be known, and what was left out.
pub(super) fn notes(bench: &Bench) -> Vec<String> {
    let left_out = |group: &Group| {
        let words = |left: &super::LeftOut| {
            let device = left.device.as_ref().map_or_else(String::new, |device| format!(" on {device}"));
            format!("{}: {} was left out{device}: {}", group.name, left.name(), left.why)
        };
        group.left_out.iter().map(words).collect::<Vec<_>>()
    };
    bench.how.notes.iter().cloned().chain(bench.groups.iter().flat_map(left_out)).collect()
}

/// Changes of one kind that have a ratio.
pub(super) fn changed(gate: &Gate, kind: ChangeKind) -> List {
    let row = |change: &Change| {
        let r = change.ratio.unwrap_or_default();
        let [before, after] = [change.before_ns, change.after_ns].map(|ns| ns.map_or_else(String::new, time));
        let between = format!("{} .. {}", self::change(r.low), self::change(r.high));
        let place = [change.group.clone(), change.name(), change.device.clone()];
        [&place[..], &[before, after, r.words(), between, sure(r.sure), percent(change.needed)]].concat()
    };
    let header = vec!["group", "case", "device", "before", "now", kind.word(), "between", "sure", "counts from"];
    List { header, rows: gate.of_kind(kind).into_iter().map(row).collect(), numbers: 3..9 }
}

/// Rows that were measured before and could not be now.
pub(super) fn unmeasured(gate: &Gate) -> List {
    let row = |change: &Change| {
        let before = change.before_ns.map_or_else(String::new, time);
        vec![change.group.clone(), change.name(), change.device.clone(), before, change.why.clone().unwrap_or_default()]
    };
    let rows = gate.of_kind(ChangeKind::Unmeasured).into_iter().map(row).collect();
    List { header: vec!["group", "case", "device", "before", "not measured now"], rows, numbers: 3..4 }
}

/// The verdict, and how many rows there are of what needs no table.
pub(super) fn verdict(gate: &Gate) -> String {
    let of = |kind| gate.of_kind(kind).len();
    let limit = percent(gate.limit);
    let mut words = match (of(ChangeKind::Slower), of(ChangeKind::Unmeasured)) {
        (0, 0) => format!("Nothing is slower by more than {limit}."),
        (slower, 0) => format!("{} slower by more than {limit}.", is(slower)),
        (0, lost) => format!("Nothing is slower by more than {limit}, but {} not measured any more.", was(lost)),
        (slower, lost) => {
            format!("{} slower by more than {limit}, and {} not measured any more.", is(slower), was(lost))
        }
    };
    let rest = [ChangeKind::Faster, ChangeKind::Suspect, ChangeKind::Same, ChangeKind::New, ChangeKind::Gone];
    let rest = rest.map(|kind| (of(kind), kind)).into_iter().filter(|(many, _)| *many > 0);
    let rest: Vec<String> = rest.map(|(many, kind)| format!("{many} {}", kind.word())).collect();
    if !rest.is_empty() {
        words.push_str(&format!(" Other rows: {}.", rest.join(", ")));
    }
    // What was not told is no promise: a row that needs more than the limit may be slower by more than that.
    let blind: Vec<f64> = gate.changes.iter().filter(|c| c.ratio.is_some()).map(|c| c.needed).collect();
    let blind: Vec<f64> = blind.into_iter().filter(|needed| *needed > gate.limit).collect();
    if !blind.is_empty() {
        let [least, most] = [blind.iter().copied().fold(f64::MAX, f64::min), blind.iter().copied().fold(0.0, f64::max)];
        let from = match [percent(least), percent(most)] {
            [least, most] if least == most => least,
            [least, most] => format!("{least} to {most}"),
        };
        words.push_str(&format!(" Of {} only changes from {from} on can be told.", count(blind.len(), "row")));
    }
    words.push_str(&format!(" Compared by {}.", gate.level.words()));
    words
}

fn is(rows: usize) -> String {
    format!("{} {}", count(rows, "row"), if rows == 1 { "is" } else { "are" })
}

fn was(rows: usize) -> String {
    format!("{} {}", count(rows, "row"), if rows == 1 { "was" } else { "were" })
}
