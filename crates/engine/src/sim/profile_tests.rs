//! Profiles: those that are shipped are read, and every kind of mistake is told with its line.

use super::*;

const GOOD: &str = "name = 'a card'
source = 'nowhere'
[fixed]
buffer_creation_us = 1
upload_us = 2
dispatch_us = 3
readback_us = 4
[transfer]
upload_gb_s = 10
readback_gb_s = 5.5
[map]
add = [[1000, 20], [2000, 30]]
[contract]
gflop_s = [[100, 10]]
";

#[track_caller]
fn error_with(old: &str, new: &str) -> ProfileError {
    assert!(GOOD.contains(old), "{old}");
    SimProfile::parse(&GOOD.replace(old, new)).unwrap_err()
}

#[test]
fn the_least_profile_is_read() {
    let profile = SimProfile::parse(GOOD).unwrap();
    assert_eq!((profile.name(), profile.source()), ("a card", "nowhere"));
    let costs = profile.costs();
    assert_eq!((costs.call_ns, costs.upload_ns, costs.readback_ns), (4e3, 2e3, 4e3));
    assert_eq!((costs.op_ns, costs.least_kernel_ns), (0.0, 0.0));
    assert_eq!((&costs.reduce, &costs.scan), (&costs.map, &costs.map));
}

#[test]
fn everything_optional_is_read() {
    let more = "op_ns = 0.5\n[kernel]\nleast_us = 1.5\n[reduce]\nelement_ns = 2\n[scan]\nelement_ns = 3\n[contract]";
    let costs = SimProfile::parse(&GOOD.replace("[contract]", more)).unwrap().costs;
    assert_eq!((costs.op_ns, costs.least_kernel_ns), (0.5, 1500.0));
    assert_eq!((costs.reduce.ns(10.0), costs.scan.ns(10.0)), (20.0, 30.0));
}

#[test]
fn shipped_profiles_are_found_by_name_and_say_where_they_are_from() {
    assert_eq!(SimProfile::shipped().len(), 3);
    for (name, _) in SimProfile::shipped() {
        let profile = SimProfile::by_name(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(profile.source().len() > 40, "{name}");
        assert_eq!(SimProfile::load(name), Ok(profile));
    }
    assert!(SimProfile::by_name("modern-discrete").unwrap().source().contains("not a measurement"));
}

#[test]
fn an_unknown_name_is_answered_with_the_names() {
    let error = SimProfile::load("gtx1").unwrap_err();
    let text = "no simulated device is called `gtx1`: expected rtx4090, dx12-laptop, modern-discrete, or the path of a \
                .toml file";
    assert_eq!(error.to_string(), text);
}

#[test]
fn files_are_loaded() {
    let path = std::env::temp_dir().join(format!("breakeven-profile-{}.toml", std::process::id()));
    std::fs::write(&path, GOOD).unwrap();
    let loaded = SimProfile::load(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded, SimProfile::parse(GOOD));
    let gone = SimProfile::load(path.to_str().unwrap()).unwrap_err();
    assert!(matches!(&gone, ProfileError::Read { path: named, .. } if Path::new(named) == path), "{gone}");
}

#[test]
fn wrong_forms_are_told_with_their_line() {
    for (old, new, line, message) in [
        ("upload_us = 2", "upload_us = ", 5, ""),
        ("upload_us = 2", "upload_us = '2'", 5, "expected f64"),
        ("upload_us = 2", "upload_us = 2\nspeed = 3", 6, "unknown field `speed`, expected one of `buffer_creation_us`"),
        ("upload_us = 2\n", "", 3, "missing field `upload_us`"),
        ("[contract]", "[matrices]", 13, "unknown field `matrices`, expected one of"),
        ("[1000, 20]", "[-1000, 20]", 12, "expected u64"),
        ("[1000, 20]", "[1000]", 12, "expected a tuple of size 2"),
        ("add =", "gb_s = 9\nadd =", 11, "expected either `add` or `gb_s` in [map]"),
        ("add =", "op_ns = 1\nsigmoid = [1000, 90]\nadd =", 11, "expected either `sigmoid` or `op_ns` in [map]"),
        ("gflop_s = [[100, 10]]", "", 13, "expected either `matmul` or `gflop_s` in [contract]"),
        ("name = 'a card'\n", "", 1, "missing field `name`"),
    ] {
        let error = error_with(old, new);
        let told = matches!(&error, ProfileError::Form { line: l, message: m } if *l == line && m.contains(message));
        assert!(told, "{new}: {error:?}");
    }
}

#[test]
fn values_that_no_device_has_are_refused() {
    let (from_0, above_0, both) = ("a number from 0 on", "a number above 0", "a size and a number, both above 0");
    let left = "more than its fixed part, its transfers and the least of a kernel";
    for (old, new, line, key, found, expected) in [
        ("upload_us = 2", "upload_us = -2", 5, "upload_us", "-2", from_0),
        ("upload_us = 2", "upload_us = nan", 5, "upload_us", "nan", from_0),
        ("upload_us = 2", "upload_us = inf", 5, "upload_us", "inf", from_0),
        ("upload_gb_s = 10", "upload_gb_s = 0", 9, "upload_gb_s", "0", above_0),
        ("upload_gb_s = 10", "upload_gb_s = 1e-320", 9, "upload_gb_s", "1e-320", above_0),
        ("5.5", "-5.5", 10, "readback_gb_s", "-5.5", above_0),
        ("add = [[1000, 20], [2000, 30]]", "gb_s = 0.0", 12, "gb_s", "0.0", above_0),
        ("add =", "op_ns = -1\nadd =", 12, "op_ns", "-1", from_0),
        ("[contract]", "[scan]\nelement_ns = 0\n[contract]", 14, "element_ns", "0", above_0),
        ("[[1000, 20], [2000, 30]]", "[]", 12, "add", "[]", "at least one point"),
        ("[1000, 20]", "[0, 20]", 12, "add", "[0, 20]", both),
        ("[1000, 20]", "[1000, nan]", 12, "add", "[1000, nan]", both),
        ("[1000, 20]", "[1000, 10]", 12, "add", "[1000, 10]", left),
        ("[2000, 30]", "[1000, 30]", 12, "add", "[1000, 30]", "sizes in ascending order"),
        ("[2000, 30]", "\n[500, 30]", 13, "add", "[500, 30]", "sizes in ascending order"),
        (
            "[2000, 30]",
            "[2000, 20]",
            12,
            "add",
            "[2000, 20]",
            "a kernel that takes no less than that of the size before",
        ),
        (
            "add =",
            "sigmoid = [1000, 11]\nadd =",
            12,
            "sigmoid",
            "[1000, 11]",
            "no less than an add that sends one input",
        ),
        ("add =", "sigmoid = [0, 11]\nadd =", 12, "sigmoid", "[0, 11]", "no less than an add that sends one input"),
        ("[100, 10]", "[100, 0]", 14, "gflop_s", "[100, 0]", both),
        ("'nowhere'", "' '", 2, "source", "' '", "some words"),
        ("[map]", "[kernel]\nleast_us = 9.5\n[map]", 14, "add", "[1000, 20]", left),
    ] {
        let found = found.to_owned();
        assert_eq!(error_with(old, new), ProfileError::Value { line, key, found, expected }, "{new}");
    }
}

#[test]
fn curves_go_on_beyond_their_points() {
    let curve = Curve::new(vec![(100.0, 10.0), (400.0, 20.0), (800.0, 80.0)]);
    let close = |work: f64, ns: f64| assert!((curve.ns(work) / ns - 1.0).abs() < 1e-12, "{work}: {}", curve.ns(work));
    close(100.0, 10.0);
    close(200.0, 200f64.sqrt());
    close(400.0, 20.0);
    close(800.0, 80.0);
    close(8000.0, 800.0); // in proportion
    close(25.0, 5.0); // as from the first point on
    assert_eq!(curve.ns(0.0), 0.0);
    assert_eq!(Curve::new(vec![(10.0, 30.0)]).ns(5.0), 15.0);
    assert_eq!(Curve::new(vec![(10.0, 30.0), (20.0, 240.0)]).ns(5.0), 15.0); // never steeper than in proportion
}
