//! The binary on the devices of this machine, which must have a Vulkan and a GL driver, and as if it had none.

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Hides every driver: the loaders find no file that names one.
const NO_DRIVERS: &[(&str, &str)] = &[
    ("VK_DRIVER_FILES", "/nonexistent"),
    ("VK_ICD_FILENAMES", "/nonexistent"), // its name before Vulkan 1.3.207
    ("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent"),
];

/// How to get what a test misses.
const DRIVERS: &str = "no driver: apt-get install mesa-vulkan-drivers libegl1 libgles2 libgl1-mesa-dri";

struct Run {
    code: i32,
    stdout: String,
    /// Without what drivers print by themselves.
    stderr: String,
}

fn run(args: &[&str], env: &[(&str, &str)]) -> Run {
    let cache = TempDir::new().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    for name in ["BREAKEVEN_DEVICE", "BREAKEVEN_BACKENDS", "BREAKEVEN_SYNC_TIMEOUT", "BREAKEVEN_THREADS"] {
        command.env_remove(name);
    }
    command.current_dir(cache.path()).env("BREAKEVEN_CACHE_DIR", cache.path()).envs(env.iter().copied());
    let output = command.args(args).timeout(std::time::Duration::from_secs(60)).output().unwrap();
    // Mesa's device-select layer looks for a Wayland display, and libwayland says that there is none.
    let stderr = String::from_utf8(output.stderr).unwrap();
    let ours = stderr.lines().filter(|line| !line.contains("XDG_RUNTIME_DIR is invalid or not set"));
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: ours.map(|line| format!("{line}\n")).collect(),
    }
}

#[track_caller]
fn document(args: &[&str], env: &[(&str, &str)]) -> Value {
    let run = run(args, env);
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    // Nothing to notice, only what was asked for: the times of several runs.
    assert!(run.stderr.lines().all(|line| line.contains(" runs: median ")), "{args:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// The devices, of which there must be one behind each interface.
fn devices() -> Vec<Value> {
    let devices = document(&["devices", "--json"], &[])["devices"].as_array().unwrap().clone();
    for backend in ["cpu", "vulkan", "gl"] {
        assert!(devices.iter().any(|device| device["backend"] == backend), "{backend}: {DRIVERS}");
    }
    devices
}

#[test]
fn devices_are_listed_with_all_that_is_known() {
    let devices = devices();
    let text = run(&["devices"], &[]);
    assert_eq!((text.code, &*text.stderr), (0, ""));
    assert!(!text.stdout.contains('\x1b') && !text.stdout.contains("no GPU"), "{}", text.stdout);
    for (number, device) in devices.iter().enumerate() {
        let id = if number == 0 { "cpu".to_owned() } else { format!("gpu:{}", number - 1) };
        assert_eq!(device["id"], *id);
        let word = |key: &str| device[key].as_str().unwrap_or_else(|| panic!("{key} of {device}")).to_owned();
        assert!(["cpu", "discrete", "integrated", "virtual", "software", "other"].contains(&&*word("kind")));
        assert!(["healthy", "warning"].contains(&&*word("status")), "{device}");
        assert!(!word("name").is_empty() && !word("reason").is_empty());
        assert!(device["memory_bytes"].is_u64());
        assert!(text.stdout.contains(&format!("{id:<6} {}", word("name"))), "{id} in {}", text.stdout);
        if number > 0 {
            assert!(device["limits"]["buffer_bytes"].as_u64().unwrap() >= 1 << 27, "{device}");
            assert!(device["memory_bytes"].as_u64().unwrap() > 0 || word("kind") == "discrete");
            assert!(text.stdout.contains(&word("driver")) && !word("driver").is_empty());
            assert!(device["features"].is_array() && device["quirks"].is_array());
        }
    }
    assert_eq!(devices[0]["kind"], "cpu");
    // What is not a GPU is not sold as one.
    let software = devices.iter().filter(|device| device["kind"] == "software").count();
    assert_eq!(text.stdout.matches("(software: the CPU, not a GPU)").count(), software);
}

#[test]
fn an_expression_runs_on_each_device() {
    for device in devices() {
        let id = device["id"].as_str().unwrap();
        let sum = ["eval", "sum(arange(1000) * 2 + k)", "k=1", "--device", id];
        let printed = run(&sum, &[]);
        assert_eq!((printed.code, &*printed.stdout, &*printed.stderr), (0, "1000000\n", ""), "{id}");
        let document = document(&[&sum[..], &["--json", "--repeat", "3"]].concat(), &[]);
        let decision = &document["decision"];
        assert_eq!((&decision["device"], &decision["fallbacks"]), (&device["id"], &0.into()), "{decision}");
        assert_eq!(decision["reason"], format!("{id} was asked for"));
        assert_eq!(decision["faults"], serde_json::json!([]));
        let on_gpu = u64::from(id != "cpu");
        for one in ["submits", "passes", "readbacks"] {
            assert_eq!(decision[one], on_gpu, "{one}: {decision}");
        }
        assert_eq!(decision["dispatches"].as_u64().unwrap() > 0, on_gpu > 0, "{decision}");
        assert_eq!(decision["readback_bytes"].as_u64().unwrap() >= 4, on_gpu > 0, "{decision}");
        assert_eq!((&decision["created"], &decision["uploads"]), (&0.into(), &0.into()), "the third run: {decision}");
        assert!(decision["predicted_ns"][id].as_u64().unwrap() > 0);
        let explained = run(&[&sum[..], &["--explain"]].concat(), &[]).stdout;
        assert!(explained.contains(&format!("device      {id}: {id} was asked for (")), "{explained}");
        assert_eq!(explained.contains("submitted   1 time: "), on_gpu > 0, "{explained}");
    }
}

#[test]
fn inputs_are_uploaded_as_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.npy");
    let made = run(&["eval", "ones((40, 50)) * 2", "-o", path.to_str().unwrap()], &[]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let x = format!("x={}", path.display());
    let document = document(&["eval", "x @ x.T", &x, "--device", "gpu:0", "--json"], &[]);
    let decision = &document["decision"];
    assert_eq!((&decision["uploads"], &decision["upload_bytes"]), (&1.into(), &8000.into()), "{decision}");
    assert!(decision["readback_bytes"].as_u64().unwrap() >= 6400, "{decision}");
}

#[test]
fn a_device_that_is_not_there_is_the_users_mistake() {
    for (device, env) in [("gpu:99", &[][..]), ("gpu:0", NO_DRIVERS), ("gpu", NO_DRIVERS)] {
        let run = run(&["eval", "1 + 1", "--device", device], env);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{device}: {}", run.stderr);
        let begin = format!("error: {device} is not there: ");
        assert!(run.stderr.starts_with(&begin) && run.stderr.contains("install"), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

#[test]
fn without_any_driver_everything_works() {
    let plain = run(&["eval", "sum(arange(10))"], NO_DRIVERS);
    assert_eq!((plain.code, &*plain.stdout, &*plain.stderr), (0, "45\n", ""));
    // A GPU that the environment prefers is stood in for, with one plain notice.
    for device in ["gpu", "gpu:0"] {
        let env = [NO_DRIVERS, &[("BREAKEVEN_DEVICE", device)]].concat();
        let run = run(&["eval", "sum(arange(10))"], &env);
        assert_eq!((run.code, &*run.stdout), (0, "45\n"), "{}", run.stderr);
        assert!(run.stderr.starts_with(&format!("notice: ran on cpu: {device} ")), "{}", run.stderr);
        assert!(run.stderr.lines().count() == 1 && run.stderr.contains("install"), "{}", run.stderr);
    }
    let text = run(&["devices"], NO_DRIVERS);
    assert_eq!((text.code, &*text.stderr), (0, ""));
    assert!(text.stdout.starts_with("cpu ") && !text.stdout.contains("gpu:"), "{}", text.stdout);
    assert!(text.stdout.contains("\nno GPU: everything runs on the CPU. install "), "{}", text.stdout);
    let document = document(&["devices", "--json"], NO_DRIVERS);
    assert_eq!(document["devices"].as_array().unwrap().len(), 1);
    assert!(document["hint"].as_str().unwrap().contains("install"), "{document}");
}

#[test]
fn interfaces_can_be_chosen() {
    for backend in ["vulkan", "gl"] {
        let document = document(&["devices", "--json"], &[("BREAKEVEN_BACKENDS", backend)]);
        let devices = document["devices"].as_array().unwrap();
        assert!(devices.len() > 1, "{backend}: {DRIVERS}");
        assert!(devices[1..].iter().all(|device| device["backend"] == backend), "{document}");
    }
}
