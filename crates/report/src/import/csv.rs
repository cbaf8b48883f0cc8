//! The CSV of a plain size scan: its bytes enter, a [`Scan`] leaves.
//!
//! Columns are `size`, and times of `cpu` and `gpu`: `cpu_us` or `cpu_median_us`, and `cpu_p90_us` (or `_ns`, `_ms`,
//! `_s`); in any order, with `op` and `unit` where a file has several. Comment lines may tell more: `# op: add`,
//! `# unit: n x n`, `# cpu: NAME`, `# gpu: NAME`, `# backend: NAME`, `# date: DAY`, and what somebody claims:
//! `# crossover add gpu:0 100000`.

use super::{IMPORTED, whole_ns};
use crate::claim::{Claim, size_or_never};
use crate::scan::{Device, Row, Scan};
use crate::stats::Stats;
use crate::words::parse_size;
use std::collections::HashMap;

/// Why a text is no size scan. Lines and columns count from 1.
///
/// ```
/// use breakeven_report::import::csv;
/// let error = csv(b"size,cpu_us\n1000,fast\n", "old").unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 2 (`cpu_us`): `fast` is no time: expected a number above 0");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// Bytes that are no text.
    #[error("byte {byte} is no UTF-8: save it as CSV in UTF-8")]
    Encoding {
        /// Where, from 0.
        byte: usize,
    },
    /// Columns that a size scan must have are not there.
    #[error("line {line} has no column {missing}: expected a header such as `size,cpu_us,gpu_us`{hint}")]
    Header {
        /// Which line.
        line: usize,
        /// What is missing.
        missing: &'static str,
        /// What to do about it, if it looks like another file.
        hint: &'static str,
    },
    /// Two columns say the same.
    #[error("line {line} has two columns for {what}: remove one of them")]
    TwoColumns {
        /// Which line.
        line: usize,
        /// What they are for.
        what: String,
    },
    /// A cell that holds something else.
    #[error("line {line}, column {column} (`{name}`): `{text}` {why}")]
    Cell {
        /// Which line.
        line: usize,
        /// Which column.
        column: usize,
        /// The column's name.
        name: String,
        /// What it holds.
        text: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A size twice.
    #[error("line {line} has the same operation and size as line {first}: keep one of them, or name an `op` in each")]
    Twice {
        /// Which line.
        line: usize,
        /// The one before.
        first: usize,
    },
    /// Nothing was measured.
    #[error("it has no times: expected lines such as `1000,12.5,90.1` below the header")]
    Empty,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Size,
    Op,
    Unit,
    /// A time of a device, in units of so many nanoseconds.
    Time(Place, Part, u32),
    Ignored,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Cpu,
    Gpu,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// `cpu_us`: whatever the file means by it.
    Plain,
    Median,
    P90,
}

/// The header of a file.
struct Header {
    separator: char,
    columns: Vec<(String, Column)>,
}

/// Reads the CSV of a size scan. `name` is what its op is called where the file does not say.
///
/// ```
/// use breakeven_report::import::csv;
/// let scan = csv(b"Size; cpu_us; gpu_us\r\n1000; 2,5; 90\r\n1000000; 800; 120\r\n", "add")?;
/// assert_eq!(scan.crossovers()[0].words(), "from 92 k elements on");
/// assert!(scan.rows[0].stats.band().is_none(), "nobody knows how far the runs spread");
/// # Ok::<(), breakeven_report::import::CsvError>(())
/// ```
pub fn csv(bytes: &[u8], name: &str) -> Result<Scan, CsvError> {
    let text = std::str::from_utf8(bytes).map_err(|error| CsvError::Encoding { byte: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut told = Told { op: name.to_owned(), unit: "elements".to_owned(), ..Told::default() };
    let mut header: Option<Header> = None;
    let mut rows: Vec<(Row, Place)> = Vec::new();
    let mut seen: HashMap<(String, String, u64), usize> = HashMap::new();
    for (line, content) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
        if let Some(comment) = content.strip_prefix('#') {
            told.comment(comment.trim(), line);
        } else if content.trim_matches([',', ';', '\t', ' ']).is_empty() {
            continue;
        } else if let Some(header) = &header {
            let of_line = row(header, content, line, &told)?;
            let key = (of_line.op.clone(), of_line.unit.clone(), of_line.size);
            if let Some(&first) = seen.get(&key) {
                return Err(CsvError::Twice { line, first });
            }
            seen.insert(key, line);
            rows.extend(of_line.rows());
        } else {
            header = Some(read_header(content, line)?);
        }
    }
    if rows.is_empty() {
        let missing = "`size`";
        return Err(if header.is_some() { CsvError::Empty } else { CsvError::Header { line: 1, missing, hint: "" } });
    }
    Ok(told.scan(rows, &header.map_or_else(Vec::new, |header| header.columns)))
}

/// What comments tell.
#[derive(Default)]
struct Told {
    op: String,
    unit: String,
    cpu: String,
    gpu: String,
    backend: String,
    date: String,
    claims: Vec<Claim>,
    notes: Vec<String>,
}

impl Told {
    /// One comment, without its `#`.
    fn comment(&mut self, comment: &str, line: usize) {
        if comment.get(..9).is_some_and(|word| word.eq_ignore_ascii_case("crossover")) {
            self.claim(comment[9..].trim_start_matches(':'), line);
            return;
        }
        let Some((key, value)) = comment.split_once(':') else { return };
        let place = match key.trim().to_lowercase().as_str() {
            "op" | "operation" => &mut self.op,
            "unit" => &mut self.unit,
            "cpu" => &mut self.cpu,
            "gpu" => &mut self.gpu,
            "backend" => &mut self.backend,
            "date" => &mut self.date,
            _ => return,
        };
        if !value.trim().is_empty() {
            *place = value.trim().to_owned();
        }
    }

    /// `add gpu:0 100000`, or less of it.
    fn claim(&mut self, words: &str, line: usize) {
        let mut words: Vec<&str> = words.split_whitespace().collect();
        let at = words.pop().and_then(size_or_never);
        let (devices, ops): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| word.starts_with("gpu"));
        match (at, devices.as_slice(), ops.as_slice()) {
            (Some(at), [] | [_], [] | [_]) => {
                let first = |words: &[&str]| words.first().map_or("*", |word| *word).to_owned();
                let (op, device) = (first(&ops), first(&devices));
                let source = format!("line {line} of the CSV");
                self.claims.push(Claim { op, device, at, unit: String::new(), source });
            }
            _ => self
                .notes
                .push(format!("line {line} is no claim such as `# crossover add gpu:0 100000`, and was left out")),
        }
    }

    /// The scan that the file is.
    fn scan(self, rows: Vec<(Row, Place)>, columns: &[(String, Column)]) -> Scan {
        let has = |place: Place| rows.iter().any(|(_, of)| *of == place);
        let cpu = has(Place::Cpu).then(|| Device::cpu(&self.cpu));
        let gpu = has(Place::Gpu).then(|| Device {
            id: "gpu:0".to_owned(),
            name: self.gpu.clone(),
            kind: "other".to_owned(),
            backend: self.backend.clone(),
            driver: String::new(),
        });
        let mut scan = Scan { devices: cpu.into_iter().chain(gpu).collect(), claims: self.claims, ..Scan::default() };
        scan.machine.cpu = self.cpu;
        scan.how.date = self.date;
        scan.how.notes = self.notes;
        if columns.iter().any(|(_, column)| matches!(column, Column::Time(_, Part::Plain, _))) {
            scan.how.notes.push("times without a word for what they are were taken for medians".to_owned());
        }
        let ignored = columns.iter().filter(|(_, column)| *column == Column::Ignored);
        let ignored: Vec<&str> = ignored.map(|(name, _)| name.as_str()).collect();
        if !ignored.is_empty() {
            scan.how.notes.push(format!("columns that were left out: {}", ignored.join(", ")));
        }
        if !has(Place::Gpu) {
            scan.how.notes.push("the CSV has no GPU times".to_owned());
        }
        scan.rows = rows.into_iter().map(|(row, _)| row).collect();
        scan
    }
}

/// What the columns hold, from the first line that is no comment.
fn read_header(content: &str, line: usize) -> Result<Header, CsvError> {
    let separator = [';', '\t'].into_iter().find(|&separator| content.contains(separator)).unwrap_or(',');
    let columns: Vec<(String, Column)> =
        split(content, separator).into_iter().map(|name| (name.clone(), column(&name))).collect();
    for (number, (name, of)) in columns.iter().enumerate() {
        if *of != Column::Ignored && columns[..number].iter().any(|(_, before)| same(*before, *of)) {
            return Err(CsvError::TwoColumns { line, what: format!("`{name}`") });
        }
    }
    let own = columns.iter().any(|(name, _)| name == "median_ns");
    let hint = if own { "; this is a CSV of Breakeven: name the scan.json beside it" } else { "" };
    if !columns.iter().any(|(_, column)| *column == Column::Size) {
        return Err(CsvError::Header { line, missing: "`size`", hint });
    }
    let is_time = |column: &Column| matches!(column, Column::Time(_, Part::Plain | Part::Median, _));
    if !columns.iter().any(|(_, column)| is_time(column)) {
        return Err(CsvError::Header { line, missing: "`cpu_us` or `gpu_us`", hint });
    }
    Ok(Header { separator, columns })
}

/// Do two columns hold the same, in whatever unit?
fn same(a: Column, b: Column) -> bool {
    match (a, b) {
        (Column::Time(place, part, _), Column::Time(other, another, _)) => (place, part) == (other, another),
        _ => a == b,
    }
}

/// What a column of this name holds: upper case, blanks, hyphens and brackets make no difference.
fn column(name: &str) -> Column {
    let name: String = name.trim().to_lowercase().replace(['\u{b5}', '\u{3bc}'], "u");
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let place = match words.as_slice() {
        ["size" | "n" | "elements"] => return Column::Size,
        ["op" | "operation"] => return Column::Op,
        ["unit"] => return Column::Unit,
        ["cpu", ..] => Place::Cpu,
        ["gpu", ..] => Place::Gpu,
        _ => return Column::Ignored,
    };
    let part = match &words[1..words.len().max(2) - 1] {
        [] => Part::Plain,
        ["median" | "med" | "p50"] => Part::Median,
        ["p90"] => Part::P90,
        _ => return Column::Ignored,
    };
    match words.last() {
        Some(&"ns") => Column::Time(place, part, 1),
        Some(&"us") => Column::Time(place, part, 1_000),
        Some(&"ms") => Column::Time(place, part, 1_000_000),
        Some(&"s") => Column::Time(place, part, 1_000_000_000),
        _ => Column::Ignored,
    }
}

/// The cells of a line; one in quotes may hold the separator.
fn split(content: &str, separator: char) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    for c in content.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c == separator && !quoted => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            c => cell.push(c),
        }
    }
    cells.push(cell.trim().to_owned());
    cells
}

/// One line of measurements.
struct OfLine {
    op: String,
    unit: String,
    size: u64,
    cpu: Option<Stats>,
    gpu: Option<Stats>,
}

impl OfLine {
    fn rows(&self) -> impl Iterator<Item = (Row, Place)> {
        let row = |(device, place, stats): (&str, Place, Option<Stats>)| {
            let (op, class, unit) = (self.op.clone(), IMPORTED.to_owned(), self.unit.clone());
            Some((Row { op, class, size: self.size, unit, device: device.to_owned(), stats: stats? }, place))
        };
        [("cpu", Place::Cpu, self.cpu), ("gpu:0", Place::Gpu, self.gpu)].into_iter().filter_map(row)
    }
}

/// Reads one line.
fn row(header: &Header, content: &str, line: usize, told: &Told) -> Result<OfLine, CsvError> {
    let cells = split(content, header.separator);
    let find = |wanted: Column| {
        let column = header.columns.iter().position(|(_, column)| same(*column, wanted))?;
        Some((column, cells.get(column).map_or("", String::as_str)))
    };
    let cell = |column: usize, text: &str, why: &'static str| {
        let name = header.columns.get(column).map_or_else(String::new, |(name, _)| name.clone());
        CsvError::Cell { line, column: column + 1, name, text: text.to_owned(), why }
    };
    if cells.len() > header.columns.len() {
        let text = &cells[header.columns.len()];
        return Err(cell(header.columns.len(), text, "has no column in the header"));
    }
    let time = |wanted: Place, part: Part| -> Result<Option<(usize, u64)>, CsvError> {
        let Some((column, text)) = find(Column::Time(wanted, part, 1)) else { return Ok(None) };
        if ["", "-", "nan", "na", "n/a", "none", "null"].contains(&text.to_lowercase().as_str()) {
            return Ok(None);
        }
        let Column::Time(_, _, unit_ns) = header.columns[column].1 else { return Ok(None) };
        let number = if header.separator == ',' { text.to_owned() } else { text.replace(',', ".") };
        let no_time = || cell(column, text, "is no time: expected a number above 0");
        let ns = number.parse::<f64>().map_err(|_| no_time())? * f64::from(unit_ns);
        whole_ns(ns).map(|ns| Some((column, ns))).ok_or_else(no_time)
    };
    let stats = |place: Place| -> Result<Option<Stats>, CsvError> {
        // A column that says that it is the median is worth more than one that says nothing.
        let median = time(place, Part::Median)?;
        let plain = time(place, Part::Plain)?;
        let Some((_, median_ns)) = median.or(plain) else { return Ok(None) };
        let p90 = time(place, Part::P90)?;
        if let Some((column, _)) = p90.filter(|(_, p90)| *p90 < median_ns) {
            return Err(cell(column, cells.get(column).map_or("", String::as_str), "is less than the median"));
        }
        Ok(Some(Stats { p90_ns: p90.map_or(0, |(_, ns)| ns), ..Stats::partial(median_ns) }))
    };
    let (column, text) = find(Column::Size).unwrap_or((0, ""));
    let number = || text.parse::<f64>().ok().filter(|n| n.fract() == 0.0 && (1.0..9e15).contains(n)).map(|n| n as u64);
    let size = text.parse().ok().filter(|size| *size > 0).or_else(|| parse_size(text)).or_else(number);
    let size = size.ok_or_else(|| cell(column, text, "is no size: expected a whole number above 0"))?;
    let named = |wanted: Column, otherwise: &str| {
        find(wanted).map(|(_, text)| text).filter(|text| !text.is_empty()).unwrap_or(otherwise).to_owned()
    };
    let (op, unit) = (named(Column::Op, &told.op), named(Column::Unit, &told.unit));
    if op.is_empty() {
        return Err(cell(column, text, "has no operation: name one in a column `op` or a line `# op: add`"));
    }
    Ok(OfLine { op, unit, size, cpu: stats(Place::Cpu)?, gpu: stats(Place::Gpu)? })
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
