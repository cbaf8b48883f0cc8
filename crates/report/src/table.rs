//! A scan for the terminal: it enters, text leaves that fits 120 columns with names of usual length.

use crate::lists::{List, crossovers, fused, overheads, remarks};
use crate::scan::Scan;
use crate::transfers::best;
use crate::words::plain;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// One line under the header, nothing else: columns are told apart by their alignment.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Who is faster from which size on, what a call costs and how fast bytes go, as aligned columns.
///
/// ```
/// use breakeven_report::{Scan, table};
/// assert_eq!(table(&Scan::default()), "nothing was measured\n");
/// ```
pub fn table(scan: &Scan) -> String {
    let mut found = crossovers(scan);
    name_once(&mut found.rows);
    let mut parts = Vec::new();
    if found.rows.is_empty() {
        parts.push("nothing was measured\n".to_owned());
    }
    let mut transfers = best(scan);
    name_once(&mut transfers.rows);
    let lists = [found, fused(scan), overheads(scan), transfers];
    parts.extend(lists.iter().filter(|list| !list.rows.is_empty()).map(aligned));
    let remarks: String = remarks(scan).iter().map(|remark| plain(remark) + "\n").collect();
    parts.extend(Some(remarks).filter(|remarks| !remarks.is_empty()));
    parts.join("\n")
}

/// The name of an op or a device stands on the first of its lines only. They end where the first of them comes again.
pub(crate) fn name_once(rows: &mut [Vec<String>]) {
    let mut first: Option<(String, String)> = None;
    for row in rows {
        match &first {
            Some((op, device)) if *op == row[0] && *device != row[1] => row[0].clear(),
            _ => first = Some((row[0].clone(), row[1].clone())),
        }
    }
}

/// Columns, numbers to the right.
pub(crate) fn aligned<H: AsRef<str>>(list: &List<H>) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(list.header.iter().map(|head| plain(head.as_ref())));
    table.add_rows(list.rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect::<Vec<_>>()));
    for (number, column) in table.column_iter_mut().enumerate() {
        let right = list.numbers.contains(&number);
        column.set_padding((u16::from(number > 0), 1));
        column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
    }
    // Trailing blanks would wrap on narrow terminals.
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
