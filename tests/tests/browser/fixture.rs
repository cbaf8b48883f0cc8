//! The scan whose page is opened: a CPU, a software adapter and a simulated card, everything that a scan can hold.

use breakeven_report::bench::{self, Bench, Group, Missing, Surroundings, Trouble, TroubleKind};
use breakeven_report::{Device, Fused, How, Machine, Overhead, Row, Scan, Stats, Transfer};

/// Op, class, unit, sizes, and nanoseconds at the smallest size with how they grow, for each device.
type Line = (&'static str, &'static str, &'static str, [u64; 5], [(u64, f64); 3]);

const SIZES: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

const LINES: [Line; 6] = [
    ("add", "map", "elements", SIZES, [(300, 8.0), (60_000, 2.6), (90_000, 1.8)]),
    ("exp", "map", "elements", SIZES, [(900, 9.0), (90_000, 3.0), (120_000, 2.0)]),
    ("sum", "reduce", "elements", SIZES, [(200, 7.0), (80_000, 2.0), (110_000, 1.5)]),
    ("softmax", "rows", "elements", SIZES, [(1_100, 9.5), (95_000, 3.5), (130_000, 2.1)]),
    ("matmul", "contract", "n x n", [64, 128, 256, 512, 1024], [(9_000, 7.8), (120_000, 7.0), (150_000, 2.9)]),
    ("tanh", "many", "tasks of 256", [1, 4, 16, 64, 256], [(1_500, 3.9), (70_000, 1.6), (1_200, 3.2)]),
];

/// The labels of its devices.
pub const LABELS: [&str; 3] = ["CPU", "gpu:0 software", "gpu:1 simulated"];

/// The devices, in the order of their times.
fn devices() -> Vec<Device> {
    let other = |id: &str, name: &str, kind: &str, backend: &str, driver: &str| Device {
        id: id.into(),
        name: name.into(),
        kind: kind.into(),
        backend: backend.into(),
        driver: driver.into(),
    };
    vec![
        Device::cpu("a processor of 2.8 GHz"),
        other("gpu:0", "llvmpipe (LLVM 15.0.6, 256 bits)", "software", "vulkan", "Mesa 22.3.6"),
        other("gpu:1", "a card of 450 GB/s", "simulated", "model", ""),
    ]
}

/// Samples around a time; the software adapter's spread is wide at every second size.
fn stats(ns: u64, wide: bool) -> Stats {
    let part = if wide { 3 } else { 50 };
    Stats::of(&[ns - ns / part, ns - ns / (2 * part), ns, ns + ns / part, ns + 2 * (ns / part)]).unwrap()
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (op, class, unit, sizes, times) in LINES {
        for (device, (first_ns, growth)) in devices().iter().zip(times) {
            for (step, size) in (0i32..).zip(sizes) {
                let ns = (first_ns as f64 * growth.powi(step)) as u64;
                let stats = stats(ns, device.kind == "software" && step % 2 == 1);
                let (op, class, unit, device) = (op.into(), class.into(), unit.into(), device.id.clone());
                rows.push(Row { op, class, size, unit, device, stats });
            }
        }
    }
    rows
}

fn transfers() -> Vec<Transfer> {
    let ways = [("upload", "pageable"), ("upload", "staged"), ("readback", "staged"), ("readback", "mapped")];
    let sized = |bytes: u64| {
        ways.iter().zip(1u64..).map(move |(&(direction, way), number)| Transfer {
            device: "gpu:0".into(),
            direction: direction.into(),
            way: way.into(),
            bytes,
            stats: stats(40_000 + bytes / (2 * number), number == 3),
        })
    };
    [4 << 10, 1 << 20, 64 << 20].into_iter().flat_map(sized).collect()
}

fn fused() -> Vec<Fused> {
    let on = |device: &str, separate: Option<u64>, fused: Option<u64>| Fused {
        what: "exp, add, sqrt, mul".into(),
        device: device.into(),
        separate_crossover: separate,
        fused_crossover: fused,
        unit: "elements".into(),
    };
    vec![on("gpu:0", None, None), on("gpu:1", Some(8_200_000), Some(910_000))]
}

/// The whole scan.
pub fn scan() -> Scan {
    let overhead = |device: &str, fixed_ns: u64, moved_ns: u64| Overhead {
        device: device.into(),
        fixed_ns,
        submit_ns: fixed_ns / 3,
        upload_ns_per_mib: moved_ns,
        readback_ns_per_mib: moved_ns,
        notes: vec!["memory is shared with the CPU".into()],
    };
    Scan {
        machine: Machine {
            cpu: "a processor of 2.8 GHz".into(),
            threads: 2,
            simd: "AVX-512".into(),
            os: "Linux 6.1".into(),
            breakeven: env!("CARGO_PKG_VERSION").into(),
        },
        devices: devices(),
        rows: rows(),
        overheads: vec![overhead("cpu", 450, 0), overhead("gpu:0", 88_000, 95_000), overhead("gpu:1", 120_000, 80_000)],
        transfers: transfers(),
        fused: fused(),
        how: How {
            samples: 31,
            quick: false,
            seconds: 74.2,
            interrupted: true,
            date: "2026-01-31 10:20 UTC".into(),
            notes: vec!["devices took turns, the first run of each was dropped".into()],
        },
        ..Scan::default()
    }
}

/// The same as a run of the bench suite, of which a group did not end well.
pub fn bench_run() -> Bench {
    let group = |(op, _, unit, ..): Line| {
        let rows = rows().into_iter().filter(|row| row.op == op).map(|row| bench::Row {
            case: op.into(),
            size: row.size,
            unit: unit.into(),
            device: row.device,
            passes: vec![vec![row.stats.median_ns; 5]; 2],
            interval: (row.stats.p10_ns, row.stats.p90_ns),
            stats: row.stats,
            bytes: (op == "add").then_some(12 * row.size),
            memcpy_ns: (op == "add").then_some(row.size),
            loaded: op == "sum",
            ..bench::Row::default()
        });
        Group { name: op.into(), seconds: 1.5, rows: rows.collect(), ..Group::default() }
    };
    let mut groups: Vec<Group> = LINES.into_iter().map(group).collect();
    let why = "its process was killed by signal 9".to_owned();
    groups[1].troubles.push(Trouble { kind: TroubleKind::Crashed, pass: 1, device: None, why });
    groups[2].surroundings.push(Surroundings { busy: Some(0.4), loaded: true, ..Surroundings::default() });
    let order = groups.iter().map(|group| group.name.clone()).collect();
    Bench {
        machine: scan().machine,
        devices: devices(),
        missing: vec![Missing { device: "gl".into(), why: "no driver was found".into() }],
        groups,
        how: bench::How { samples: 5, passes: 2, seed: 7, order, seconds: 9.0, ..bench::How::default() },
        ..Bench::default()
    }
}
