//! A scan as `summary.md`: it enters, Markdown leaves that reads well as plain text and as a page.

use crate::lists::{List, crossovers, fused, overheads, remarks};
use crate::scan::Scan;
use crate::transfers::{GUIDE, by_size};
use crate::words::plain;

/// The summary of a scan as Markdown.
///
/// ```
/// use breakeven_report::{Device, Scan, markdown};
/// let scan = Scan { devices: vec![Device::cpu("Xeon")], ..Scan::default() };
/// assert!(markdown(&scan).starts_with("# Where work pays on this machine\n"));
/// ```
pub fn markdown(scan: &Scan) -> String {
    let mut out = format!("# Where work pays on this machine\n\n{}\n\n", text(&scan.machine.summary()));
    out.push_str(&format!("Breakeven {}, {}.\n", text(&scan.machine.breakeven), text(&scan.how.summary())));
    let remarks: Vec<String> = remarks(scan).iter().map(|remark| format!("- {}\n", text(remark))).collect();
    if !remarks.is_empty() {
        out.push_str(&format!("\n{}", remarks.concat()));
    }
    let found = crossovers(scan);
    out.push_str("\n## From which size on a device is faster than the CPU\n\n");
    if found.rows.is_empty() {
        out.push_str("Nothing was measured.\n");
    } else {
        table(&mut out, &found);
        out.push_str("\nTimes are medians from the call to its results on the host.\n");
    }
    section(&mut out, "What fusing changes", &fused(scan));
    section(&mut out, "What a call costs before it computes", &overheads(scan));
    let transfers = by_size(scan);
    section(&mut out, "How fast bytes go to a device and back", &transfers);
    if !transfers.rows.is_empty() {
        out.push_str(&format!("\n{}\n", text(GUIDE)));
    }
    section(&mut out, "Devices", &devices(scan));
    if !scan.how.notes.is_empty() {
        let notes: Vec<String> = scan.how.notes.iter().map(|note| format!("- {}\n", text(note))).collect();
        out.push_str(&format!("\n## How it was measured\n\n{}", notes.concat()));
    }
    out
}

/// What was measured on.
fn devices(scan: &Scan) -> List {
    let row = |d: &crate::scan::Device| [&d.id, &d.name, &d.kind, &d.backend, &d.driver].map(String::clone).to_vec();
    let header = vec!["device", "name", "kind", "backend", "driver"];
    List { header, rows: scan.devices.iter().map(row).collect(), numbers: 0..0 }
}

/// A heading and its table, unless that is empty.
pub(crate) fn section<H: AsRef<str>>(out: &mut String, heading: &str, list: &List<H>) {
    if !list.rows.is_empty() {
        out.push_str(&format!("\n## {heading}\n\n"));
        table(out, list);
    }
}

/// A table, numbers to the right.
pub(crate) fn table<H: AsRef<str>>(out: &mut String, list: &List<H>) {
    let rule: Vec<_> = (0..list.header.len()).map(|i| if list.numbers.contains(&i) { "--:" } else { "---" }).collect();
    let header: Vec<String> = list.header.iter().map(|head| text(head.as_ref())).collect();
    out.push_str(&format!("| {} |\n|{}|\n", header.join(" | "), rule.join("|")));
    for row in &list.rows {
        let cells: Vec<String> = row.iter().map(|cell| text(cell)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

/// Text from a scan that Markdown shows as it is: on one line, without tags, links or ends of cells.
pub(crate) fn text(from: &str) -> String {
    let mut out = String::with_capacity(from.len());
    for c in plain(from).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
