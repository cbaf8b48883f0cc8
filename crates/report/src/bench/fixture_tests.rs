//! A run of the suite with everything that can be special about one: noise, load, a crash, a hang, a lost and a missing
//! device, something left behind, transfers, rows without a size.

use super::*;
use crate::fixture_tests::devices;

/// A row of three passes whose samples spread by `spread` thousandths.
pub(crate) fn row(case: &str, size: u64, unit: &str, device: &str, ns: u64, spread: u64) -> Row {
    let pass = |pass: u64| (0..5).map(|i| ns + ns * spread * ((i * 3 + pass * 2) % 5) / 5000).collect();
    let mut row = Row {
        case: case.into(),
        size,
        unit: unit.into(),
        device: device.into(),
        passes: (0..3).map(pass).collect(),
        ..Row::default()
    };
    row.settle();
    row
}

fn group(name: &str, rows: Vec<Row>) -> Group {
    let calm = Surroundings { busy: Some(0.02), free_bytes: Some(4 << 30), ..Surroundings::default() };
    Group { name: name.into(), surroundings: vec![calm], seconds: 4.5, rows, ..Group::default() }
}

fn trouble(kind: TroubleKind, pass: u32, device: Option<&str>, why: &str) -> Trouble {
    Trouble { kind, pass, device: device.map(Into::into), why: why.into() }
}

/// Rows that move bytes.
fn transfers() -> Vec<Row> {
    let moved = |case: &str, ns: u64, memcpy_ns: Option<u64>| Row {
        bytes: Some(64 << 20),
        memcpy_ns,
        ..row(case, 64 << 20, "bytes", "gpu:0", ns, 15)
    };
    vec![moved("upload", 12_000_000, Some(8_000_000)), moved("readback", 16_000_000, None)]
}

/// The whole run.
pub(crate) fn bench() -> Bench {
    let noisy = row("tanh", 1_000_000, "elements", "gpu:0", 9_000_000, 600);
    let loaded = Row { loaded: true, ..row("tanh", 1_000_000, "elements", "cpu", 5_000_000, 20) };
    let both = Row { loaded: true, ..row("tanh", 1_000, "elements", "cpu", 1_000, 700) };
    let unary = group(
        "unary",
        vec![
            row("exp", 1_000_000, "elements", "cpu", 400_000, 10),
            row("exp", 1_000_000, "elements", "gpu:0", 100_000, 10),
            row("exp", 1_000_000, "elements", "gpu:1", 50_000, 0),
            loaded,
            noisy,
            both,
        ],
    );
    let crashed = trouble(TroubleKind::Crashed, 1, None, "killed by signal 9");
    let hung = trouble(TroubleKind::Hung, 0, None, "60 s without a row");
    let lost = trouble(TroubleKind::DeviceLost, 2, Some("gpu:1"), "it did not answer");
    let leftover = trouble(TroubleKind::Leftover, 0, Some("gpu:0"), "4 MiB of the pool are still in use");
    let left = LeftOut {
        case: "matmul".into(),
        size: 2048,
        unit: "n x n".into(),
        device: Some("gpu:0".into()),
        why: "a run would take about 9.0 s, for which there is no time".into(),
    };
    let busy = Surroundings {
        busy: Some(0.75),
        stolen: Some(0.1),
        free_bytes: Some(1 << 30),
        celsius: Some(81.5),
        waited_seconds: 30.0,
        loaded: true,
    };
    let null = Null::of(vec![NullCase {
        case: "exp, 100 k elements".into(),
        device: "cpu".into(),
        first: vec![vec![40_000, 40_100, 40_200], vec![40_300, 40_100, 40_000]],
        second: vec![vec![40_100, 40_200, 40_000], vec![40_100, 40_400, 40_100]],
    }]);
    Bench {
        machine: Machine {
            cpu: "Intel Xeon 2.8 GHz".into(),
            threads: 2,
            simd: "AVX-512".into(),
            os: "linux 6.1".into(),
            breakeven: "0.1.0".into(),
        },
        devices: devices(),
        missing: vec![Missing { device: "dx12".into(), why: "this is no Windows".into() }],
        null: Some(null),
        groups: vec![
            Group { surroundings: vec![busy], troubles: vec![leftover], ..unary },
            Group {
                troubles: vec![crashed],
                left_out: vec![left],
                ..group("matmul", vec![row("matmul", 512, "n x n", "cpu", 1_300_000, 12)])
            },
            Group { troubles: vec![hung], ..group("scan", vec![]) },
            Group {
                troubles: vec![lost],
                ..group(
                    "start",
                    vec![
                        Row { beside: Some("first run".into()), ..row("second run", 0, "", "cpu", 60_000, 8) },
                        row("second run", 0, "", "gpu:0", 800_000, 8),
                    ],
                )
            },
            group("transfer", transfers()),
        ],
        how: How {
            samples: 5,
            passes: 3,
            quick: false,
            in_process: false,
            seed: 7,
            order_given: false,
            order: ["scan", "unary", "transfer", "matmul", "start"].repeat(3).into_iter().map(Into::into).collect(),
            seconds: 61.5,
            interrupted: false,
            date: "2026-01-31 10:20 UTC".into(),
            notes: vec!["the first run of each was dropped".into()],
        },
        ..Bench::default()
    }
}

/// The same run later: one row slower, one faster, one that may be, one new, one gone, and what crashed is not there.
pub(crate) fn later() -> Bench {
    let mut later = bench();
    let unary = &mut later.groups[0];
    unary.rows[0] = row("exp", 1_000_000, "elements", "cpu", 520_000, 10);
    unary.rows[1] = row("exp", 1_000_000, "elements", "gpu:0", 70_000, 10);
    unary.rows[4] = row("tanh", 1_000_000, "elements", "gpu:0", 10_000_000, 600);
    unary.rows[5] = row("sqrt", 1_000, "elements", "cpu", 1_000, 10);
    unary.troubles.clear();
    later.groups[1].rows.clear();
    later
}
