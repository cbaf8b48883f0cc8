//! The template for rows: reductions and scans in one stage, a row to one invocation or to several that meet in
//! workgroup memory. A body may hold any number of them, each after those that it depends on: every level is a pass.

use super::outline::{Cut, Outline};
use super::walk::{Span, Walk};
use super::{Target, Unsupported};
use crate::stage::Stage;
use breakeven_ir::plan::Loops;

/// A kernel over rows as one stage.
pub(crate) fn lower(target: &Target<'_>, number: usize, loops: &Loops) -> Result<Stage, Unsupported> {
    let (outline, cut) = cut(target, loops);
    let iterations = iterations(&outline, &cut);
    if target.limits.loop_cap.is_some_and(|cap| iterations > cap as usize / 2) {
        return Err(Unsupported(format!(
            "kernel {number} needs {iterations} steps of one invocation, and the device stops them early"
        )));
    }
    let stage = write(target, number, loops, &outline, cut);
    if stage.bindings.len() < target.limits.bindings as usize || cut.lanes == 1 {
        return Ok(stage);
    }
    // A buffer that is read both as vectors and as scalars is bound twice.
    Ok(write(target, number, loops, &outline, Cut { lanes: 1, ..cut }))
}

/// How the kernel is cut, if it is one stage.
fn cut(target: &Target<'_>, loops: &Loops) -> (Outline, Cut) {
    let outline = Outline::new(target, loops, false);
    let mut cut = Cut::choose(target, &outline, outline.rows, outline.inner);
    let too_long = |cut: &Cut| target.limits.loop_cap.is_some_and(|cap| iterations(&outline, cut) > cap as usize / 2);
    while too_long(&cut) && cut.threads < cut.workgroup {
        cut.threads *= 2;
    }
    let outline = if cut.threads > 1 { Outline::new(target, loops, true) } else { outline };
    (outline, cut)
}

/// Is a row too long for the loops of one workgroup?
pub(super) fn is_too_long(target: &Target<'_>, loops: &Loops) -> bool {
    let (outline, cut) = cut(target, loops);
    target.limits.loop_cap.is_some_and(|cap| iterations(&outline, &cut) > cap as usize / 2)
}

/// Loop iterations of one invocation, which takes several rows if there are more than can be dispatched.
fn iterations(outline: &Outline, cut: &Cut) -> usize {
    let rows = outline.rows.div_ceil(cut.rows() as usize * 65535).max(1);
    rows * cut.iterations(outline, outline.inner)
}

fn write(target: &Target<'_>, number: usize, loops: &Loops, outline: &Outline, cut: Cut) -> Stage {
    let mut walk = Walk::new(target, loops, outline, cut);
    walk.keep();
    walk.open(&outline.need, Span::Row(outline.inner));
    for (pass, parts) in outline.passes.iter().enumerate() {
        walk.pass(pass, parts);
        walk.row_steps(&outline.need, |o, at| o.ready[at] == pass + 1);
    }
    walk.store_rows(&outline.row_stores);
    walk.store_elements(&outline.element_stores);
    walk.stage(number, loops.class(), outline.rows, loops.points())
}

#[cfg(test)]
#[path = "rows_tests.rs"]
pub(super) mod tests;
