//! The measurements as CSV: a scan enters, one line for each row or transfer leaves, with what a spreadsheet needs to
//! stand alone.

use crate::scan::Scan;
use crate::stats::Stats;

/// The columns, in their order.
const HEADER: &str =
    "op,class,size,unit,device,kind,name,median_ns,p10_ns,p90_ns,min_ns,max_ns,mad_ns,samples,wide\r\n";

/// The columns of transfers, in their order.
const TRANSFERS_HEADER: &str = "device,kind,name,direction,way,bytes,gb_per_s,median_ns,p10_ns,p90_ns,min_ns,max_ns,\
     mad_ns,samples,wide\r\n";

/// Every measurement as CSV (RFC 4180), in nanoseconds, in the scan's order.
///
/// ```
/// use breakeven_report::{Row, Scan, csv};
/// let scan = Scan { rows: vec![Row { op: "exp".into(), device: "cpu".into(), ..Row::default() }], ..Scan::default() };
/// assert!(csv(&scan).lines().nth(1).is_some_and(|line| line.starts_with("exp,")));
/// ```
pub fn csv(scan: &Scan) -> String {
    let mut out = HEADER.to_owned();
    for row in &scan.rows {
        let (kind, name) = scan.device(&row.device).map_or(("", ""), |d| (d.kind.as_str(), d.name.as_str()));
        let texts = [&row.op, &row.class, &row.size.to_string(), &row.unit, &row.device, kind, name].map(field);
        out.push_str(&format!("{},{}\r\n", texts.join(","), columns(&row.stats)));
    }
    out
}

/// Every transfer as CSV (RFC 4180), in the scan's order. What a device can't do has no line.
///
/// ```
/// use breakeven_report::{Scan, Transfer, transfers_csv};
/// let transfer = Transfer { device: "gpu:0".into(), direction: "upload".into(), ..Transfer::default() };
/// let scan = Scan { transfers: vec![transfer], ..Scan::default() };
/// assert!(transfers_csv(&scan).lines().nth(1).is_some_and(|line| line.starts_with("gpu:0,,,upload,")));
/// ```
pub fn transfers_csv(scan: &Scan) -> String {
    let mut out = TRANSFERS_HEADER.to_owned();
    for transfer in &scan.transfers {
        let (kind, name) = scan.device(&transfer.device).map_or(("", ""), |d| (d.kind.as_str(), d.name.as_str()));
        let texts = [&transfer.device, kind, name, &transfer.direction, &transfer.way].map(field);
        let gb_per_s = transfer.bytes as f64 / transfer.stats.median_ns.max(1) as f64;
        let line = [texts.join(","), format!("{},{gb_per_s:.6}", transfer.bytes), columns(&transfer.stats)];
        out.push_str(&format!("{}\r\n", line.join(",")));
    }
    out
}

/// What the samples say, in the order of the headers.
pub(crate) fn columns(s: &Stats) -> String {
    let numbers = [s.median_ns, s.p10_ns, s.p90_ns, s.min_ns, s.max_ns, s.mad_ns, u64::from(s.samples)];
    // What is not known is an empty field.
    let numbers = numbers.map(|number| s.known(number).map_or_else(String::new, |number| number.to_string()));
    format!("{},{}", numbers.join(","), s.wide)
}

/// A field, in quotes where its text could end it.
pub(crate) fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
