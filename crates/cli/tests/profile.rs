//! `breakeven profile` as a user runs it, over profiles made by hand.

use std::{fs, time::Duration};

use assert_cmd::Command;
use breakeven::profile::Profile;
use serde_json::Value;
use tempfile::TempDir;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(folder: &TempDir, args: &[&str]) -> Run {
    breakeven(folder, &[&["profile"], args].concat())
}

fn breakeven(folder: &TempDir, args: &[&str]) -> Run {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    // Reruns are of the CPU alone, so that they do not depend on the drivers of this machine.
    let command = command.env("BREAKEVEN_BACKENDS", "metal").env("BREAKEVEN_CACHE_DIR", folder.path().join("cache"));
    let output = command.current_dir(folder.path()).args(args).timeout(Duration::from_secs(120)).output();
    let output = output.unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("run.json"), Profile::example().to_json()).unwrap();
    folder
}

#[test]
fn a_profile_is_shown() {
    let run = run(&folder(), &["run.json"]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let sentence = "GPU-eligible work is 9 % of this run: an infinitely fast GPU would make it 1.10x faster; the largest stage \
                    is `inline_variables` with 69 %";
    for text in
        ["example: 100.00 ms wall time, 1 thread\n", sentence, "read (waiting)", "69.0 %", "measured (2 batches)"]
    {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile.md")).unwrap();
    let block = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    assert_eq!(block, run(&folder(), &["run.json"]).stdout, "docs/profile.md has another example");
}

#[test]
fn json_is_one_document() {
    let run = run(&folder(), &["run.json", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((json["version"].as_u64(), json["amdahl"]["bound"].as_f64()), (Some(1), Some(100.0 / 91.0)));
    let sum: u64 = json["top"].as_array().unwrap().iter().filter_map(|row| row["thousandths"].as_u64()).sum();
    assert_eq!(sum, 1000);
    assert!(run.stderr.contains("top by self time"), "the text goes to stderr");
}

/// Every key of a document; those of maps from devices or phases are names, not fields.
fn keys(of: &Value, into: &mut std::collections::BTreeSet<String>) {
    match of {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            if !(["phases_ns", "phases"].contains(&&**key) || key == "devices" && value.is_object()) {
                keys(value, into);
            }
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// docs/formats.md tells every field of both documents, and no other.
#[test]
fn the_formats_are_told() {
    let folder = folder();
    assert_eq!(run(&folder, &["run.json", "--measure-baseline", "--samples", "3", "-o", "again.json"]).code, 0);
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap();
    let documents = [
        ("## Profiles, version 1\n", fs::read_to_string(folder.path().join("again.json")).unwrap()),
        ("## The analysis of a profile, version 1\n", run(&folder, &["again.json", "--json"]).stdout),
    ];
    for (heading, document) in documents {
        let part = page.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading}")).split("\n## ").next().unwrap();
        let mut found = std::collections::BTreeSet::new();
        keys(&serde_json::from_str(&document).unwrap(), &mut found);
        let firsts = part.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
        let told: std::collections::BTreeSet<String> =
            firsts.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`').to_owned())).collect();
        assert_eq!(told, found, "{heading}");
    }
}

#[test]
fn other_tools_get_their_files() {
    let folder = folder();
    let run =
        run(&folder, &["run.json", "--chrome", "trace.json", "--folded", "stacks.txt", "--prometheus", "run.prom"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.ends_with("written: trace.json, stacks.txt, run.prom\n"), "{}", run.stdout);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(text("trace.json"), Profile::example().chrome().unwrap());
    assert_eq!(text("stacks.txt"), Profile::example().folded().unwrap());
    assert_eq!(text("run.prom"), Profile::example().prometheus().unwrap());
}

#[test]
fn one_document_fits_stdout() {
    let folder = folder();
    let stacks = run(&folder, &["run.json", "--folded", "-"]);
    assert_eq!((stacks.code, stacks.stdout), (0, Profile::example().folded().unwrap()));
    let both = run(&folder, &["run.json", "--folded", "-", "--json"]);
    assert_eq!((both.code, &*both.stdout), (2, ""));
    assert!(both.stderr.contains("only one document fits stdout, not --folded and --json"), "{}", both.stderr);
}

#[test]
fn less_can_be_shown_and_nothing_is_lost() {
    let run = run(&folder(), &["run.json", "--depth", "1", "--top", "2"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("(7 below)") && run.stdout.contains("(10 others)"), "{}", run.stdout);
}

#[test]
fn threads_are_shown_alone() {
    let folder = folder();
    assert_eq!(run(&folder, &["run.json", "--thread", "main"]).code, 0);
    let nobody = run(&folder, &["run.json", "--thread", "nobody"]);
    assert_eq!((nobody.code, &*nobody.stdout), (2, ""));
    assert!(nobody.stderr.contains("error: there is no thread `nobody`, only main"), "{}", nobody.stderr);
}

#[test]
fn a_baseline_is_measured_and_kept() {
    let folder = folder();
    let first = run(&folder, &["run.json", "--measure-baseline", "--samples", "3", "-o", "again.json"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert!(first.stdout.contains("measured on cpu (rerun, 3 samples): on another machine: "), "{}", first.stdout);
    assert!(first.stdout.contains("note: this is another machine than the profile's"), "{}", first.stdout);
    let profile = Profile::from_json(&fs::read_to_string(folder.path().join("again.json")).unwrap()).unwrap();
    assert_eq!(profile.reruns.len(), 1);
    assert_eq!(Profile { reruns: Vec::new(), ..profile }, Profile::example(), "nothing else has changed");
    let second = run(&folder, &["again.json"]);
    assert!(second.stdout.contains("measured on cpu (rerun, 3 samples)"), "{}", second.stdout);
}

#[test]
fn a_baseline_has_the_threads_of_the_profile() {
    let folder = folder();
    let recorded = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"))
        .env("BREAKEVEN_BACKENDS", "metal")
        .env("BREAKEVEN_CACHE_DIR", folder.path().join("cache"))
        .env("BREAKEVEN_THREADS", "1")
        .current_dir(folder.path())
        .args(["eval", "exp(arange(0.0, 1000.0, 1.0))", "--repeat", "5", "--profile", "one.json"])
        .output()
        .unwrap();
    assert!(recorded.status.success());
    let again = run(&folder, &["one.json", "--measure-baseline", "--samples", "3"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains(", 1 thread\n"), "{}", again.stdout);
    assert!(!again.stdout.contains("another machine") && !again.stdout.contains("threads, not"), "{}", again.stdout);
}

#[test]
fn no_file_is_written_over_another() {
    let folder = folder();
    let before = fs::read_to_string(folder.path().join("run.json")).unwrap();
    for (args, message) in [
        (&["--chrome", "run.json"][..], "--chrome would overwrite run.json, which is also the profile that is read"),
        (&["--folded", "./run.json"], "--folded would overwrite run.json, which is also the profile that is read"),
        (&["--chrome", "a", "--folded", "a"], "--folded would overwrite a, which is also that of --chrome"),
        (&["--measure-baseline", "-o", "a", "--prometheus", "./a"], "-o would overwrite ./a"),
    ] {
        let run = run(&folder, &[&["run.json"], args].concat());
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    assert_eq!(fs::read_to_string(folder.path().join("run.json")).unwrap(), before);
    assert!(!folder.path().join("a").exists());
    let again = run(&folder, &["run.json", "--measure-baseline", "--samples", "3", "-o", "run.json"]);
    assert_eq!(again.code, 0, "a profile may be replaced by itself with reruns: {}", again.stderr);
}

#[test]
fn names_of_threads_do_not_move_the_cursor() {
    let folder = folder();
    let mut profile = Profile::example();
    profile.threads[0].name = "a\x1b[2Jb".to_owned();
    fs::write(folder.path().join("odd.json"), profile.to_json()).unwrap();
    profile.threads[0].frames[3].self_ns += 1;
    fs::write(folder.path().join("odd_and_wrong.json"), profile.to_json()).unwrap();
    for args in [&["odd.json", "--thread", "no\x1bbody"][..], &["odd_and_wrong.json"]] {
        let run = run(&folder, args);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("a [2Jb") && !run.stderr.contains('\x1b'), "{:?}", run.stderr);
    }
}

#[test]
fn mistakes_are_said_with_exit_code_2() {
    let folder = folder();
    let text = Profile::example().to_json();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("half.json", &text[..text.len() / 2]);
    write("other.json", &text.replacen("\"version\":1", "\"version\":9", 1));
    write("over.json", &text.replacen("\"self_ns\":69000000", "\"self_ns\":89000000", 1));
    write("none.json", "{}");
    fs::write(folder.path().join("binary.json"), [0xff, 0xfe]).unwrap();
    for (args, message) in [
        (&["nowhere.json"][..], "error: cannot read nowhere.json: "),
        (&["half.json"], "error: half.json: the file ends too early: "),
        (&["other.json"], "error: other.json: the profile is of version 9, and version 1 is expected"),
        (&["over.json"], "add up to 120000000 ns, which is 120.0 % of its 100000000 ns"),
        (&["none.json"], "error: none.json: this JSON is no profile: it has no `version`"),
        (&["binary.json"], "error: binary.json: this is no JSON"),
        (&[], "required"),
        (&["run.json", "-o", "x.json"], "--measure-baseline"),
    ] {
        let run = run(&folder, args);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    let run = run(&folder, &["run.json", "--chrome", "no/such/folder.json"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
}

#[test]
fn an_evaluation_can_be_profiled() {
    let folder = folder();
    let recorded =
        breakeven(&folder, &["eval", "exp(arange(0.0, 1000.0, 1.0)).sum()", "--repeat", "20", "--profile", "p.json"]);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    let shown = run(&folder, &["p.json", "--json"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let profile = Profile::from_json(&fs::read_to_string(folder.path().join("p.json")).unwrap()).unwrap();
    profile.check().unwrap();
    assert_eq!(profile.batches.len(), 20);
    assert!(profile.plans[0].recipe.is_some(), "it can be run again");
}
