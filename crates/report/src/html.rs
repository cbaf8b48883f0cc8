//! A scan as one HTML page: it enters, a file leaves that needs no network, no server and no other file.
//!
//! Everything is drawn here, as inline SVG; the script only moves the tooltip and switches the theme, and the page is
//! complete without it. All text of a scan goes through maud, which escapes it; the tooltip's words travel as JSON
//! without any `<`, and the page's own policy forbids every request.

mod chart;
mod scale;
mod sections;
mod strip;
mod tiles;
mod transfers;

use crate::crossover::{Crossover, of_op};
use crate::curves::{Curves, curves, ln};
use crate::scan::Scan;
use crate::words::{ratio, sized};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// How a device is drawn.
pub(crate) struct Look {
    /// Its id.
    pub id: String,
    /// Its name at the end of a line.
    pub label: String,
    /// Classes of the style sheet: the colour by the device's number, the dashes by its kind.
    pub class: String,
}

/// How many colours the style sheet has for devices other than the CPU.
const COLOURS: usize = 6;

/// How many charts stand side by side on a wide screen; a class with fewer shares the row with another.
const MOST_COLUMNS: usize = 3;

/// No request leaves the page, whatever a scan holds.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// An op with what was found out about it.
struct Entry<'s> {
    curves: Curves<'s>,
    crossovers: Vec<Crossover>,
}

/// The report of a scan: one self-contained page.
///
/// ```
/// use breakeven_report::{Device, Scan, html};
/// let scan = Scan { devices: vec![Device::cpu("<b>Xeon</b>")], ..Scan::default() };
/// let page = html(&scan);
/// assert!(page.starts_with("<!DOCTYPE html>"));
/// assert!(page.contains("&lt;b&gt;Xeon&lt;/b&gt;") && !page.contains("<b>Xeon</b>"));
/// ```
pub fn html(scan: &Scan) -> String {
    let looks = looks(scan);
    let entries: Vec<Entry> =
        curves(scan).into_iter().map(|curves| Entry { crossovers: of_op(scan, &curves), curves }).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="generator" content={ "Breakeven " (scan.machine.breakeven) };
                title { "Where work pays: " (scan.machine.cpu) }
                style { (PreEscaped(include_str!("html/style.css"))) }
            }
            body {
                (head(scan))
                main {
                    (tiles::tiles(scan, &entries))
                    (glance(scan, &entries, &looks))
                    (charts(&entries, &looks))
                    (sections::fused(scan, &looks))
                    (sections::overheads(scan, &looks))
                    (transfers::transfers(scan, &looks))
                    (sections::data(scan))
                    (sections::machine(scan, &looks))
                    (sections::how(scan))
                }
                div #tip hidden {}
                script { (PreEscaped(include_str!("html/script.js"))) }
            }
        }
    };
    page.into_string()
}

/// How each device is drawn; the CPU has a colour of its own, which is none.
fn looks(scan: &Scan) -> Vec<Look> {
    let mut others = 0;
    let look = |device: &crate::Device| {
        let colour = if device.is_cpu() { 0 } else { others % COLOURS + 1 };
        others += usize::from(!device.is_cpu());
        // Only the kinds that the style sheet knows: a class never comes from a scan's text.
        let dashes = match device.kind.as_str() {
            "software" => " software",
            "simulated" => " simulated",
            _ => "",
        };
        Look { id: device.id.clone(), label: device.label(), class: format!("d{colour}{dashes}") }
    };
    scan.devices.iter().map(look).collect()
}

/// The title, what must not be overlooked, and the switch of the theme.
fn head(scan: &Scan) -> Markup {
    html! {
        header {
            div {
                h1 { "Where work pays" }
                p { (scan.machine.summary()) }
                p.quiet { "Breakeven " (scan.machine.breakeven) ", " (scan.how.summary()) }
            }
            button #theme type="button" hidden { "Theme: auto" }
        }
        @let cautions: Vec<String> = scan.devices.iter().filter_map(|device| device.caution()).collect();
        @if scan.how.interrupted || !cautions.is_empty() {
            aside {
                @if scan.how.interrupted {
                    p { strong { "The scan was interrupted: what is missing was not measured." } }
                }
                @for caution in cautions { p { (caution) } }
            }
        }
    }
}

/// Every op in one line: who is the fastest at which size, and from where on each device pays.
fn glance(scan: &Scan, entries: &[Entry<'_>], looks: &[Look]) -> Markup {
    let others: Vec<&Look> =
        scan.devices.iter().zip(looks).filter(|(device, _)| !device.is_cpu()).map(|(_, look)| look).collect();
    html! {
        section {
            h2 { "At a glance" }
            @if entries.is_empty() { p { "Nothing was measured." } } @else {
                div.scroll tabindex="0" role="region" aria-label="Crossovers" {
                    table.glance {
                        thead { tr {
                            th scope="col" { "Operation" }
                            th scope="col" { "Fastest, from small to large" }
                            @for look in &others { th scope="col" { (swatch(look)) (look.label) } }
                        } }
                        tbody {
                            @for entry in entries { (glance_row(entry, looks, &others)) }
                        }
                    }
                }
            }
        }
    }
}

/// One op of the overview.
fn glance_row(entry: &Entry<'_>, looks: &[Look], others: &[&Look]) -> Markup {
    let curves = &entry.curves;
    let sizes = curves.sizes();
    let stretches = strip::fastest(curves);
    let ends = sizes.first().zip(sizes.last()).map(|(&first, &last)| (first, last));
    let (from, to) = ends.map_or((0.0, 1.0), |(first, last)| (ln(first), ln(last)));
    // One size alone has no length, and fills the strip.
    let share = |length: f64| 100.0 * length / (to - from);
    let place =
        |s: &strip::Stretch| if to > from { (share(s.from - from), share(s.to - s.from)) } else { (0.0, 100.0) };
    html! {
        tr {
            th scope="row" { (curves.op) }
            td.where {
                svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                    @for s in &stretches {
                        @let (x, width) = place(s);
                        rect class={ "strip " (looks[s.device].class) } x=(format!("{x:.2}")) y="0" height="10"
                            width=(format!("{width:.2}")) {}
                    }
                }
                @if let Some((first, last)) = ends {
                    div.ends { span { (sized(first, "")) } span { (sized(last, curves.unit)) } }
                }
            }
            @for look in others {
                @match entry.crossovers.iter().find(|c| c.device == look.id) {
                    Some(found) => {
                        td data-device=(look.label) class=[(!found.verdict.pays()).then_some("quiet")] {
                            (found.words())
                            @if let Some(largest) = &found.largest {
                                div.quiet { (ratio(largest.speedup())) " at " (sized(largest.size, &found.unit)) }
                            }
                        }
                    }
                    None => { td.quiet data-device=(look.label) { "not measured" } }
                }
            }
        }
    }
}

/// The charts, class by class.
fn charts(entries: &[Entry<'_>], looks: &[Look]) -> Markup {
    let mut classes: Vec<&str> = entries.iter().map(|entry| entry.curves.class).collect();
    classes.dedup();
    html! {
        @if !entries.is_empty() {
            section {
                h2 { "Time over size" }
                p.guide {
                    "Lower is faster. Lines are medians, bands reach from P10 to P90; a ring marks where a device "
                    "overtakes the CPU, a hollow dot a spread that stayed wide. Times run from the call to its results "
                    "on the host. "
                    span.screen { "Point at a chart, or focus it and use the arrow keys, for every time." }
                }
                p.legend { @for look in looks { span { (swatch(look)) (look.label) } } }
                div.groups {
                    @for class in classes {
                        @let of_class: Vec<&Entry> = entries.iter().filter(|e| e.curves.class == class).collect();
                        div class={ "group s" (of_class.len().min(MOST_COLUMNS)) } {
                            h3 { (class_words(class)) }
                            div.charts {
                                @for entry in &of_class {
                                    @let unit = entry.curves.unit;
                                    @let same = of_class.iter().map(|e| &e.curves).filter(|c| c.unit == unit);
                                    (figure(entry, &chart::Axes::over(same), looks))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A class in words.
fn class_words(class: &str) -> &str {
    match class {
        "map" => "Elementwise",
        "reduce" => "Reductions",
        "rows" => "Row by row",
        "scan" => "Running totals",
        "contract" => "Matrix products",
        "many" => "Many small tasks",
        other => other,
    }
}

/// One chart under its op's name and verdicts.
fn figure(entry: &Entry<'_>, axes: &chart::Axes, looks: &[Look]) -> Markup {
    let verdicts =
        || entry.crossovers.iter().filter_map(|c| Some((looks.iter().find(|look| look.id == c.device)?, c.words())));
    let spoken: Vec<String> = verdicts().map(|(look, words)| format!("{}: {words}", look.label)).collect();
    // A `<` inside a script could end it.
    let tips = chart::tips(&entry.curves, axes, looks).to_string().replace('<', "\\u003c");
    html! {
        figure {
            figcaption {
                h4 { (entry.curves.op) }
                ul { @for (look, words) in verdicts() { li { (swatch(look)) (look.label) ": " (words) } } }
            }
            div.plot role="img" aria-label={ (entry.curves.op) ", time over size. " (spoken.join(". ")) } {
                (chart::chart(&entry.curves, axes, looks, &entry.crossovers))
            }
            script type="application/json" { (PreEscaped(tips)) }
        }
    }
}

/// A device's line, as a key.
fn swatch(look: &Look) -> Markup {
    html! {
        svg.swatch viewBox="0 0 22 8" aria-hidden="true" {
            line class={ "line " (look.class) } x1="0" x2="22" y1="4" y2="4" {}
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
