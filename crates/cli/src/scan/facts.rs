//! What a report says beside times: the machine, its devices, what a call costs, how fusion moves the crossover, the date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use breakeven::{DeviceInfo, Engine, cost::Costs};
use breakeven_report::{Device, Fused, Machine, Overhead, Row, Scan, Verdict};

use super::ops;

/// This machine.
pub fn machine(engine: &Engine) -> Machine {
    // "2 threads, avx512": the threads are told on their own.
    let name = engine.device_name("cpu");
    let simd = name.split_once(", ").map_or("", |(_, simd)| simd).to_owned();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        cpu: breakeven::cpu_name(),
        threads: engine.threads(),
        simd,
        os: format!("{} {}", std::env::consts::OS, release.trim()).trim_end().to_owned(),
        breakeven: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The processor as a device.
pub fn cpu() -> Device {
    Device::cpu(&breakeven::cpu_name())
}

/// A device as a report names it.
pub fn device(info: &DeviceInfo, is_simulated: bool) -> Device {
    if is_simulated {
        let name = info.name.trim_end_matches(" (simulated)").to_owned();
        return Device { id: info.id.clone(), name, kind: "simulated".into(), ..Device::default() };
    }
    Device {
        id: info.id.clone(),
        name: info.name.clone(),
        kind: info.kind.to_owned(),
        backend: info.backend.clone(),
        driver: info.driver.clone(),
    }
}

const MIB: f64 = 1048576.0;

/// What a call costs there.
pub fn overhead(device: &str, costs: &Costs) -> Overhead {
    let curve = |ns: f64| ns.round() as u64;
    Overhead {
        device: device.to_owned(),
        fixed_ns: curve(costs.fixed_ns),
        submit_ns: curve(costs.submit_ns),
        upload_ns_per_mib: curve(costs.upload_ns(MIB)),
        readback_ns_per_mib: curve(costs.readback_ns(MIB)),
        ..Overhead::default()
    }
}

/// From which size on a device pays for the chain as ten calls and as one batch, one for each device that has both.
pub fn fused(devices: &[Device], rows: &[Row]) -> Vec<Fused> {
    let of_chain = |row: &&Row| [ops::CHAIN.name, ops::CALLS.name].contains(&row.op.as_str());
    let rows = rows.iter().filter(of_chain).cloned().collect();
    let crossovers = Scan { devices: devices.to_vec(), rows, ..Scan::default() }.crossovers();
    let of = |op: &str, device: &str| {
        let is_it = |c: &&breakeven_report::Crossover| c.op == op && c.device == device;
        crossovers.iter().find(is_it).filter(|c| c.verdict != Verdict::Unmeasured)
    };
    let both = |device: &Device| {
        let (separate, fused) = (of(ops::CALLS.name, &device.id)?, of(ops::CHAIN.name, &device.id)?);
        Some(Fused {
            what: "a chain of ten ops".to_owned(),
            device: device.id.clone(),
            separate_crossover: separate.at,
            fused_crossover: fused.at,
            unit: fused.unit.clone(),
        })
    };
    devices.iter().filter_map(both).collect()
}

/// Now, as people write it.
pub fn date() -> String {
    date_of(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn date_of(since_1970: Duration) -> String {
    let minutes = since_1970.as_secs() / 60;
    let days = minutes / 1440;
    // The calendar repeats every 400 years of 146,097 days; with years that begin in March, leap days come last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let date = in_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (400 * era + year, month + 3) } else { (400 * era + year + 1, month - 9) };
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
