//! How fast bytes go to devices and come back: a scan enters, a table of rates leaves, each with a bar beside it.

use super::sections::named;
use crate::page::Look;
use crate::scan::Scan;
use crate::transfers::{GUIDE, NOT_AVAILABLE, Transfer, cell, rates};
use crate::words::{bytes, time};
use maud::{Markup, html};

/// Rates by size and way.
pub(super) fn transfers(scan: &Scan, looks: &[Look]) -> Markup {
    let rows = rates(scan);
    let speed = |t: &Transfer| t.bytes as f64 / t.stats.median_ns.max(1) as f64;
    let fastest =
        rows.iter().flat_map(|row| row.ways.into_iter().flatten()).map(speed).fold(f64::MIN_POSITIVE, f64::max);
    let class = |id: &str| looks.iter().find(|look| look.id == id).map_or("", |look| look.class.as_str());
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "How fast bytes go to a device and back" }
                p.guide { (GUIDE) " Bars are shares of the highest rate here." }
                div.scroll tabindex="0" role="region" aria-label="How fast bytes go to a device and back" {
                    table.rates {
                        thead {
                            tr {
                                th scope="col" rowspan="2" { "Device" }
                                th.number scope="col" rowspan="2" { "Size" }
                                th.number scope="colgroup" colspan="3" { "Upload" }
                                th.number scope="colgroup" colspan="3" { "Readback" }
                            }
                            tr {
                                @for _ in 0..2 {
                                    @for way in ["Pageable", "Staged", "Mapped"] { th.number scope="col" { (way) } }
                                }
                            }
                        }
                        tbody {
                            @for row in &rows {
                                tr {
                                    th scope="row" { (named(scan, looks, row.device)) }
                                    td.number { (bytes(row.bytes)) }
                                    @for way in row.ways {
                                        @match way {
                                            Some(t) => {
                                                td.number title={ "median " (time(t.stats.median_ns)) } {
                                                    (cell(way))
                                                    i class={ "rate " (class(row.device)) }
                                                        style=(format!("width:{:.1}%", 100.0 * speed(t) / fastest)) {}
                                                }
                                            }
                                            None => { td.number.quiet { (NOT_AVAILABLE) } }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
