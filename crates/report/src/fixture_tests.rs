//! What the tests of this crate share: a small scan of a CPU, a software adapter and a simulated card, and checks that
//! every page passes.

use crate::scan::{Device, Fused, How, Machine, Overhead, Row, Scan};
use crate::stats::Stats;
use crate::transfers::Transfer;

/// One measurement whose samples spread a little.
pub(crate) fn row(op: &str, class: &str, unit: &str, device: &str, size: u64, ns: u64) -> Row {
    let stats = Stats::of(&[ns - ns / 50, ns, ns + ns / 50]).expect("three samples");
    Row { op: op.into(), class: class.into(), size, unit: unit.into(), device: device.into(), stats }
}

/// Rows of one op: (size, time) for each device.
pub(crate) fn rows(op: &str, class: &str, unit: &str, lines: &[(&str, &[(u64, u64)])]) -> Vec<Row> {
    let points = |&(device, points): &(&str, &[(u64, u64)])| {
        points.iter().map(|&(size, ns)| row(op, class, unit, device, size, ns)).collect::<Vec<_>>()
    };
    lines.iter().flat_map(points).collect()
}

/// Transfers of the software adapter, in every way that it has; the largest readback was disturbed.
fn transfers() -> Vec<Transfer> {
    let ways = [
        ("upload", "pageable", [90_000, 16_000_000]),
        ("upload", "staged", [100_000, 10_000_000]),
        ("upload", "mapped", [50_000, 5_000_000]),
        ("readback", "staged", [91_000, 12_000_000]),
        ("readback", "mapped", [45_000, 6_000_000]),
    ];
    let sizes = |(number, bytes): (usize, u64)| {
        ways.map(|(direction, way, ns)| {
            let ns: u64 = ns[number];
            let wide = ns == 12_000_000;
            let stats = Stats { wide, ..Stats::of(&[ns - ns / 50, ns, ns + ns / 50]).expect("three samples") };
            Transfer { device: "gpu:0".into(), direction: direction.into(), way: way.into(), bytes, stats }
        })
    };
    [4096, 64 << 20].into_iter().enumerate().flat_map(sizes).collect()
}

/// The CPU and two devices.
pub(crate) fn devices() -> Vec<Device> {
    let gpu = |id: &str, name: &str, kind: &str, backend: &str, driver: &str| Device {
        id: id.into(),
        name: name.into(),
        kind: kind.into(),
        backend: backend.into(),
        driver: driver.into(),
    };
    vec![
        Device::cpu("Intel Xeon 2.8 GHz"),
        gpu("gpu:0", "llvmpipe (LLVM 15.0.6, 256 bits)", "software", "vulkan", "Mesa 22.3.6"),
        gpu("gpu:1", "a card of 450 GB/s", "simulated", "model", ""),
    ]
}

/// The whole scan.
pub(crate) fn scan() -> Scan {
    let mut all = Vec::new();
    // Matrix products first: the report sorts by class.
    all.extend(rows(
        "matmul",
        "contract",
        "n x n",
        &[
            ("cpu", &[(128, 40_000), (512, 1_300_000), (2048, 83_000_000)]),
            ("gpu:0", &[(128, 300_000), (512, 9_000_000), (2048, 600_000_000)]),
            ("gpu:1", &[(128, 150_000), (512, 260_000), (2048, 5_000_000)]),
        ],
    ));
    all.extend(rows(
        "exp",
        "map",
        "elements",
        &[
            ("cpu", &[(1_000, 900), (100_000, 40_000), (10_000_000, 5_000_000)]),
            ("gpu:0", &[(1_000, 90_000), (100_000, 160_000), (10_000_000, 9_000_000)]),
            ("gpu:1", &[(1_000, 120_000), (100_000, 130_000), (10_000_000, 3_900_000)]),
        ],
    ));
    all.extend(rows(
        "softmax",
        "many",
        "tasks of 256",
        &[("cpu", &[(1, 1_500), (64, 30_000)]), ("gpu:1", &[(1, 1_200), (64, 20_000)])],
    ));
    if let Some(noisy) = all.iter_mut().find(|row| row.device == "gpu:0" && row.size == 10_000_000) {
        noisy.stats.wide = true;
    }
    Scan {
        machine: Machine {
            cpu: "Intel Xeon 2.8 GHz".into(),
            threads: 2,
            simd: "AVX-512".into(),
            os: "Linux 6.1".into(),
            breakeven: "0.1.0".into(),
        },
        devices: devices(),
        rows: all,
        overheads: vec![
            Overhead { device: "cpu".into(), fixed_ns: 450, ..Overhead::default() },
            Overhead {
                device: "gpu:0".into(),
                fixed_ns: 88_000,
                submit_ns: 31_000,
                upload_ns_per_mib: 110_000,
                readback_ns_per_mib: 95_000,
                notes: vec!["memory is shared with the CPU".into()],
            },
            Overhead {
                device: "gpu:1".into(),
                fixed_ns: 120_000,
                submit_ns: 20_000,
                upload_ns_per_mib: 80_000,
                readback_ns_per_mib: 90_000,
                notes: Vec::new(),
            },
        ],
        transfers: transfers(),
        fused: vec![
            Fused {
                what: "exp, add, sqrt, mul".into(),
                device: "gpu:1".into(),
                separate_crossover: Some(8_200_000),
                fused_crossover: Some(910_000),
                unit: "elements".into(),
            },
            Fused {
                what: "exp, add, sqrt, mul".into(),
                device: "gpu:0".into(),
                separate_crossover: None,
                fused_crossover: None,
                unit: "elements".into(),
            },
        ],
        how: How {
            samples: 31,
            quick: false,
            seconds: 74.2,
            interrupted: false,
            date: "2026-01-31 10:20 UTC".into(),
            notes: vec!["devices took turns, the first run of each was dropped".into()],
        },
        ..Scan::default()
    }
}

/// Elements that have no end.
const VOID: [&str; 3] = ["meta", "br", "link"];

/// The tags of a page in their order, without what scripts and styles hold.
pub(crate) fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        // No attribute of the page may hold a `>` that is not escaped, so the next one ends the tag.
        let end = rest.find('>').expect("the tag ends");
        let tag = rest[..end].to_owned();
        rest = &rest[end + 1..];
        let name = tag.split_whitespace().next().unwrap_or("").to_owned();
        if name == "script" || name == "style" {
            rest = &rest[rest.find(&format!("</{name}>")).expect("it is closed")..];
        }
        tags.push(tag);
    }
    tags
}

/// Panics unless every element is closed in its turn.
pub(crate) fn assert_balanced(page: &str) {
    let mut open: Vec<String> = Vec::new();
    for tag in tags(page).iter().filter(|tag| !tag.starts_with('!')) {
        let name = tag.split_whitespace().next().unwrap_or("");
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "closed out of turn"),
            None if VOID.contains(&name) => {}
            None => open.push(name.to_owned()),
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

/// Panics unless a page is sound and loads nothing.
pub(crate) fn assert_self_contained(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert_balanced(page);
    for tag in tags(page) {
        let mut names: Vec<&str> = tag.split('"').step_by(2).filter_map(|part| part.trim().strip_suffix('=')).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "an attribute is there twice: {tag}");
    }
    // Names of attributes, not what they hold: a file's own text may mention anything.
    let markup: String = tags(page).iter().flat_map(|tag| tag.split('"').step_by(2)).collect();
    for outside in ["http://", "https://", "src=", "href=", "@import", "url(", "//cdn"] {
        assert!(!markup.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("NaN") && !page.contains("inf,") && !page.contains("\"inf"), "places are numbers");
}
