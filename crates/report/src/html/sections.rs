//! What stands below the charts: a scan enters, the tables of fusion, overheads and measurements, the machine and how
//! it was measured leave.

use crate::lists::{known, median, pays_from, samples};
use crate::page::{self, Look, list};
use crate::scan::{Overhead, Scan};
use crate::words::{sized, time};
use maud::{Markup, html};

/// A device's name with its line.
pub(super) fn named(scan: &Scan, looks: &[Look], id: &str) -> Markup {
    page::named(looks, id, &scan.label(id))
}

/// By how much fusing moves the crossover.
pub(super) fn fused(scan: &Scan, looks: &[Look]) -> Markup {
    html! {
        @if !scan.fused.is_empty() {
            section {
                h2 { "What fusing changes" }
                p.guide {
                    "The same operations, once as a call each and once recorded as one batch, which pays the device's "
                    "costs once."
                }
                div.scroll tabindex="0" role="region" aria-label="What fusing changes" {
                    table {
                        thead { tr {
                            th scope="col" { "Operations" } th scope="col" { "Device" }
                            th.number scope="col" { "Pays from, one by one" } th.number scope="col" { "As one batch" }
                            th scope="col" { "Effect" }
                        } }
                        tbody {
                            @for f in &scan.fused {
                                tr {
                                    th scope="row" { (f.what) }
                                    td { (named(scan, looks, &f.device)) }
                                    td.number { (pays_from(f.separate_crossover, &f.unit)) }
                                    td.number { (pays_from(f.fused_crossover, &f.unit)) }
                                    @if f.fused_crossover.is_some() { td { strong { (f.words()) } } }
                                    @else { td.quiet { (f.words()) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a call costs before it computes, as stacked bars.
pub(super) fn overheads(scan: &Scan, looks: &[Look]) -> Markup {
    let total = |overhead: &Overhead| overhead.parts().iter().fold(0u64, |sum, part| sum.saturating_add(part.1));
    let longest = scan.overheads.iter().map(total).max().unwrap_or(0).max(1);
    let share = |ns: u64| format!("width:{:.3}%", 100.0 * ns as f64 / longest as f64);
    let names = ["submit", "rest of the fixed cost", "upload of 1 MiB", "readback of 1 MiB"];
    html! {
        @if !scan.overheads.is_empty() {
            section {
                h2 { "What a call costs before it computes" }
                p.guide {
                    "One call that moves 1 MiB there and 1 MiB back. The first two parts are paid by every call, "
                    "however small."
                }
                p.legend {
                    @for (number, name) in names.iter().enumerate() { span { i class={ "key p" (number) } {} (name) } }
                }
                div.bars {
                    @for overhead in &scan.overheads {
                        div.bar {
                            div.who { (named(scan, looks, &overhead.device)) }
                            div.track role="img" aria-label={ "in total " (time(total(overhead))) } {
                                @for (number, (name, ns)) in overhead.parts().iter().enumerate() {
                                    @if *ns > 0 {
                                        i class={ "p" (number) } style=(share(*ns)) title={ (name) ": " (time(*ns)) } {}
                                    }
                                }
                                span { (time(total(overhead))) }
                            }
                            div.parts {
                                "fixed " strong { (time(overhead.fixed_ns)) }
                                @for (name, (_, ns)) in names.iter().zip(overhead.parts()) {
                                    @if ns > 0 && *name != names[1] { ", " (name) " " (time(ns)) }
                                }
                                @for note in &overhead.notes { "; " (note) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Every measurement, folded away.
pub(super) fn data(scan: &Scan) -> Markup {
    html! {
        section {
            h2 { "All measurements" }
            details {
                summary { (scan.rows.len()) " rows" }
                div.scroll.tall tabindex="0" role="region" aria-label="All measurements" {
                    table.data {
                        thead { tr {
                            @for head in ["Operation", "Size", "Device"] { th scope="col" { (head) } }
                            @for head in ["Median", "P10", "P90", "Min", "Max", "MAD", "Samples"] {
                                th.number scope="col" { (head) }
                            }
                        } }
                        tbody {
                            @for row in &scan.rows {
                                @let s = &row.stats;
                                tr {
                                    td { (row.op) }
                                    td { (sized(row.size, &row.unit)) }
                                    td { (scan.label(&row.device)) }
                                    td.number { (median(s.median_ns, s.wide)) }
                                    @for ns in [s.p10_ns, s.p90_ns, s.min_ns, s.max_ns, s.mad_ns] {
                                        td.number { (known(s, ns)) }
                                    }
                                    td.number { (samples(s)) }
                                }
                            }
                        }
                    }
                }
                @if scan.has_wide() {
                    p.quiet { "~ marks medians whose spread stayed wide: their median absolute deviation is over 10 %." }
                }
            }
        }
    }
}

/// The machine, its devices and their drivers.
pub(super) fn machine(scan: &Scan, looks: &[Look]) -> Markup {
    let m = &scan.machine;
    let threads = m.threads.to_string();
    let facts = [
        ("Processor", &m.cpu),
        ("Threads", &threads),
        ("Vector instructions", &m.simd),
        ("System", &m.os),
        ("Breakeven", &m.breakeven),
    ];
    html! {
        section {
            h2 { "Machine and drivers" }
            (list(&facts))
            div.scroll tabindex="0" role="region" aria-label="Devices" {
                table {
                    thead { tr {
                        @for head in ["Device", "Name", "Kind", "Backend", "Driver"] { th scope="col" { (head) } }
                    } }
                    tbody {
                        @for device in &scan.devices {
                            tr {
                                th scope="row" { (named(scan, looks, &device.id)) }
                                td { (device.name) } td { (device.kind) } td { (device.backend) } td { (device.driver) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How it was measured.
pub(super) fn how(scan: &Scan) -> Markup {
    let h = &scan.how;
    let samples = h.samples.to_string();
    let took = time((h.seconds * 1e9) as u64);
    let extent = if h.quick { "quick: fewer sizes and samples" } else { "full" }.to_owned();
    let complete = if h.interrupted { "no, it was interrupted" } else { "yes" }.to_owned();
    let facts = [
        ("Date", &h.date),
        ("Samples of each", &samples),
        ("Extent", &extent),
        ("Complete", &complete),
        ("Took", &took),
    ];
    html! {
        section {
            h2 { "How it was measured" }
            (list(&facts))
            @if !h.notes.is_empty() { ul.notes { @for note in &h.notes { li { (note) } } } }
        }
    }
}
