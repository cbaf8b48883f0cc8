//! A run of the suite as Markdown: it enters, and what changed since a baseline if there is one; a page that reads well as
//! plain text leaves, the numbers that matter first.

use super::lists::{changed, how, measured, measurements, moved, remarks, unmeasured, verdict};
use super::{Bench, ChangeKind, Gate, Row};
use crate::lists::List;
use crate::markdown::{section, text};
use crate::scan::Device;
use crate::words::ratio;

/// The page.
///
/// ```
/// use breakeven_report::bench::{Bench, markdown};
/// assert!(markdown(&Bench::default(), None).starts_with("# What this machine does\n"));
/// ```
pub fn markdown(bench: &Bench, gate: Option<&Gate>) -> String {
    let mut out = format!("# What this machine does\n\n{}\n\n", text(&bench.machine.summary()));
    bullets(&mut out, &summary(bench, gate));
    if let Some(gate) = gate {
        section(&mut out, "Slower than the baseline", &changed(gate, ChangeKind::Slower));
        section(&mut out, "Not measured any more", &unmeasured(gate));
        section(&mut out, "Faster than the baseline", &changed(gate, ChangeKind::Faster));
        section(&mut out, "Not sure", &changed(gate, ChangeKind::Suspect));
    }
    let list = measurements(bench);
    section(&mut out, "Measurements", &list);
    if list.rows.is_empty() {
        out.push_str("\n## Measurements\n\nNothing was measured.\n");
    } else {
        out.push_str("\nMedians of all samples, and half of the interval in which the median lies 19 times of 20.\n");
    }
    section(&mut out, "Devices", &devices(bench));
    out.push_str("\n## How it was measured\n\n");
    bullets(&mut out, &how(bench));
    out.push_str(&format!("- Breakeven {}\n", text(&bench.machine.breakeven)));
    out
}

fn bullets(out: &mut String, of: &[String]) {
    out.extend(of.iter().map(|sentence| format!("- {}\n", text(sentence))));
}

/// The numbers that matter, and what must not be overlooked.
fn summary(bench: &Bench, gate: Option<&Gate>) -> Vec<String> {
    let mut summary: Vec<String> = gate.map(verdict).into_iter().collect();
    summary.extend(bench.devices.iter().filter(|device| !device.is_cpu()).filter_map(|device| best(bench, device)));
    let rows = || bench.groups.iter().flat_map(|group| &group.rows);
    let speed = |row: &Row| row.bytes.unwrap_or(0) as f64 / row.stats.median_ns.max(1) as f64;
    let is_transfer = |row: &&Row| row.bytes.is_some() && row.case != super::gate::MEMCPY;
    let fastest = rows().filter(is_transfer).max_by(|a, b| speed(a).total_cmp(&speed(b)));
    summary.extend(fastest.map(|row| format!("Bytes go fastest in {} on {}: {}.", row.name(), row.device, moved(row))));
    summary.extend(remarks(bench));
    summary
}

/// Where a device is furthest ahead of the CPU, and at how many cases it is.
fn best(bench: &Bench, device: &Device) -> Option<String> {
    let cpu = bench.devices.iter().find(|device| device.is_cpu())?;
    let of_group = |group: &'_ super::Group| -> Vec<(f64, String)> {
        let rows = group.rows.iter().filter(|row| row.device == device.id);
        let beside = |row: &Row| {
            let same = |other: &&Row| {
                (&other.device, &other.case, other.size, &other.unit) == (&cpu.id, &row.case, row.size, &row.unit)
            };
            let cpu = group.rows.iter().find(same)?;
            let speedup = cpu.stats.median_ns.max(1) as f64 / row.stats.median_ns.max(1) as f64;
            Some((speedup, format!("{}: {} against {}", row.name(), measured(row), measured(cpu))))
        };
        rows.filter_map(beside).collect()
    };
    let all: Vec<(f64, String)> = bench.groups.iter().flat_map(of_group).collect();
    let faster = all.iter().filter(|(speedup, _)| *speedup > 1.0).count();
    let (speedup, what) = all.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (label, all) = (device.label(), all.len());
    Some(format!("{label} is faster than the CPU in {faster} of {all} cases, at best {} ({what}).", ratio(*speedup)))
}

/// What was measured on, and what was not there.
fn devices(bench: &Bench) -> List {
    let row = |d: &Device| [&d.id, &d.name, &d.kind, &d.backend, &d.driver].map(String::clone).to_vec();
    let mut rows: Vec<Vec<String>> = bench.devices.iter().map(row).collect();
    let none = |missing: &super::Missing| [&missing.device, "missing", "", "", ""].map(str::to_owned).to_vec();
    rows.extend(bench.missing.iter().map(none));
    List { header: vec!["device", "name", "kind", "backend", "driver"], rows, numbers: 0..0 }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
