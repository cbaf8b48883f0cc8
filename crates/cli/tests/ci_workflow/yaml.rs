//! The page enters, its workflow leaves as JSON, which is easier to ask.

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::Value;

/// The one workflow of docs/ci.md.
pub fn workflow() -> Value {
    let page = include_str!("../../../../docs/ci.md");
    let mut blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default());
    let block = blocks.next().expect("docs/ci.md has a block of YAML");
    assert!(blocks.next().is_none(), "docs/ci.md has one workflow");
    let documents = Yaml::load_from_str(block).unwrap_or_else(|error| panic!("docs/ci.md: {error}"));
    assert_eq!(documents.len(), 1);
    json(&documents[0])
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Mapping(fields) => fields.iter().map(|(name, field)| (key(name), json(field))).collect(),
        Yaml::Sequence(items) => items.iter().map(json).collect(),
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::Integer(value)) => (*value).into(),
        Yaml::Value(Scalar::String(value)) => value.as_ref().into(),
        other => panic!("a workflow has no use for {other:?}"),
    }
}

fn key(yaml: &Yaml<'_>) -> String {
    yaml.as_str().unwrap_or_else(|| panic!("a key that is no text: {yaml:?}")).to_owned()
}
