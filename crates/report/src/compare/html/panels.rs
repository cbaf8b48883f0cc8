//! One panel for each side: a comparison enters, panels leave whose charts lie beside those of the same op on the other
//! sides, with the same axes. What a side does not have is shown as missing in its place.

use super::colour;
use crate::compare::{Comparison, Side, join::Joined};
use crate::crossover::of_op;
use crate::curves::Curves;
use crate::page::{self, Axes, MOST_COLUMNS, swatch};
use maud::{Markup, html};

/// The panels of all sides.
pub(super) fn panels(comparison: &Comparison, joined: &[Joined<'_>]) -> Markup {
    let columns = comparison.sides.len().min(MOST_COLUMNS);
    html! {
        section {
            h2 { "Side for side" }
            p.guide { "The same operation lies in the same row, with the same axes on every side." }
            div class={ "panels c" (columns) } {
                @for (number, side) in comparison.sides.iter().enumerate() { (panel(number, side, joined)) }
            }
        }
    }
}

/// One side.
fn panel(number: usize, side: &Side, joined: &[Joined<'_>]) -> Markup {
    let looks = page::looks(&side.scan.devices);
    // The head and each op take one row, which all panels share.
    let rows = format!("grid-row:span {}", joined.len() + 1);
    html! {
        article class={ "panel " (colour(number)) } style=(rows) {
            div.side {
                h3 { (side.label) }
                p { (side.about()) }
                p.quiet { (side.scan.how.summary()) }
                ul {
                    @for (device, look) in side.scan.devices.iter().zip(&looks) { li { (swatch(look)) (device.title()) } }
                    @if side.gpu_missing { li { strong.missing { "GPU missing" } " " (side.why_missing()) } }
                }
            }
            @for op in joined {
                @match &op.sides[number] {
                    Some(curves) => {
                        @let crossovers = of_op(&side.scan.devices, curves);
                        (page::figure(curves, &crossovers, &axes(op, joined), &looks))
                    }
                    None => {
                        div.absent { h4 { (op.op) } p.quiet { "not measured on " (side.label) } }
                    }
                }
            }
        }
    }
}

/// Axes over an op of all sides, and over those that are measured in the same way.
fn axes(op: &Joined<'_>, joined: &[Joined<'_>]) -> Axes {
    let same = joined.iter().filter(|other| (other.class, other.unit) == (op.class, op.unit));
    let curves: Vec<&Curves<'_>> = same.flat_map(|op| op.sides.iter().flatten()).collect();
    Axes::over(curves.into_iter())
}
