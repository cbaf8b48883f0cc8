//! The picture for the README: a finished report enters, an SVG leaves.
//!
//! One line a workload, one dot a size, placed by how many times faster we are than the best peer of that very row.

use crate::report::{Report, Row};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 74.0;
const LINE: f64 = 25.0;
/// The room that a label takes.
const LABEL: f64 = 26.0;
/// The axis runs from an eighth to sixteen times, in doublings.
const LOW: f64 = -3.0;
const HIGH: f64 = 4.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:15px}.s,.n{fill:#57606a}\
.n{font-size:9px;text-anchor:middle}.g{stroke:#d0d7de}.o{stroke:#57606a;stroke-width:1.5}.w{fill:#1a7f37}.l{fill:#cf5f00}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s,.n{fill:#9198a1}.g{stroke:#3d444d}.o{stroke:#9198a1}.w{fill:#3fb950}.l{fill:#f0883e}}";

/// The chart of all rows that have both sides.
pub fn svg(report: &Report) -> String {
    let mut workloads: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in report.rows.iter().filter(|row| row.ratio.is_some()) {
        match workloads.last_mut() {
            Some((name, rows)) if *name == row.workload => rows.push(row),
            _ => workloads.push((row.workload, vec![row])),
        }
    }
    let height = TOP + LINE * workloads.len() as f64 + 34.0;
    let x = |ratio: f64| LEFT + (ratio.log2().clamp(LOW, HIGH) - LOW) / (HIGH - LOW) * (WIDTH - LEFT - RIGHT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Breakeven's \
         speed relative to the best peer of each workload\"><style>{STYLE}</style>\
         <text class=\"t\" x=\"14\" y=\"24\">Breakeven beside the best other library of each row</text>\
         <text class=\"s\" x=\"14\" y=\"43\">time of the best peer / our time; right of 1x we are faster; {}</text>",
        escape(&report.machine)
    );
    let bottom = height - 30.0;
    for doubling in LOW as i32..=HIGH as i32 {
        let ratio = 2f64.powi(doubling);
        let label = if doubling < 0 { format!("1/{}", 2f64.powi(-doubling)) } else { format!("{ratio}x") };
        let class = if doubling == 0 { "o" } else { "g" };
        let at = x(ratio);
        out += &format!(
            "<line class=\"{class}\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"n\" x=\"{at:.1}\" y=\"{:.1}\">{label}</text>",
            TOP - 12.0,
            bottom + 14.0
        );
    }
    for (line, (name, rows)) in workloads.iter().enumerate() {
        let y = TOP + LINE * line as f64 + 6.0;
        out += &format!("<text x=\"14\" y=\"{:.1}\">{}</text>", y + 4.0, escape(name));
        let mut rows = rows.clone();
        rows.sort_by(|a, b| a.ratio.unwrap_or(1.0).total_cmp(&b.ratio.unwrap_or(1.0)));
        let mut labelled = f64::NEG_INFINITY;
        for row in rows {
            let ratio = row.ratio.unwrap_or(1.0);
            let class = if ratio >= 1.0 { "w" } else { "l" };
            let at = x(ratio);
            let peer = row.best_peer.as_ref().map_or("", |peer| &peer.name);
            out += &format!(
                "<circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{} {}: {ratio:.2}x {}</title></circle>",
                escape(name),
                row.n,
                escape(peer)
            );
            // Dots that lie together share the label of the first; each says its own when it is pointed at.
            if at - labelled >= LABEL {
                out += &format!("<text class=\"n\" x=\"{at:.1}\" y=\"{:.1}\">{}</text>", y - 6.5, size(row.n));
                labelled = at;
            }
        }
    }
    out + "</svg>\n"
}

/// A size in as few characters as it takes.
fn size(n: usize) -> String {
    match n {
        1_000_000.. if n.is_multiple_of(1_000_000) => format!("{}M", n / 1_000_000),
        1_000.. if n.is_multiple_of(1_000) => format!("{}k", n / 1_000),
        _ => n.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
