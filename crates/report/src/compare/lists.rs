//! What the terminal, the Markdown and the page of a comparison all list: a comparison enters, headed rows of words leave.

use super::{Cell, CellState, Comparison, Fastest, Side, SideBySide};
use crate::lists::{List, known, median, samples};
use crate::words::{ratio, size, sized, time};

/// Headers that hold labels.
pub(super) type Sides = List<String>;

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The label of a device of a side, by both their names.
pub(super) fn device_label(comparison: &Comparison, side: &str, device: &str) -> String {
    let found = comparison.sides.iter().find(|known| known.label == side);
    found.map_or_else(|| format!("{side} {device}"), |side| side.device_label(device))
}

/// The sides: where, with what, and how they were measured.
pub(super) fn sides(comparison: &Comparison) -> Sides {
    let row = |side: &Side| {
        let gpus: Vec<String> = side.gpus().map(|gpu| gpu.title()).collect();
        let gpus = if side.gpu_missing { "missing".to_owned() } else { gpus.join("; ") };
        let rows = side.scan.rows.len().to_string();
        vec![side.label.clone(), side.about(), gpus, version(side), side.scan.how.summary(), rows]
    };
    let header = owned(&["side", "machine", "GPU", "Breakeven", "measured", "rows"]);
    List { header, rows: comparison.sides.iter().map(row).collect(), numbers: 5..6 }
}

/// The version of Breakeven that measured a side.
fn version(side: &Side) -> String {
    if side.scan.machine.breakeven.is_empty() { "-".to_owned() } else { side.scan.machine.breakeven.clone() }
}

/// From which size on devices pay, a column for each side.
pub(super) fn crossovers(comparison: &Comparison) -> Sides {
    let mut header = owned(&["operation", "device"]);
    header.extend(comparison.sides.iter().map(|side| side.label.clone()));
    let row = |row: &SideBySide| {
        let (device, cells) = crossover_cells(comparison, row);
        [vec![row.op.clone(), device], cells].concat()
    };
    List { header, rows: comparison.crossovers.iter().map(row).collect(), numbers: 0..0 }
}

/// The same with a row for each side, for many sides on a narrow screen.
pub(super) fn crossovers_by_row(comparison: &Comparison) -> Sides {
    let mut rows = Vec::new();
    for row in &comparison.crossovers {
        for (side, cell) in comparison.sides.iter().zip(&row.cells).filter(|(_, c)| c.state != CellState::NoDevice) {
            let label = cell.device.as_ref().map_or_else(|| "GPU".to_owned(), |id| side.scan.label(id));
            let largest = cell.crossover.as_ref().and_then(|c| c.largest.as_ref());
            let [size, speedup] =
                largest.map_or_else(Default::default, |l| [sized(l.size, &row.unit), ratio(l.speedup())]);
            rows.push(vec![row.op.clone(), side.label.clone(), label, cell.words(), size, speedup]);
        }
    }
    let header = ["operation", "side", "device", "faster", "largest size", "speedup"];
    List { header: owned(&header), rows, numbers: 5..6 }
}

/// The name that all devices of a row share, and the words of each cell; cells name their device where names differ.
pub(super) fn crossover_cells(comparison: &Comparison, row: &SideBySide) -> (String, Vec<String>) {
    let label = |(side, cell): (&Side, &Cell)| cell.device.as_ref().map(|id| side.scan.label(id));
    let labels: Vec<Option<String>> = comparison.sides.iter().zip(&row.cells).map(label).collect();
    let mut known = labels.iter().flatten();
    let first = known.next();
    if known.all(|label| Some(label) == first) {
        let device = first.cloned().unwrap_or_else(|| "GPU".to_owned());
        return (device, row.cells.iter().map(Cell::words).collect());
    }
    let named = |(label, cell): (&Option<String>, &Cell)| {
        label.as_ref().map_or_else(|| cell.words(), |label| format!("{label}: {}", cell.words()))
    };
    ("GPU".to_owned(), labels.iter().zip(&row.cells).map(named).collect())
}

/// Who is the fastest, one row for each op and size.
pub(super) fn fastest(comparison: &Comparison) -> Sides {
    let row = |f: &Fastest| {
        let by = if f.clear { ratio(f.ratio()) } else { format!("{}, within the noise", ratio(f.ratio())) };
        let best = device_label(comparison, &f.best.side, &f.best.device);
        let next = device_label(comparison, &f.next.side, &f.next.device);
        vec![f.op.clone(), sized(f.size, &f.unit), best, time(f.best.median_ns), next, time(f.next.median_ns), by]
    };
    let header = owned(&["operation", "size", "fastest", "takes", "next", "takes", "faster by"]);
    List { header, rows: comparison.fastest.iter().map(row).collect(), numbers: 0..0 }
}

/// Who is the fastest, one row for each stretch of sizes that one device wins.
pub(super) fn stretches(comparison: &Comparison) -> Sides {
    let same = |a: &Fastest, b: &Fastest| {
        (&a.op, &a.unit, &a.best.side, &a.best.device) == (&b.op, &b.unit, &b.best.side, &b.best.device)
    };
    let rows = comparison.fastest.chunk_by(same).filter_map(|stretch| stretch_cells(comparison, stretch)).collect();
    List { header: owned(&["operation", "sizes", "fastest of all", "faster than the next by"]), rows, numbers: 0..0 }
}

/// Sizes that one device wins.
fn stretch_cells(comparison: &Comparison, stretch: &[Fastest]) -> Option<Vec<String>> {
    let (first, last) = (stretch.first()?, stretch.last()?);
    let who = device_label(comparison, &first.best.side, &first.best.device);
    let sizes = match first.size == last.size {
        true => sized(first.size, &first.unit),
        false => format!("{} to {}", size(first.size), sized(last.size, &first.unit)),
    };
    let ratios = stretch.iter().map(Fastest::ratio);
    let (least, most) = (ratios.clone().fold(f64::INFINITY, f64::min), ratios.fold(0.0, f64::max));
    let by = if ratio(least) == ratio(most) { ratio(most) } else { format!("{} to {}", ratio(least), ratio(most)) };
    let noise = match stretch.iter().filter(|f| !f.clear).count() {
        0 => "",
        all if all == stretch.len() => ", within the noise",
        _ => ", partly within the noise",
    };
    Some(vec![first.op.clone(), sizes, who, format!("{by}{noise}")])
}

/// Each pair of sides over all rows that both have.
pub(super) fn ratios(comparison: &Comparison) -> Sides {
    let row = |pair: &super::PairRatio| {
        let first = device_label(comparison, &pair.first, &pair.first_device);
        let second = device_label(comparison, &pair.second, &pair.second_device);
        vec![first, second, pair.rows.to_string(), pair.words()]
    };
    let header = owned(&["first", "second", "common rows", "geometric mean"]);
    List { header, rows: comparison.ratios.iter().map(row).collect(), numbers: 2..3 }
}

/// Every claim and what became of it.
pub(super) fn claims(comparison: &Comparison) -> Sides {
    let row = |c: &super::Checked| {
        let on =
            if c.device.is_empty() { c.claim.device.clone() } else { device_label(comparison, &c.side, &c.device) };
        let said = format!("{} {}", c.op, c.claim.words(&c.unit));
        vec![c.side.clone(), c.claim.source.clone(), said, on, c.outcome.words().to_owned(), c.why.clone()]
    };
    let header = owned(&["side", "source", "claim", "device", "outcome", "evidence"]);
    List { header, rows: comparison.claims.iter().map(row).collect(), numbers: 0..0 }
}

/// Every measurement of every side.
pub(super) fn measurements(comparison: &Comparison) -> Sides {
    let row = |side: &Side, row: &crate::Row| {
        let s = &row.stats;
        let mut cells =
            vec![side.label.clone(), row.op.clone(), sized(row.size, &row.unit), side.scan.label(&row.device)];
        cells.push(median(s.median_ns, s.wide));
        cells.extend([s.p10_ns, s.p90_ns, s.min_ns, s.max_ns, s.mad_ns].map(|ns| known(s, ns)));
        cells.push(samples(s));
        cells
    };
    let header = ["side", "operation", "size", "device", "median", "P10", "P90", "min", "max", "MAD", "samples"];
    let rows = comparison.sides.iter().flat_map(|side| side.scan.rows.iter().map(move |of| row(side, of))).collect();
    List { header: owned(&header), rows, numbers: 4..11 }
}

/// What must not be overlooked about the sides' devices, one sentence each.
pub(super) fn cautions(comparison: &Comparison) -> Vec<String> {
    let mut found: Vec<String> = comparison.nothing_in_common().into_iter().collect();
    for side in &comparison.sides {
        if side.gpu_missing {
            found.push(format!("{}: its GPU is missing: {}", side.label, side.why_missing()));
        }
        found.extend(side.scan.devices.iter().filter_map(|d| Some(format!("{}: {}", side.label, d.caution()?))));
        if side.scan.how.interrupted {
            found.push(format!("{}: the scan was interrupted: what is missing was not measured.", side.label));
        }
    }
    found
}
