//! Where cells come from: sizes of grids enter, rows of memory and columns for the programs that move cells leave.
//!
//! Sizes are small and known on the host; a position for each row of a sample, and a distance for its columns, are all that the
//! device needs.

use crate::canvas::columns;
use crate::grid::Size;
use crate::layer::State;
use crate::program::Step;
use crate::stage::{Form, Stage};

/// Positions of all trays.
pub struct Places {
    /// The place in a plane that each row comes from: `[tray][row][lane]`.
    pub rows: Vec<i32>,
    /// The first column: `[tray][lane]`.
    pub left: Vec<u32>,
    /// Which columns stay, counted from the first one: `[tray][row][lane]`.
    pub stays: Vec<u32>,
    /// The number of columns, of what is repeated: `[tray][lane]`.
    pub width: Vec<u32>,
    /// The frame, of what has one: `[tray][row][lane]`.
    pub frame: Vec<u32>,
}

/// A part of a canvas, and how often it is repeated downwards.
struct Part {
    top: usize,
    left: usize,
    size: Size,
    down: usize,
}

/// The positions for a stage, of the samples that go on after it. `boxes` has the first row and column and their ends, where the
/// stage looks for them.
pub fn places(
    stage: &Stage,
    form: Form,
    after: &[State],
    before: &[State],
    boxes: impl Fn(usize) -> [u32; 4],
    trays: usize,
) -> Places {
    let (to, lanes) = (stage.form(form).canvas, form.lanes);
    let (words, numbers) = (trays * to.height * lanes, trays * lanes);
    let (is_tile, frame) = match stage {
        Stage::Tile { .. } => (true, None),
        Stage::Pad { by, .. } => (false, Some(*by)),
        _ => (false, None),
    };
    let mut made = Places {
        rows: vec![0; words],
        left: vec![0; numbers],
        stays: vec![0; words],
        width: vec![0; if is_tile { numbers } else { 0 }],
        frame: vec![0; if frame.is_some() { words } else { 0 }],
    };
    for (number, states) in before.iter().zip(after).enumerate() {
        let (Ok(size), Ok(_)) = states else { continue };
        let Some(part) = part(stage, form, *size, || boxes(number)) else { continue };
        let lane = number % lanes;
        let first = number / lanes * to.height * lanes + lane;
        let (by, stays) = (frame.unwrap_or(0), columns(part.size.width));
        for row in 0..part.size.height * part.down {
            let at = first + (by + row) * lanes;
            made.rows[at] = ((part.top + row % part.size.height) * lanes + lane) as i32;
            made.stays[at] = stays;
        }
        made.left[number] = part.left as u32;
        if is_tile {
            made.width[number] = part.size.width as u32;
        }
        if frame.is_some() {
            let whole = columns(part.size.width + 2 * by);
            for row in 0..part.size.height + 2 * by {
                let inner = made.stays[first + row * lanes] << by;
                made.frame[first + row * lanes] = whole & !inner;
            }
        }
    }
    made
}

/// The part of a canvas that a stage takes.
fn part(stage: &Stage, form: Form, size: Size, found: impl Fn() -> [u32; 4]) -> Option<Part> {
    let (top, left) = form.anchor.corner(form.canvas, size);
    Some(match stage {
        Stage::Pick(Step::Crop { top: row, left: column, size }) => {
            Part { top: top + row, left: left + column, size: *size, down: 1 }
        }
        Stage::Tile { down, .. } => Part { top, left, size, down: *down },
        Stage::Pad { .. } => Part { top, left, size, down: 1 },
        Stage::CropBbox => {
            let [top, left, bottom, right] = found().map(|edge| edge as usize);
            let size = Size { height: bottom.saturating_sub(top), width: right.saturating_sub(left) };
            Part { top, left, size, down: 1 }
        }
        _ => return None,
    })
}
