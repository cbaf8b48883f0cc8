//! `docs/formats.md` against what is written: every field and every word that stands for a choice is in the document, in
//! the part that is about it.

use super::fixture_tests::{bench, later};
use super::{ChangeKind, Gate, TroubleKind, document};
use serde_json::Value;
use std::collections::BTreeSet;

fn page() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    std::fs::read_to_string(path).expect("the page is in the workspace")
}

/// Every key of a document.
fn keys(of: &Value, into: &mut BTreeSet<String>) {
    match of {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            keys(value, into);
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// The page from one heading to another, which describes a document; what both have belongs to both.
fn part<'p>(page: &'p str, from: &str, to: &str) -> String {
    let between = |from: &str, to: &str| -> &'p str {
        let start = page.find(from).unwrap_or_else(|| panic!("no heading {from}"));
        &page[start..start + page[start..].find(to).unwrap_or_else(|| panic!("no heading {to}"))]
    };
    between("## What both have", "## scan.json").to_owned() + between(from, to)
}

/// Fields that a part does not tell about, and names in the first column of its tables that are no fields.
fn compare(text: &str, part: &str) -> (Vec<String>, Vec<String>) {
    let mut found = BTreeSet::new();
    keys(&serde_json::from_str(text).expect("JSON"), &mut found);
    let untold = found.iter().filter(|key| !part.contains(&format!("`{key}`"))).cloned().collect();
    let firsts = part.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let named = firsts.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
    (untold, named.filter(|name| !found.contains(name)).collect())
}

#[test]
fn every_field_is_told_and_no_other() {
    let page = page();
    let mut scan = crate::fixture_tests::scan();
    scan.claims.push(crate::Claim::parse("*=100k", "--claim").unwrap());
    scan.rows[0].stats.interval_ns = Some((1, 2));
    let scan = compare(&scan.to_json(), &part(&page, "## scan.json", "## bench.json"));
    assert_eq!(scan, (vec![], vec![]), "scan.json: (not told, not there)");
    let text = document(&bench(), &Gate::of(&bench(), &later(), 0.10));
    let bench = compare(&text, &part(&page, "## bench.json", "## Where intervals"));
    assert_eq!(bench, (vec![], vec![]), "bench.json: (not told, not there)");
}

#[test]
fn a_field_that_is_not_told_is_seen() {
    let (untold, not_there) = compare(r#"{"a": [{"b": 1}], "c": 2}"#, "| `a` | x |\n| `c`, `d` | y |\n");
    assert_eq!((untold, not_there), (vec!["b".to_owned()], vec!["d".to_owned()]));
}

#[test]
fn every_choice_is_told() {
    let troubles = [
        TroubleKind::Failed,
        TroubleKind::Hung,
        TroubleKind::Crashed,
        TroubleKind::DeviceLost,
        TroubleKind::Leftover,
        TroubleKind::OutOfTime,
    ];
    let changes = [
        ChangeKind::Slower,
        ChangeKind::Unmeasured,
        ChangeKind::Suspect,
        ChangeKind::Faster,
        ChangeKind::Same,
        ChangeKind::New,
        ChangeKind::Gone,
    ];
    let words = troubles.map(serde_json::to_value).into_iter();
    for word in words.chain(changes.map(serde_json::to_value)) {
        let word = word.unwrap();
        assert!(page().contains(&format!("`{}`", word.as_str().unwrap())), "{word}");
    }
}

#[test]
fn the_versions_are_those_that_are_written() {
    let page = page();
    assert!(page.contains(&format!("## scan.json, version {}\n", crate::VERSION)));
    assert!(page.contains(&format!("## bench.json and baselines, version {}\n", super::VERSION)));
}
