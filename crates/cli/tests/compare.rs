//! `breakeven compare` as a user runs it, over files made by hand.

use std::{fs, time::Duration};

use assert_cmd::Command;
use breakeven_report::{Device, Row, Scan, Stats};
use tempfile::TempDir;

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(folder: &TempDir, args: &[&str]) -> Run {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    let output = command.current_dir(folder.path()).arg("compare").args(args).timeout(Duration::from_secs(60)).output();
    let output = output.unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A scan of `add` whose GPU takes so long whatever the size.
fn scan(backend: &str, gpu_ns: Option<u64>) -> Scan {
    let gpu = Device { id: "gpu:0".into(), kind: "discrete".into(), backend: backend.into(), ..Device::default() };
    let row = |device: &str, size: u64, ns: u64| Row {
        op: "add".into(),
        class: "map".into(),
        size,
        unit: "elements".into(),
        device: device.into(),
        stats: Stats::of(&[ns - ns / 50, ns, ns + ns / 50]).unwrap(),
    };
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    let cpu = sizes.iter().map(|&size| row("cpu", size, size));
    let of_gpu = sizes.iter().filter_map(|&size| Some(row("gpu:0", size, gpu_ns?)));
    let mut scan = Scan { rows: cpu.chain(of_gpu).collect(), ..Scan::default() };
    scan.devices = std::iter::once(Device::cpu("Xeon")).chain(gpu_ns.map(|_| gpu)).collect();
    (scan.machine.cpu, scan.machine.threads, scan.how.samples) = ("Xeon".into(), 2, 3);
    scan
}

/// Scans, a CSV and criterion's folder.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("vulkan/scan.json", &scan("vulkan", Some(50_000)).to_json());
    write("gl/scan.json", &scan("gl", Some(200_000)).to_json());
    write("alone/scan.json", &scan("", None).to_json());
    write("old.csv", "# op: add\n# crossover: 5k\nsize,cpu_us,gpu_us\n10000,11,48\n100000,105,52\n");
    write("criterion/add/cpu/10000/new/estimates.json", r#"{"median": {"point_estimate": 9800.5}}"#);
    folder
}

#[test]
fn backends_of_one_machine_are_set_side_by_side() {
    let folder = folder();
    let run = run(&folder, &["vulkan/scan.json", "gl/scan.json", "-o", "deep/out"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.stderr,
        "vulkan: vulkan/scan.json is read as scan.json: 8 rows\ngl: gl/scan.json is read as scan.json: 8 rows\n"
    );
    assert!(run.stdout.starts_with("One machine (Xeon, 2 threads), other backends: vulkan, gl\n"), "{}", run.stdout);
    assert!(run.stdout.contains("from 50 k elements on   from 200 k elements on"), "{}", run.stdout);
    assert!(run.stdout.contains("vulkan is 4.0x as fast as gl"), "{}", run.stdout);
    assert!(run.stdout.contains("warning: sides disagree: vulkan and gl disagree about add"), "{}", run.stdout);
    let text = |name: &str| fs::read_to_string(folder.path().join("deep/out").join(name)).unwrap();
    assert_eq!(text("compare.csv").lines().count(), 1 + 16);
    assert!(text("summary.md").starts_with("# Side by side: vulkan, gl\n"));
    assert!(text("report.html").starts_with("<!DOCTYPE html>"));
    assert!(text("compare.json").contains("\"version\": 1"));
}

#[test]
fn everything_that_can_be_compared_is_told_apart() {
    let folder = folder();
    let run = run(&folder, &["vulkan", "new=gl/scan.json", "alone", "old.csv", "criterion"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in [
        "vulkan: vulkan is read as scan.json: 8 rows",
        "new: gl/scan.json is read as scan.json: 8 rows",
        "old: old.csv is read as CSV of a size scan: 4 rows",
        "criterion: criterion is read as criterion's estimates: 1 row",
    ] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
    assert!(run.stdout.contains("alone: its GPU is missing"), "{}", run.stdout);
    assert!(run.stdout.contains("claim against rows: old: line 2 of the CSV says of add"), "{}", run.stdout);
    assert!(folder.path().join("breakeven-compare/report.html").exists(), "there by default");
}

#[test]
fn json_is_one_document_and_the_table_goes_to_stderr() {
    let run = run(&folder(), &["vulkan", "alone", "--json", "--claim", "add@gpu:0=1M", "--claim", "*=50k"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let outcomes: Vec<&str> = json["claims"].as_array().unwrap().iter().filter_map(|c| c["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["contradicted", "holds", "untested", "untested"]);
    assert_eq!(json["contradictions"].as_array().map(Vec::len), Some(1));
    assert!(run.stderr.contains("operation") && run.stderr.contains("written: "), "{}", run.stderr);
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let folder = folder();
    let files = || {
        assert_eq!(run(&folder, &["vulkan", "gl", "old.csv", "-o", "out"]).code, 0);
        ["compare.csv", "compare.json", "summary.md", "report.html"]
            .map(|name| fs::read(folder.path().join("out").join(name)).unwrap())
    };
    assert_eq!(files(), files());
}

#[test]
fn strict_fails_on_contradictions_after_everything_is_written() {
    let folder = folder();
    let strict = run(&folder, &["vulkan", "gl", "--strict", "-o", "out"]);
    assert_eq!(strict.code, 1, "{}", strict.stdout);
    assert!(
        strict.stderr.contains("error: one contradiction was found, which --strict does not let pass"),
        "{}",
        strict.stderr
    );
    assert!(folder.path().join("out/report.html").exists());
    assert_eq!(run(&folder, &["vulkan", "vulkan", "--strict"]).code, 0, "without any it is a success");
}

#[test]
fn mistakes_are_said_with_exit_code_2() {
    let folder = folder();
    fs::write(folder.path().join("bad.csv"), "size,cpu_us\n10,fast\n").unwrap();
    fs::write(folder.path().join("bad.json"), "{}").unwrap();
    for (args, message) in [
        (&["vulkan"][..], "a comparison needs two scans or more, but there is 1"),
        (&[], "required"),
        (&["vulkan", "nowhere"], "error: cannot read nowhere: "),
        (&["vulkan", "a=nowhere"], "error: cannot read nowhere: "),
        (&["vulkan", "bad.csv"], "error: bad.csv: line 2, column 2 (`cpu_us`): `fast` is no time"),
        (&["vulkan", "bad.json"], "error: bad.json: this is no scan.json: "),
        (&["vulkan", "gl", "--claim", "add"], "`add` is no claim: expected OP[@DEVICE]=SIZE"),
    ] {
        let run = run(&folder, args);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    assert!(!folder.path().join("breakeven-compare").exists(), "nothing is left behind");
}

#[test]
fn old_and_new_size_scans_are_compared_whatever_their_files_are_called() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("before.csv", "size,cpu_us,gpu_us\n1000,10,40\n100000,100,50\n");
    write("after.csv", "size,cpu_us,gpu_us\n1000,5,40\n100000,50,50\n");
    let plain = run(&folder, &["before.csv", "after.csv"]);
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    assert!(plain.stdout.contains("after is 2.0x as fast as before"), "{}", plain.stdout);
    // Named, it is compared with a scan.
    let named = run(&folder, &["vulkan", "before.csv", "--op", "add"]);
    assert!(
        named.stdout.contains("as fast as") && !named.stderr.contains("warning"),
        "{} {}",
        named.stdout,
        named.stderr
    );
    // Two that have nothing in common: that can't be overlooked.
    let other = run(&folder, &["vulkan", "before.csv"]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    for text in [&other.stdout, &other.stderr] {
        assert!(text.contains("NO TIMES WERE COMPARED") && text.contains("--op NAME"), "{text}");
    }
    assert_eq!(run(&folder, &["vulkan", "before.csv", "--strict"]).code, 1);
}
