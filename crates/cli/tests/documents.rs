//! docs/formats.md against what commands print with `--json`: every field is told, and each document has its version.

use std::collections::BTreeSet;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// Keys that are no fields: devices by their ids, functions that are named in words.
const BY_ID: [&str; 2] = ["cpu", "gpu:"];

fn keys(of: &Value, into: &mut BTreeSet<String>) {
    match of {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.extend(Some(key.clone()).filter(|key| !BY_ID.iter().any(|id| key.starts_with(id))));
            keys(value, into);
        }),
        Value::Array(list) => list.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

fn document(args: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    command.args(args).arg("--json").env("BREAKEVEN_CACHE_DIR", folder.path()).env("BREAKEVEN_BACKENDS", "vulkan");
    let output = command.timeout(Duration::from_secs(120)).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_document_has_a_version_and_its_fields_are_told() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap();
    for args in [&["eval", "1 + 2"][..], &["devices"], &["ops"], &["cache", "show"]] {
        let document = document(args);
        assert_eq!(document["version"], 1, "{args:?}");
        let heading = format!("## breakeven {} --json, version {}\n", args[0], document["version"]);
        let start = page.find(&heading).unwrap_or_else(|| panic!("no heading {heading}"));
        let rest = &page[start + heading.len()..];
        let part = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
        let mut found = BTreeSet::new();
        keys(&document, &mut found);
        let untold: Vec<&String> = found.iter().filter(|key| !part.contains(&format!("`{key}`"))).collect();
        assert!(untold.is_empty(), "{args:?}: not told: {untold:?}");
    }
}
