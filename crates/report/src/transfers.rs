//! How fast bytes go to devices and come back: the transfers of a scan enter, rates by size and way leave.
//!
//! A way that a device does not have is not among its transfers: where others of the same size were measured it is shown
//! as not available, never as 0.

use crate::lists::List;
use crate::scan::Scan;
use crate::stats::Stats;
use crate::words::{bytes, rate};
use serde::{Deserialize, Serialize};

/// Every direction and way, in the order in which they are shown.
pub(crate) const WAYS: [(&str, &str); 6] = [
    ("upload", "pageable"),
    ("upload", "staged"),
    ("upload", "mapped"),
    ("readback", "pageable"),
    ("readback", "staged"),
    ("readback", "mapped"),
];

/// What stands for a way that a device does not have.
pub(crate) const NOT_AVAILABLE: &str = "not available";

/// What the ways are, for whoever reads the rates.
pub(crate) const GUIDE: &str = "GB/s (10^9 bytes) by the median time of a transfer alone, its submit and its wait \
     included. Pageable goes through ordinary memory, for which wgpu has a call only on the way to a device; staged \
     through a mapped buffer and a copy on the device; mapped through memory that kernels use and the host sees.";

/// Transfers of one size, direction and way on a device.
///
/// ```
/// use breakeven_report::{Stats, Transfer};
/// let transfer = Transfer { bytes: 1 << 20, stats: Stats::of(&[200_000]).unwrap_or_default(), ..Transfer::default() };
/// assert_eq!(transfer.rate(), "5.2 GB/s");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    /// The device's id.
    pub device: String,
    /// `upload` or `readback`.
    pub direction: String,
    /// `pageable`, `staged` or `mapped`.
    pub way: String,
    /// How many bytes each of them moved.
    pub bytes: u64,
    /// What they took.
    pub stats: Stats,
}

impl Transfer {
    /// Gigabytes a second by the median, in words.
    pub fn rate(&self) -> String {
        rate(self.bytes, self.stats.median_ns)
    }

    fn is(&self, device: &str, (direction, way): (&str, &str)) -> bool {
        (self.device.as_str(), self.direction.as_str(), self.way.as_str()) == (device, direction, way)
    }
}

/// Rates of one device at one size, in the order of [`WAYS`].
pub(crate) struct Rates<'s> {
    pub device: &'s str,
    pub bytes: u64,
    pub ways: [Option<&'s Transfer>; WAYS.len()],
}

/// The rates of each device in the scan's order of devices, sizes going up.
pub(crate) fn rates(scan: &Scan) -> Vec<Rates<'_>> {
    let mut all = Vec::new();
    for device in &scan.devices {
        let of_device = || scan.transfers.iter().filter(|transfer| transfer.device == device.id);
        let mut sizes: Vec<u64> = of_device().map(|transfer| transfer.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        all.extend(sizes.into_iter().map(|bytes| Rates {
            device: &device.id,
            bytes,
            ways: WAYS.map(|way| of_device().find(|transfer| transfer.bytes == bytes && transfer.is(&device.id, way))),
        }));
    }
    all
}

/// A rate, marked where its spread stayed wide.
pub(crate) fn cell(transfer: Option<&Transfer>) -> String {
    let marked = |transfer: &Transfer| format!("{}{}", if transfer.stats.wide { "~" } else { "" }, transfer.rate());
    transfer.map_or_else(|| NOT_AVAILABLE.to_owned(), marked)
}

/// Every rate: one row for each device and size.
pub(crate) fn by_size(scan: &Scan) -> List {
    let row = |rates: Rates<'_>| {
        let cells = rates.ways.map(cell);
        [&[scan.label(rates.device), bytes(rates.bytes)][..], &cells].concat()
    };
    let header = vec![
        "device",
        "size",
        "upload pageable",
        "upload staged",
        "upload mapped",
        "readback pageable",
        "readback staged",
        "readback mapped",
    ];
    List { header, rows: rates(scan).into_iter().map(row).collect(), numbers: 1..8 }
}

/// The best rate of each direction and way, and the size that has it: two rows for each device.
pub(crate) fn best(scan: &Scan) -> List {
    let mut rows = Vec::new();
    for device in scan.devices.iter().filter(|device| scan.transfers.iter().any(|t| t.device == device.id)) {
        for direction in ["upload", "readback"] {
            let mut cells = vec![device.label(), direction.to_owned()];
            cells.extend(WAYS.iter().filter(|way| way.0 == direction).map(|way| {
                let of_way = scan.transfers.iter().filter(|transfer| transfer.is(&device.id, *way));
                let speed = |t: &&Transfer| t.bytes as f64 / t.stats.median_ns.max(1) as f64;
                let best = of_way.max_by(|a, b| speed(a).total_cmp(&speed(b)));
                best.map_or_else(|| NOT_AVAILABLE.to_owned(), |t| format!("{} at {}", cell(Some(t)), bytes(t.bytes)))
            }));
            rows.push(cells);
        }
    }
    let header = vec!["transfers, at best", "direction", "pageable", "staged", "mapped"];
    List { header, rows, numbers: 2..5 }
}

#[cfg(test)]
#[path = "transfers_tests.rs"]
mod tests;
