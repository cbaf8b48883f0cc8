//! The rows of a run as CSV: it enters, one line for each row leaves, with what a spreadsheet needs to stand alone.

use super::Bench;
use crate::csv::{columns, field};

/// The columns, in their order.
const HEADER: &str = "group,case,size,unit,device,kind,name,median_ns,p10_ns,p90_ns,min_ns,max_ns,mad_ns,samples,wide,\
     low_ns,high_ns,passes,noisy,loaded,bytes,gb_per_s,memcpy_ns,beside\r\n";

/// Every row as CSV (RFC 4180), in nanoseconds, in the suite's order. What a row does not have is empty.
///
/// ```
/// use breakeven_report::bench::{Bench, Group, Row, csv};
/// let row = Row { case: "exp".into(), device: "cpu".into(), ..Row::default() };
/// let group = Group { name: "unary".into(), rows: vec![row], ..Group::default() };
/// assert!(csv(&Bench { groups: vec![group], ..Bench::default() }).contains("\r\nunary,exp,0,,cpu,"));
/// ```
pub fn csv(bench: &Bench) -> String {
    let mut out = HEADER.to_owned();
    for group in &bench.groups {
        for row in &group.rows {
            let device = bench.devices.iter().find(|device| device.id == row.device);
            let (kind, name) = device.map_or(("", ""), |device| (device.kind.as_str(), device.name.as_str()));
            let texts = [&group.name, &row.case, &row.size.to_string(), &row.unit, &row.device, kind, name].map(field);
            let (low, high) = row.interval;
            let own = format!("{low},{high},{},{},{}", row.passes.len(), row.is_noisy(), row.loaded);
            let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
            let rate = |bytes: u64| format!("{:.6}", bytes as f64 / row.stats.median_ns.max(1) as f64);
            let moved = [number(row.bytes), row.bytes.map_or_else(String::new, rate), number(row.memcpy_ns)].join(",");
            let beside = field(row.beside.as_deref().unwrap_or_default());
            out.push_str(&format!("{},{},{own},{moved},{beside}\r\n", texts.join(","), columns(&row.stats)));
        }
    }
    out
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
