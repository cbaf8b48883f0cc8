//! A run of the suite as one HTML page: it enters, a file leaves that needs nothing else. What pages are made of comes from
//! [`crate::page`].

mod groups;
mod sections;
mod tiles;

use super::{Bench, Gate};
use crate::page::{self, Page};
use maud::{Markup, html};

/// The report of a run of the suite, with what changed since a baseline: one self-contained page.
///
/// ```
/// use breakeven_report::bench::{Bench, Missing, html};
/// let missing = Missing { device: "gpu:0".into(), why: "<no driver>".into() };
/// let page = html(&Bench { missing: vec![missing], ..Bench::default() }, None);
/// assert!(page.starts_with("<!DOCTYPE html>") && page.contains("&lt;no driver&gt;"));
/// ```
pub fn html(bench: &Bench, gate: Option<&Gate>) -> String {
    let looks = page::looks(&bench.devices);
    let main = html! {
        (tiles::tiles(bench))
        @if let Some(gate) = gate { (sections::changes(gate)) }
        (sections::troubles(bench))
        (groups::charts(bench, &looks))
        (groups::data(bench))
        (sections::machine(bench, &looks))
        (sections::how(bench))
    };
    let title = format!("Benchmarks: {}", bench.machine.cpu);
    let style = &[page::PARTS, include_str!("style.css")];
    Page { title, breakeven: &bench.machine.breakeven, style, head: head(bench), main }.into_string()
}

/// The title, and what must not be overlooked.
fn head(bench: &Bench) -> Markup {
    let differs = bench.null.as_ref().is_some_and(|null| null.differs);
    let cautions = html! {
        @if bench.how.interrupted {
            p { strong { "The run was interrupted: what is missing was not measured." } }
        }
        @if differs {
            p { strong { "The same code against itself showed a difference: this machine is too restless for small ones." } }
        }
        @for missing in &bench.missing { p { strong.missing { (missing.device) " missing" } " " (missing.why) } }
        @for caution in bench.devices.iter().filter_map(|device| device.caution()) { p { (caution) } }
    };
    let how = format!("Breakeven {}, {}", bench.machine.breakeven, sections::summary(&bench.how));
    page::head("Benchmarks", &bench.machine.summary(), &how, cautions)
}

/// A device's label; its id alone if the run does not tell about it.
fn label(bench: &Bench, id: &str) -> String {
    bench.devices.iter().find(|device| device.id == id).map_or_else(|| id.to_owned(), crate::Device::label)
}

/// A part as a percentage: `3.0 %`.
fn percent(part: f64) -> String {
    let digits = if part.abs() < 0.0995 { 1 } else { 0 };
    format!("{:.digits$} %", 100.0 * part)
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
