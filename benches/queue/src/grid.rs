//! Rows of text: cells enter, a terminal table or a Markdown one leaves.

use comfy_table::{CellAlignment, Table, presets};

/// A table of text.
pub struct Grid {
    /// The names of the columns.
    pub header: Vec<&'static str>,
    /// The columns of numbers, which stand on the right.
    pub numeric: Vec<usize>,
    /// The cells.
    pub lines: Vec<Vec<String>>,
}

impl Grid {
    /// For a terminal.
    pub fn terminal(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_header(self.header.clone());
        for line in &self.lines {
            table.add_row(line.clone());
        }
        for &numeric in &self.numeric {
            if let Some(column) = table.column_mut(numeric) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{table}\n")
    }

    /// For the documentation.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&self.header.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let rule = |column| if self.numeric.contains(&column) { "---:" } else { "---" };
        text += &format!("|{}|\n", (0..self.header.len()).map(rule).collect::<Vec<_>>().join("|"));
        text.extend(self.lines.iter().map(|cells| line(cells)));
        text
    }
}

/// A time with its unit and three digits that count.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns => (ns / 1e6, "ms"),
    };
    match value {
        value if value < 10.0 => format!("{value:.2} {unit}"),
        value if value < 100.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}
