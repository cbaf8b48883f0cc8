//! What is read back, and what is refused.

use super::*;
use crate::bench::fixture_tests::{bench, later};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The run as JSON after a change.
fn changed(change: impl Fn(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(&bench().to_json()).unwrap();
    change(&mut value);
    value.to_string()
}

/// The message of a refusal; every one of them says what to do.
fn refusal(text: &str) -> String {
    let message = Bench::from_json(text).expect_err("this is no run").to_string();
    assert!(message.contains("`breakeven bench --save-baseline NAME`"), "{message}");
    message
}

#[test]
fn a_run_survives_the_round_trip() {
    let text = bench().to_json();
    assert_eq!(Bench::from_json(&text).unwrap(), bench());
    assert_eq!(Bench::from_json(&text).unwrap().to_json(), text);
}

#[test]
fn every_digit_survives() {
    let mut odd = bench();
    for part in [0.997605746209098, 0.1 + 0.2, 1.0 / 3.0, f64::MIN_POSITIVE] {
        odd.groups[0].surroundings[0].busy = Some(part);
        assert_eq!(Bench::from_json(&odd.to_json()).unwrap(), odd, "{part}");
    }
}

#[test]
fn samples_stay_on_a_line() {
    insta::assert_snapshot!(bench().to_json());
}

#[test]
fn a_document_with_a_gate_is_still_a_run() {
    let gate = Gate::of(&bench(), &later(), 0.10);
    let text = document(&later(), &gate);
    assert_eq!(Bench::from_json(&text).unwrap(), later());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::from_value::<Gate>(value["gate"].clone()).unwrap(), gate);
    assert_eq!(value["gate"]["changes"][0]["kind"], "slower");
}

#[test]
fn unknown_fields_are_ignored_and_optional_ones_may_be_missing() {
    let text = changed(|v| {
        v["later"] = json!({"a": 1});
        v["groups"][0]["rows"][0]["stats"]["p99_ns"] = json!(5);
        for field in ["missing", "null"] {
            v.as_object_mut().unwrap().remove(field);
        }
        v["groups"][0].as_object_mut().unwrap().remove("troubles");
        v["groups"][0]["rows"][0].as_object_mut().unwrap().remove("beside");
    });
    let read = Bench::from_json(&text).unwrap();
    assert!(read.missing.is_empty() && read.null.is_none() && read.groups[0].is_sound());
    assert_eq!(read.groups[0].rows, bench().groups[0].rows);
}

#[test]
fn other_versions_are_refused_whatever_else_they_hold() {
    assert!(refusal(r#"{"version": 2, "groups": "other"}"#).contains("has version 2, but version 1 is read here"));
}

#[test]
fn other_files_are_refused() {
    for text in
        ["", "[]", "{}", "3", "{\"version\": 1}", "{\"version\": -1}", "\u{0}", "{\"version\": 1, \"groups\": ["]
    {
        assert!(refusal(text).starts_with("this is no bench.json: "), "{text}");
    }
    let scan = crate::fixture_tests::scan().to_json();
    let message = refusal(&scan);
    assert!(message.starts_with("this is no bench.json: ") && message.contains("missing field"), "{message}");
}

#[test]
fn a_torn_file_is_refused_wherever_it_is_torn() {
    let text = bench().to_json();
    for end in (0..text.trim_end().len()).step_by(97) {
        refusal(&text[..text.floor_char_boundary(end)]);
    }
}

/// A change to a run that makes nonsense of it, and a part of the message that it is refused with.
type Case = (fn(&mut Value), &'static str);

#[test]
fn nonsense_is_refused() {
    let cases: [Case; 17] = [
        (|v| v["groups"] = json!([]), "has no rows"),
        (|v| v["groups"][0]["rows"][0]["passes"][0][0] = json!(-5), "invalid value: integer `-5`"),
        (|v| v["groups"][0]["rows"][0]["passes"][0][0] = json!(5), "statistics that are not those of its samples"),
        (|v| v["groups"][0]["rows"][0]["stats"]["median_ns"] = json!(1), "percentiles that are not in order"),
        (|v| v["groups"][0]["rows"][0]["stats"]["mad_ns"] = json!(3), "statistics that are not those"),
        (|v| v["groups"][0]["rows"][0]["stats"]["samples"] = json!(0), "has no samples"),
        (|v| v["groups"][0]["rows"][0]["passes"] = json!([]), "statistics that are not those of its samples"),
        (|v| v["groups"][0]["rows"][0]["interval"] = json!([1, 2]), "has an interval without its median"),
        (|v| v["groups"][0]["rows"][0]["case"] = json!(""), "has no case"),
        (|v| v["groups"][0]["rows"][0]["device"] = json!("gpu:9"), "`exp, 1.0 M elements` of group `unary` on `gpu:9`"),
        (|v| v["groups"][0]["rows"][1] = v["groups"][0]["rows"][0].clone(), "of this bench.json is there twice"),
        (|v| v["groups"][1]["name"] = json!("unary"), "group `unary` of this bench.json has no name or is there twice"),
        (|v| v["groups"][1]["seconds"] = json!(-1.0), "`seconds` of group `matmul` of this bench.json is no time"),
        (|v| v["devices"][1]["id"] = json!("cpu"), "device 1 (`cpu`) of this bench.json is there twice"),
        (|v| v["devices"][1]["kind"] = json!("cpu"), "more than one CPU"),
        (|v| v["null"]["floor"] = json!(-0.1), "`null.floor` of this bench.json is no part of a time"),
        (|v| v["how"]["seconds"] = json!(-1.0), "`how.seconds` of this bench.json is no time"),
    ];
    for (change, expected) in cases {
        let message = refusal(&changed(change));
        assert!(message.contains(expected), "{message}\nexpected: {expected}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Bench::from_json(&String::from_utf8_lossy(&bytes));
    }

    /// Bytes of a real file, some of them replaced: refused, or a run that everything can show.
    #[test]
    fn damaged_files_never_panic(at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = bench().to_json().into_bytes();
        for (index, byte) in at {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Ok(read) = Bench::from_json(&String::from_utf8_lossy(&bytes)) {
            let gate = Gate::of(&bench(), &read, 0.10);
            let shown = crate::bench::table(&read) + &crate::bench::markdown(&read, Some(&gate)) + &crate::bench::csv(&read);
            prop_assert!(!shown.is_empty() && !crate::bench::gate_table(&gate).is_empty());
        }
    }
}
