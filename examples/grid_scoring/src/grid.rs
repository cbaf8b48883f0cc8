//! A grid of colours: cells enter and are checked, so that every `Grid` is rectangular, 1x1 to 30x30, of colours 0 to 9.

/// The most rows or columns of a grid.
pub const MAX_SIDE: usize = 30;
/// Colours are 0 (background) to 9.
pub const COLOURS: usize = 10;

/// Why cells are no grid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GridError {
    /// No rows, or rows without cells.
    #[error("the grid has no cells; a grid has 1 to {MAX_SIDE} rows of 1 to {MAX_SIDE} cells")]
    Empty,
    /// Rows of different lengths.
    #[error("row {row} has {found} cells, and row 0 has {expected}; all rows of a grid are of one length")]
    Ragged {
        /// The row.
        row: usize,
        /// Its length.
        found: usize,
        /// That of the first one.
        expected: usize,
    },
    /// Too many rows or columns.
    #[error("the grid has {height} rows of {width} cells; a grid has at most {MAX_SIDE} of each")]
    TooLarge {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// Not a colour.
    #[error("row {row}, column {column} has the colour {found}; colours are 0 to 9")]
    Colour {
        /// Where.
        row: usize,
        /// Where.
        column: usize,
        /// The colour.
        found: i64,
    },
}

/// A grid, row by row.
///
/// ```
/// use grid_scoring::Grid;
/// let grid = Grid::from_rows(&[vec![1, 2], vec![3, 4]])?;
/// assert_eq!((grid.height(), grid.width(), grid.at(1, 0)), (2, 2, 3));
/// assert!(Grid::from_rows(&[vec![1, 2], vec![3]]).is_err());
/// # Ok::<(), grid_scoring::GridError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    height: usize,
    width: usize,
    cells: Vec<i32>,
}

impl Grid {
    /// Checked rows.
    pub fn from_rows(rows: &[Vec<i64>]) -> Result<Grid, GridError> {
        let (height, width) = (rows.len(), rows.first().map_or(0, Vec::len));
        if width == 0 {
            return Err(GridError::Empty);
        }
        if height > MAX_SIDE || width > MAX_SIDE {
            return Err(GridError::TooLarge { height, width });
        }
        let mut cells = Vec::with_capacity(height * width);
        for (row, list) in rows.iter().enumerate() {
            if list.len() != width {
                return Err(GridError::Ragged { row, found: list.len(), expected: width });
            }
            for (column, &found) in list.iter().enumerate() {
                let colour = i32::try_from(found).ok().filter(|colour| (0..COLOURS as i32).contains(colour));
                cells.push(colour.ok_or(GridError::Colour { row, column, found })?);
            }
        }
        Ok(Grid { height, width, cells })
    }

    /// A grid whose cells are computed. The size is within the limits and colours are 0 to 9: what steps make is.
    pub(crate) fn build(height: usize, width: usize, mut cell: impl FnMut(usize, usize) -> i32) -> Grid {
        let mut cells = Vec::with_capacity(height * width);
        for row in 0..height {
            for column in 0..width {
                cells.push(cell(row, column));
            }
        }
        Grid { height, width, cells }
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows and columns.
    pub fn size(&self) -> Size {
        Size { height: self.height, width: self.width }
    }

    /// The colour of a cell.
    #[inline]
    pub fn at(&self, row: usize, column: usize) -> i32 {
        self.cells[row * self.width + column]
    }

    /// All cells, row by row.
    pub fn cells(&self) -> &[i32] {
        &self.cells
    }

    /// The cells as rows, as task files have them.
    pub fn rows(&self) -> Vec<Vec<i32>> {
        self.cells.chunks(self.width).map(<[i32]>::to_vec).collect()
    }

    /// How many cells there are of each colour.
    pub fn colour_counts(&self) -> [i32; COLOURS] {
        let mut counts = [0; COLOURS];
        for &cell in &self.cells {
            counts[cell as usize] += 1;
        }
        counts
    }
}

/// The size of a grid.
///
/// ```
/// use grid_scoring::Size;
/// assert_eq!(Size { height: 2, width: 3 }.turned(), Size { height: 3, width: 2 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Size {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Size {
    /// With rows and columns exchanged.
    pub fn turned(self) -> Size {
        Size { height: self.width, width: self.height }
    }

    /// Cells.
    pub fn cells(self) -> usize {
        self.height * self.width
    }

    /// The larger of rows and columns.
    pub fn side(self) -> usize {
        self.height.max(self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_grid_is_refused_with_its_place() {
        let rows = |rows: &[&[i64]]| Grid::from_rows(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>());
        assert_eq!(rows(&[]), Err(GridError::Empty));
        assert_eq!(rows(&[&[]]), Err(GridError::Empty));
        assert_eq!(rows(&[&[1, 2], &[1]]), Err(GridError::Ragged { row: 1, found: 1, expected: 2 }));
        assert_eq!(rows(&[&[1], &[10]]), Err(GridError::Colour { row: 1, column: 0, found: 10 }));
        assert_eq!(rows(&[&[-1]]), Err(GridError::Colour { row: 0, column: 0, found: -1 }));
        assert_eq!(rows(&[&[0; 31]]), Err(GridError::TooLarge { height: 1, width: 31 }));
        assert_eq!(rows(&[&[0; 30]]).unwrap().size(), Size { height: 1, width: 30 });
    }
}
