//! The plain way: one grid at a time, one step after the other, on one thread. What the batches are compared with, and the
//! meaning of every step.

use crate::grid::{COLOURS, Grid, Size};
use crate::program::{Failure, InPlace, Program, Regions, Step, Until};
use crate::score::{Outcome, Score};
use crate::task::Pair;
use std::time::Instant;

/// Turns of a loop between two looks at the clock.
const TURNS: u32 = 16;

/// Why there is no result.
enum End {
    Failed(Failure),
    Late,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> End {
        End::Failed(failure)
    }
}

/// Scores a program with one sample. A loop that goes on beyond the deadline is late.
pub fn score(program: &Program, sample: &Pair, deadline: Instant) -> Outcome {
    match run(program, &sample.input, deadline) {
        Ok(result) => Outcome::Scored(Score::of(&result, &sample.output)),
        Err(End::Failed(failure)) => Outcome::Failed(failure),
        Err(End::Late) => Outcome::Late,
    }
}

/// What a program makes of a grid.
///
/// ```
/// use grid_scoring::{Failure, Grid, Program, scalar};
/// let grid = Grid::from_rows(&[vec![1, 2], vec![3, 4]]).unwrap();
/// let turned = scalar::result(&"rot90".parse::<Program>().unwrap(), &grid).unwrap().unwrap();
/// assert_eq!(turned.rows(), [[3, 1], [4, 2]]);
/// let failed = scalar::result(&"crop 0 0 3 3".parse::<Program>().unwrap(), &grid).unwrap();
/// assert_eq!(failed, Err(Failure::CropRange));
/// ```
pub fn result(program: &Program, input: &Grid) -> Option<Result<Grid, Failure>> {
    // Nobody waits longer for a loop without end.
    match run(program, input, Instant::now() + std::time::Duration::from_secs(2)) {
        Ok(grid) => Some(Ok(grid)),
        Err(End::Failed(failure)) => Some(Err(failure)),
        Err(End::Late) => None,
    }
}

fn run(program: &Program, input: &Grid, deadline: Instant) -> Result<Grid, End> {
    let mut steps = program.steps.iter();
    let Some(first) = steps.next() else { return Ok(input.clone()) };
    let mut grid = apply(first, input, input, deadline)?;
    for step in steps {
        grid = apply(step, &grid, input, deadline)?;
    }
    Ok(grid)
}

fn apply(step: &Step, grid: &Grid, input: &Grid, deadline: Instant) -> Result<Grid, End> {
    if let Step::CropBbox = step {
        let (top, left, size) = bounding_box(grid).ok_or(Failure::NothingToCrop)?;
        return Ok(Grid::build(size.height, size.width, |row, column| grid.at(top + row, left + column)));
    }
    let Size { height, width } = step.size(grid.size(), input.size(), || None)?;
    Ok(match step {
        Step::Turn(turn) => {
            let (exchange, mirror_columns, mirror_rows) = turn.parts();
            Grid::build(height, width, |row, column| {
                let row = if mirror_rows { height - 1 - row } else { row };
                let column = if mirror_columns { width - 1 - column } else { column };
                if exchange { grid.at(column, row) } else { grid.at(row, column) }
            })
        }
        Step::InPlace(step) => in_place(step, grid),
        Step::Crop { top, left, .. } => Grid::build(height, width, |row, column| grid.at(top + row, left + column)),
        Step::CropBbox => grid.clone(),
        Step::Pad { by, colour } => Grid::build(height, width, |row, column| {
            let inside = (*by..by + grid.height()).contains(&row) && (*by..by + grid.width()).contains(&column);
            if inside { grid.at(row - by, column - by) } else { *colour }
        }),
        Step::Tile { .. } => {
            Grid::build(height, width, |row, column| grid.at(row % grid.height(), column % grid.width()))
        }
        Step::Count(colour) => {
            let count = grid.cells().iter().filter(|cell| *cell == colour).count();
            Grid::build(1, 1, |_, _| count.min(9) as i32)
        }
        Step::CountColours => {
            let counts = grid.colour_counts();
            Grid::build(1, COLOURS, |_, colour| counts[colour].min(9))
        }
        Step::Compare(colour) => Grid::build(height, width, |row, column| {
            let cell = grid.at(row, column);
            if cell == input.at(row, column) { cell } else { *colour }
        }),
        Step::Regions(what) => regions(*what, grid),
        Step::Loop { body, until } => repeat(body, *until, grid, deadline)?,
    })
}

fn in_place(step: &InPlace, grid: &Grid) -> Grid {
    let (height, width) = (grid.height(), grid.width());
    match step {
        InPlace::Recolour(pairs) => {
            let mut table: [i32; COLOURS] = std::array::from_fn(|colour| colour as i32);
            pairs.iter().for_each(|(from, to)| table[*from as usize] = *to);
            Grid::build(height, width, |row, column| table[grid.at(row, column) as usize])
        }
        InPlace::Mask(colour) => {
            Grid::build(height, width, |row, column| if grid.at(row, column) == *colour { *colour } else { 0 })
        }
        InPlace::Spread(colour) => Grid::build(height, width, |row, column| {
            let cell = grid.at(row, column);
            let near = row > 0 && grid.at(row - 1, column) == *colour
                || row + 1 < height && grid.at(row + 1, column) == *colour
                || column > 0 && grid.at(row, column - 1) == *colour
                || column + 1 < width && grid.at(row, column + 1) == *colour;
            if cell == 0 && near { *colour } else { cell }
        }),
        InPlace::Fall => Grid::build(height, width, |row, column| {
            let cell = grid.at(row, column);
            if cell == 0 {
                if row > 0 { grid.at(row - 1, column) } else { 0 }
            } else if row + 1 < height && grid.at(row + 1, column) == 0 {
                0
            } else {
                cell
            }
        }),
    }
}

fn repeat(body: &[InPlace], until: Until, grid: &Grid, deadline: Instant) -> Result<Grid, End> {
    let mut grid = grid.clone();
    for turn in 1u32.. {
        let mut next = in_place(&body[0], &grid);
        for step in &body[1..] {
            next = in_place(step, &next);
        }
        let stable = next == grid;
        grid = next;
        let done = match until {
            Until::Stable => stable,
            // What does not change any more will not in the turns that are left.
            Until::Times(times) => stable || turn == times,
        };
        if done {
            return Ok(grid);
        }
        if turn % TURNS == 0 && Instant::now() >= deadline {
            return Err(End::Late);
        }
    }
    Err(End::Late)
}

/// First row, first column and size of the box around everything but background.
pub(crate) fn bounding_box(grid: &Grid) -> Option<(usize, usize, Size)> {
    let (mut top, mut left, mut bottom, mut right) = (grid.height(), grid.width(), 0, 0);
    for row in 0..grid.height() {
        for column in 0..grid.width() {
            if grid.at(row, column) != 0 {
                (top, left) = (top.min(row), left.min(column));
                (bottom, right) = (bottom.max(row + 1), right.max(column + 1));
            }
        }
    }
    (bottom > 0).then(|| (top, left, Size { height: bottom - top, width: right - left }))
}

/// Flood fill from each cell that is in no region yet, with a stack of cells.
fn regions(what: Regions, grid: &Grid) -> Grid {
    let (height, width) = (grid.height(), grid.width());
    let mut region_of = vec![usize::MAX; height * width];
    let mut sizes: Vec<usize> = Vec::new();
    let mut stack = Vec::new();
    for start in 0..height * width {
        let colour = grid.cells()[start];
        if colour == 0 || region_of[start] != usize::MAX {
            continue;
        }
        let region = sizes.len();
        sizes.push(0);
        region_of[start] = region;
        stack.push(start);
        while let Some(cell) = stack.pop() {
            sizes[region] += 1;
            let (row, column) = (cell / width, cell % width);
            let mut visit = |next: usize| {
                if region_of[next] == usize::MAX && grid.cells()[next] == colour {
                    region_of[next] = region;
                    stack.push(next);
                }
            };
            if row > 0 {
                visit(cell - width);
            }
            if row + 1 < height {
                visit(cell + width);
            }
            if column > 0 {
                visit(cell - 1);
            }
            if column + 1 < width {
                visit(cell + 1);
            }
        }
    }
    match what {
        Regions::Count => Grid::build(1, 1, |_, _| sizes.len().min(9) as i32),
        Regions::BySize => Grid::build(height, width, |row, column| match region_of[row * width + column] {
            usize::MAX => 0,
            region => sizes[region].min(9) as i32,
        }),
        Regions::Largest => {
            let largest = sizes.iter().copied().max().unwrap_or(0);
            let kept = sizes.iter().position(|size| *size == largest);
            Grid::build(height, width, |row, column| match Some(region_of[row * width + column]) == kept {
                true => grid.at(row, column),
                false => 0,
            })
        }
    }
}

#[cfg(test)]
#[path = "scalar_tests.rs"]
mod tests;
