//! `breakeven bench` beside a baseline, as a user runs it: kept, compared with, refused.

use std::fs;
use std::process::Command as Process;
use std::time::Duration;

use assert_cmd::Command;
use breakeven_report::bench::Bench;
use tempfile::TempDir;

/// One case of two sizes, often enough for a verdict.
const LITTLE: [&str; 6] = ["unary/exp", "--quick", "--samples=5", "--calm=0", "--devices", "cpu"];

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn bench(folder: &TempDir, args: &[&str]) -> Run {
    finish(command(folder, &[&LITTLE, args].concat()))
}

fn command(folder: &TempDir, args: &[&str]) -> Process {
    let mut command = Process::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    for name in ["BREAKEVEN_DEVICE", "BREAKEVEN_BACKENDS", "BREAKEVEN_THREADS", "BREAKEVEN_SYNC_TIMEOUT"] {
        command.env_remove(name);
    }
    command.current_dir(folder.path()).env("BREAKEVEN_CACHE_DIR", folder.path().join("cache"));
    command.arg("bench").args(args);
    command
}

fn finish(command: Process) -> Run {
    let output = Command::from_std(command).timeout(Duration::from_secs(300)).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder with a baseline, and the baseline.
fn with_baseline() -> (TempDir, Bench) {
    let folder = TempDir::new().unwrap();
    let run = bench(&folder, &["--save-baseline=main"]);
    assert_eq!(run.code, 0, "{} {}", run.stdout, run.stderr);
    assert!(run.stderr.contains("written: breakeven-baselines/main.json"), "{}", run.stderr);
    let text = fs::read_to_string(folder.path().join("breakeven-baselines/main.json")).unwrap();
    (folder, Bench::from_json(&text).unwrap())
}

#[test]
fn a_kernel_that_became_slower_is_found_and_told_everywhere() {
    let (folder, baseline) = with_baseline();
    assert_eq!(baseline.groups[0].rows[0].passes.len(), 12, "a baseline is surer than a run");
    let files = ["-o", "now.json", "--html=now.html", "--markdown=now.md", "--csv=now.csv"];
    let run = bench(&folder, &[&["--baseline=main", "--inject", "unary=slow:exp=300%"], &files[..]].concat());
    assert_eq!(run.code, 1, "{} {}", run.stdout, run.stderr);
    assert!(run.stdout.contains("2 rows are slower by more than 10.0 %."), "{}", run.stdout);
    assert!(run.stderr.contains("the gate is shut"), "{}", run.stderr);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("now.md").contains("2 rows are slower") && read("now.html").contains("2 rows are slower"));
    assert_eq!(read("now.csv").lines().count(), 3);
    let json: serde_json::Value = serde_json::from_str(&read("now.json")).unwrap();
    assert_eq!(json["gate"]["changes"][0]["kind"], "slower");
    // What was measured is a run like any other.
    assert_eq!(Bench::from_json(&read("now.json")).unwrap().groups[0].rows.len(), 2);
}

#[test]
fn a_baseline_of_another_machine_or_none_is_refused_before_anything_is_measured() {
    let (folder, mut baseline) = with_baseline();
    let missing = bench(&folder, &["--baseline=other"]);
    assert_eq!(missing.code, 2);
    let known = missing.stderr.contains("there is no baseline") && missing.stderr.contains("(there: main)");
    assert!(known && missing.stderr.contains("--save-baseline other"), "{}", missing.stderr);

    baseline.machine.cpu = "another processor".into();
    let path = folder.path().join("breakeven-baselines/main.json");
    fs::write(&path, baseline.to_json()).unwrap();
    let foreign = bench(&folder, &["--baseline=main"]);
    assert_eq!((foreign.code, foreign.stdout.as_str()), (2, ""));
    let told = foreign.stderr.contains("another processor then") && foreign.stderr.contains("--foreign-baseline");
    assert!(told, "{}", foreign.stderr);
    let accepted = bench(&folder, &["--baseline=main", "--foreign-baseline"]);
    assert!(accepted.code < 2 && accepted.stdout.contains("than 10.0 %"), "{} {}", accepted.stdout, accepted.stderr);

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let torn = bench(&folder, &["--baseline=main"]);
    assert_eq!(torn.code, 2);
    assert!(torn.stderr.contains("main.json: this is no bench.json"), "{}", torn.stderr);
}

#[test]
fn a_baseline_of_few_passes_is_told_of() {
    let folder = TempDir::new().unwrap();
    let run = bench(&folder, &["--save-baseline=few", "--passes=1", "--baseline-dir=kept/here"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("a baseline of 1 pass tells less than one of 12"), "{}", run.stderr);
    assert!(folder.path().join("kept/here/few.json").exists());
}

/// A baseline of one pass of the smallest case.
fn quickly(folder: &TempDir) -> Bench {
    let run = bench(folder, &["--passes=1", "--save-baseline=main"]);
    assert_eq!(run.code, 0, "{} {}", run.stdout, run.stderr);
    Bench::from_json(&fs::read_to_string(folder.path().join("breakeven-baselines/main.json")).unwrap()).unwrap()
}

/// A baseline in which nothing is faster than the machine could be: whoever is compared with it is not slower.
fn slow(mut bench: Bench) -> Bench {
    for row in bench.groups.iter_mut().flat_map(|group| &mut group.rows) {
        row.passes.iter_mut().flatten().for_each(|ns| *ns *= 100);
        row.settle();
    }
    bench
}

#[test]
fn rows_that_vanish_shut_the_gate_and_other_groups_are_not_counted() {
    let folder = TempDir::new().unwrap();
    let mut baseline = slow(quickly(&folder));
    let path = folder.path().join("breakeven-baselines/main.json");

    // Other groups than the baseline has: nothing can be compared, which is known before anything is measured.
    let other =
        ["rows/softmax", "--quick", "--calm=0", "--devices", "cpu", "--passes=1", "--samples=3", "--baseline=main"];
    let run = finish(command(&folder, &other));
    assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.stderr);
    assert!(run.stderr.contains("nothing in common with the baseline, which has unary on cpu"), "{}", run.stderr);

    // A device of the baseline that has gone, and a group that nobody asked for.
    let mut device = baseline.devices[0].clone();
    (device.id, device.name, device.kind) = ("gpu:7".into(), "a fine adapter".into(), "discrete".into());
    baseline.devices.push(device);
    let mut more = baseline.groups[0].rows.clone();
    more.iter_mut().for_each(|row| row.device = "gpu:7".into());
    baseline.groups[0].rows.extend(more);
    let mut rest = baseline.groups[0].clone();
    rest.name = "binary".into();
    baseline.groups.push(rest);
    fs::write(&path, baseline.to_json()).unwrap();
    let all = ["unary/exp", "--quick", "--calm=0", "--passes=1", "--samples=3", "--baseline=main", "--markdown=now.md"];
    let mut command = command(&folder, &all);
    command.envs([("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")]);
    command.env("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent");
    let run = finish(command);
    assert_eq!(run.code, 1, "{} {}", run.stdout, run.stderr);
    assert!(run.stdout.contains("2 rows were not measured any more"), "{}", run.stdout);
    let missing = "gpu:7 was not measured: the baseline has it (a fine adapter), and it is not here now.";
    let markdown = fs::read_to_string(folder.path().join("now.md")).unwrap();
    assert!(run.stdout.contains(missing) && markdown.contains("gpu:7 | missing"), "{} {markdown}", run.stdout);
    assert!(!run.stdout.contains("gone") && !run.stdout.contains("binary"), "{}", run.stdout);
    // Whoever asks for the CPU alone misses nothing.
    let run = bench(&folder, &["--passes=1", "--baseline=main"]);
    assert_eq!(run.code, 0, "{} {}", run.stdout, run.stderr);
}

#[test]
fn what_is_broken_or_slower_is_no_baseline() {
    let folder = TempDir::new().unwrap();
    let few = ["--passes=2", "--save-baseline=main"];
    let broken = bench(&folder, &[&few[..], &["--inject", "unary=leak"]].concat());
    assert_eq!(broken.code, 1, "{}", broken.stderr);
    assert!(broken.stderr.contains("the group unary failed; the baseline main was not saved"), "{}", broken.stderr);
    let path = folder.path().join("breakeven-baselines/main.json");
    assert!(!path.exists());
    let mut fast = quickly(&folder);
    for row in fast.groups.iter_mut().flat_map(|group| &mut group.rows) {
        row.passes = vec![vec![1; 5]; 2];
        row.settle();
    }
    fs::write(&path, fast.to_json()).unwrap();
    let slower = bench(&folder, &[&few[..], &["--baseline=main"]].concat());
    assert_eq!(slower.code, 1, "{}", slower.stderr);
    assert!(
        slower.stderr.contains("the gate is shut: see what changed; the baseline main was not saved"),
        "{}",
        slower.stderr
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), fast.to_json(), "it is what it was");
}

#[cfg(unix)]
#[test]
fn whoever_stops_reading_changes_neither_baseline_nor_verdict() {
    use std::process::Stdio;
    let folder = TempDir::new().unwrap();
    let closed = |args: &[&str]| {
        let mut command = command(&folder, &[&LITTLE, args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    assert_eq!(closed(&["--passes=1", "--save-baseline=main"]), Some(0));
    assert!(folder.path().join("breakeven-baselines/main.json").exists());
    assert_eq!(closed(&["--passes=1", "--inject", "unary=kill"]), Some(1));
}

#[test]
fn what_can_not_be_written_is_known_before_anything_is_measured() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for target in ["-o=file/x.json", "--html=file/x.html", "--markdown=.", "--csv=nowhere/x.csv", "--save-baseline=x"] {
        let run = bench(&folder, &["--baseline-dir=file/kept", target]);
        assert_eq!((run.code, &*run.stdout), (1, ""), "{target}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: cannot "), "{target}: {}", run.stderr);
    }
}

#[test]
fn the_gate_can_be_tried() {
    let folder = TempDir::new().unwrap();
    // A limit that nothing reaches: what is tested is that runs are counted, not this machine.
    let run = bench(&folder, &["--try-gate=1", "--passes=1", "--max-regression=900%"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert_eq!(run.stdout, "unchanged: 0 of 1 raised a false alarm\nexp slower by 15 %: 0 of 1 found\n");
    assert!(run.stderr.contains("the gate was not always right on this machine"), "{}", run.stderr);
}
