//! Comparisons of scans made by hand: what they differ in, who wins, and the texts as a whole.

use super::*;
use crate::fixture_tests::{devices, row, rows, scan};

/// The same machine through another backend: the adapter is slower at some sizes, and faster at matrix products.
fn through_gl() -> Scan {
    let mut gl = scan();
    gl.devices.truncate(2);
    gl.devices[1].backend = "gl".into();
    gl.rows.retain(|row| row.device != "gpu:1" && row.op != "softmax");
    gl.fused.clear();
    gl.overheads.truncate(2);
    for row in gl.rows.iter_mut().filter(|row| row.device == "gpu:0") {
        let times = if row.op == "matmul" { (1, 20) } else { (3, 2) };
        let ns = row.stats.median_ns * times.0 / times.1;
        row.stats = crate::Stats::of(&[ns - ns / 50, ns, ns + ns / 50]).unwrap();
    }
    gl
}

/// The CPU alone, by another version.
fn cpu_alone() -> Scan {
    let mut alone = scan();
    alone.devices.truncate(1);
    alone.rows.retain(|row| row.device == "cpu");
    (alone.fused, alone.transfers, alone.overheads) = (Vec::new(), Vec::new(), Vec::new());
    alone.machine.breakeven = "0.2.0".into();
    alone.how.notes = vec!["no GPU was found, so that there is only the CPU.".into()];
    alone
}

/// Times of another tool, without spreads.
fn from_csv() -> Scan {
    let text = "# op: exp\n# crossover: 100k\nsize,cpu_us,gpu_us\n1000,1,95\n100000,45,160\n10000000,5100,9000\n";
    crate::import::csv(text.as_bytes(), "old").unwrap()
}

pub(super) fn compared() -> Comparison {
    let mut vk = scan();
    vk.claims.push(crate::Claim::parse("*=100k", "--claim").unwrap());
    let sides = [("vk", vk), ("gl", through_gl()), ("alone", cpu_alone()), ("old", from_csv())];
    Comparison::of(sides.map(|(label, scan)| (label.to_owned(), scan)).to_vec()).unwrap()
}

#[test]
fn the_summary_of_a_comparison() {
    insta::assert_snapshot!(markdown(&compared()));
}

#[test]
fn the_table_of_a_comparison() {
    insta::assert_snapshot!(table(&compared()));
}

#[test]
fn the_table_of_two_sides() {
    let two = vec![("vk".to_owned(), scan()), ("gl".to_owned(), through_gl())];
    let text = table(&Comparison::of(two).unwrap());
    assert!(text.contains("operation   device"), "side by side where that fits: {text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_merged_csv() {
    let text = csv(&compared());
    let sides = compared().sides;
    assert_eq!(text.lines().count(), 1 + sides.iter().map(|side| side.scan.rows.len()).sum::<usize>());
    let columns = text.lines().next().unwrap().split(',').count();
    assert_eq!(text.lines().last().unwrap().split(',').count(), columns, "unknown fields are empty, not left out");
    insta::assert_snapshot!(text.replace("\r\n", "\n"));
}

#[test]
fn the_same_measurements_give_the_same_bytes() {
    let texts = || [csv, markdown, table, html, Comparison::to_json].map(|write| write(&compared()));
    assert_eq!(texts(), texts());
}

#[test]
fn json_says_what_was_found() {
    let json: serde_json::Value = serde_json::from_str(&compared().to_json()).unwrap();
    assert_eq!((&json["version"], json["sides"].as_array().map(Vec::len)), (&1.into(), Some(4)));
    assert_eq!(json["sides"][2]["gpu_missing"], true);
    let cells = &json["crossovers"][0]["cells"];
    assert_eq!((&cells[2]["state"], &cells[3]["crossover"]["verdict"]), (&"missing".into(), &"cpu_always".into()));
    assert_eq!(json["contradictions"][0]["kind"], "claim");
}

#[test]
fn one_scan_is_no_comparison_and_empty_ones_are_refused() {
    let few = Comparison::of(vec![("a".into(), scan())]).unwrap_err();
    assert_eq!(few, CompareError::TooFew { found: 1 });
    let empty = Comparison::of(vec![("a".into(), scan()), ("b".into(), Scan::default())]).unwrap_err();
    assert_eq!(empty, CompareError::Empty { label: "b".into() });
}

#[test]
fn labels_are_made_unique() {
    let sides = ["a", "a", "", "a 2", "a"].map(|label| (label.to_owned(), scan())).to_vec();
    let labels: Vec<String> = Comparison::of(sides).unwrap().sides.into_iter().map(|side| side.label).collect();
    assert_eq!(labels, ["a", "a 2", "side", "a 2 2", "a 3"]);
}

/// What is said about two scans.
fn about(change: impl Fn(&mut Scan)) -> (String, Vec<Aspect>) {
    let mut other = scan();
    change(&mut other);
    let found = Comparison::of(vec![("a".into(), scan()), ("b".into(), other)]).unwrap();
    (found.about, found.differences.iter().map(|difference| difference.aspect).collect())
}

#[test]
fn it_finds_by_itself_what_sides_differ_in() {
    let (same, none) = about(|_| ());
    assert!(
        same.starts_with("One machine (Intel Xeon 2.8 GHz, 2 threads, AVX-512), runs that differ in nothing"),
        "{same}"
    );
    assert!(none.is_empty());
    let (backend, aspects) = about(|scan| scan.devices[1].backend = "gl".into());
    assert!(backend.ends_with(", other backends: a, b") && aspects == [Aspect::Backend], "{backend}");
    let (machine, _) = about(|scan| (scan.machine.cpu, scan.machine.os) = ("Ryzen".into(), "Windows".into()));
    assert_eq!(machine, "Other machines: a, b");
    let (version, _) = about(|scan| scan.machine.breakeven = "0.2.0".into());
    assert!(version.ends_with(", other versions of Breakeven: a, b"), "{version}");
    let (unknown, aspects) = about(|scan| scan.machine = crate::Machine::default());
    assert!(unknown.contains("as far as is told"), "{unknown}");
    assert!(aspects.contains(&Aspect::Machine), "what is unknown is said");
}

#[test]
fn the_fastest_is_found_at_common_sizes_only() {
    let one = Scan {
        devices: devices(),
        rows: rows("exp", "map", "elements", &[("cpu", &[(10, 100), (20, 100)])]),
        ..scan()
    };
    let two = Scan {
        devices: devices(),
        rows: rows("exp", "map", "elements", &[("gpu:1", &[(20, 50), (40, 10)])]),
        ..scan()
    };
    let found = Comparison::of(vec![("a".into(), one), ("b".into(), two)]).unwrap();
    let [fastest] = found.fastest.as_slice() else { panic!("one size in common: {:?}", found.fastest) };
    assert_eq!((fastest.size, &*fastest.best.side, &*fastest.best.device), (20, "b", "gpu:1"));
    assert_eq!((&*fastest.next.side, fastest.ratio(), fastest.clear), ("a", 2.0, true));
    let only: Vec<String> = found.only.iter().map(Only::words).collect();
    assert_eq!(only, ["exp (elements) at 10: only a", "exp (elements) at 40: only b"]);
}

#[test]
fn pairs_are_geometric_means_of_alike_devices() {
    let side = |cpu: [u64; 2], gpu: u64| Scan {
        devices: devices()[..2].to_vec(),
        rows: vec![
            row("exp", "map", "elements", "cpu", 10, cpu[0]),
            row("exp", "map", "elements", "cpu", 20, cpu[1]),
            row("exp", "map", "elements", "gpu:0", 20, gpu),
        ],
        ..scan()
    };
    let found = Comparison::of(vec![("a".into(), side([100, 800], 50)), ("b".into(), side([200, 100], 100))]).unwrap();
    let told: Vec<_> =
        found.ratios.iter().map(|pair| (&*pair.first_device, pair.rows, pair.first_over_second)).collect();
    assert_eq!(told, [("cpu", 2, 2.0), ("gpu:0", 1, 0.5)], "half and eight times are twice in the mean");
}

#[test]
fn imported_rows_meet_those_of_the_same_op_whatever_their_class() {
    let found = compared();
    let exp = found.crossovers.iter().find(|row| row.op == "exp").unwrap();
    assert_eq!(exp.class, "map");
    assert!(exp.cells[3].crossover.is_some(), "{exp:?}");
}

/// Every key of a document.
fn keys(of: &serde_json::Value, into: &mut std::collections::BTreeSet<String>) {
    match of {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            keys(value, into);
        }),
        serde_json::Value::Array(list) => list.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// The scans in it are those of docs/formats.md.
#[test]
fn every_field_is_told_in_the_docs() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compare.md");
    let page = std::fs::read_to_string(path).expect("the page is in the workspace");
    let start = page.find(&format!("## `compare.json`, version {VERSION}\n")).expect("its heading");
    let words: Vec<&str> = page[start..].split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let mut found = std::collections::BTreeSet::new();
    keys(&serde_json::to_value(Comparison { sides: Vec::new(), ..compared() }).unwrap(), &mut found);
    let untold: Vec<&String> = found.iter().filter(|key| !words.contains(&key.as_str())).collect();
    assert!(untold.is_empty(), "not told: {untold:?}");
}
