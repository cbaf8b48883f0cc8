//! Metrics against a strict reader of the text format: families in one piece, each with its help and type before its
//! samples, names and labels of the allowed characters, values that are numbers, no series twice.

use super::super::fixture_tests::{profile, queued, rerun, thread};
use super::super::{FrameKind, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// A series: its name, and its labels with their values.
type Series = (String, BTreeMap<String, String>);

fn is_name(name: &str, also: &str) -> bool {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || also.contains(c))
}

/// `{a="b",c="d"}` from its beginning; the rest of the line leaves.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else { return (found, text) };
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name, ""), "{name:?}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("an escaped character").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    other => panic!("\\{other}"),
                },
                (_, c) => {
                    assert_ne!(c, '\n');
                    value.push(c);
                }
            }
        };
        assert!(found.insert(name.to_owned(), value).is_none(), "{name} twice");
        rest = &after[end + 1..];
        match rest.split_at(1) {
            (",", more) => rest = more,
            ("}", more) => return (found, more),
            other => panic!("{other:?}"),
        }
    }
}

fn read(text: &str) -> BTreeMap<Series, f64> {
    assert!(text.ends_with('\n'));
    let (mut family, mut seen, mut series) = (("", ""), BTreeSet::new(), BTreeMap::new());
    let mut lines = text.trim_end_matches('\n').split('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(is_name(name, ":") && !help.is_empty() && !help.contains('\\'), "{line}");
            assert!(seen.insert(name), "{name} is not in one piece");
            let (typed, kind) = lines.next().unwrap().strip_prefix("# TYPE ").unwrap().split_once(' ').unwrap();
            assert!(typed == name && ["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            family = (name, kind);
            continue;
        }
        let rest = line.strip_prefix(family.0).unwrap_or_else(|| panic!("{line:?} is not of {family:?}"));
        let (labels, rest) = labels(rest);
        let number = rest.strip_prefix(' ').unwrap();
        let value = if number == "+Inf" { f64::INFINITY } else { number.parse().unwrap() };
        assert!(number.bytes().all(|b| b.is_ascii_digit() || b == b'.') || number == "+Inf", "{number}");
        assert!(series.insert((family.0.to_owned(), labels), value).is_none(), "{line:?} is there twice");
    }
    series
}

fn sum(metrics: &BTreeMap<Series, f64>, name: &str) -> f64 {
    metrics.iter().filter(|((of, _), _)| of == name).map(|(_, value)| value).sum()
}

#[test]
fn metrics_are_of_the_format_and_add_up() {
    for profile in [Profile::example(), queued(), rerun()] {
        let metrics = read(&profile.prometheus().unwrap());
        let thread_seconds = profile.analysis().unwrap().thread_ns as f64 / 1e9;
        for name in ["breakeven_profile_thread_seconds_total", "breakeven_profile_stage_seconds_total"] {
            assert!((sum(&metrics, name) - thread_seconds).abs() < 1e-12, "{name}");
        }
        assert_eq!(sum(&metrics, "breakeven_profile_batches_total"), profile.batches.len() as f64);
        assert_eq!(profile.prometheus(), profile.prometheus());
    }
}

#[test]
fn labels_come_back_as_they_were() {
    let metrics = read(&queued().prometheus().unwrap());
    let stage = |((_, labels), _): (&Series, &f64)| labels.get("stage").cloned();
    assert!(metrics.iter().filter_map(stage).any(|stage| stage == "a;b \"c\"\n"));
}

#[test]
fn stages_that_are_written_alike_are_one_series() {
    use FrameKind::{Stage, Thread, Wait};
    let rows = [("t", Thread, None, 1), ("a", Stage, Some(0), 2), ("a", Wait, Some(0), 3)];
    let metrics = read(&profile(vec![thread("t", 0, &rows), thread("t", 0, &rows)]).prometheus().unwrap());
    assert!((sum(&metrics, "breakeven_profile_stage_seconds_total") - 12e-9).abs() < 1e-15);
}

#[test]
fn metrics_of_the_example() {
    insta::assert_snapshot!(Profile::example().prometheus().unwrap());
}
