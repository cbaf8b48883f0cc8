//! The binary as a user runs it: arguments and files in, files, text, JSON and exit codes out.

use std::{fs, path::Path};

use assert_cmd::Command;
use breakeven_cli::arrays::{self, HostArray, Kind};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with x.npy (f32 [2, 3]), w.npy (f32 [3, 2]), i.npy (i32 [3]) and model.npz (a, b).
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let save = |name: &str, array: &HostArray| arrays::write_npy(&folder.path().join(name), array).unwrap();
    save("x.npy", &floats(&[1.0, -2.0, 3.0, -4.0, 5.0, -6.0], &[2, 3]));
    save("w.npy", &floats(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[3, 2]));
    let ints = [1i32, -2, 3].map(i32::to_ne_bytes).concat();
    save("i.npy", &HostArray { dtype: Kind::I32, shape: vec![3], data: ints.into(), notice: None });
    let (a, b) = (floats(&[1.0, 2.0], &[2]), floats(&[10.0, 20.0], &[2]));
    arrays::write_npz(&folder.path().join("model.npz"), &[("a", &a), ("b", &b)]).unwrap();
    folder
}

fn floats(values: &[f32], shape: &[usize]) -> HostArray {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    HostArray { dtype: Kind::F32, shape: shape.to_vec(), data: data.into(), notice: None }
}

fn read(path: &Path, member: Option<&str>) -> (Vec<usize>, Vec<f32>) {
    let array = arrays::load(path, member).unwrap();
    assert_eq!(array.dtype, Kind::F32);
    let values = array.data.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect();
    (array.shape, values)
}

struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn run(folder: &TempDir, args: &[&str]) -> Run {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    // Nothing that was measured on this machine before.
    command.env("BREAKEVEN_CACHE_DIR", "").env_remove("BREAKEVEN_DEVICE");
    let output = command.current_dir(folder.path()).args(args).output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[track_caller]
fn succeed(folder: &TempDir, args: &[&str]) -> Run {
    let run = run(folder, args);
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    run
}

#[track_caller]
fn fail(folder: &TempDir, args: &[&str], code: i32, message: &str) {
    let run = run(folder, args);
    assert_eq!(run.code, code, "{args:?}: {}", run.stderr);
    assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    assert_eq!(run.stdout, "", "{args:?}");
}

#[test]
fn a_result_is_written_and_read_again() {
    let folder = folder();
    let run = succeed(&folder, &["eval", "maximum(x @ w, 0) + 1", "x=x.npy", "w=w.npy", "-o", "y.npy"]);
    assert_eq!((&*run.stdout, &*run.stderr), ("", ""));
    assert_eq!(read(&folder.path().join("y.npy"), None), (vec![2, 2], vec![5.0, 2.0, 1.0, 1.0]));
    // The output of one expression is the input of the next, and may replace it.
    succeed(&folder, &["eval", "y * 2", "y=y.npy", "-o", "y.npy"]);
    assert_eq!(read(&folder.path().join("y.npy"), None).1, [10.0, 4.0, 2.0, 2.0]);
}

#[test]
fn results_are_printed_as_numpy_prints_them() {
    let folder = folder();
    let print = |args: &[&str]| succeed(&folder, &[&["eval"], args].concat()).stdout;
    assert_eq!(print(&["x.T / 2", "x=x.npy"]), "f32[3, 2]\n[[ 0.5 -2. ]\n [-1.   2.5]\n [ 1.5 -3. ]]\n");
    assert_eq!(print(&["sum(x)", "x=x.npy"]), "-3.0\n");
    assert_eq!(print(&["2 ** n", "n=10"]), "1024\n");
    assert_eq!(print(&["-n", "n=-0.5"]), "0.5\n");
    assert_eq!(print(&["i > 0", "i=i.npy"]), "bool[3]\n[ True False  True]\n");
    assert_eq!(print(&["a = i; b = sum(i)", "i=i.npy", "-o", "out.npz", "--print"]), "a = i32[3]\n[ 1 -2  3]\nb = 2\n");
}

#[test]
fn inputs_come_in_every_form() {
    let folder = folder();
    let print = |args: &[&str]| succeed(&folder, &[&["eval"], args].concat()).stdout;
    assert_eq!(print(&["a + b", "model.npz"]), "f32[2]\n[11. 22.]\n");
    assert_eq!(print(&["v", "v=model.npz:b"]), "f32[2]\n[10. 20.]\n");
    assert_eq!(print(&["a * k", "model.npz", "k=3"]), "f32[2]\n[3. 6.]\n");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/f64_big_fortran.npy");
    let run = succeed(&folder, &["eval", "sum(x) * 0", &format!("x={}", data.display())]);
    assert_eq!(run.stdout.trim().trim_start_matches('-'), "0.0");
    assert!(run.stderr.starts_with("notice: input `x`: "), "{}", run.stderr);
    let run = succeed(&folder, &["eval", "a", "model.npz", "unused=3"]);
    assert_eq!(run.stderr, "notice: input `unused` is given, but the expression does not use it\n");
}

#[test]
fn named_outputs_go_to_their_files() {
    let folder = folder();
    let source = "h = x * 2; s = (2, 3); sum(h, axis=0)";
    succeed(
        &folder,
        &["eval", source, "x=x.npy", "-o", "h=h.npy", "-o", "y.npy", "-o", "h=two.npz", "-o", "out=two.npz"],
    );
    assert_eq!(read(&folder.path().join("h.npy"), None).0, [2, 3]);
    assert_eq!(read(&folder.path().join("y.npy"), None).1, [-6.0, 6.0, -6.0]);
    assert_eq!(arrays::read_npz_names(&folder.path().join("two.npz")).unwrap(), ["h", "out"]);
    succeed(&folder, &["eval", source, "x=x.npy", "-o", "all.npz"]);
    assert_eq!(arrays::read_npz_names(&folder.path().join("all.npz")).unwrap(), ["h", "out"]);
    assert_eq!(read(&folder.path().join("all.npz"), Some("out")).1, [-6.0, 6.0, -6.0]);
}

#[test]
fn the_document_has_the_keys_that_the_design_names() {
    let folder = folder();
    let args =
        ["eval", "x @ w", "x=x.npy", "w=w.npy", "-o", "y.npy", "--json", "--repeat", "5", "--explain", "--print"];
    let run = succeed(&folder, &args);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&document), ["decision", "outputs", "timing", "version"]);
    let output = serde_json::json!({"name": "out", "shape": [2, 2], "dtype": "f32", "path": "y.npy"});
    assert_eq!(document["outputs"], serde_json::json!([output]));
    let decision = &document["decision"];
    let expected = [
        "actual_ns",
        "created",
        "device",
        "device_ns",
        "dispatches",
        "fallbacks",
        "faults",
        "kernel_ns",
        "kernels",
        "passes",
        "predicted_ns",
        "predicted_parts",
        "readback_bytes",
        "readbacks",
        "reason",
        "regret_ns",
        "submits",
        "upload_bytes",
        "uploads",
    ];
    assert_eq!(keys(decision), expected);
    assert_eq!((&decision["device"], &decision["kernels"]), (&"cpu".into(), &1.into()));
    assert!(decision["predicted_ns"]["cpu"].as_u64().unwrap() > 0);
    assert!(decision["actual_ns"].as_u64().unwrap() > 0);
    for zero in ["dispatches", "submits", "upload_bytes", "readback_bytes", "fallbacks"] {
        assert_eq!(decision[zero], 0, "{zero}");
    }
    assert_eq!(keys(&document["timing"]), ["max_ns", "median_ns", "min_ns", "p90_ns", "samples"]);
    assert_eq!(document["timing"]["samples"], 5);
    // Everything else is on stderr.
    assert!(run.stderr.contains("f32[2, 2]") && run.stderr.contains("5 runs: median"), "{}", run.stderr);

    let once = succeed(&folder, &["eval", "n = 3", "--json"]);
    let document: Value = serde_json::from_str(&once.stdout).unwrap();
    assert_eq!(document["outputs"][0], serde_json::json!({"name": "n", "shape": [], "dtype": "i32", "path": null}));
    assert_eq!(document["decision"]["predicted_ns"], serde_json::json!({}), "nothing was measured before");
    assert_eq!(once.stderr, "");
}

#[test]
fn an_explanation_says_where_and_what() {
    let folder = folder();
    let text = succeed(&folder, &["eval", "relu(x) * 2", "x=x.npy", "--explain", "--repeat", "3"]).stdout;
    for part in [
        "f32[2, 3]\n[[ 2.",
        "3 runs: median ",
        "cpu: no GPU has been measured on this machine, so none can be known to pay (",
        "kernels     1\n",
        "plan: 1 kernel",
        "maximum(",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_simulated_gpu_is_measured_and_chosen_where_it_pays() {
    let folder = folder();
    // A card of 2,000 GFLOP/s and more against any CPU.
    let expression = "sum(ones((1500, 1500)) @ ones((1500, 1500)))";
    let run = succeed(&folder, &["eval", expression, "--simulate", "modern-discrete", "--json", "--explain"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let (decision, text) = (&document["decision"], run.stderr);
    assert_eq!(decision["device"], "gpu:0", "{text}");
    for device in ["cpu", "gpu:0"] {
        assert!(decision["predicted_ns"][device].as_u64().unwrap() > 0, "{decision}");
        let parts = decision["predicted_parts"][device].as_object().unwrap();
        let keys: Vec<&str> = parts.keys().map(String::as_str).collect();
        assert_eq!(keys, ["fixed_ns", "kernels_ns", "measured", "readback_ns", "upload_ns", "wait_ns"]);
        assert!(text.lines().any(|line| line.starts_with(device) && line.contains("predicted")), "{text}");
    }
    for part in ["expected ", "readback\n", "plan: ", "(simulated)", "in the plan's order: "] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // What a simulated device tells is no time that passed here.
    assert_eq!(decision["actual_ns"], document["timing"]["median_ns"]);
}

#[test]
fn all_devices_may_be_asked_for() {
    let folder = folder();
    let run = succeed(&folder, &["eval", "sum(x)", "x=x.npy", "--device", "all", "--objective", "throughput"]);
    assert_eq!(run.stdout, "-3.0\n");
}

#[test]
fn mistakes_are_pointed_at_with_exit_code_2() {
    let folder = folder();
    let run = run(&folder, &["eval", "softmax(relu(x @ x), axis=1)", "x=x.npy"]);
    assert_eq!(run.code, 2);
    assert_eq!(
        run.stderr,
        "\
error: matmul of [2, 3] and [2, 3]: the last axis of the left must equal the second last (or only) axis of the right
 --> expression:1:16
  |
1 | softmax(relu(x @ x), axis=1)
  |                ^
"
    );
    fail(&folder, &["eval", "x +"], 2, "expected a value, found the end");
    fail(&folder, &["eval", "y + z", "y=1"], 2, "`z` is not defined; known are y");
    fail(&folder, &["eval", "x", "x=missing.npy"], 2, "cannot read missing.npy");
    fail(&folder, &["eval", "x", "x.npy"], 2, "has no name; write name=file.npy");
    fail(&folder, &["eval", "a", "model.npz", "a=1"], 2, "input `a` is given twice");
    fail(&folder, &["eval", "x", "x=model.npz:c"], 2, "no array `c`");
    fail(&folder, &["eval", "take(x, [5], axis=0)", "x=x.npy"], 2, "index 5 is out of range");
    fail(&folder, &["eval", "f32"], 2, "found the dtype f32");
    fail(&folder, &["eval", "1", "-o", "y=y.npy"], 2, "the expression assigns no names");
    fail(&folder, &["eval", "h = 1", "-o", "y=y.npy"], 2, "it assigns h");
    fail(&folder, &["eval", "h = 1", "-o", "h=y.npy", "-o", "y.npy"], 2, "two outputs go to y.npy");
    fail(&folder, &["eval", "1", "-o", "y.csv"], 2, "use .npy or .npz");
    fail(&folder, &["eval", "1", "--device", "tpu"], 2, "expected auto, cpu, gpu, gpu:N or all");
    fail(&folder, &["eval", "1", "--objective", "speed"], 2, "expected latency or throughput");
    fail(&folder, &["eval", "1", "--simulate", "rtx9090"], 2, "expected rtx4090, dx12-laptop, modern-discrete");
    fail(&folder, &["eval", "1", "--simulate", "missing.toml"], 2, "missing.toml: ");
    fail(&folder, &["eval", "1", "--repeat", "0"], 2, "--repeat");
    fail(&folder, &["eval", "1", "--nonsense"], 2, "--nonsense");
    fail(&folder, &["eval"], 2, "<EXPRESSION>");
    fail(&folder, &["nonsense"], 2, "nonsense");
    fail(&folder, &["ops", "sofmax"], 2, "did you mean `softmax`?");
    assert!(!folder.path().join("y.npy").exists());
}

#[test]
fn failures_have_exit_code_1() {
    let folder = folder();
    fail(&folder, &["eval", "1", "-o", "missing/y.npy"], 1, "cannot write missing/y.npy");
    // Four TiB of results: refused by its size where that is known, else by the allocator.
    fail(&folder, &["eval", "ones((2**20, 2**20))"], 1, "memory");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left behind");
}

#[test]
fn a_setting_that_makes_no_sense_is_the_users() {
    let folder = folder();
    for (name, value, message) in [
        ("BREAKEVEN_THREADS", "many", "expected a whole number from 1 to 4096"),
        ("BREAKEVEN_DEVICE", "tpu", "expected auto, cpu, gpu, gpu:N or all"),
        ("BREAKEVEN_BACKENDS", "vulkan,cuda", "expected some of vulkan, gl, dx12, metal"),
        ("BREAKEVEN_BACKENDS", "", "expected some of vulkan, gl, dx12, metal"),
        ("BREAKEVEN_SYNC_TIMEOUT", "soon", "expected a time such as 5, 2.5s or 800ms"),
        ("BREAKEVEN_SYNC_TIMEOUT", "0", "expected a time such as 5, 2.5s or 800ms"),
    ] {
        for args in [&["eval", "1"][..], &["devices", "--json"]] {
            let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
            let output = command.current_dir(folder.path()).env(name, value).args(args).output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), &*output.stdout), (Some(2), &[][..]), "{name}={value}: {stderr}");
            assert!(stderr.starts_with(&format!("error: {name}={value}: {message}")), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        }
    }
}

#[test]
fn the_functions_are_listed_by_class() {
    let folder = folder();
    let text = succeed(&folder, &["ops"]).stdout;
    for class in
        ["elementwise: ", "activation: ", "reduce: ", "scan: ", "row: ", "contract: ", "movement: ", "create: "]
    {
        assert_eq!(text.lines().filter(|line| line.starts_with(class)).count(), 1, "{class}");
    }
    for op in breakeven::Op::ALL {
        let prefix = format!("  {} ", op.row().name);
        assert_eq!(text.lines().filter(|line| line.starts_with(&prefix)).count(), 1, "{prefix}");
    }
    assert!(text.contains("sum(x, axis=None, keepdims=False)") && !text.contains('\x1b'), "{text}");
    let one = succeed(&folder, &["ops", "power"]).stdout;
    assert_eq!(one, "pow  pow(x, y)  x ** y  f32 i32 u32   1.5  x to the power of y\nalso known as power\n");

    let document: Value = serde_json::from_str(&succeed(&folder, &["ops", "--json"]).stdout).unwrap();
    let ops = document["ops"].as_array().unwrap();
    assert!(ops.len() >= breakeven::Op::ALL.len() + 40);
    let exp = ops.iter().find(|op| op["name"] == "exp").unwrap();
    assert_eq!((&exp["class"], &exp["signature"]), (&"elementwise".into(), &"exp(x)".into()));
    assert_eq!(exp["dtypes"], serde_json::json!([{"args": ["f32"], "result": "f32"}]));
    assert!(exp["ulp"].as_f64().unwrap() <= 4.0);
    assert!(ops.iter().find(|op| op["name"] == "sum").unwrap()["ulp"].is_null());
}

#[test]
fn help_has_examples() {
    let folder = folder();
    let text = succeed(&folder, &["eval", "--help"]).stdout;
    assert!(text.contains("softmax(relu(x @ w + b), axis=1)") && text.contains("--explain"), "{text}");
    assert!(succeed(&folder, &["--help"]).stdout.contains("ops"));
    for (command, example) in [
        ("scan", "breakeven scan --quick -o /tmp/scan"),
        ("cache", "breakeven cache show"),
        ("devices", "breakeven devices --json"),
        ("ops", "breakeven ops softmax"),
    ] {
        let text = succeed(&folder, &[command, "--help"]).stdout;
        assert!(text.contains("Examples:") && text.contains(example), "{text}");
    }
    assert!(succeed(&folder, &["--version"]).stdout.starts_with("breakeven "));
}

#[test]
fn a_deadline_is_kept_or_told() {
    let folder = folder();
    let run = succeed(&folder, &["eval", "relu(x) * 2", "x=x.npy", "--deadline", "60s", "--json", "--repeat", "3"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["decision"]["device"], "cpu");
    // Eight transcendental functions of 10^8 elements.
    let long = "sum(exp(sin(exp(sin(exp(sin(exp(sin(ones((10000, 10000)) * n)))))))))";
    fail(&folder, &["eval", long, "n=0.5", "--deadline", "1ms"], 1, "the deadline of 1000 us has passed");
    fail(&folder, &["eval", "1", "--deadline", "soon"], 2, "800ms");
}
