//! `breakeven devices`: this machine enters, a list of its devices leaves: limits, memory, driver, quirks and health.

use std::io::{self, Write};

use breakeven::{DeviceInfo, Engine};
use serde::Serialize;

use crate::args::DevicesArgs;
use crate::failure::Failure;
use crate::memory::size;

/// Runs the subcommand.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let engine = Engine::new()?;
    let devices = engine.devices();
    let hint = (devices.len() == 1).then(breakeven::driver_hint);
    let mut stdout = io::stdout().lock();
    if args.json {
        let devices = devices.iter().map(Row::new).collect();
        serde_json::to_writer(&mut stdout, &Document { version: 1, devices, hint }).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        for (number, device) in devices.iter().enumerate() {
            let gap = if number == 0 { "" } else { "\n" };
            stdout.write_all(format!("{gap}{}", text(device)).as_bytes())?;
        }
        if let Some(hint) = hint {
            writeln!(stdout, "\nno GPU: everything runs on the CPU. {hint}")?;
        }
    }
    Ok(stdout.flush()?)
}

#[derive(Serialize)]
struct Document<'a> {
    /// It goes up when a field changes its meaning: see docs/formats.md.
    version: u32,
    devices: Vec<Row<'a>>,
    /// How to get a GPU, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    kind: &'a str,
    name: &'a str,
    backend: &'a str,
    driver: &'a str,
    status: &'static str,
    reason: &'a str,
    /// 0 where it is not known.
    memory_bytes: u64,
    limits: std::collections::BTreeMap<&'static str, u64>,
    features: &'a [String],
    quirks: &'a [String],
}

impl<'a> Row<'a> {
    fn new(device: &'a DeviceInfo) -> Row<'a> {
        Row {
            id: &device.id,
            kind: device.kind,
            name: &device.name,
            backend: &device.backend,
            driver: &device.driver,
            status: device.health.status.name(),
            reason: &device.health.reason,
            memory_bytes: device.memory_bytes.unwrap_or(0),
            limits: device.limits.iter().copied().collect(),
            features: &device.features,
            quirks: &device.quirks,
        }
    }
}

/// What people read about one device.
fn text(device: &DeviceInfo) -> String {
    let mut text = format!("{:<6} {}", device.id, device.name);
    if device.kind == "software" {
        text += "  (software: the CPU, not a GPU)";
    }
    text.push('\n');
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text += &format!("  {name:<9} {value}\n");
        }
    };
    line("kind", device.kind.to_owned());
    line("backend", device.backend.clone());
    line("driver", device.driver.clone());
    line("memory", device.memory_bytes.map(size).unwrap_or_default());
    line("status", format!("{}: {}", device.health.status.name(), device.health.reason));
    let limit = |(name, value): &(&'static str, u64)| match name.strip_suffix("_bytes") {
        Some(name) => format!("{} {}", name.replace('_', " "), size(*value)),
        None => format!("{} {value}", name.replace('_', " ")),
    };
    line("limits", device.limits.iter().map(limit).collect::<Vec<_>>().join(", "));
    line("features", device.features.join(", "));
    for quirk in &device.quirks {
        line("quirk", quirk.clone());
    }
    text
}
