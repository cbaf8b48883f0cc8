//! Benchmarks as criterion names them, and bytes that it never wrote.

use super::*;
use proptest::prelude::*;

/// A benchmark whose median is so long.
fn bench(group: &str, function: Option<&str>, value: Option<&str>, throughput: Value, ns: f64) -> Benchmark {
    let names =
        serde_json::json!({"group_id": group, "function_id": function, "value_str": value, "throughput": throughput});
    Benchmark {
        path: format!("{group}/{}/{}", function.unwrap_or(""), value.unwrap_or("")),
        estimates: serde_json::json!({"median": {"point_estimate": ns}}).to_string().into_bytes(),
        benchmark: Some(names.to_string().into_bytes()),
        is_base: false,
    }
}

/// (op, size, unit, device) of each row.
fn rows(benchmarks: &[Benchmark]) -> Vec<(String, u64, String, String)> {
    let scan = criterion(benchmarks).unwrap_or_else(|error| panic!("{error}"));
    scan.check().unwrap();
    scan.rows.into_iter().map(|row| (row.op, row.size, row.unit, row.device)).collect()
}

fn row(op: &str, size: u64, unit: &str, device: &str) -> (String, u64, String, String) {
    (op.into(), size, unit.into(), device.into())
}

#[test]
fn functions_that_name_a_device_are_devices() {
    let functions = ["cpu", "GPU", "gpu:2", "gpu_3", "vulkan", "Metal"];
    let all: Vec<Benchmark> = functions.iter().map(|f| bench("add", Some(f), Some("64k"), Value::Null, 5.0)).collect();
    let devices: Vec<String> = rows(&all).into_iter().map(|row| row.3).collect();
    assert_eq!(devices, ["cpu", "gpu:0", "gpu:1", "gpu:2", "gpu:3", "gpu:4"]);
    let scan = criterion(&all).unwrap();
    let backends: Vec<(&str, &str)> = scan.devices.iter().map(|d| (&*d.id, &*d.backend)).collect();
    assert!(backends.contains(&("gpu:1", "metal")) && backends.contains(&("gpu:4", "vulkan")), "{backends:?}");
    assert!(scan.how.notes.iter().any(|note| note.contains("taken for numbers of elements")));
}

#[test]
fn other_functions_are_ops_on_the_cpu() {
    let none = || Value::Null;
    let all = [
        bench("sums", Some("naive"), Some("1000"), none(), 5.0),
        bench("sums", Some("pairwise"), Some("1000"), none(), 5.0),
        bench("other", Some("naive"), Some("1000"), none(), 5.0),
        bench("alone", None, None, none(), 5.0),
        bench("by parameter", None, Some("4096"), none(), 5.0),
        bench("named", Some("sort"), Some("random order"), none(), 5.0),
        bench("gpus", Some("gpuish"), None, none(), 5.0),
    ];
    assert_eq!(
        rows(&all),
        [
            row("alone", 1, "calls", "cpu"),
            row("by parameter", 4096, "elements", "cpu"),
            row("gpuish", 1, "calls", "cpu"),
            row("other/naive", 1000, "elements", "cpu"),
            row("pairwise", 1000, "elements", "cpu"),
            row("sort/random order", 1, "calls", "cpu"),
            row("sums/naive", 1000, "elements", "cpu"),
        ]
    );
}

#[test]
fn throughput_says_more_than_a_parameter() {
    let elements = bench("matmul", Some("cpu"), Some("64"), serde_json::json!({"Elements": 4096}), 5.0);
    assert_eq!(rows(&[elements]), [row("matmul", 4096, "elements", "cpu")]);
    let bytes = bench("copy", Some("cpu"), Some("large"), serde_json::json!({"Bytes": 512}), 5.0);
    assert_eq!(rows(&[bytes]), [row("copy", 512, "bytes", "cpu")]);
    let unknown = bench("copy", Some("cpu"), Some("8"), serde_json::json!({"Fields": 3}), 5.0);
    assert_eq!(rows(&[unknown]), [row("copy", 8, "elements", "cpu")]);
}

#[test]
fn folders_tell_names_where_no_file_does() {
    let of = |path: &str| Benchmark { path: path.into(), benchmark: None, ..bench("", None, None, Value::Null, 5.0) };
    assert_eq!(rows(&[of("add/gpu/1000")]), [row("add", 1000, "elements", "gpu:0")]);
    assert_eq!(rows(&[of("add/1000")]), [row("add", 1000, "elements", "cpu")]);
    let nameless = bench("", Some("cpu"), Some("8"), Value::Null, 5.0);
    assert_eq!(rows(&[nameless]), [row("benchmark", 8, "elements", "cpu")]);
    assert_eq!(rows(&[of("")]), [row("benchmark", 1, "calls", "cpu")]);
}

#[test]
fn mistakes_name_the_file() {
    let estimates =
        |text: &str| Benchmark { estimates: text.into(), ..bench("a", Some("cpu"), None, Value::Null, 5.0) };
    for (text, message) in [
        ("", "a/cpu//new/estimates.json is not criterion's: EOF"),
        ("{}", "missing field `median`"),
        (r#"{"median": {"point_estimate": null}}"#, "line 1 column"),
        (r#"{"median": {"point_estimate": -5}}"#, "has a median of -5 ns"),
        (r#"{"median": {"point_estimate": 0.0001}}"#, "has a median of 0.0001 ns, which is no time of a run"),
    ] {
        let error = criterion(&[estimates(text)]).expect_err(text).to_string();
        assert!(error.contains(message) && error.ends_with("run `cargo bench` again"), "{error}");
    }
    let twice = [bench("a", Some("gpu"), None, Value::Null, 5.0), bench("a", Some("gpu:0"), None, Value::Null, 5.0)];
    assert!(
        criterion(&twice).is_err_and(|error| error.to_string().contains("are the same operation, size and device"))
    );
    assert!(matches!(criterion(&[]), Err(CriterionError::Empty)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_sound(
        path in ".{0,30}",
        estimates in proptest::collection::vec(any::<u8>(), 0..200),
        names in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
    ) {
        if let Ok(scan) = criterion(&[Benchmark { path, estimates, benchmark: names, is_base: false }]) {
            prop_assert!(scan.check().is_ok());
        }
    }

    #[test]
    fn arbitrary_numbers_and_names_are_refused_or_sound(
        ns in any::<f64>(), mad in any::<f64>(), low in any::<f64>(), high in any::<f64>(), elements in any::<u64>(),
        group in ".{0,8}", function in proptest::option::of(".{0,8}"), value in proptest::option::of("[0-9kMi.x-]{0,8}"),
    ) {
        let estimates = serde_json::json!({
            "median": {"point_estimate": ns, "confidence_interval": {"lower_bound": low, "upper_bound": high}},
            "median_abs_dev": {"point_estimate": mad},
        });
        let throughput = serde_json::json!({"Elements": elements});
        let mut benchmark = bench(&group, function.as_deref(), value.as_deref(), throughput, 1.0);
        benchmark.estimates = estimates.to_string().into_bytes();
        if let Ok(scan) = criterion(&[benchmark]) {
            prop_assert!(scan.check().is_ok(), "{:?}", scan.check());
        }
    }
}
