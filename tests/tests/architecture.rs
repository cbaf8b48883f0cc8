//! ARCHITECTURE.md against the disk: every file it names exists, and every file and folder of the layers it tells about
//! is named.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_path_buf()
}

/// The tree of the page: (crate folder, words of its lines).
fn tree() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page exists");
    let mut layers: Vec<(String, Vec<String>)> = Vec::new();
    for line in page.lines().filter(|l| l.starts_with("    ")) {
        let mut words = line.split([' ', ',', ';', '(', ')']).filter(|w| !w.is_empty()).map(str::to_string);
        if !line.starts_with("      ") {
            layers.extend(words.next().map(|folder| (folder, Vec::new())));
        }
        if let Some((_, list)) = layers.last_mut() {
            list.extend(words);
        }
    }
    layers
}

#[test]
fn everything_named_exists() {
    let mut named = 0;
    for (folder, words) in tree().iter().filter(|(folder, _)| folder.contains('/')) {
        assert!(root().join(folder).exists(), "{folder} is named and does not exist");
        for word in words.iter().filter(|w| w.starts_with("src/") || w.ends_with(".rs")) {
            let path =
                root().join(folder).join(if word.starts_with("src/") { word.clone() } else { format!("src/{word}") });
            assert!(path.exists(), "{} is named and does not exist", path.display());
            named += 1;
        }
    }
    assert!(named > 30, "only {named} files are named: the page's form has changed");
}

#[test]
fn every_file_of_the_layers_is_named() {
    for layer in ["crates/ir/", "crates/cpu/", "crates/gpu/"] {
        let tree = tree();
        let (_, words) = tree.iter().find(|(folder, _)| folder == layer).expect("the layer is on the page");
        for entry in std::fs::read_dir(root().join(layer).join("src")).expect("the layer has sources") {
            let name = entry.expect("a readable folder").file_name().into_string().expect("a plain name");
            let stem = name.trim_end_matches(".rs");
            let unlisted = ["lib", "snapshots"].contains(&stem) || stem.ends_with("_tests");
            // A folder and the file of the same name are one module.
            let named = words.iter().any(|w| {
                let word = w.trim_start_matches("src/").trim_end_matches('/');
                word == name || word.trim_end_matches(".rs") == stem
            });
            assert!(unlisted || named, "{layer}src/{name} is not on the page");
        }
    }
}
