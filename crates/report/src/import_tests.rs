//! Paths of every kind, told apart by what they hold.

use super::*;
use crate::fixture_tests::scan;
use std::fs;
use tempfile::TempDir;

const ESTIMATES: &str = r#"{"median": {"confidence_interval": {"confidence_level": 0.95, "lower_bound": 480.2,
    "upper_bound": 530.9}, "point_estimate": 500.4, "standard_error": 3.0}, "median_abs_dev": {"point_estimate": 14.826}}"#;

/// A folder with one of each.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("vulkan/scan.json", &scan().to_json());
    write("plain.csv", "size,cpu_us\n10,1\n");
    write("no-suffix", "size\tcpu_us\n10\t1\n");
    write("target/criterion/add/cpu/1000/new/estimates.json", ESTIMATES);
    write(
        "target/criterion/add/cpu/1000/new/benchmark.json",
        r#"{"group_id": "add", "function_id": "cpu", "value_str": "1000"}"#,
    );
    write("target/criterion/add/vulkan/1000/base/estimates.json", ESTIMATES);
    write("target/criterion/add/report/index.html", "<html>");
    write("other/readme.txt", "nothing");
    write("bad.json", "{\"version\": 99}");
    write("bad.csv", "hello\n");
    folder
}

#[test]
fn everything_is_told_apart_by_its_content() {
    let folder = folder();
    for (path, label, format, rows) in [
        ("vulkan", "vulkan", Format::Scan, scan().rows.len()),
        ("vulkan/scan.json", "vulkan", Format::Scan, scan().rows.len()),
        ("plain.csv", "plain", Format::Csv, 1),
        ("no-suffix", "no-suffix", Format::Csv, 1),
        ("target/criterion", "criterion", Format::Criterion, 2),
        ("target/criterion/add/cpu/1000", "1000", Format::Criterion, 1),
        ("target/criterion/add/cpu/1000/new/estimates.json", "1000", Format::Criterion, 1),
    ] {
        let read = read(&folder.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!((&*read.label, read.format, read.scan.rows.len()), (label, format, rows), "{path}");
        read.scan.check().unwrap();
    }
}

#[test]
fn criterion_is_walked_and_base_stands_in_for_what_is_not_new() {
    let scan = read(&folder().path().join("target/criterion")).unwrap().scan;
    let rows: Vec<(&str, u64, &str)> = scan.rows.iter().map(|row| (&*row.op, row.size, &*row.device)).collect();
    assert_eq!(rows, [("add", 1000, "cpu"), ("add", 1000, "gpu:0")]);
    let stats = scan.rows[0].stats;
    assert_eq!((stats.median_ns, stats.mad_ns, stats.interval_ns), (500, 10, Some((480, 531))));
    assert_eq!((scan.devices[1].backend.as_str(), stats.band(), stats.samples), ("vulkan", None, 0));
    assert!(scan.how.notes.iter().any(|note| note.contains("`base`")), "{:?}", scan.how.notes);
}

#[test]
fn what_is_nothing_of_that_is_refused_with_its_path_and_what_to_do() {
    let folder = folder();
    for (path, message) in [
        ("other", "has neither a scan.json nor criterion's estimates.json below it"),
        ("nowhere", "cannot read "),
        ("bad.json", "bad.json: this scan.json has version 99"),
        ("bad.csv", "bad.csv: line 1 has no column `size`: expected a header such as `size,cpu_us,gpu_us`"),
        ("other/readme.txt", "readme.txt: line 1 has no column `size`"),
    ] {
        let error = read(&folder.path().join(path)).expect_err(path).to_string();
        assert!(error.contains(message), "{path}: {error}");
    }
}

#[test]
fn imported_scans_survive_the_way_through_scan_json() {
    let folder = folder();
    for path in ["plain.csv", "target/criterion"] {
        let scan = read(&folder.path().join(path)).unwrap().scan;
        assert_eq!(Scan::from_json(&scan.to_json()).unwrap(), scan, "{path}");
    }
}

#[test]
fn pages_of_imported_scans_say_what_is_unknown() {
    let scan = read(&folder().path().join("target/criterion")).unwrap().scan;
    let page = crate::html(&scan);
    crate::fixture_tests::assert_self_contained(&page);
    assert!(page.contains(">unknown<") && page.contains("median within 480 ns to 531 ns"));
    assert!(!page.contains("class=\"band"), "nothing is known to reach from here to there");
    assert!(crate::csv(&scan).contains(",500,,,,,10,,false\r\n"), "{}", crate::csv(&scan));
}

#[cfg(unix)]
#[test]
fn a_circle_of_links_ends() {
    let folder = folder();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("target/criterion/loop")).unwrap();
    assert_eq!(read(&folder.path().join("target/criterion")).unwrap().scan.rows.len(), 2);
}
