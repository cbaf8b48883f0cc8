//! Every public type shows how it is used: the sources of the libraries enter, and a struct, enum or trait without an
//! example that runs fails the test.
//!
//! Public is what is `pub` in a library, which is a crate without a `main.rs`; what only its own crate should see is
//! `pub(crate)` or `pub(super)`. An example beside the type's `pub use` counts too: rustdoc joins the two.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Types whose documentation is somewhere else.
const EXEMPT: [(&str, &str); 1] = [("Readme", "its documentation is the README, examples included")];

/// The public types of a source and the names it publishes again, each with whether it has an example.
fn documented(source: &str) -> Vec<(String, bool, bool)> {
    let mut found = Vec::new();
    let mut docs: Vec<&str> = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.trim());
            continue;
        }
        if line.starts_with('#') || line.starts_with("//") {
            continue; // attributes and remarks stand between the documentation and its item
        }
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').filter(|w| !w.is_empty());
        if words.next() == Some("pub") && !line.starts_with("pub(") {
            let kind = words.find(|&word| word != "unsafe").unwrap_or_default();
            let is_type = ["struct", "enum", "trait"].contains(&kind);
            if (is_type || kind == "use")
                && let Some(name) = words.next()
            {
                let name = name.rsplit("::").next().unwrap_or(name).trim_end_matches(':');
                found.push((name.to_string(), is_type, runs(&docs)));
            }
        }
        docs.clear();
    }
    found
}

/// Is there a code block that rustdoc compiles and runs?
fn runs(docs: &[&str]) -> bool {
    let opening = docs.iter().filter(|doc| doc.starts_with("```")).step_by(2);
    opening.into_iter().any(|fence| ["```", "```rust"].contains(fence))
}

/// Public types of one crate that show no example.
fn without_example<'a>(sources: impl IntoIterator<Item = &'a str>) -> (usize, Vec<String>) {
    let all: Vec<_> = sources.into_iter().flat_map(documented).collect();
    let shown: BTreeSet<&String> = all.iter().filter(|(.., example)| *example).map(|(name, ..)| name).collect();
    let types = all.iter().filter(|(_, is_type, _)| *is_type).map(|(name, ..)| name);
    let exempt = |name: &str| EXEMPT.iter().any(|(exempt, _)| *exempt == name);
    let missing = types.clone().filter(|&name| !shown.contains(name) && !exempt(name)).cloned().collect();
    (types.count(), missing)
}

/// Every source below a folder, without its tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a readable folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_source = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".rs") && !name.ends_with("_tests.rs")
    };
    files.into_iter().filter(is_source).chain(folders.iter().flat_map(|f| sources(f))).collect()
}

#[test]
fn every_public_type_has_an_example() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let (mut types, mut missing) = (0, Vec::new());
    for entry in fs::read_dir(crates).expect("the crates") {
        let folder = entry.expect("an entry").path().join("src");
        if folder.join("lib.rs").exists() && !folder.join("main.rs").exists() {
            let texts: Vec<String> =
                sources(&folder).iter().map(|path| fs::read_to_string(path).expect("a source")).collect();
            let (count, without) = without_example(texts.iter().map(String::as_str));
            types += count;
            missing.extend(without.into_iter().map(|name| format!("{}: {name}", folder.display())));
        }
    }
    assert!(types > 50, "only {types} types were found: the sources' form has changed");
    assert!(missing.is_empty(), "public types without an example that runs:\n{}", missing.join("\n"));
}

#[test]
fn a_missing_example_is_seen() {
    let example = "/// What.\n///\n/// ```\n/// assert!(true);\n/// ```\n#[derive(Debug)]\n";
    let (count, missing) = without_example([
        &*format!("{example}pub struct Shown<T>(T);\n/// None.\npub enum Bare {{}}\npub(crate) struct Inner;"),
        &format!("{}pub trait Ignored: Sized {{}}", example.replace("```\n/// assert", "```ignore\n/// assert")),
        &format!("/// None.\npub struct Again;\n{example}pub use again::Again;"),
    ]);
    assert_eq!((count, missing), (4, vec!["Bare".to_string(), "Ignored".to_string()]));
}
