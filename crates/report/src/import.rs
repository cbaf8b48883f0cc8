//! Measurements from files: a path enters, a [`Scan`] and what it was taken for leave.
//!
//! `scan.json` and folders with one in it, CSV of a plain size scan, and criterion's folders are told apart by what they
//! hold. Other tools tell less than a scan: what they do not tell stays unknown (see [`Stats::partial`](crate::Stats::partial)),
//! and whatever has to be assumed is said in the scan's notes.

mod criterion;
mod csv;

pub use criterion::{Benchmark, CriterionError, criterion};
pub use csv::{CsvError, csv};

use crate::read::ReadError;
use crate::scan::Scan;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The class of ops that some other tool measured: it does not tell.
pub(crate) const IMPORTED: &str = "imported";

/// What the op of a CSV is called that names none. It is the same for all of them: an old size scan is to be compared with
/// a new one, whatever their files are called.
pub const UNNAMED: &str = "size scan";

/// A scan.json of a long scan has some hundred kilobytes: what is larger than this is something else.
const MOST_BYTES: u64 = 256 << 20;

/// Why a file or folder has no measurements to compare.
///
/// ```
/// use breakeven_report::import::read;
/// let error = read("no/such/file".as_ref()).unwrap_err();
/// assert!(error.to_string().starts_with("cannot read no/such/file: "));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It could not be read at all.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder without anything that is known.
    #[error(
        "{} has neither a scan.json nor criterion's estimates.json below it: name the folder that `breakeven scan -o DIR` \
         wrote, or `target/criterion`", path.display()
    )]
    Folder {
        /// Which one.
        path: PathBuf,
    },
    /// A file that is too large to be measurements.
    #[error("{} has {bytes} bytes, which is more than any scan has: name a scan.json, a CSV or a folder", path.display())]
    TooLarge {
        /// Which one.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A scan.json that is none.
    #[error("{}: {source}", path.display())]
    Scan {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// A CSV that is no size scan.
    #[error("{}: {source}", path.display())]
    Csv {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: CsvError,
    },
    /// Files of criterion that are none.
    #[error("{}: {source}", path.display())]
    Criterion {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: CriterionError,
    },
}

/// What a path was taken for.
///
/// ```
/// assert_eq!(breakeven_report::import::Format::Csv.words(), "CSV of a size scan");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// What `breakeven scan` writes.
    Scan,
    /// Columns size, cpu_us, gpu_us.
    Csv,
    /// A folder of criterion.
    Criterion,
}

impl Format {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Format::Scan => "scan.json",
            Format::Csv => "CSV of a size scan",
            Format::Criterion => "criterion's estimates",
        }
    }
}

/// Measurements that were read.
///
/// ```
/// use breakeven_report::{Scan, import::{Format, Imported}};
/// let read = Imported { label: "old".into(), format: Format::Csv, scan: Scan::default() };
/// assert_eq!(read.format.words(), "CSV of a size scan");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// What to call it: the folder's name for a scan.json or criterion, the file's for a CSV.
    pub label: String,
    /// What it was taken for.
    pub format: Format,
    /// The measurements.
    pub scan: Scan,
}

/// Reads a scan.json, a folder with one in it, a CSV or a folder of criterion.
pub fn read(path: &Path) -> Result<Imported, ImportError> {
    read_as(path, UNNAMED)
}

/// The same; `op` is what the op of a CSV is called that names none.
pub fn read_as(path: &Path, op: &str) -> Result<Imported, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    if path.metadata().map_err(io)?.is_dir() {
        let scan = path.join("scan.json");
        return if scan.is_file() { file(&scan, op) } else { folder(path) };
    }
    // One of criterion's own files stands for the folder of its benchmark.
    if path.file_name().is_some_and(|name| name == "estimates.json" || name == "benchmark.json")
        && let Some(benchmark) = path.parent().and_then(Path::parent)
    {
        return folder(benchmark);
    }
    file(path, op)
}

/// A file, by its content.
fn file(path: &Path, op: &str) -> Result<Imported, ImportError> {
    let bytes = bytes_of(path, MOST_BYTES)?;
    let begins = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let is_json = begins.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| b"{[".contains(byte));
    let text = String::from_utf8_lossy(begins);
    if is_json || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        let scan = Scan::from_json(&text).map_err(|source| ImportError::Scan { path: path.to_owned(), source })?;
        return Ok(Imported { label: folder_name(path.parent(), path), format: Format::Scan, scan });
    }
    let label = path.file_stem().map_or_else(|| "csv".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let scan = csv(&bytes, op).map_err(|source| ImportError::Csv { path: path.to_owned(), source })?;
    Ok(Imported { label, format: Format::Csv, scan })
}

/// A folder of criterion.
fn folder(path: &Path) -> Result<Imported, ImportError> {
    let found = criterion::walk(path)?;
    if found.is_empty() {
        return Err(ImportError::Folder { path: path.to_owned() });
    }
    let scan = criterion(&found).map_err(|source| ImportError::Criterion { path: path.to_owned(), source })?;
    Ok(Imported { label: folder_name(Some(path), path), format: Format::Criterion, scan })
}

/// The name of a folder, which may be written as `.` or `..`; that of the file if it has none.
fn folder_name(folder: Option<&Path>, file: &Path) -> String {
    let whole = folder
        .and_then(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.canonicalize().ok());
    let name = whole.as_deref().and_then(Path::file_name).or_else(|| file.file_stem());
    name.map_or_else(|| "scan".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A file's content, unless it is larger than it can be.
fn bytes_of(path: &Path, most: u64) -> Result<Vec<u8>, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let mut content = Vec::new();
    // A pipe has no length: what is read is limited, too.
    file.take(most + 1).read_to_end(&mut content).map_err(io)?;
    if content.len() as u64 > most {
        return Err(ImportError::TooLarge { path: path.to_owned(), bytes: bytes.max(content.len() as u64) });
    }
    Ok(content)
}

/// A median and what belongs to it, from fractions of a nanosecond; `None` if no clock can have told it.
fn whole_ns(ns: f64) -> Option<u64> {
    // Thirty years are no measurement.
    (ns.is_finite() && (0.5..1e18).contains(&ns)).then(|| ns.round() as u64)
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
