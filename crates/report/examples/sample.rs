//! Prints the report of a scan that was never made, to look at the page: `cargo run --example sample > sample.html`.
//! Curves follow simple models with noise from a fixed seed: a CPU of two threads, a software adapter on it, and a card
//! that is simulated. With an argument (`table`, `csv`, `json`, `markdown`) it prints that instead, with the path of a
//! `scan.json` the page of that scan, with that of a `bench.json` the page of that run of the suite.

use breakeven_report::{Device, Fused, How, Machine, Overhead, Row, Scan, Stats, bench, csv, html, markdown, table};
use std::io::Write;

/// What an op costs in the models: for each element or n.
struct Model {
    op: &'static str,
    class: &'static str,
    unit: &'static str,
    sizes: Vec<u64>,
    /// Nanoseconds of one CPU thread, floating point operations, and bytes that cross the bus, for a size.
    cpu_ns: fn(f64) -> f64,
    flops: fn(f64) -> f64,
    bytes: fn(f64) -> f64,
}

/// Powers of two from one exponent to another.
fn powers(from: u32, to: u32, step: usize) -> Vec<u64> {
    (from..=to).step_by(step).map(|e| 1 << e).collect()
}

fn models() -> Vec<Model> {
    let elements = |op, class, cpu_ns, flops, bytes| Model {
        op,
        class,
        unit: "elements",
        sizes: powers(10, 24, 1),
        cpu_ns,
        flops,
        bytes,
    };
    vec![
        elements("add", "map", |n| n * 0.28, |n| n, |n| n * 12.0),
        elements("exp", "map", |n| n * 0.62, |n| n * 20.0, |n| n * 8.0),
        elements("gelu chain of 8", "map", |n| n * 5.4, |n| n * 200.0, |n| n * 8.0),
        elements("sum", "reduce", |n| n * 0.09, |n| n, |n| n * 4.0),
        elements("variance", "reduce", |n| n * 0.31, |n| n * 4.0, |n| n * 4.0),
        elements("softmax", "rows", |n| n * 1.3, |n| n * 30.0, |n| n * 8.0),
        elements("layer_norm", "rows", |n| n * 0.8, |n| n * 10.0, |n| n * 8.0),
        elements("cumsum", "scan", |n| n * 0.45, |n| n * 2.0, |n| n * 8.0),
        Model {
            op: "matmul",
            class: "contract",
            unit: "n x n",
            sizes: powers(5, 11, 1),
            cpu_ns: |n| n * n * n * 2.0 / 90.0,
            flops: |n| n * n * n * 2.0,
            bytes: |n| n * n * 12.0,
        },
        Model {
            op: "softmax, many",
            class: "many",
            unit: "tasks of 256",
            sizes: powers(0, 14, 2),
            cpu_ns: |n| n * 340.0,
            flops: |n| n * 256.0 * 30.0,
            bytes: |n| n * 256.0 * 8.0,
        },
    ]
}

/// What a call takes without noise.
fn ideal_ns(model: &Model, device: &str, size: f64) -> f64 {
    let (flops, bytes, alone) = ((model.flops)(size), (model.bytes)(size), (model.cpu_ns)(size));
    // Past the caches memory decides: 9 GB/s, more and more from 2 MB on.
    let memory = bytes / 9.0 * (bytes / (bytes + 4e6));
    match device {
        "cpu" => 400.0 + alone.min(9_000.0 + alone / 1.9).max(memory),
        "gpu:0" => 95_000.0 + bytes * 0.16 + alone / 1.2 + memory,
        _ => 38_000.0 + bytes / 22.0 + flops / 9_000.0 + bytes / 400.0,
    }
}

/// A generator of numbers from 0 to 1 that are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Samples around a time, now and then one that was disturbed.
    fn samples(&mut self, ns: f64, spread: f64) -> Vec<u64> {
        let mut sample = || {
            let disturbed = if self.next() > 0.94 { 1.0 + self.next() } else { 1.0 };
            (ns * (1.0 + spread * (self.next() + self.next() - 1.0)) * disturbed) as u64
        };
        (0..31).map(|_| sample()).collect()
    }
}

fn scan() -> Scan {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut rows = Vec::new();
    for model in models() {
        for &size in &model.sizes {
            for (device, spread) in [("cpu", 0.12), ("gpu:0", 0.25), ("gpu:1", 0.04)] {
                let noisy = device == "gpu:0" && size == 1 << 12;
                let samples = noise.samples(ideal_ns(&model, device, size as f64), if noisy { 0.9 } else { spread });
                rows.push(Row {
                    op: model.op.into(),
                    class: model.class.into(),
                    size,
                    unit: model.unit.into(),
                    device: device.into(),
                    stats: Stats::of(&samples).unwrap_or_default(),
                });
            }
        }
    }
    let fused = |what: &str, device: &str, separate, together| Fused {
        what: what.into(),
        device: device.into(),
        separate_crossover: separate,
        fused_crossover: together,
        unit: "elements".into(),
    };
    Scan {
        machine: Machine {
            cpu: "Intel Xeon Processor at 2.80 GHz".into(),
            threads: 2,
            simd: "AVX-512".into(),
            os: "Linux 6.1 x86_64".into(),
            breakeven: "0.1.0".into(),
        },
        devices: vec![
            Device::cpu("Intel Xeon Processor at 2.80 GHz"),
            Device {
                id: "gpu:0".into(),
                name: "llvmpipe (LLVM 15.0.6, 256 bits)".into(),
                kind: "software".into(),
                backend: "vulkan".into(),
                driver: "Mesa 22.3.6".into(),
            },
            Device {
                id: "gpu:1".into(),
                name: "9 TFLOP/s behind 22 GB/s".into(),
                kind: "simulated".into(),
                backend: "model".into(),
                driver: String::new(),
            },
        ],
        rows,
        overheads: vec![
            Overhead { device: "cpu".into(), fixed_ns: 400, ..Overhead::default() },
            Overhead {
                device: "gpu:0".into(),
                fixed_ns: 95_000,
                submit_ns: 34_000,
                upload_ns_per_mib: 121_000,
                readback_ns_per_mib: 98_000,
                notes: vec!["its memory is the CPU's, yet the driver copies".into()],
            },
            Overhead {
                device: "gpu:1".into(),
                fixed_ns: 38_000,
                submit_ns: 9_000,
                upload_ns_per_mib: 87_000,
                readback_ns_per_mib: 92_000,
                notes: Vec::new(),
            },
        ],
        fused: vec![
            fused("exp, add, sqrt, mul", "gpu:1", Some(3_400_000), Some(410_000)),
            fused("8 gelu layers", "gpu:1", None, Some(52_000)),
            fused("exp, add, sqrt, mul", "gpu:0", None, None),
        ],
        how: How {
            samples: 31,
            quick: false,
            seconds: 143.0,
            interrupted: false,
            date: "2026-01-31 10:20 UTC".into(),
            notes: vec![
                "Sample: these numbers come from formulas, no device was measured.".into(),
                "Devices took turns at every size, so that a change of clock meets all of them.".into(),
                "The first run of each was dropped; runs were repeated until the spread was narrow or 31 were made."
                    .into(),
            ],
        },
        ..Scan::default()
    }
}

fn main() -> std::io::Result<()> {
    let wish = std::env::args().nth(1);
    if let Some(path) = wish.as_deref().filter(|path| path.ends_with("bench.json")) {
        let bench: bench::Bench = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        return std::io::stdout().write_all(bench::html(&bench, None).as_bytes());
    }
    let scan = match wish.as_deref() {
        Some(path) if path.ends_with(".json") => {
            Scan::from_json(&std::fs::read_to_string(path)?).map_err(std::io::Error::other)?
        }
        _ => scan(),
    };
    let text = match wish.as_deref() {
        Some("table") => table(&scan),
        Some("csv") => csv(&scan),
        Some("json") => scan.to_json(),
        Some("markdown") => markdown(&scan),
        _ => html(&scan),
    };
    std::io::stdout().write_all(text.as_bytes())
}
