//! `breakeven cache`: the cache folder enters, a list of what this program keeps there leaves, or nothing of it is left.
//! Files that this program does not write are neither listed nor removed.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use breakeven::{CacheFigures, CacheSummary, Config, cost::CostsFile};
use serde::Serialize;

use crate::args::{CacheAction, CacheArgs};
use crate::failure::Failure;
use crate::memory::size;

/// What this program writes: the beginning and the end of a file's name, and what is in it. While a file is written it
/// ends in [`UNFINISHED`]; a process that was killed leaves it so.
const KINDS: [(&str, &str, &str); 5] = [
    ("costs-", ".json", "measured costs"),
    ("device-", ".json", "quirks and tuned kernels"),
    ("pipelines-", ".bin", "compiled pipelines"),
    CacheSummary::FILES[0],
    CacheSummary::FILES[1],
];
const UNFINISHED: &str = ".tmp";

/// Runs the subcommand.
pub fn run(args: &CacheArgs) -> Result<(), Failure> {
    let folder = Config::from_env()?.cache_dir;
    let mut entries = match &folder {
        Some(folder) => list(folder)?,
        None => Vec::new(),
    };
    let (json, cleared) = match args.action {
        CacheAction::Show { json } => (json, false),
        CacheAction::Clear { json } => (json, true),
    };
    let mut results = CacheSummary::default();
    if cleared {
        for entry in &entries {
            remove(&entry.path)?;
        }
    } else {
        entries.iter_mut().for_each(Entry::look_inside);
        if let Some(folder) = &folder {
            let failed = |error| Failure::failed(format_args!("cannot read {}: {error}", folder.display()));
            results = CacheSummary::read(folder).map_err(failed)?;
        }
    }
    let results = (!results.is_empty()).then_some(results);
    let mut stdout = io::stdout().lock();
    if json {
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        serde_json::to_writer(&mut stdout, &Document { version: 1, folder, bytes, cleared, results, files: entries })
            .map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        stdout.write_all(text(folder.as_deref(), &entries, results.as_ref(), cleared).as_bytes())?;
    }
    Ok(stdout.flush()?)
}

#[derive(Serialize)]
struct Document {
    /// It goes up when a field changes its meaning: see docs/formats.md.
    version: u32,
    folder: Option<PathBuf>,
    bytes: u64,
    /// Whether the files were removed.
    cleared: bool,
    /// What was remembered of results, and how often it was of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<CacheSummary>,
    files: Vec<Entry>,
}

/// A file that this program wrote.
#[derive(Serialize)]
struct Entry {
    #[serde(skip)]
    path: PathBuf,
    name: String,
    kind: &'static str,
    bytes: u64,
    /// What the measured costs belong to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<String>,
    /// Why it is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// What there is, by name. A folder that is not there has nothing in it.
fn list(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let failed = |error: io::Error| Failure::failed(format_args!("cannot read {}: {error}", folder.display()));
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.map_err(failed)?,
    };
    let mut entries = Vec::new();
    for entry in found {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link or a folder of such a name is somebody else's.
        let (Some(kind), Ok(metadata)) = (kind(&name), fs::symlink_metadata(entry.path())) else { continue };
        if metadata.is_file() {
            let bytes = metadata.len();
            entries.push(Entry { path: entry.path(), name, kind, bytes, devices: Vec::new(), fault: None });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// What a file of this name has in it, if this program writes such files.
fn kind(name: &str) -> Option<&'static str> {
    let mut ours = KINDS.into_iter().filter(|(begin, ..)| name.starts_with(begin)).peekable();
    if ours.peek().is_some() && name.ends_with(UNFINISHED) {
        return Some("left unfinished");
    }
    ours.find(|(_, end, _)| name.ends_with(end)).map(|(.., kind)| kind)
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        // Another process was quicker.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|error| Failure::failed(format_args!("cannot remove {}: {error}", path.display()))),
    }
}

impl Entry {
    fn look_inside(&mut self) {
        if self.kind != KINDS[0].2 {
            return;
        }
        let read = fs::read_to_string(&self.path).map_err(|error| error.to_string());
        match read.and_then(|text| serde_json::from_str::<CostsFile>(&text).map_err(|error| error.to_string())) {
            Ok(file) => self.devices = file.keys().map(ToString::to_string).collect(),
            Err(fault) => self.fault = Some(fault),
        }
    }
}

fn text(folder: Option<&Path>, entries: &[Entry], results: Option<&CacheSummary>, cleared: bool) -> String {
    let Some(folder) = folder else {
        return "no cache folder: nothing is remembered\n".to_owned();
    };
    let total = size(entries.iter().map(|entry| entry.bytes).sum());
    let files = format!("{} file{}", entries.len(), if entries.len() == 1 { "" } else { "s" });
    if cleared {
        return format!("removed {files}, {total}, from {}\n", folder.display());
    }
    let mut text = format!("{}: {files}, {total}\n", folder.display());
    for entry in entries {
        text += &format!("\n{}\n  {}, {}\n", entry.name, entry.kind, size(entry.bytes));
        text.extend(entry.devices.iter().map(|device| format!("  {device}\n")));
        text.extend(entry.fault.iter().map(|fault| format!("  not used: {fault}\n")));
    }
    if let Some(results) = results {
        let CacheSummary { entries, bytes, torn_bytes, last_run, in_all } = results;
        text += &format!("\nresults: {entries} remembered, {}\n", size(*bytes));
        if *torn_bytes > 0 {
            text += &format!("  {} at the ends of files are torn or damaged, and not used\n", size(*torn_bytes));
        }
        text += &format!("  last run: {}\n  in all:   {}\n", used(last_run), used(in_all));
    }
    text
}

/// How results were used, in words; what did not happen is not mentioned.
fn used(figures: &CacheFigures) -> String {
    let rate = figures.hit_rate().map_or("nothing looked up".to_owned(), |rate| format!("{:.1} % hits", 100.0 * rate));
    let CacheFigures { hits, misses, inserts, evictions, refused, damaged, lost, faults } = *figures;
    let mut words = format!("{rate} ({hits} hits, {misses} misses), {inserts} put in, {evictions} driven out");
    for (count, what) in [
        (refused, "too large or without room"),
        (damaged, "damaged"),
        (lost, "lost before they were written"),
        (faults, "faults of the file system"),
    ] {
        if count > 0 {
            words += &format!(", {count} {what}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_files_are_known() {
        assert_eq!(kind("costs-intel-xeon-2.json"), Some("measured costs"));
        assert_eq!(kind("device-vulkan-llvmpipe--llvm-15.0.6-.json"), Some("quirks and tuned kernels"));
        assert_eq!(kind("pipelines-gl-llvmpipe.bin"), Some("compiled pipelines"));
        assert_eq!(kind("costs-intel-xeon-2.4711.tmp"), Some("left unfinished"));
        assert_eq!(kind("results-00000012.log"), Some("remembered results"));
        assert_eq!(kind("results-figures.json"), Some("how results were used"));
        assert_eq!(kind("results-figures.47-1.tmp"), Some("left unfinished"));
        for other in [
            "",
            "costs.json",
            "costs-x.txt",
            "notes.tmp",
            "my-costs-x.json",
            "pipelines-x.json",
            "results-x.bin",
            "photo.jpg",
        ] {
            assert_eq!(kind(other), None, "{other}");
        }
    }
}
