//! Traces against a description of the trace event format, as far as it is used here:
//!
//! - The document is an object with `traceEvents`, a list; `displayTimeUnit` is `ms` or `ns`.
//! - Every event has `name` (a string), `ph` (one letter), `pid` and `tid` (whole numbers).
//! - `M` (metadata) has `args`: `process_name` and `thread_name` have a string `name` in them, `thread_sort_index` a number
//!   `sort_index`. They have no `ts`.
//! - `X` (complete) has `cat`, `ts` and `dur`, numbers of microseconds that are not negative. On one thread, one lies within
//!   another or beside it; here they are also in the order of `ts`.
//! - `b` and `e` (async) have `cat`, `id` and `ts`; each `e` has one `b` of the same `cat`, `id` and `name` that is not later.

use super::super::fixture_tests::{queued, rerun};
use super::*;
use std::collections::HashMap;

/// Nanoseconds of a field.
fn ns(event: &Value, field: &str) -> u64 {
    let micros = event[field].as_f64().unwrap_or_else(|| panic!("{field} of {event}"));
    assert!(micros >= 0.0 && micros.is_finite(), "{event}");
    (micros * 1000.0).round() as u64
}

/// Checks a trace, and gives its complete events.
fn check(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).unwrap();
    assert!(["ms", "ns"].contains(&document["displayTimeUnit"].as_str().unwrap()));
    let mut open: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut waiting: HashMap<(String, String), u64> = HashMap::new();
    let mut named = Vec::new();
    let mut complete = Vec::new();
    for event in document["traceEvents"].as_array().unwrap() {
        let keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
        let has = |required: &[&str], optional: &[&str]| {
            assert!(required.iter().all(|key| keys.contains(key)), "{event}");
            assert!(keys.iter().all(|key| required.contains(key) || optional.contains(key)), "{event}");
        };
        let name = event["name"].as_str().unwrap();
        let (tid, _) = (event["tid"].as_u64().unwrap(), event["pid"].as_u64().unwrap());
        match event["ph"].as_str().unwrap() {
            "M" => {
                has(&["name", "ph", "pid", "tid", "args"], &[]);
                match name {
                    "process_name" => assert!(event["args"]["name"].is_string()),
                    "thread_name" => {
                        assert!(event["args"]["name"].is_string());
                        named.push(tid);
                    }
                    "thread_sort_index" => assert!(event["args"]["sort_index"].is_u64()),
                    other => panic!("{other}"),
                }
            }
            "X" => {
                has(&["name", "ph", "pid", "tid", "cat", "ts", "dur"], &["args"]);
                let (begin, end) = (ns(event, "ts"), ns(event, "ts") + ns(event, "dur"));
                assert!(named.contains(&tid), "a thread without a name: {event}");
                assert!(last.insert(tid, begin).is_none_or(|before| before <= begin), "out of order: {event}");
                let open = open.entry(tid).or_default();
                open.retain(|(_, until)| *until > begin);
                assert!(open.iter().all(|(_, until)| end <= *until), "neither within nor beside: {event}");
                open.push((begin, end));
                complete.push(event.clone());
            }
            "b" => {
                has(&["name", "ph", "pid", "tid", "cat", "id", "ts"], &[]);
                let key = (event["cat"].to_string() + name, event["id"].as_str().unwrap().to_owned());
                assert!(waiting.insert(key, ns(event, "ts")).is_none());
            }
            "e" => {
                has(&["name", "ph", "pid", "tid", "cat", "id", "ts"], &[]);
                let key = (event["cat"].to_string() + name, event["id"].as_str().unwrap().to_owned());
                assert!(waiting.remove(&key).unwrap() <= ns(event, "ts"));
            }
            other => panic!("{other}"),
        }
    }
    assert!(waiting.is_empty(), "{waiting:?}");
    complete
}

#[test]
fn traces_are_of_the_format() {
    for profile in [Profile::example(), queued(), rerun()] {
        let text = profile.chrome().unwrap();
        let spans: usize = profile.threads.iter().map(|thread| thread.spans.len()).sum();
        assert_eq!(check(&text).len(), spans);
        assert_eq!(text, profile.chrome().unwrap(), "the same bytes each time");
    }
}

#[test]
fn what_is_not_of_the_format_is_seen() {
    let damaged = |from: &str, to: &str| {
        let text = Profile::example().chrome().unwrap();
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1);
        std::panic::catch_unwind(|| check(&text)).is_err()
    };
    assert!(!damaged("parse", "parsed"));
    assert!(damaged("\"dur\":2000.0", "\"dur\":20000.0"), "a span that leaves its caller");
    assert!(damaged("\"ts\":1000.0", "\"ts\":-1.0"));
    assert!(damaged("\"cat\":\"stage\",", ""));
}

#[test]
fn batches_have_their_decision() {
    let events = check(&Profile::example().chrome().unwrap());
    let on_gpu = events.iter().find(|event| event["args"]["device"] == "gpu:0").unwrap();
    assert_eq!(on_gpu["args"]["reason"], "gpu:0 is expected to be done first");
    assert_eq!(on_gpu["args"]["predicted_us"]["cpu"], 1900.0);
    assert_eq!(on_gpu["args"]["phases_us"]["upload"], 1500.0);
    assert_eq!((on_gpu["ts"].as_f64(), on_gpu["dur"].as_f64()), (Some(85_000.0), Some(5_000.0)));
}

#[test]
fn a_trace_with_a_queue() {
    insta::assert_snapshot!(queued().chrome().unwrap().replace("},{", "},\n{"));
}
