//! Baselines: a run enters under a name, or leaves. Each is one JSON file, to be committed or kept wherever files can be.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use breakeven_report::bench::{BASELINE_PASSES, Bench};

use crate::arrays;
use crate::failure::Failure;

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// The run that was kept under this name.
pub fn read(folder: &Path, name: &str) -> Result<Bench, Failure> {
    let path = path(folder, name);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let known = known(folder);
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::mistake(format_args!(
                "there is no baseline {} (there: {known}); `breakeven bench --save-baseline {name}` makes one",
                path.display()
            ))
        }
        _ => Failure::mistake(format_args!("cannot read {}: {error}", path.display())),
    })?;
    Bench::from_json(&text).map_err(|error| Failure::mistake(format_args!("{}: {error}", path.display())))
}

/// The names of those that there are, in order.
fn known(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".json").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Keeps a run under this name. One that is not whole is none to be compared with.
pub fn write(folder: &Path, name: &str, bench: &Bench) -> Result<PathBuf, Failure> {
    if bench.how.interrupted || bench.groups.iter().all(|group| group.rows.is_empty()) {
        return Err(Failure::failed(format_args!("the baseline {name} was not saved: the run is not whole")));
    }
    let path = path(folder, name);
    create(folder)?;
    arrays::save_file(&path, |file| file.write_all(bench.to_json().as_bytes())).map_err(Failure::writing)?;
    Ok(path)
}

/// Can a baseline of this name be kept there?
pub fn writable(folder: &Path, name: &str) -> Result<(), Failure> {
    create(folder)?;
    arrays::can_save(&path(folder, name)).map_err(Failure::writing)
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::failed(format_args!("cannot create {}: {error}", folder.display())))
}

/// What is to be known of a baseline that is not as sure as it could be.
pub fn caution(passes: u32) -> Option<String> {
    let words = format!(
        "a baseline of {passes} pass{} tells less than one of {BASELINE_PASSES}: differences of 15 % may be missed",
        if passes == 1 { "" } else { "es" }
    );
    (passes < BASELINE_PASSES).then_some(words)
}
