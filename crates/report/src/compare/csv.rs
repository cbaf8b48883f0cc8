//! All sides as one CSV: a comparison enters, one line for each label, device, op and size leaves.

use super::Comparison;
use crate::csv::{columns, field};

/// The columns, in their order.
const HEADER: &str = "label,op,class,size,unit,device,kind,backend,name,median_ns,p10_ns,p90_ns,min_ns,max_ns,mad_ns,\
     samples,wide,interval_low_ns,interval_high_ns\r\n";

/// Every measurement of every side as CSV (RFC 4180), in nanoseconds. What a file did not hold is an empty field.
///
/// ```
/// use breakeven_report::{Row, Scan, Stats, compare::{Comparison, csv}};
/// let row = Row { op: "exp".into(), size: 10, device: "cpu".into(), stats: Stats::partial(850), ..Row::default() };
/// let scan = Scan { rows: vec![row], ..Scan::default() };
/// let comparison = Comparison::of(vec![("a".into(), scan.clone()), ("b".into(), scan)])?;
/// assert_eq!(csv(&comparison).lines().nth(1), Some("a,exp,,10,,cpu,,,,850,,,,,,,false,,"));
/// # Ok::<(), breakeven_report::compare::CompareError>(())
/// ```
pub fn csv(comparison: &Comparison) -> String {
    let mut out = HEADER.to_owned();
    for side in &comparison.sides {
        for row in &side.scan.rows {
            let device = side.scan.device(&row.device);
            let (kind, backend, name) = device.map_or(("", "", ""), |d| (&*d.kind, &*d.backend, &*d.name));
            let size = row.size.to_string();
            let texts =
                [&*side.label, &row.op, &row.class, &size, &row.unit, &row.device, kind, backend, name].map(field);
            let (low, high) =
                row.stats.interval_ns.map_or_else(Default::default, |(l, h)| (l.to_string(), h.to_string()));
            out.push_str(&format!("{},{},{low},{high}\r\n", texts.join(","), columns(&row.stats)));
        }
    }
    out
}
