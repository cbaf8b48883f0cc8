//! `breakeven compare`: scans, CSV and criterion's folders enter; a table, and the files of a report that sets them side by
//! side leave.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use breakeven_report::{
    Scan,
    compare::{self, Comparison},
    import,
};

use crate::args::CompareArgs;
use crate::arrays;
use crate::failure::Failure;

/// Runs the subcommand.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let sides = args.sides.iter().map(|side| read(side, args)).collect::<Result<Vec<_>, Failure>>()?;
    let comparison = Comparison::of(sides).map_err(Failure::mistake)?;
    fs::create_dir_all(&args.output)
        .map_err(|error| Failure::failed(format_args!("cannot create {}: {error}", args.output.display())))?;
    let json = comparison.to_json();
    let files = write(&args.output, &comparison, &json)?;
    let table = format!("{}\nwritten: {}\n", compare::table(&comparison), files.join(", "));
    let mut stdout = io::stdout().lock();
    if args.json {
        io::stderr().write_all(table.as_bytes())?;
        stdout.write_all(json.as_bytes())?;
    } else {
        stdout.write_all(table.as_bytes())?;
    }
    stdout.flush()?;
    if let Some(words) = comparison.nothing_in_common() {
        if args.strict {
            return Err(Failure::failed(words));
        }
        writeln!(io::stderr(), "warning: {words}")?;
    }
    let found = comparison.contradictions.len();
    if args.strict && found > 0 {
        let many = if found == 1 { "one contradiction was" } else { &format!("{found} contradictions were") };
        return Err(Failure::failed(format_args!("{many} found, which --strict does not let pass")));
    }
    Ok(())
}

/// One side: `PATH` or `LABEL=PATH`. What it was taken for is said on stderr.
fn read(side: &str, args: &CompareArgs) -> Result<(String, Scan), Failure> {
    let (label, path) = split(side);
    let imported = import::read_as(&path, args.op.as_deref().unwrap_or(import::UNNAMED)).map_err(Failure::mistake)?;
    let label = label.unwrap_or(imported.label);
    let mut scan = imported.scan;
    let (what, rows) = (imported.format.words(), scan.rows.len());
    let many = if rows == 1 { "" } else { "s" };
    writeln!(io::stderr(), "{label}: {} is read as {what}: {rows} row{many}", path.display())?;
    scan.claims.extend_from_slice(&args.claims);
    Ok((label, scan))
}

/// A label, if there is one, and a path. A file whose own name has a `=` is a file.
fn split(side: &str) -> (Option<String>, PathBuf) {
    match side.split_once('=') {
        Some((label, path)) if !label.is_empty() && !Path::new(side).exists() => (Some(label.to_owned()), path.into()),
        _ => (None, side.into()),
    }
}

/// The files of a report; their paths leave.
fn write(folder: &Path, comparison: &Comparison, json: &str) -> Result<Vec<String>, Failure> {
    let files = [
        ("compare.csv", &*compare::csv(comparison)),
        ("compare.json", json),
        ("summary.md", &compare::markdown(comparison)),
        ("report.html", &compare::html(comparison)),
    ];
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        arrays::save_file(&path, |file| file.write_all(text.as_bytes())).map_err(Failure::writing)?;
        paths.push(path.display().to_string());
    }
    Ok(paths)
}
