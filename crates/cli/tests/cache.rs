//! `breakeven cache` on a folder of its own.

use std::fs;

use assert_cmd::Command;
use breakeven::cost::{Costs, CostsFile, DeviceKey};
use breakeven::{CacheOptions, Config, DType, Device, Engine, Tensor, View};
use serde_json::Value;
use tempfile::TempDir;

/// What a command prints, which must succeed.
#[track_caller]
fn cache(folder: &TempDir, args: &[&str]) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("breakeven"));
    let output = command.env("BREAKEVEN_CACHE_DIR", folder.path()).arg("cache").args(args).output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &[][..]), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Files of this program and some of others.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut file = CostsFile::empty("a processor", 2);
    file.put(&DeviceKey { name: "card".into(), backend: "vulkan".into(), driver: "1.0".into() }, Costs::default());
    file.write(folder.path()).unwrap();
    for (name, text) in [
        ("device-vulkan-card-1.0.json", "{}"),
        ("pipelines-vulkan-card-1.0.bin", "12345678"),
        ("costs-torn-4.json", "{\"version\": "),
        ("costs-torn-4.99.tmp", "{"),
        ("notes.txt", "mine"),
        ("costs-of-living.txt", "mine"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("device-folder.json")).unwrap();
    folder
}

#[test]
fn what_is_remembered_is_shown() {
    let folder = folder();
    let text = cache(&folder, &["show"]);
    for part in
        ["5 files", "measured costs", "card (vulkan, 1.0)", "compiled pipelines, 8 B", "not used: ", "unfinished"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("mine") && !text.contains("living") && !text.contains("device-folder"), "{text}");
    let document: Value = serde_json::from_str(&cache(&folder, &["show", "--json"])).unwrap();
    assert_eq!((document["files"].as_array().unwrap().len(), &document["cleared"]), (5, &false.into()));
    let sizes = document["files"].as_array().unwrap().iter().map(|file| file["bytes"].as_u64().unwrap());
    assert_eq!(document["bytes"].as_u64().unwrap(), sizes.sum::<u64>());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 8, "showing changes nothing");
}

#[test]
fn only_our_own_files_are_cleared() {
    let folder = folder();
    let document: Value = serde_json::from_str(&cache(&folder, &["clear", "--json"])).unwrap();
    assert_eq!((document["files"].as_array().unwrap().len(), &document["cleared"]), (5, &true.into()));
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["costs-of-living.txt", "device-folder.json", "notes.txt"]);
    assert!(cache(&folder, &["clear"]).starts_with("removed 0 files, 0 B, from "));
    assert!(cache(&folder, &["show"]).contains(": 0 files, 0 B"));
}

#[test]
fn a_folder_that_is_not_there_is_empty() {
    let folder = TempDir::new().unwrap();
    fs::remove_dir(folder.path()).unwrap();
    assert!(cache(&folder, &["show"]).contains(": 0 files, 0 B"));
    assert!(cache(&folder, &["clear"]).starts_with("removed 0 files"));
    fs::create_dir(folder.path()).unwrap();
}

/// Twenty tasks in a folder of results, then ten of them again and five others.
fn results(folder: &TempDir) {
    let config = Config { device: Device::Cpu, cache_dir: Some(folder.path().into()), ..Config::default() };
    let values: Vec<Vec<f32>> = (0..25).map(|task| vec![task as f32; 4]).collect();
    let tasks: Vec<[View<'_>; 1]> = values.iter().map(|values| [values.into()]).collect();
    for tasks in [&tasks[..20], &tasks[10..]] {
        let engine = Engine::with_config(config.clone()).unwrap();
        let x = Tensor::input("x", DType::F32, [4]).unwrap();
        let cached = engine.cached(CacheOptions::default()).unwrap();
        let program = cached.program(&engine.compile(&[&x], &[&x.exp().unwrap()]).unwrap()).unwrap();
        program.run_many(tasks).unwrap();
    }
}

#[test]
fn results_are_shown_with_their_hit_rates_and_cleared() {
    let folder = TempDir::new().unwrap();
    results(&folder);
    let text = cache(&folder, &["show"]);
    for part in [
        "2 files",
        "remembered results, 1.2 KiB",
        "how results were used",
        "results: 25 remembered, 1.2 KiB",
        "last run: 66.7 % hits (10 hits, 5 misses), 5 put in, 0 driven out",
        "in all:   28.6 % hits (10 hits, 25 misses), 25 put in, 0 driven out",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let document: Value = serde_json::from_str(&cache(&folder, &["show", "--json"])).unwrap();
    let results = &document["results"];
    assert_eq!((&results["entries"], &results["torn_bytes"]), (&25.into(), &0.into()));
    assert_eq!((&results["last_run"]["hits"], &results["in_all"]["misses"]), (&10.into(), &25.into()));

    let log = folder.path().join("results-00000001.log");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
    let text = cache(&folder, &["show"]);
    assert!(text.contains("results: 24 remembered") && text.contains("torn or damaged"), "{text}");

    assert!(cache(&folder, &["clear"]).starts_with("removed 2 files"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(!cache(&folder, &["show"]).contains("results"));
}
