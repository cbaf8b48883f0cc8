//! Candidate programs: text enters, a list of steps leaves. `program/parse.rs` reads it, `program/builtin.rs` has fifty.

mod builtin;
mod parse;

pub use builtin::{LOOPER, builtin};
pub use parse::{ParseError, parse_list};

use crate::grid::{MAX_SIDE, Size};
use std::fmt;

/// One of the seven ways to turn or mirror a grid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Turn {
    /// A quarter turn clockwise.
    Rot90,
    /// Half a turn.
    Rot180,
    /// A quarter turn the other way.
    Rot270,
    /// Left and right exchanged.
    FlipH,
    /// Top and bottom exchanged.
    FlipV,
    /// Rows and columns exchanged.
    Transpose,
    /// Rows and columns exchanged, about the other diagonal.
    AntiTranspose,
}

impl Turn {
    /// Every turn with its name in programs.
    pub const ALL: [(&'static str, Turn); 7] = [
        ("rot90", Turn::Rot90),
        ("rot180", Turn::Rot180),
        ("rot270", Turn::Rot270),
        ("flip_h", Turn::FlipH),
        ("flip_v", Turn::FlipV),
        ("transpose", Turn::Transpose),
        ("anti_transpose", Turn::AntiTranspose),
    ];

    /// As what it is made of: rows and columns exchanged, and after that columns, rows mirrored.
    pub fn parts(self) -> (bool, bool, bool) {
        match self {
            Turn::Rot90 => (true, true, false),
            Turn::Rot180 => (false, true, true),
            Turn::Rot270 => (true, false, true),
            Turn::FlipH => (false, true, false),
            Turn::FlipV => (false, false, true),
            Turn::Transpose => (true, false, false),
            Turn::AntiTranspose => (true, true, true),
        }
    }
}

/// A step that leaves every cell where it is: what loops may repeat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum InPlace {
    /// Colours exchanged for others, all at once.
    Recolour(Vec<(i32, i32)>),
    /// Everything but this colour becomes background.
    Mask(i32),
    /// Background next to this colour takes it.
    Spread(i32),
    /// Every cell that is not background moves down by one where there is background below, all at once.
    Fall,
}

/// What becomes of connected regions: cells of one colour other than background, joined side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Regions {
    /// The largest one stays; of several the one that comes first, row by row.
    Largest,
    /// Each takes the colour of its number of cells, 9 at most.
    BySize,
    /// A grid of one cell: how many there are, 9 at most.
    Count,
}

/// How long a loop goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Until {
    /// Until a turn changes nothing.
    Stable,
    /// So many turns.
    Times(u32),
}

/// One step of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Turned or mirrored.
    Turn(Turn),
    /// Cells stay where they are.
    InPlace(InPlace),
    /// A part of the grid; fails where it reaches beyond it.
    Crop {
        /// First row.
        top: usize,
        /// First column.
        left: usize,
        /// Rows and columns.
        size: Size,
    },
    /// The smallest part that has everything but background; fails where there is nothing else.
    CropBbox,
    /// A frame of so many cells of a colour; fails where that is too large.
    Pad {
        /// Cells on each side.
        by: usize,
        /// Their colour.
        colour: i32,
    },
    /// Repeated downwards and to the right; fails where that is too large.
    Tile {
        /// Times downwards.
        down: usize,
        /// Times to the right.
        right: usize,
    },
    /// A grid of one cell: how many cells there are of a colour, 9 at most.
    Count(i32),
    /// A grid of one row: how many cells there are of each colour, 9 at most.
    CountColours,
    /// Cells that differ from the input's take this colour; fails where the sizes differ.
    Compare(i32),
    /// Connected regions.
    Regions(Regions),
    /// Steps again and again.
    Loop {
        /// What is repeated.
        body: Vec<InPlace>,
        /// Until when.
        until: Until,
    },
}

/// Why a program has no result for some grid. Nothing is wrong with its neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Failure {
    /// A part that reaches beyond the grid.
    #[error("crop reaches beyond the grid")]
    CropRange,
    /// Nothing but background.
    #[error("there is nothing but background to crop to")]
    NothingToCrop,
    /// More than 30 rows or columns.
    #[error("the result has more than 30 rows or columns")]
    TooLarge,
    /// Compared with an input of another size.
    #[error("the grid is compared with an input of another size")]
    OtherSize,
}

impl Failure {
    /// Every reason.
    pub const ALL: [Failure; 4] = [Failure::CropRange, Failure::NothingToCrop, Failure::TooLarge, Failure::OtherSize];
}

impl Step {
    /// The size of what the step makes of a grid of this size. For the box around everything but background it is the
    /// size of that box (`found`) that counts: the only step whose result depends on colours.
    pub fn size(&self, size: Size, input: Size, found: impl FnOnce() -> Option<Size>) -> Result<Size, Failure> {
        let within = |size: Size| if size.side() <= MAX_SIDE { Ok(size) } else { Err(Failure::TooLarge) };
        match self {
            Step::Turn(turn) => Ok(if turn.parts().0 { size.turned() } else { size }),
            Step::Crop { top, left, size: part } => {
                let fits = top + part.height <= size.height && left + part.width <= size.width;
                if fits { Ok(*part) } else { Err(Failure::CropRange) }
            }
            Step::CropBbox => found().ok_or(Failure::NothingToCrop),
            Step::Pad { by, .. } => within(Size { height: size.height + 2 * by, width: size.width + 2 * by }),
            Step::Tile { down, right } => within(Size { height: size.height * down, width: size.width * right }),
            Step::Count(_) | Step::Regions(Regions::Count) => Ok(Size { height: 1, width: 1 }),
            Step::CountColours => Ok(Size { height: 1, width: crate::grid::COLOURS }),
            Step::Compare(_) => (size == input).then_some(size).ok_or(Failure::OtherSize),
            Step::InPlace(_) | Step::Regions(_) | Step::Loop { .. } => Ok(size),
        }
    }

    /// Is that the size of the grid, whatever it is?
    pub fn keeps_size(&self) -> bool {
        match self {
            Step::Turn(turn) => !turn.parts().0,
            Step::Regions(what) => *what != Regions::Count,
            step => matches!(step, Step::InPlace(_) | Step::Loop { .. }),
        }
    }
}

/// A program: steps, and the text that they were read from.
///
/// ```
/// use grid_scoring::Program;
/// let program: Program = "rot90 | recolour 3->5 | crop_bbox".parse()?;
/// assert_eq!((program.steps.len(), program.to_string().as_str()), (3, "rot90 | recolour 3->5 | crop_bbox"));
/// # Ok::<(), grid_scoring::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Program {
    /// What it does, in order. None at all leaves grids as they are.
    pub steps: Vec<Step>,
}

impl fmt::Display for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InPlace::Recolour(pairs) => {
                let list: Vec<String> = pairs.iter().map(|(from, to)| format!("{from}->{to}")).collect();
                write!(f, "recolour {}", list.join(" "))
            }
            InPlace::Mask(colour) => write!(f, "mask {colour}"),
            InPlace::Spread(colour) => write!(f, "spread {colour}"),
            InPlace::Fall => f.write_str("fall"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Turn(turn) => {
                let name = Turn::ALL.iter().find(|(_, other)| other == turn).map_or("", |(name, _)| name);
                f.write_str(name)
            }
            Step::InPlace(step) => step.fmt(f),
            Step::Crop { top, left, size } => write!(f, "crop {top} {left} {} {}", size.height, size.width),
            Step::CropBbox => f.write_str("crop_bbox"),
            Step::Pad { by, colour } => write!(f, "pad {by} {colour}"),
            Step::Tile { down, right } => write!(f, "tile {down} {right}"),
            Step::Count(colour) => write!(f, "count {colour}"),
            Step::CountColours => f.write_str("count_colours"),
            Step::Compare(colour) => write!(f, "compare {colour}"),
            Step::Regions(Regions::Largest) => f.write_str("largest_region"),
            Step::Regions(Regions::BySize) => f.write_str("regions_by_size"),
            Step::Regions(Regions::Count) => f.write_str("count_regions"),
            Step::Loop { body, until } => {
                let steps: Vec<String> = body.iter().map(InPlace::to_string).collect();
                match until {
                    Until::Stable => write!(f, "until_stable {{ {} }}", steps.join(" | ")),
                    Until::Times(times) => write!(f, "repeat {times} {{ {} }}", steps.join(" | ")),
                }
            }
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("id");
        }
        let steps: Vec<String> = self.steps.iter().map(Step::to_string).collect();
        f.write_str(&steps.join(" | "))
    }
}
