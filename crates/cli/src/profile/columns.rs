//! Columns: rows of cells enter, aligned text leaves.

/// A table under construction.
pub struct Columns {
    rows: Vec<Vec<String>>,
    /// Which columns are numbers, and stand to the right.
    right: &'static [usize],
}

impl Columns {
    /// With this header.
    pub fn new(header: &[&str], right: &'static [usize]) -> Columns {
        Columns { rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()], right }
    }

    /// One more row.
    pub fn row(&mut self, cells: Vec<String>) {
        // A name must not end a row or move a terminal's cursor.
        let plain = |cell: String| cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.rows.push(cells.into_iter().map(plain).collect());
    }

    /// The text, without blanks at the ends of lines.
    pub fn text(&self) -> String {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..count).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| match self.right.contains(&column) {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                })
                .collect();
            format!("  {}", cells.join("  ")).trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let mut columns = Columns::new(&["time", "name"], &[0]);
        columns.row(vec!["1 ms".into(), "a\nb".into()]);
        columns.row(vec!["100 ms".into(), String::new()]);
        assert_eq!(columns.text(), "    time  name\n    1 ms  a b\n  100 ms\n");
    }
}
