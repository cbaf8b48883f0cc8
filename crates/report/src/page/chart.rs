//! One op's chart: its curves enter, an SVG and the words of its tooltip leave. Lines are medians, bands P10 to P90,
//! rings the crossovers; the strip below the plot shows the fastest device at each size.

use super::Look;
use super::scale::Scale;
use super::strip::fastest;
use crate::crossover::Crossover;
use crate::curves::{Curves, Line};
use crate::lists::{UNKNOWN, median};
use crate::words::{ratio, rounded, size, sized, time};
use maud::{Markup, html};
use serde_json::{Value, json};

/// The chart's extent in its own units, about one pixel each on a desktop.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 268.0;
/// The plot within it. Above there is room for two rows of crossovers, to the right for the names of lines.
const LEFT: f64 = 50.0;
const RIGHT: f64 = 314.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 224.0;
/// The strip, right below the plot.
const STRIP: f64 = 232.0;
const STRIP_HEIGHT: f64 = 8.0;
/// Where the axis is labelled.
const TICKS: f64 = 257.0;
/// The least distance of two names, and of two rows of crossovers.
const LEADING: f64 = 14.0;
/// About the width of a letter, to keep labels apart.
const LETTER: f64 = 6.4;

/// So many letters of a name fit beside the plot.
const LONGEST_NAME: usize = 16;

/// The axes that all charts of a class share, so that one can be compared with the next.
pub(crate) struct Axes {
    x: Scale,
    y: Scale,
}

impl Axes {
    /// Axes over everything that these curves hold.
    pub fn over<'c>(all: impl Iterator<Item = &'c Curves<'c>> + Clone) -> Axes {
        let points = all.flat_map(|curves| &curves.lines).flat_map(|line| &line.points);
        let x = Scale::over(points.clone().map(|p| p.0), 0.0).placed(LEFT + 4.0, RIGHT - 4.0);
        let ends = |stats: &crate::Stats| stats.band().map_or([stats.median_ns; 2], |(low, high)| [low.max(1), high]);
        let y = Scale::over(points.flat_map(|p| ends(p.1)), 0.06).placed(BOTTOM, TOP);
        Axes { x, y }
    }
}

/// The SVG of one op.
pub(crate) fn chart(curves: &Curves<'_>, axes: &Axes, looks: &[Look], crossovers: &[Crossover]) -> Markup {
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } aria-hidden="true" {
            (grid(axes))
            @for line in &curves.lines {
                @for outline in bands(line, axes) {
                    path class={ "band " (looks[line.device].class) } d=(outline) {}
                }
            }
            (rings(axes, looks, crossovers))
            @for line in &curves.lines {
                @let look = &looks[line.device];
                polyline class={ "line " (look.class) } points=(points(line, axes)) {}
                @for (size, stats) in &line.points {
                    circle class={ "dot " (look.class) @if stats.wide { " wide" } }
                        cx=(px(axes.x.px(*size))) cy=(px(axes.y.px(stats.median_ns)))
                        r=(if stats.wide { 3.2 } else { 2.0 }) {}
                }
            }
            (names(curves, axes, looks))
            text class="axis" x=(LEFT - 8.0) y=(STRIP + STRIP_HEIGHT) text-anchor="end" { "fastest" }
            @for stretch in fastest(curves) {
                @let (from, to) = (axes.x.ln_px(stretch.from), axes.x.ln_px(stretch.to));
                // One size alone has no length.
                @let from = if to - from < 0.1 { from - 4.0 } else { from };
                rect class={ "strip " (looks[stretch.device].class) } x=(px(from)) y=(STRIP)
                    width=(px(to - from)) height=(STRIP_HEIGHT) {}
            }
            text class="axis" x=(RIGHT + 20.0) y=(TICKS) { (curves.unit) }
        }
    }
}

/// Grid lines with their values.
fn grid(axes: &Axes) -> Markup {
    html! {
        @for tick in axes.y.ticks(5) {
            @let y = px(axes.y.px(tick));
            line class="grid" x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
            text class="axis" x=(LEFT - 8.0) y=(px(axes.y.px(tick) + 4.0)) text-anchor="end" { (brief(&time(tick))) }
        }
        @for tick in axes.x.ticks(6) {
            @let x = px(axes.x.px(tick));
            line class="grid" x1=(x) x2=(x) y1=(TOP) y2=(BOTTOM) {}
            text class="axis" x=(x) y=(TICKS) text-anchor="middle" { (brief(&size(tick))) }
        }
    }
}

/// The crossovers: a ring where the curves meet, its size above the plot, a line from there down to the strip.
fn rings(axes: &Axes, looks: &[Look], crossovers: &[Crossover]) -> Markup {
    // Only where curves cross; a device that is always faster has nothing to mark.
    let crossing = |c: &&Crossover| c.between.is_some();
    let mut marks: Vec<(f64, f64, String, &Look)> = crossovers
        .iter()
        .filter(crossing)
        .filter_map(|c| {
            let look = looks.iter().find(|look| look.id == c.device)?;
            let words = sized(rounded(c.at?), &c.unit);
            let words = if c.unit.contains('n') && words.contains(" x ") { words } else { size(rounded(c.at?)) };
            Some((axes.x.px(c.at?), axes.y.px(c.at_ns?), words, look))
        })
        .collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Labels go to the first row that has room, counted from the plot; a third one above each other would only be
    // noise, and stands in words over the chart anyway.
    let mut ends = [f64::NEG_INFINITY; 2];
    let labels: Vec<Option<(f64, f64)>> = marks
        .iter()
        .map(|(x, _, words, _)| {
            let half = words.chars().count() as f64 * LETTER / 2.0;
            let center = x.min(WIDTH - half).max(LEFT + half);
            let row = ends.iter().position(|&end| end + 6.0 < center - half)?;
            ends[row] = center + half;
            Some((center, TOP - 7.0 - LEADING * row as f64))
        })
        .collect();
    html! {
        @for ((x, y, words, look), label) in marks.iter().zip(labels) {
            @let top = label.map_or(TOP, |(_, label)| label + 4.0);
            line class={ "drop " (look.class) } x1=(px(*x)) x2=(px(*x)) y1=(px(top)) y2=(STRIP) {}
            circle class={ "ring " (look.class) } cx=(px(*x)) cy=(px(*y)) r="6.5" {}
            @if let Some((center, label)) = label {
                text class={ "cross " (look.class) } x=(px(center)) y=(px(label)) text-anchor="middle" { (words) }
            }
        }
    }
}

/// The devices' names at the ends of their lines, moved apart where they would overlap.
fn names(curves: &Curves<'_>, axes: &Axes, looks: &[Look]) -> Markup {
    let mut ends: Vec<(f64, f64, &Look)> = curves
        .lines
        .iter()
        .filter_map(|line| line.points.last().map(|p| (axes.x.px(p.0), axes.y.px(p.1.median_ns), &looks[line.device])))
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let places = apart(&ends.iter().map(|end| end.1).collect::<Vec<_>>());
    html! {
        @for ((x, y, look), place) in ends.iter().zip(places) {
            @if (place - y).abs() > 3.0 || RIGHT - x > 8.0 {
                polyline class={ "lead " (look.class) }
                    points={ (px(x + 4.0)) "," (px(*y)) " " (px(RIGHT + 5.0)) "," (px(place)) } {}
            }
            text class={ "name " (look.class) } x=(RIGHT + 8.0) y=(px(place + 4.0)) { (short(&look.label)) }
        }
    }
}

/// Heights that go up with at least [`LEADING`] between them, as close to the wanted ones as that allows.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut floor = TOP;
    for place in &mut places {
        *place = place.max(floor);
        floor = *place + LEADING;
    }
    let mut ceiling = BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - LEADING;
    }
    places
}

/// A name that ends before the chart does. The legend and the tooltip have all of it; what stands for hardware must still
/// be told here, so that the beginning is what is cut.
fn short(label: &str) -> String {
    if label.chars().count() <= LONGEST_NAME {
        return label.to_owned();
    }
    let brief = label.replace(" simulated", " sim.").replace(" software", " soft.");
    let over = brief.chars().count().saturating_sub(LONGEST_NAME);
    if over == 0 {
        return brief;
    }
    std::iter::once('\u{2026}').chain(brief.chars().skip(over + 1)).collect()
}

/// The median line.
fn points(line: &Line<'_>, axes: &Axes) -> String {
    let place = |&(size, stats): &(u64, &crate::Stats)| at(axes, size, stats.median_ns);
    line.points.iter().map(place).collect::<Vec<_>>().join(" ")
}

/// The outlines of the band from P10 to P90: one, unless the spread is not known at some sizes, which have none.
fn bands(line: &Line<'_>, axes: &Axes) -> Vec<String> {
    let known: Vec<Option<(u64, (u64, u64))>> =
        line.points.iter().map(|(size, stats)| Some((*size, stats.band()?))).collect();
    let outline = |points: &[Option<(u64, (u64, u64))>]| {
        let above = points.iter().flatten().map(|(size, (_, high))| at(axes, *size, *high));
        let below = points.iter().flatten().rev().map(|(size, (low, _))| at(axes, *size, *low));
        let corners: Vec<String> = above.chain(below).collect();
        format!("M{}Z", corners.join("L"))
    };
    known.split(Option::is_none).filter(|points| !points.is_empty()).map(outline).collect()
}

/// A place in the plot.
fn at(axes: &Axes, size: u64, ns: u64) -> String {
    format!("{},{}", px(axes.x.px(size)), px(axes.y.px(ns)))
}

/// A length with one digit after the point: more makes the page larger and no chart better.
fn px(length: f64) -> String {
    format!("{length:.1}")
}

/// A round number without its `.0`.
fn brief(words: &str) -> String {
    words.replace(".0 ", " ")
}

/// What is known of the spread, in words.
fn spread(stats: &crate::Stats) -> String {
    match (stats.band(), stats.interval_ns, stats.known(stats.p90_ns)) {
        (Some((low, high)), ..) => format!("{} to {}", time(low), time(high)),
        (None, Some((low, high)), _) => format!("median within {} to {}", time(low), time(high)),
        (None, None, Some(p90)) => format!("P90 {}", time(p90)),
        (None, None, None) => format!("spread {UNKNOWN}"),
    }
}

/// What the tooltip says at each measured size: its place, its words, and for each device a class, name, median, ratio
/// to the fastest and band. All words are made here; the script only shows them.
pub(crate) fn tips(curves: &Curves<'_>, axes: &Axes, looks: &[Look]) -> Value {
    let tip = |&at: &u64| {
        let mut measured: Vec<_> = curves.lines.iter().filter_map(|l| Some((&looks[l.device], l.at(at)?))).collect();
        measured.sort_by_key(|(_, stats)| stats.median_ns);
        let best = measured.first().map_or(1, |(_, stats)| stats.median_ns.max(1));
        let device = |(look, stats): &(&Look, &crate::Stats)| {
            let times = ratio(stats.median_ns as f64 / best as f64);
            let spread = spread(stats);
            json!([look.class, look.label, median(stats.median_ns, stats.wide), times, spread])
        };
        json!({
            "x": (axes.x.px(at) * 10.0).round() / 10.0,
            "size": sized(at, curves.unit),
            "devices": measured.iter().map(device).collect::<Vec<_>>(),
        })
    };
    let tips: Vec<Value> = curves.sizes().iter().map(tip).collect();
    json!({ "top": TOP, "bottom": STRIP + STRIP_HEIGHT, "width": WIDTH, "tips": tips })
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
