//! Who is the fastest at each size: curves enter, stretches of the axis with their device leave.

use crate::curves::{Curves, ln};

/// How finely the axis is looked at. A chart is about 280 units wide, so borders are off by less than one of them.
const STEPS: u32 = 480;

/// A stretch of sizes at which one device is the fastest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Stretch {
    /// The logarithm of the first size.
    pub from: f64,
    /// The logarithm of the last size.
    pub to: f64,
    /// The number of the device in the scan.
    pub device: usize,
}

/// The fastest device from the smallest to the largest size measured, where at least two can be compared; where only
/// one device was measured there is no stretch.
pub(crate) fn fastest(curves: &Curves<'_>) -> Vec<Stretch> {
    let sizes = curves.sizes();
    let (Some(&first), Some(&last)) = (sizes.first(), sizes.last()) else { return Vec::new() };
    let (from, to) = (ln(first), ln(last));
    let step = (to - from) / f64::from(STEPS);
    let mut stretches: Vec<Stretch> = Vec::new();
    // One size alone is one step without a length.
    for number in 0..if step > 0.0 { STEPS } else { 1 } {
        let (left, right) = (from + step * f64::from(number), from + step * f64::from(number + 1));
        let Some(device) = fastest_at(curves, (left + right) / 2.0) else { continue };
        match stretches.last_mut() {
            Some(last) if last.device == device && (last.to - left).abs() < step / 2.0 => last.to = right,
            _ => stretches.push(Stretch { from: left, to: right, device }),
        }
    }
    stretches
}

/// The fastest of at least two devices.
fn fastest_at(curves: &Curves<'_>, ln_size: f64) -> Option<usize> {
    let times = curves.lines.iter().filter_map(|line| Some((line.device, line.ln_ns(ln_size)?)));
    let best = times.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (times.count() > 1).then_some(best.0)
}

#[cfg(test)]
#[path = "strip_tests.rs"]
mod tests;
