//! `breakeven scan` as a user runs it: restricted to what takes a few seconds.

use std::{fs, path::Path, process::Command as Process, time::Duration};

use assert_cmd::Command;
use breakeven_report::Scan;
use tempfile::TempDir;

/// Hides every driver: the loaders find no file that names one.
const NO_DRIVERS: &[(&str, &str)] = &[
    ("VK_DRIVER_FILES", "/nonexistent"),
    ("VK_ICD_FILENAMES", "/nonexistent"), // its name before Vulkan 1.3.207
    ("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent"),
];

/// Two sizes of one op within three seconds.
const LITTLE: [&str; 9] = ["scan", "--quick", "--ops", "add", "--sizes", "1k,64k", "--samples=3", "--budget", "3"];

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(folder: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Run {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    for name in ["BREAKEVEN_DEVICE", "BREAKEVEN_BACKENDS", "BREAKEVEN_THREADS"] {
        command.env_remove(name);
    }
    command.current_dir(folder.path()).env("BREAKEVEN_CACHE_DIR", folder.path().join("cache"));
    let output = command.envs(env.iter().copied()).args(args).timeout(Duration::from_secs(120)).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[track_caller]
fn read(folder: &Path) -> Scan {
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let scan = Scan::from_json(&text("scan.json")).unwrap();
    assert_eq!(text("scan.csv").lines().count(), 1 + scan.rows.len());
    assert_eq!(text("transfers.csv").lines().count(), 1 + scan.transfers.len());
    assert!(text("summary.md").starts_with("# Where work pays"));
    assert!(text("report.html").starts_with("<!DOCTYPE html>"));
    scan
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_scan_prints_a_table_and_writes_its_files() {
    let folder = TempDir::new().unwrap();
    let run = run(&folder, &[&LITTLE[..], &["--devices", "cpu", "-o", "deep/out"]].concat(), &[]);
    assert_eq!((run.code, &*run.stderr), (0, ""), "{}", run.stdout);
    let scan = read(&folder.path().join("deep/out"));
    let rows: Vec<(&str, u64, &str)> = scan.rows.iter().map(|row| (&*row.op, row.size, &*row.device)).collect();
    assert_eq!(rows, [("add", 1000, "cpu"), ("add", 64_000, "cpu")]);
    assert!(scan.rows.iter().all(|row| row.stats.samples == 3 && row.stats.median_ns > 0));
    assert!(scan.how.quick && !scan.how.interrupted && scan.how.samples == 3 && scan.how.seconds < 20.0);
    assert!(scan.how.date.ends_with(" UTC") && !scan.machine.cpu.is_empty() && scan.machine.threads > 0);
    assert_eq!((scan.overheads.len(), &*scan.overheads[0].device), (1, "cpu"));
    assert!(scan.transfers.is_empty(), "the CPU has none");
    assert!(
        run.stdout.contains("no other device was measured") && run.stdout.contains("out/report.html"),
        "{}",
        run.stdout
    );
    // What the CPU costs is remembered for the router.
    let cached = files(&folder.path().join("cache"));
    assert!(cached.iter().any(|name| name.starts_with("costs-") && name.ends_with(".json")), "{cached:?}");
}

#[test]
fn a_simulated_gpu_takes_what_was_published_and_is_not_remembered() {
    let folder = TempDir::new().unwrap();
    let args = ["scan", "--quick", "--ops", "add,chain,many", "--sizes", "10k,1M", "--samples=3", "--budget", "8"];
    let run = run(&folder, &[&args[..], &["--simulate", "rtx4090", "--json"]].concat(), NO_DRIVERS);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let scan = Scan::from_json(&run.stdout).unwrap();
    assert_eq!(scan, read(&folder.path().join("breakeven-scan")), "stdout has what the file has");
    assert_eq!(scan.devices.len(), 2);
    assert_eq!((&*scan.devices[1].id, &*scan.devices[1].kind), ("gpu:0", "simulated"));
    let add = |size: u64| scan.rows.iter().find(|r| r.op == "add" && r.size == size && r.device == "gpu:0").unwrap();
    assert_eq!(add(1_000_000).stats.median_ns, 5_980_000, "as published");
    assert_eq!(scan.fused.len(), 1, "the chain as calls and as one batch");
    assert!(scan.transfers.is_empty(), "nothing is moved to a device that is not there");
    assert!(scan.rows.iter().all(|row| row.op != "chain as 10 calls"));
    assert!(run.stderr.contains("gpu:0 simulated is no real device"), "{}", run.stderr);
    assert!(files(&folder.path().join("cache")).is_empty());
}

#[test]
fn without_any_driver_the_cpu_is_measured_alone() {
    let folder = TempDir::new().unwrap();
    let run = run(&folder, &LITTLE, NO_DRIVERS);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(read(&folder.path().join("breakeven-scan")).devices.len(), 1);
    assert!(run.stdout.contains("no GPU was found") && run.stdout.contains("install "), "{}", run.stdout);
}

#[test]
fn every_adapter_is_measured_and_labelled() {
    let folder = TempDir::new().unwrap();
    let run = run(&folder, &[&LITTLE[..7], &["--budget", "6"]].concat(), &[("BREAKEVEN_BACKENDS", "vulkan")]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let scan = read(&folder.path().join("breakeven-scan"));
    assert!(scan.devices.len() > 1, "no driver: apt-get install mesa-vulkan-drivers");
    for device in &scan.devices {
        assert_eq!(scan.rows.iter().filter(|row| row.device == device.id).count(), 2, "{}", device.id);
        assert_eq!(run.stdout.contains(&format!("{} software", device.id)), device.kind == "software");
    }
    let overhead = scan.overheads.iter().find(|overhead| overhead.device == "gpu:0").unwrap();
    assert!(overhead.fixed_ns > 0 && overhead.upload_ns_per_mib > 0, "{overhead:?}");
    for device in scan.devices.iter().filter(|device| device.kind != "cpu") {
        for (direction, way) in [("upload", "pageable"), ("upload", "staged"), ("readback", "staged")] {
            let is_it =
                |t: &&breakeven_report::Transfer| (&*t.device, &*t.direction, &*t.way) == (&*device.id, direction, way);
            let of_way: Vec<_> = scan.transfers.iter().filter(is_it).collect();
            assert!(!of_way.is_empty(), "{} {direction} {way}: {}", device.id, run.stdout);
            assert!(of_way.is_sorted_by_key(|t| t.bytes) && of_way.iter().all(|t| t.stats.median_ns > 1000));
        }
        let pageable = |t: &&breakeven_report::Transfer| t.direction == "readback" && t.way == "pageable";
        assert!(!scan.transfers.iter().any(|t| pageable(&t)), "wgpu has no call for it");
    }
    assert!(run.stdout.contains("transfers, at best") && run.stdout.contains("not available"), "{}", run.stdout);
    let text = |name: &str| fs::read_to_string(folder.path().join("breakeven-scan").join(name)).unwrap();
    assert!(text("summary.md").contains("## How fast bytes go to a device and back"));
    assert!(text("report.html").contains("How fast bytes go to a device and back"));
}

#[cfg(unix)]
#[test]
fn an_interruption_keeps_what_was_measured() {
    let folder = TempDir::new().unwrap();
    let mut command = Process::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    command.current_dir(folder.path()).env("BREAKEVEN_CACHE_DIR", folder.path().join("cache"));
    command.args(["scan", "--devices", "cpu", "-o", "out"]).stdout(std::process::Stdio::null());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Its folder is made once Ctrl-C is caught.
    for _ in 0..600 {
        if folder.path().join("out").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it was to take minutes");
    let killed = Process::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.trim()), (Some(130), "interrupted: what was measured until then is kept"));
    let text = fs::read_to_string(folder.path().join("out/scan.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["how"]["interrupted"], true);
    assert!(fs::read_to_string(folder.path().join("out/report.html")).unwrap().contains("interrupted"));
}

#[test]
fn mistakes_are_said_with_exit_code_2() {
    let folder = TempDir::new().unwrap();
    for (args, message) in [
        (&["--ops", "exp"][..], "expected some of add, sigmoid, chain, sum, softmax, cumsum, matmul, many, many4k"),
        (&["--ops", ""], "expected some of add"),
        (&["--sizes", "1k,many"], "such as 10, 64k, 1M or 64Ki"),
        (&["--sizes", "0"], "such as 10, 64k, 1M or 64Ki"),
        (&["--samples", "1"], "3..=10000"),
        (&["--budget", "0"], "1..=86400"),
        (&["--devices", "all"], "expected some of cpu, gpu:0"),
        (&["--devices", "cpu,gpu:3"], "there is no gpu:3 here, only cpu"),
        (&["--devices", "gpu:1", "--simulate", "rtx4090"], "there is no gpu:1 here, only cpu, gpu:0"),
        (&["--simulate", "rtx9090"], "expected rtx4090, dx12-laptop, modern-discrete"),
        (&["--nonsense"], "--nonsense"),
    ] {
        let run = run(&folder, &[&["scan"], args].concat(), NO_DRIVERS);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    assert_eq!(files(folder.path()).len(), 0, "nothing is left behind");
}

#[test]
fn a_folder_that_cannot_be_made_is_a_failure_before_the_measuring() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let begun = std::time::Instant::now();
    let run = run(&folder, &["scan", "--devices", "cpu", "-o", "file/out"], &[]);
    assert_eq!((run.code, &*run.stdout), (1, ""));
    assert!(run.stderr.starts_with("error: cannot create file/out: "), "{}", run.stderr);
    assert!(begun.elapsed() < Duration::from_secs(10));
}
