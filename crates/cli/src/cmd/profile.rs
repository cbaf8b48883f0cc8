//! `breakeven profile`: a profile enters; a tree, a top list, what plans took where and what follows leave, and files for
//! other tools.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use breakeven::profile::{Fault, Profile};
use breakeven::{Config, Engine};

use crate::args::ProfileArgs;
use crate::arrays;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::profile::rerun;
use crate::profile::text::{self, Shown, one_line};

/// Runs the subcommand.
pub fn run(args: &ProfileArgs) -> Result<(), Failure> {
    let takes_stdout = to_stdout(args)?;
    refuse_collisions(args)?;
    let mut profile = read(&args.file)?;
    let interrupt = Interrupt::catch();
    let mut notes = Vec::new();
    if args.measure_baseline {
        let engine = Engine::with_config(like(&profile, Config::from_env()?))?;
        let reran = rerun::rerun(&engine, &profile, args.samples, &interrupt);
        rerun::add(&mut profile, &reran.reruns);
        notes = reran.notes;
    }
    let analysis = match &args.thread {
        None => profile.analysis(),
        Some(thread) => profile.analysis_of_thread(thread),
    };
    let analysis = analysis.map_err(|fault| wrong(args, &fault))?;
    if let Some(thread) = args.thread.as_ref().filter(|_| analysis.threads.is_empty()) {
        let names: Vec<String> = profile.threads.iter().map(|thread| one_line(&thread.name)).collect();
        return Err(Failure::mistake(format_args!(
            "there is no thread `{}`, only {}",
            one_line(thread),
            names.join(", ")
        )));
    }
    let written = export(args, &profile)?;

    let notes: String = notes.iter().map(|note| format!("note: {}\n", one_line(note))).collect();
    let shown = Shown { top: args.top as usize, depth: args.depth };
    let mut text = format!("{}{notes}", text::text(&analysis, &shown));
    if !written.is_empty() {
        text += &format!("written: {}\n", written.join(", "));
    }
    let mut stdout = io::stdout().lock();
    if takes_stdout {
        io::stderr().write_all(text.as_bytes())?;
    } else {
        stdout.write_all(text.as_bytes())?;
    }
    if args.json {
        stdout.write_all(analysis.to_json().as_bytes())?;
    }
    stdout.flush()?;
    if interrupt.is_set() {
        return Err(Failure::Interrupted("interrupted: what was measured until then is kept".to_owned()));
    }
    Ok(())
}

/// Does a document go to stdout, so that the text must not? Two of them could not be told apart.
fn to_stdout(args: &ProfileArgs) -> Result<bool, Failure> {
    let named = [("--chrome", &args.chrome), ("--folded", &args.folded), ("--prometheus", &args.prometheus)];
    let mut flags: Vec<&str> =
        named.iter().filter(|(_, path)| is_stdout(path.as_deref())).map(|(flag, _)| *flag).collect();
    flags.extend(args.json.then_some("--json"));
    match flags[..] {
        [] => Ok(false),
        [_] => Ok(true),
        _ => Err(Failure::mistake(format_args!("only one document fits stdout, not {}", flags.join(" and ")))),
    }
}

fn is_stdout(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

fn read(path: &Path) -> Result<Profile, Failure> {
    let bytes =
        fs::read(path).map_err(|error| Failure::mistake(format_args!("cannot read {}: {error}", path.display())))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::mistake(format_args!("{}: this is no JSON: it is no text", path.display())))?;
    let wrong = |error: breakeven::profile::ReadError| one_line(&error.to_string());
    Profile::from_json(&text).map_err(|error| Failure::mistake(format_args!("{}: {}", path.display(), wrong(error))))
}

/// Something is wrong with the profile; names in it are whatever somebody wrote there.
fn wrong(args: &ProfileArgs, fault: &Fault) -> Failure {
    Failure::mistake(format_args!("{}: {}", args.file.display(), one_line(&fault.to_string())))
}

/// Plans are run again with as many threads as the profile's engine had, as far as there are so many here and nobody says
/// otherwise: what differed by that alone would say nothing about devices.
fn like(profile: &Profile, mut config: Config) -> Config {
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    config.threads.get_or_insert(profile.machine.threads.clamp(1, here));
    config
}

/// Files that would be written over each other, or over the profile that is read, are a mistake: one of them would be lost.
/// `-o` may replace the profile, which is in it.
fn refuse_collisions(args: &ProfileArgs) -> Result<(), Failure> {
    let read = [("the profile that is read", Some(&args.file))];
    let exported = [
        ("--chrome", args.chrome.as_ref()),
        ("--folded", args.folded.as_ref()),
        ("--prometheus", args.prometheus.as_ref()),
    ];
    let all = read.into_iter().chain(exported).chain([("-o", args.output.as_ref())]);
    let files: Vec<(&str, &Path)> = all
        .filter_map(|(what, path)| Some((what, path?.as_path())))
        .filter(|(_, path)| !is_stdout(Some(path)))
        .collect();
    for (at, (first, path)) in files.iter().enumerate() {
        let is_same = |(what, other): &&(&str, &Path)| place(path) == place(other) && (at > 0 || *what != "-o");
        if let Some((second, _)) = files[at + 1..].iter().find(is_same) {
            let path = path.display();
            return Err(Failure::mistake(format_args!(
                "{second} would overwrite {path}, which is also {}: give it a file of its own",
                if at == 0 { (*first).to_owned() } else { format!("that of {first}") }
            )));
        }
    }
    Ok(())
}

/// A path as it can be compared with others, whether there is a file or not.
fn place(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let known = fs::canonicalize(path).ok();
    known.or_else(|| Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))).unwrap_or_else(|| path.to_owned())
}

/// Writes what was asked for; the paths of files leave.
fn export(args: &ProfileArgs, profile: &Profile) -> Result<Vec<String>, Failure> {
    let wrong = |fault| wrong(args, &fault);
    let mut written = Vec::new();
    let mut write = |path: &Option<PathBuf>, text: &dyn Fn() -> Result<String, Failure>| -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let text = text()?;
        if is_stdout(Some(path)) {
            return Ok(io::stdout().lock().write_all(text.as_bytes())?);
        }
        arrays::save_file(path, |file| file.write_all(text.as_bytes())).map_err(Failure::writing)?;
        written.push(path.display().to_string());
        Ok(())
    };
    write(&args.output, &|| Ok(profile.to_json()))?;
    write(&args.chrome, &|| profile.chrome().map_err(wrong))?;
    write(&args.folded, &|| profile.folded().map_err(wrong))?;
    write(&args.prometheus, &|| profile.prometheus().map_err(wrong))?;
    Ok(written)
}
