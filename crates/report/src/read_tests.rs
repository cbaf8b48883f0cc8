//! What is read back, and what is refused.

use super::*;
use crate::fixture_tests::scan;
use serde_json::{Value, json};

/// The scan as JSON after a change.
fn changed(change: impl Fn(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(&scan().to_json()).unwrap();
    change(&mut value);
    value.to_string()
}

/// The message of a refusal; every one of them says what to do.
fn refusal(text: &str) -> String {
    let message = Scan::from_json(text).expect_err("this is no scan").to_string();
    assert!(message.contains("`breakeven scan -o DIR`"), "{message}");
    message
}

#[test]
fn a_scan_survives_the_round_trip() {
    assert_eq!(Scan::from_json(&scan().to_json()).unwrap(), scan());
}

#[test]
fn unknown_fields_are_ignored_and_lists_may_be_missing() {
    let text = changed(|v| {
        v["later"] = json!({"a": 1});
        v["rows"][0]["stats"]["p99_ns"] = json!(5);
        v.as_object_mut().unwrap().remove("fused");
        v.as_object_mut().unwrap().remove("transfers");
        v["how"].as_object_mut().unwrap().remove("notes");
    });
    let read = Scan::from_json(&text).unwrap();
    assert!(read.fused.is_empty() && read.transfers.is_empty() && read.how.notes.is_empty());
    assert_eq!(read.rows, scan().rows);
}

#[test]
fn other_versions_are_refused_whatever_else_they_hold() {
    assert!(refusal(r#"{"version": 2, "rows": "other"}"#).contains("has version 2, but version 1 is read here"));
    assert!(refusal(r#"{"version": 18446744073709551615}"#).contains("has version 18446744073709551615"));
}

#[test]
fn other_files_are_refused() {
    for text in ["", "[]", "{}", "3", "{\"version\": 1}", "{\"version\": -1}", "\u{0}", "{\"version\": 1, \"rows\": ["]
    {
        assert!(refusal(text).starts_with("this is no scan.json: "), "{text}");
    }
}

/// A change to a scan that makes nonsense of it, and a part of the message that it is refused with.
type Case = (fn(&mut Value), &'static str);

#[test]
fn nonsense_is_refused() {
    let cases: [Case; 17] = [
        (|v| v["rows"] = json!([]), "has no rows"),
        (|v| v["rows"][1]["stats"]["median_ns"] = json!(-5), "invalid value: integer `-5`"),
        (|v| v["rows"][1]["stats"]["median_ns"] = json!(1), "percentiles that are not in order"),
        (|v| v["rows"][1]["size"] = json!(0), "row 1 of this scan.json (`matmul` at 0 on `cpu`) has size 0"),
        (|v| v["rows"][1]["size"] = json!(1.5), "floating point `1.5`"),
        (|v| v["rows"][1]["op"] = json!(""), "has no op"),
        (|v| v["rows"][1]["stats"]["samples"] = json!(0), "has no samples"),
        (|v| v["rows"][1]["device"] = json!("gpu:9"), "names a device that is not in the list"),
        (|v| v["rows"][1] = v["rows"][0].clone(), "row 1 of this scan.json (`matmul` at 128 on `cpu`) is there twice"),
        (|v| v["devices"][1]["id"] = json!("cpu"), "device 1 (`cpu`) of this scan.json is there twice"),
        (|v| v["devices"][1]["kind"] = json!("cpu"), "more than one CPU"),
        (|v| v["overheads"][0]["device"] = json!("tpu"), "an overhead (`tpu`)"),
        (|v| v["transfers"][0]["bytes"] = json!(0), "a transfer (`upload` `pageable` of 0 bytes on `gpu:0`)"),
        (|v| v["transfers"][0]["stats"]["samples"] = json!(0), "bytes on `gpu:0`) of this scan.json has no samples"),
        (|v| v["transfers"][1] = v["transfers"][0].clone(), "bytes on `gpu:0`) of this scan.json is there twice"),
        (|v| v["transfers"][0]["device"] = json!("tpu"), "on `tpu`) of this scan.json names a device that is not"),
        (|v| v["how"]["seconds"] = json!(-1.0), "`how.seconds` of this scan.json is no time"),
    ];
    for (change, expected) in cases {
        let message = refusal(&changed(change));
        assert!(message.contains(expected), "{message}\nexpected: {expected}");
    }
    let zero = refusal(&changed(|v| {
        for time in ["min_ns", "p10_ns", "median_ns"] {
            v["rows"][1]["stats"][time] = json!(0);
        }
    }));
    assert!(zero.contains("takes 0 ns"), "{zero}");
}

#[test]
fn rows_of_other_tools_may_know_less_but_nothing_wrong() {
    let partial = |change: fn(&mut Value)| {
        changed(|v| {
            v["rows"][1]["stats"] = json!({"median_ns": 500, "p10_ns": 0, "p90_ns": 0, "min_ns": 0, "max_ns": 0,
                "mad_ns": 0, "samples": 0, "wide": false});
            change(&mut v["rows"][1]["stats"]);
        })
    };
    let read = Scan::from_json(&partial(|s| s["p90_ns"] = json!(600))).unwrap();
    assert!(read.rows[1].stats.is_partial() && read.rows[1].stats.band().is_none());
    assert_eq!(Scan::from_json(&read.to_json()).unwrap(), read);
    assert!(Scan::from_json(&partial(|s| s["interval_ns"] = json!([490, 510]))).is_ok());
    let cases: [Case; 4] = [
        (|s| s["p90_ns"] = json!(400), "percentiles that are not in order"),
        (|s| s["max_ns"] = json!(900), "has no samples"),
        (|s| s["median_ns"] = json!(0), "takes 0 ns"),
        (|s| s["interval_ns"] = json!([510, 520]), "a median outside of its interval"),
    ];
    for (change, expected) in cases {
        let message = refusal(&partial(change));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn claims_are_kept_and_left_out_where_there_are_none() {
    assert!(!scan().to_json().contains("claims"));
    let mut claiming = scan();
    claiming.claims.push(crate::Claim::parse("exp=100k", "a hand-set threshold").unwrap());
    assert_eq!(Scan::from_json(&claiming.to_json()).unwrap(), claiming);
}
