//! Where lines are broken, and that it stays JSON.

use super::*;
use serde::Serialize;
use serde_json::{Value, json};

fn written(value: &Value) -> String {
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Lines::default())).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn numbers_stay_on_a_line() {
    let value = json!({"a": [[1, 2], []], "b": ["x", "y"], "c": {"d": 1.5}, "e": [], "f": {}});
    let expected = r#"{
  "a": [
    [1, 2],
    []
  ],
  "b": [
    "x",
    "y"
  ],
  "c": {
    "d": 1.5
  },
  "e": [],
  "f": {}
}"#;
    assert_eq!(written(&value), expected);
}

#[test]
fn whatever_is_written_is_read_again() {
    for value in [json!([1, "a", [2, {"b": [null, true, -3, 2.5]}], 4]), json!([[{"a": [1]}, 2]]), json!("\"\n")] {
        assert_eq!(serde_json::from_str::<Value>(&written(&value)).unwrap(), value, "{}", written(&value));
    }
}
