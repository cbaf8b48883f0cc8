//! Criterion's results: the `estimates.json` and `benchmark.json` of each benchmark enter, a [`Scan`] leaves.
//!
//! A function that names a device (`cpu`, `gpu`, `gpu:1`, `vulkan`) is that device, and its group the op; any other
//! function is an op on the CPU. The size is the throughput's elements, or else the parameter. Criterion tells the
//! median, its confidence interval and the median absolute deviation; percentiles and extremes stay unknown.

use super::{IMPORTED, ImportError, bytes_of, whole_ns};
use crate::scan::{Device, Row, Scan};
use crate::stats::{Stats, WIDE};
use crate::words::parse_size;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Criterion scales the deviation so that it estimates a standard deviation; ours is the plain one.
const SCALED: f64 = 1.4826;
/// Folders lie this deep: group, function, parameter, and the run.
const DEEPEST: usize = 6;
/// More folders than any suite has.
const MOST_FOLDERS: usize = 100_000;
/// An estimates.json has 2 kB.
const MOST_BYTES: u64 = 1 << 20;
/// Names of interfaces to GPUs that functions are called by.
const BACKENDS: [&str; 13] =
    ["vulkan", "gl", "opengl", "gles", "dx12", "d3d12", "metal", "webgpu", "wgpu", "cuda", "opencl", "hip", "rocm"];

/// Why files are no results of criterion.
///
/// ```
/// use breakeven_report::import::{Benchmark, criterion};
/// let bad = Benchmark { path: "add/cpu".into(), estimates: b"{}".to_vec(), ..Benchmark::default() };
/// assert!(criterion(&[bad]).unwrap_err().to_string().starts_with("add/cpu/new/estimates.json is not criterion's: "));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CriterionError {
    /// Not the fields that criterion writes.
    #[error("{path} is not criterion's: {source}; run `cargo bench` again")]
    Form {
        /// Which file.
        path: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A number that no clock can have told.
    #[error("{path} has a median of {median_ns} ns, which is no time of a run: run `cargo bench` again")]
    Time {
        /// Which file.
        path: String,
        /// What it has.
        median_ns: f64,
    },
    /// Two benchmarks that are one row.
    #[error("{path} and {other} are the same operation, size and device: name one of the two folders alone")]
    Twice {
        /// One of them.
        path: String,
        /// The other.
        other: String,
    },
    /// There is nothing.
    #[error("there are no benchmarks: run `cargo bench` first")]
    Empty,
}

/// The files of one benchmark.
///
/// ```
/// use breakeven_report::import::{Benchmark, criterion};
/// let files = |function: &str, ns: u32| Benchmark {
///     path: format!("add/{function}/1000"),
///     estimates: format!(r#"{{"median": {{"point_estimate": {ns}}}}}"#).into_bytes(),
///     ..Benchmark::default()
/// };
/// let scan = criterion(&[files("cpu", 500), files("vulkan", 90_000)])?;
/// assert_eq!((scan.rows[0].op.as_str(), scan.rows[0].size, scan.devices.len()), ("add", 1000, 2));
/// assert_eq!(scan.devices[1].backend, "vulkan");
/// # Ok::<(), breakeven_report::import::CriterionError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Benchmark {
    /// Its folder below the one that is read, with `/`: group, function, parameter.
    pub path: String,
    /// The content of `estimates.json`.
    pub estimates: Vec<u8>,
    /// The content of `benchmark.json`, if there is one.
    pub benchmark: Option<Vec<u8>>,
    /// The results are those of `base`: there are no new ones.
    pub is_base: bool,
}

#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
    #[serde(default)]
    median_abs_dev: Option<Estimate>,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
    #[serde(default)]
    confidence_interval: Option<Interval>,
}

#[derive(Deserialize)]
struct Interval {
    lower_bound: f64,
    upper_bound: f64,
}

#[derive(Deserialize)]
struct Names {
    group_id: String,
    #[serde(default)]
    function_id: Option<String>,
    #[serde(default)]
    value_str: Option<String>,
    #[serde(default)]
    throughput: Option<Value>,
}

/// Where a benchmark ran.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Cpu,
    Gpu(u32),
    /// By the name of an interface, which becomes a number that is free.
    Backend(String),
}

/// A benchmark that was read.
struct Read<'b> {
    path: &'b str,
    names: Names,
    place: Option<Place>,
    stats: Stats,
}

/// Makes a scan of criterion's files.
pub fn criterion(benchmarks: &[Benchmark]) -> Result<Scan, CriterionError> {
    let all = benchmarks.iter().map(read).collect::<Result<Vec<Read<'_>>, CriterionError>>()?;
    if all.is_empty() {
        return Err(CriterionError::Empty);
    }
    let ids = ids(&all);
    let mut scan = Scan { devices: devices(&ids), ..Scan::default() };
    let mut seen: HashMap<(String, u64, String, String), &str> = HashMap::new();
    // A function that is in several groups is told apart by them.
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for read in all.iter().filter(|read| read.place.is_none()) {
        groups.entry(function(&read.names)).or_default().insert(&read.names.group_id);
    }
    let mut assumed = false;
    for read in &all {
        let many = groups.get(function(&read.names)).is_some_and(|groups| groups.len() > 1);
        let names = &read.names;
        let mut op = match (&read.place, many) {
            (Some(_), _) => group(names).to_owned(),
            (None, false) => function(names).to_owned(),
            (None, true) => format!("{}/{}", names.group_id, function(names)),
        };
        let (size, unit) = match size(names) {
            Size::Elements(size) => (size, "elements"),
            Size::Bytes(size) => (size, "bytes"),
            Size::Parameter(size) => {
                assumed = true;
                (size, "elements")
            }
            Size::None => {
                op.extend(names.value_str.iter().map(|value| format!("/{value}")));
                (1, "calls")
            }
        };
        let device = ids.get(read.place.as_ref().unwrap_or(&Place::Cpu)).cloned().unwrap_or_default();
        if let Some(other) = seen.insert((op.clone(), size, unit.to_owned(), device.clone()), read.path) {
            return Err(CriterionError::Twice { path: read.path.to_owned(), other: other.to_owned() });
        }
        let (class, unit) = (IMPORTED.to_owned(), unit.to_owned());
        scan.rows.push(Row { op, class, size, unit, device, stats: read.stats });
    }
    scan.rows.sort_by(|a, b| (&a.op, a.size, &a.device).cmp(&(&b.op, b.size, &b.device)));
    if assumed {
        scan.how.notes.push("parameters without a throughput were taken for numbers of elements".to_owned());
    }
    if benchmarks.iter().any(|benchmark| benchmark.is_base) {
        scan.how.notes.push("where there are no new results, those of `base` were taken".to_owned());
    }
    Ok(scan)
}

/// Reads the files of one benchmark.
fn read(benchmark: &Benchmark) -> Result<Read<'_>, CriterionError> {
    let run = if benchmark.is_base { "base" } else { "new" };
    let path = format!("{}/{run}/estimates.json", benchmark.path);
    let estimates: Estimates = serde_json::from_slice(&benchmark.estimates)
        .map_err(|source| CriterionError::Form { path: path.clone(), source })?;
    let median = estimates.median.point_estimate;
    let median_ns = whole_ns(median).ok_or(CriterionError::Time { path, median_ns: median })?;
    // A deviation of exactly 0 can't be told from one that is not known, and stays unknown.
    let mad_ns = estimates.median_abs_dev.and_then(|mad| whole_ns(mad.point_estimate / SCALED)).unwrap_or(0);
    let interval =
        estimates.median.confidence_interval.filter(|i| i.lower_bound <= i.upper_bound && i.lower_bound >= 0.0);
    let interval_ns = interval.and_then(|interval| {
        let high = whole_ns(interval.upper_bound.ceil())?;
        Some(((interval.lower_bound.floor() as u64).min(median_ns), high.max(median_ns)))
    });
    let wide = mad_ns as f64 > WIDE * median_ns as f64;
    let stats = Stats { mad_ns, interval_ns, wide, ..Stats::partial(median_ns) };
    let names = match &benchmark.benchmark {
        Some(bytes) => serde_json::from_slice(bytes)
            .map_err(|source| CriterionError::Form { path: format!("{}/benchmark.json", benchmark.path), source })?,
        None => names_of_path(&benchmark.path),
    };
    let place = names.function_id.as_deref().and_then(place);
    Ok(Read { path: &benchmark.path, names, place, stats })
}

/// Group, function and parameter, as folders tell them.
fn names_of_path(path: &str) -> Names {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
    let group_id = parts.next().unwrap_or_else(|| "benchmark".to_owned());
    let rest: Vec<String> = parts.collect();
    let (function_id, value_str) = match rest.as_slice() {
        [] => (None, None),
        // `group/1000` is a parameter without a function.
        [one] if parse_size(one).is_some() => (None, Some(one.clone())),
        [one] => (Some(one.clone()), None),
        [function, value @ ..] => (Some(function.clone()), Some(value.join("/"))),
    };
    Names { group_id, function_id, value_str, throughput: None }
}

/// The group's name.
fn group(names: &Names) -> &str {
    if names.group_id.is_empty() { "benchmark" } else { &names.group_id }
}

/// The function's name, or the group's if it has none.
fn function(names: &Names) -> &str {
    names.function_id.as_deref().filter(|id| !id.is_empty()).unwrap_or(group(names))
}

/// The device that a function's name is.
fn place(function: &str) -> Option<Place> {
    let name = function.trim().to_lowercase();
    if name == "cpu" {
        return Some(Place::Cpu);
    }
    if BACKENDS.contains(&name.as_str()) {
        return Some(Place::Backend(name));
    }
    match name.strip_prefix("gpu")?.trim_start_matches([':', '_', '-', ' ']) {
        "" => Some(Place::Gpu(0)),
        number => number.parse().ok().map(Place::Gpu),
    }
}

/// The ids of all places that there are.
fn ids(all: &[Read<'_>]) -> BTreeMap<Place, String> {
    let places: BTreeSet<Place> = all.iter().map(|read| read.place.clone().unwrap_or(Place::Cpu)).collect();
    let taken: BTreeSet<u32> =
        places.iter().filter_map(|p| if let Place::Gpu(n) = p { Some(*n) } else { None }).collect();
    let mut free = (0..).filter(|number| !taken.contains(number));
    let id = |place: &Place| match place {
        Place::Cpu => "cpu".to_owned(),
        Place::Gpu(number) => format!("gpu:{number}"),
        Place::Backend(_) => format!("gpu:{}", free.next().unwrap_or(u32::MAX)),
    };
    let ids: Vec<String> = places.iter().map(id).collect();
    places.into_iter().zip(ids).collect()
}

/// The devices behind those ids. Criterion knows nothing else about them.
fn devices(ids: &BTreeMap<Place, String>) -> Vec<Device> {
    let device = |(place, id): (&Place, &String)| match place {
        Place::Cpu => Device::cpu(""),
        Place::Gpu(_) => Device { id: id.clone(), kind: "other".to_owned(), ..Device::default() },
        Place::Backend(name) => {
            Device { id: id.clone(), kind: "other".to_owned(), backend: name.clone(), ..Device::default() }
        }
    };
    ids.iter().map(device).collect()
}

/// How much a benchmark works on.
enum Size {
    Elements(u64),
    Bytes(u64),
    /// The parameter is a number, of what nobody says.
    Parameter(u64),
    None,
}

fn size(names: &Names) -> Size {
    let throughput = |unit: &str| names.throughput.as_ref().and_then(|t| t.get(unit)?.as_u64()).filter(|n| *n > 0);
    let parameter = names.value_str.as_deref().and_then(|value| parse_size(value.trim()));
    match (throughput("Elements"), parameter, throughput("Bytes").or_else(|| throughput("BytesDecimal"))) {
        (Some(elements), ..) => Size::Elements(elements),
        (None, Some(parameter), _) => Size::Parameter(parameter),
        (None, None, Some(bytes)) => Size::Bytes(bytes),
        (None, None, None) => Size::None,
    }
}

/// Every benchmark below a folder, in the order of their names. Links to folders are not followed.
pub(super) fn walk(root: &Path) -> Result<Vec<Benchmark>, ImportError> {
    let mut found = Vec::new();
    let mut left = MOST_FOLDERS;
    enter(root, "", DEEPEST, &mut left, &mut found)?;
    Ok(found)
}

fn enter(
    folder: &Path,
    path: &str,
    deeper: usize,
    left: &mut usize,
    found: &mut Vec<Benchmark>,
) -> Result<(), ImportError> {
    let run =
        [("new", false), ("base", true)].into_iter().find(|(run, _)| folder.join(run).join("estimates.json").is_file());
    if let Some((run, is_base)) = run {
        let run = folder.join(run);
        let estimates = bytes_of(&run.join("estimates.json"), MOST_BYTES)?;
        let names = run.join("benchmark.json");
        let benchmark = if names.is_file() { Some(bytes_of(&names, MOST_BYTES)?) } else { None };
        // The folder itself may have been named: then its own name is all there is.
        let own = || folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let path = if path.is_empty() { own() } else { path.to_owned() };
        found.push(Benchmark { path, estimates, benchmark, is_base });
    }
    if deeper == 0 {
        return Ok(());
    }
    let io = |source| ImportError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_type().map_err(io)?.is_dir() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    for name in names.iter().filter(|name| !["report", "new", "base", "change"].iter().any(|known| name == known)) {
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let below = format!("{path}/{}", name.to_string_lossy());
        enter(&folder.join(name), below.trim_start_matches('/'), deeper - 1, left, found)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "criterion_tests.rs"]
mod tests;
