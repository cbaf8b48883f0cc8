//! The few numbers that matter: a scan and its crossovers enter, four tiles leave.

use super::Entry;
use crate::crossover::{Crossover, Verdict};
use crate::page::{self, Tile};
use crate::scan::Scan;
use crate::words::{rounded, sized, time};
use maud::Markup;

/// The tiles on top of the page.
pub(super) fn tiles(scan: &Scan, entries: &[Entry<'_>]) -> Markup {
    let tiles = [devices(scan), pays(scan, entries), smallest(scan, entries), fixed(scan)];
    page::tiles(&tiles)
}

/// How many devices were measured, and of which kinds.
fn devices(scan: &Scan) -> Tile {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for device in &scan.devices {
        let kind = if device.is_cpu() { "CPU" } else { device.kind.as_str() };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let words = |&(kind, count): &(&str, usize)| if count == 1 { kind.to_owned() } else { format!("{count} {kind}") };
    let note = kinds.iter().map(words).collect::<Vec<_>>().join(", ");
    Tile { what: "Devices measured", value: scan.devices.len().to_string(), note }
}

/// At how many ops a device is faster somewhere.
fn pays(scan: &Scan, entries: &[Entry<'_>]) -> Tile {
    let count = |pays: &dyn Fn(&Crossover) -> bool| entries.iter().filter(|e| e.crossovers.iter().any(pays)).count();
    let any = count(&|c| c.verdict.pays());
    let others = scan.devices.iter().filter(|device| !device.is_cpu());
    let each: Vec<String> = others
        .map(|device| format!("{}: {}", device.label(), count(&|c| c.verdict.pays() && c.device == device.id)))
        .collect();
    let note = if each.is_empty() { "no device but the CPU was measured".to_owned() } else { each.join(", ") };
    Tile { what: "Operations where a device pays", value: format!("{any} of {}", entries.len()), note }
}

/// The smallest work that pays. Hardware comes before what stands for it; sizes of other units can't be compared, so
/// elements come first.
fn smallest(scan: &Scan, entries: &[Entry<'_>]) -> Tile {
    let all = entries.iter().flat_map(|entry| &entry.crossovers);
    let stand_in = |id: &str| scan.device(id).is_some_and(|device| device.is_stand_in());
    let key = |c: &&Crossover| (stand_in(&c.device), c.unit != "elements", c.at);
    let first = all.filter(|c| c.at.is_some()).min_by_key(key);
    let what = "Smallest crossover";
    let Some((at, found)) = first.and_then(|found| Some((found.at?, found))) else {
        return Tile { what, value: "none".to_owned(), note: "the CPU is the fastest at the largest sizes".to_owned() };
    };
    let value = match found.verdict {
        Verdict::DeviceAlways => format!("below {}", sized(at, &found.unit)),
        _ => sized(rounded(at), &found.unit),
    };
    let crossing = found.between.and(found.at_ns);
    let takes = crossing.map_or_else(String::new, |ns| format!(", where both take {}", time(ns)));
    Tile { what, value, note: format!("{} on {}{takes}", found.op, scan.label(&found.device)) }
}

/// What a call costs on the device where it costs the least, and on the others.
fn fixed(scan: &Scan) -> Tile {
    let what = "Fixed cost of a call";
    let rank = |id: &str| scan.device(id).map(|device| (device.is_cpu(), device.is_stand_in()));
    let mut costs: Vec<_> = scan.overheads.iter().collect();
    costs.sort_by_key(|overhead| (rank(&overhead.device), overhead.fixed_ns));
    let Some((first, others)) = costs.split_first() else {
        return Tile { what, value: "-".to_owned(), note: "not measured".to_owned() };
    };
    let others = others.iter().map(|o| format!("{} {}", scan.label(&o.device), time(o.fixed_ns)));
    let note: Vec<String> = std::iter::once(format!("on {}", scan.label(&first.device))).chain(others).collect();
    Tile { what, value: time(first.fixed_ns), note: note.join("; ") }
}
