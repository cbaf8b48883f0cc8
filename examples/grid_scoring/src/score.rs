//! What a scoring leaves: scores, a failure, or late.

use crate::grid::Grid;
use crate::program::Failure;

/// How well a program's result fits what is expected. Counts only, so that every device gives the same.
///
/// ```
/// use grid_scoring::{Grid, Score};
/// let grid = Grid::from_rows(&[vec![1, 2]])?;
/// let score = Score::of(&grid, &grid);
/// assert!(score.exact);
/// assert_eq!((score.equal_cells, score.equal_colours), (2, 10));
/// # Ok::<(), grid_scoring::GridError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Score {
    /// Of the same size, and every cell is equal.
    pub exact: bool,
    /// Cells that are equal; 0 where the sizes differ.
    pub equal_cells: i32,
    /// Colours of which both grids have as many cells, of ten: a score of the whole grid, whatever its size.
    pub equal_colours: i32,
}

impl Score {
    /// Of a result, cell by cell.
    pub fn of(result: &Grid, expected: &Grid) -> Score {
        let equal_cells = if result.size() == expected.size() {
            result.cells().iter().zip(expected.cells()).filter(|(a, b)| a == b).count() as i32
        } else {
            0
        };
        let counts = result.colour_counts().into_iter().zip(expected.colour_counts());
        let equal_colours = counts.filter(|(a, b)| a == b).count() as i32;
        Score { exact: equal_cells as usize == expected.cells().len(), equal_cells, equal_colours }
    }
}

/// How a scoring ended.
///
/// ```
/// use grid_scoring::{Failure, Outcome};
/// assert_ne!(Outcome::Failed(Failure::TooLarge), Outcome::Late);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With a result.
    Scored(Score),
    /// The program has no result for this grid, and would not have one with more time.
    Failed(Failure),
    /// Its deadline, or that of the run, came first.
    Late,
    /// Nobody began it: the run was ended before its turn.
    Skipped,
}
