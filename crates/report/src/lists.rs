//! What the terminal and the Markdown both list: a scan enters, headed rows of words leave. Each of them decides what a
//! row looks like, never what it says.

use crate::crossover::of_op;
use crate::curves::curves;
use crate::scan::Scan;
use crate::stats::Stats;
use crate::words::{ratio, sized, time};
use std::ops::Range;

/// Rows of words under a header, whose words may come from a file.
pub(crate) struct List<H = &'static str> {
    pub header: Vec<H>,
    pub rows: Vec<Vec<String>>,
    /// Which columns are numbers.
    pub numbers: Range<usize>,
}

/// What stands beside an op that only the CPU was measured at.
const ALONE: &str = "no other device was measured";

/// Who is faster from which size on: one row for each op and device.
pub(crate) fn crossovers(scan: &Scan) -> List {
    let header = vec!["operation", "device", "faster", "largest size", "CPU takes", "device takes", "speedup"];
    let mut rows = Vec::new();
    for op in curves(scan) {
        let found = of_op(&scan.devices, &op);
        if let ([], Some(&(size, stats))) = (&found[..], op.lines.iter().find_map(|line| line.points.last())) {
            let cells = [op.op, "", ALONE, &sized(size, op.unit), &median(stats.median_ns, stats.wide), "", ""];
            rows.push(cells.map(str::to_owned).to_vec());
        }
        for crossover in found {
            let mut cells = vec![crossover.op.clone(), scan.label(&crossover.device), crossover.words()];
            match &crossover.largest {
                Some(l) => cells.extend([
                    sized(l.size, &crossover.unit),
                    median(l.cpu_ns, l.cpu_wide),
                    median(l.device_ns, l.device_wide),
                    ratio(l.speedup()),
                ]),
                None => cells.extend([const { String::new() }; 4]),
            }
            rows.push(cells);
        }
    }
    List { header, rows, numbers: 4..7 }
}

/// The same operations, one by one and as one batch.
pub(crate) fn fused(scan: &Scan) -> List {
    let row = |f: &crate::scan::Fused| {
        let crossings = [pays_from(f.separate_crossover, &f.unit), pays_from(f.fused_crossover, &f.unit)];
        [&[f.what.clone(), scan.label(&f.device)][..], &crossings, &[f.words()]].concat()
    };
    let header = vec!["operations", "device", "pays from, one by one", "as one batch", "effect"];
    List { header, rows: scan.fused.iter().map(row).collect(), numbers: 2..4 }
}

/// What a call costs before it computes, and its parts.
pub(crate) fn overheads(scan: &Scan) -> List {
    let row = |o: &crate::scan::Overhead| {
        let parts = [o.fixed_ns, o.submit_ns, o.wait_ns(), o.upload_ns_per_mib, o.readback_ns_per_mib];
        let times = parts.map(|ns| if ns == 0 { "-".to_owned() } else { time(ns) });
        [&[scan.label(&o.device)][..], &times].concat()
    };
    let header = vec!["a call on", "fixed cost", "of it submit", "of it wait", "upload per MiB", "readback per MiB"];
    List { header, rows: scan.overheads.iter().map(row).collect(), numbers: 1..6 }
}

/// What must not be overlooked, one sentence each.
pub(crate) fn remarks(scan: &Scan) -> Vec<String> {
    let mut remarks: Vec<String> = scan.devices.iter().filter_map(|device| device.caution()).collect();
    for overhead in &scan.overheads {
        remarks.extend(overhead.notes.iter().map(|note| format!("{}: {note}", scan.label(&overhead.device))));
    }
    if scan.has_wide() {
        remarks.push("~ marks medians whose spread stayed wide: take them with care, or measure again.".to_owned());
    }
    if scan.how.interrupted {
        remarks.push("The scan was interrupted: what is missing was not measured.".to_owned());
    }
    remarks
}

/// A median, marked where its spread stayed too wide.
pub(crate) fn median(ns: u64, wide: bool) -> String {
    format!("{}{}", if wide { "~" } else { "" }, time(ns))
}

/// A crossover that may not be there.
pub(crate) fn pays_from(at: Option<u64>, unit: &str) -> String {
    at.map_or_else(|| "never".to_owned(), |at| sized(crate::words::rounded(at), unit))
}

/// One of the times beside a median; what is not known of it is said, never shown as a number.
pub(crate) fn known(stats: &Stats, ns: u64) -> String {
    stats.known(ns).map_or_else(|| UNKNOWN.to_owned(), time)
}

/// How many runs were timed, where that is known.
pub(crate) fn samples(stats: &Stats) -> String {
    if stats.is_partial() { UNKNOWN.to_owned() } else { stats.samples.to_string() }
}

/// What stands for a number that a file did not hold.
pub(crate) const UNKNOWN: &str = "unknown";
