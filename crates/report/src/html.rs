//! A scan as one HTML page: it enters, a file leaves that needs no network, no server and no other file. What pages are
//! made of comes from [`crate::page`].

mod sections;
mod tiles;
mod transfers;

use crate::crossover::{Crossover, of_op};
use crate::curves::{Curves, curves};
use crate::page::{self, Axes, Look, Page, class_words, swatch};
use crate::scan::Scan;
use crate::words::{ratio, sized};
use maud::{Markup, html};

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
    let looks = page::looks(&scan.devices);
    let entries: Vec<Entry> =
        curves(scan).into_iter().map(|curves| Entry { crossovers: of_op(&scan.devices, &curves), curves }).collect();
    let main = html! {
        (tiles::tiles(scan, &entries))
        (glance(scan, &entries, &looks))
        (charts(&entries, &looks))
        (sections::fused(scan, &looks))
        (sections::overheads(scan, &looks))
        (transfers::transfers(scan, &looks))
        (sections::data(scan))
        (sections::machine(scan, &looks))
        (sections::how(scan))
    };
    let title = format!("Where work pays: {}", scan.machine.cpu);
    Page { title, breakeven: &scan.machine.breakeven, style: &[], head: head(scan), main }.into_string()
}

/// The title, and what must not be overlooked.
fn head(scan: &Scan) -> Markup {
    let cautions = html! {
        @if scan.how.interrupted {
            p { strong { "The scan was interrupted: what is missing was not measured." } }
        }
        @for caution in scan.devices.iter().filter_map(|device| device.caution()) { p { (caution) } }
    };
    let how = format!("Breakeven {}, {}", scan.machine.breakeven, scan.how.summary());
    page::head("Where work pays", &scan.machine.summary(), &how, cautions)
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
    html! {
        tr {
            th scope="row" { (curves.op) }
            td.where {
                (page::strip(curves, looks))
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
                (page::legend(looks))
                div.groups {
                    @for class in classes {
                        @let of_class: Vec<&Entry> = entries.iter().filter(|e| e.curves.class == class).collect();
                        @let figure = |entry: &&Entry| {
                            let unit = entry.curves.unit;
                            let same = of_class.iter().map(|e| &e.curves).filter(|c| c.unit == unit);
                            page::figure(&entry.curves, &entry.crossovers, &Axes::over(same), looks)
                        };
                        (page::group(class_words(class), &of_class.iter().map(figure).collect::<Vec<_>>()))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
