//! From which size on a device pays: the curves of an op enter, the crossing with the CPU's curve and a verdict leave.
//! Only sizes that were measured on both count as evidence; between two of them the crossing is interpolated.

use crate::curves::{Curves, Line, curves, ln};
use crate::scan::{Device, Scan};
use crate::words::{rounded, sized};
use serde::{Deserialize, Serialize};

/// Who is faster where, for one op and one device against the CPU.
///
/// ```
/// use breakeven_report::Verdict;
/// assert!(Verdict::DeviceFrom.pays() && !Verdict::CpuAlways.pays());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The device from [`Crossover::at`] on, the CPU below.
    DeviceFrom,
    /// The CPU at every size measured.
    CpuAlways,
    /// The device at every size measured.
    DeviceAlways,
    /// The curves cross more than once, or the device is faster below and the CPU above. If the device is faster at the
    /// largest size, it is from [`Crossover::at`] on.
    Mixed,
    /// No size was measured on both.
    Unmeasured,
}

impl Verdict {
    /// Is the device faster at some size that was measured?
    pub fn pays(self) -> bool {
        matches!(self, Verdict::DeviceFrom | Verdict::DeviceAlways | Verdict::Mixed)
    }
}

/// Medians at the largest size that was measured on the CPU and on the device.
///
/// ```
/// use breakeven_report::Largest;
/// let largest = Largest { size: 1 << 20, cpu_ns: 500_000, device_ns: 100_000, cpu_wide: false, device_wide: false };
/// assert_eq!(largest.speedup(), 5.0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Largest {
    /// The size.
    pub size: u64,
    /// The CPU's median.
    pub cpu_ns: u64,
    /// The device's median.
    pub device_ns: u64,
    /// The CPU's spread stayed too wide.
    pub cpu_wide: bool,
    /// The device's spread stayed too wide.
    pub device_wide: bool,
}

impl Largest {
    /// How many times as fast the device is; below 1 it is slower.
    pub fn speedup(&self) -> f64 {
        self.cpu_ns.max(1) as f64 / self.device_ns.max(1) as f64
    }
}

/// From which size on a device is faster than the CPU at an op.
///
/// ```
/// use breakeven_report::{Crossover, Verdict};
/// let crossover = Crossover {
///     op: "exp".into(), device: "gpu:0".into(), class: "map".into(), unit: "elements".into(),
///     at: Some(1_234_567), at_ns: Some(85_000), between: Some((1_000_000, 4_000_000)),
///     verdict: Verdict::DeviceFrom, largest: None,
/// };
/// assert_eq!(crossover.words(), "from 1.2 M elements on");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Crossover {
    /// What is computed.
    pub op: String,
    /// The device's id.
    pub device: String,
    /// The op's class.
    pub class: String,
    /// What sizes count.
    pub unit: String,
    /// The size from which the device is faster than the CPU, up to the largest size measured on both. It is
    /// interpolated, or the smallest size if the device is faster at all of them; `None` is never.
    pub at: Option<u64>,
    /// What both take at `at`, where the curves cross.
    pub at_ns: Option<u64>,
    /// The measured sizes that `at` lies between: the last where the CPU is faster, the first where it is not.
    pub between: Option<(u64, u64)>,
    /// Who is faster where.
    pub verdict: Verdict,
    /// Medians at the largest size measured on both.
    pub largest: Option<Largest>,
}

impl Crossover {
    /// The verdict in a few words.
    pub fn words(&self) -> String {
        match (self.verdict, self.at) {
            (Verdict::DeviceFrom, Some(at)) => format!("from {} on", sized(rounded(at), &self.unit)),
            (Verdict::Mixed, Some(at)) => format!("mixed, from {} on", sized(rounded(at), &self.unit)),
            (Verdict::Mixed, None) => "mixed, CPU at the largest size".to_owned(),
            (Verdict::DeviceAlways, _) => "device at every size measured".to_owned(),
            (Verdict::Unmeasured, _) => "no size measured on both".to_owned(),
            (Verdict::CpuAlways | Verdict::DeviceFrom, _) => "CPU at every size measured".to_owned(),
        }
    }
}

impl Scan {
    /// For each op and each device but the CPU, from which size on the device is faster.
    ///
    /// ```
    /// let scan = breakeven_report::Scan::default();
    /// assert!(scan.crossovers().is_empty());
    /// ```
    pub fn crossovers(&self) -> Vec<Crossover> {
        curves(self).iter().flat_map(|op| of_op(&self.devices, op)).collect()
    }
}

/// The crossovers of one op, one for each device with measurements of it.
pub(crate) fn of_op(devices: &[Device], curves: &Curves<'_>) -> Vec<Crossover> {
    let cpu = curves.lines.iter().find(|line| devices[line.device].is_cpu());
    let others = curves.lines.iter().filter(|line| !devices[line.device].is_cpu());
    others.map(|line| crossover(curves, &devices[line.device].id, cpu, line)).collect()
}

/// One device's line against the CPU's.
fn crossover(curves: &Curves<'_>, id: &str, cpu: Option<&Line<'_>>, device: &Line<'_>) -> Crossover {
    // (size, CPU, device) where both were measured.
    let common: Vec<_> = device.points.iter().filter_map(|&(s, d)| Some((s, cpu?.at(s)?, d))).collect();
    let faster: Vec<bool> = common.iter().map(|(_, cpu, device)| device.median_ns < cpu.median_ns).collect();
    let changes = faster.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let mut found = Crossover {
        op: curves.op.to_owned(),
        device: id.to_owned(),
        class: curves.class.to_owned(),
        unit: curves.unit.to_owned(),
        at: None,
        at_ns: None,
        between: None,
        verdict: match (faster.first(), changes) {
            (None, _) => Verdict::Unmeasured,
            (Some(true), 0) => Verdict::DeviceAlways,
            (Some(false), 0) => Verdict::CpuAlways,
            (Some(false), 1) => Verdict::DeviceFrom,
            _ => Verdict::Mixed,
        },
        largest: common.last().map(|&(size, cpu, device)| Largest {
            size,
            cpu_ns: cpu.median_ns,
            device_ns: device.median_ns,
            cpu_wide: cpu.wide,
            device_wide: device.wide,
        }),
    };
    if faster.last() != Some(&true) {
        return found;
    }
    let Some(last_slower) = faster.iter().rposition(|&faster| !faster) else {
        found.at = common.first().map(|first| first.0);
        found.at_ns = common.first().map(|first| first.2.median_ns);
        return found;
    };
    let ((s0, cpu0, device0), (s1, cpu1, device1)) = (common[last_slower], common[last_slower + 1]);
    // The logarithm of the ratio is a straight line between the two sizes; it starts at 0 or above and ends below.
    let above = ln(device0.median_ns) - ln(cpu0.median_ns);
    let below = ln(cpu1.median_ns) - ln(device1.median_ns);
    let part = if above + below > 0.0 { (above / (above + below)).clamp(0.0, 1.0) } else { 0.0 };
    let between = |from: u64, to: u64| (ln(from) + (ln(to) - ln(from)) * part).exp().round() as u64;
    found.at = Some(between(s0, s1).clamp(s0, s1));
    found.at_ns = Some(between(cpu0.median_ns, cpu1.median_ns));
    found.between = Some((s0, s1));
    found
}

#[cfg(test)]
#[path = "crossover_tests.rs"]
mod tests;
