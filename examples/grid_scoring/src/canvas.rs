//! Grids on canvases: samples enter, blocks of memory leave that programs of one size can run over.
//!
//! A row of a grid is at most 30 cells: one word has a bit of each. A colour is four bits, so that four words, one in each of four
//! planes, are a row, and one operation on words is done with all of its cells. A canvas is `[planes, rows, lanes]`: the same row of
//! many samples lies side by side, so that vector lanes are samples. Samples that lie together are a tray, and a tray is one
//! task of `run_many`.

use crate::grid::{COLOURS, Grid, MAX_SIDE, Size};
use crate::task::Pair;
use std::sync::OnceLock;

/// Bits of a colour.
pub const PLANES: usize = 4;
/// The sides of canvases for inputs, and how many samples share a tray at most. Each side has programs of its own, which take time
/// to make ready; larger ones waste rows. Long lanes make steps cheap: 1,200 samples take 22 ms in trays of up to 1,024 and
/// 512, and 25 ms in trays of half of that.
pub const BUCKETS: [(usize, usize); 2] = [(16, 1024), (MAX_SIDE, 512)];
/// Lanes are filled up to a multiple of this: the lanes of a vector register, at most.
pub const VECTOR: usize = 16;

/// A colour as canvases hold it; 0 is a cell that belongs to no grid.
pub const fn code(colour: i32) -> u32 {
    colour as u32 + 1
}

/// The bit of each plane, of each colour.
const CODE_BITS: [[u32; PLANES]; COLOURS] = {
    let mut bits = [[0; PLANES]; COLOURS];
    let mut at = 0;
    while at < COLOURS * PLANES {
        bits[at / PLANES][at % PLANES] = code((at / PLANES) as i32) >> (at % PLANES) & 1;
        at += 1;
    }
    bits
};

/// The cells of so many columns.
pub fn columns(count: usize) -> u32 {
    (1u32 << count) - 1
}

/// The corner of its canvas in which a grid lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Anchor {
    /// At the bottom rather than at the top.
    pub bottom: bool,
    /// To the right rather than to the left.
    pub right: bool,
}

impl Anchor {
    /// The first row and column of a grid on a canvas.
    pub fn corner(self, canvas: Size, grid: Size) -> (usize, usize) {
        let top = if self.bottom { canvas.height - grid.height } else { 0 };
        let left = if self.right { canvas.width - grid.width } else { 0 };
        (top, left)
    }
}

/// A grid as words: those of each row.
struct Words {
    size: Size,
    rows: Vec<[u32; PLANES]>,
}

impl Words {
    fn of(grid: &Grid) -> Words {
        let row = |cells: &[i32]| {
            let mut words = [0; PLANES];
            for (column, cell) in cells.iter().enumerate() {
                let bits = CODE_BITS[*cell as usize];
                words.iter_mut().zip(bits).for_each(|(word, bit)| *word |= bit << column);
            }
            words
        };
        Words { size: grid.size(), rows: grid.cells().chunks(grid.width()).map(row).collect() }
    }
}

/// The samples whose inputs have one canvas.
pub struct Bucket<'a> {
    /// Rows and columns of that canvas.
    pub side: usize,
    /// Samples of a tray.
    pub lanes: usize,
    /// Number of each sample among all.
    pub numbers: Vec<usize>,
    /// The samples.
    pub samples: Vec<&'a Pair>,
    /// Made by whoever needs them first: workers have nothing else to do then.
    inputs: OnceLock<Vec<Words>>,
    outputs: OnceLock<Vec<Words>>,
}

impl<'a> Bucket<'a> {
    /// Samples by the size of their inputs; buckets without any are left out.
    pub fn sort(samples: &[&'a Pair]) -> Vec<Bucket<'a>> {
        let empty = |(side, lanes)| {
            let (numbers, samples) = (Vec::new(), Vec::new());
            Bucket { side, lanes, numbers, samples, inputs: OnceLock::new(), outputs: OnceLock::new() }
        };
        let mut buckets: Vec<Bucket<'a>> = BUCKETS.map(empty).into();
        // Loops end sooner with small grids: those of one size share trays, so that whole trays are done.
        let mut order: Vec<(usize, &&'a Pair)> = samples.iter().enumerate().collect();
        order.sort_by_key(|(_, sample)| sample.input.size().cells());
        for (number, sample) in order {
            if let Some(bucket) = buckets.iter_mut().find(|bucket| bucket.side >= sample.input.size().side()) {
                bucket.numbers.push(number);
                bucket.samples.push(sample);
            }
        }
        buckets.retain(|bucket| !bucket.samples.is_empty());
        // As many trays as are needed, filled evenly.
        for bucket in &mut buckets {
            bucket.lanes = bucket.samples.len().div_ceil(bucket.trays()).next_multiple_of(VECTOR);
        }
        buckets
    }

    /// How many trays they fill.
    pub fn trays(&self) -> usize {
        self.samples.len().div_ceil(self.lanes)
    }

    /// The inputs, in a corner of canvases of the bucket's own side.
    pub fn inputs(&self, anchor: Anchor) -> Vec<u32> {
        let words = self.inputs.get_or_init(|| self.samples.iter().map(|sample| Words::of(&sample.input)).collect());
        lay(words, self.lanes, Size { height: self.side, width: self.side }, anchor)
    }

    /// The expected grids, in a corner of canvases of any size. What does not fit is left out: no result of this size is
    /// equal to it.
    pub fn outputs(&self, size: Size, anchor: Anchor) -> Vec<u32> {
        let words = self.outputs.get_or_init(|| self.samples.iter().map(|sample| Words::of(&sample.output)).collect());
        lay(words, self.lanes, size, anchor)
    }

    /// The colour counts of the expected grids.
    pub fn colour_counts(&self) -> Vec<u32> {
        let lanes = self.lanes;
        let mut laid = vec![u32::MAX; self.trays() * COLOURS * lanes];
        for (number, sample) in self.samples.iter().enumerate() {
            let tray = &mut laid[number / lanes * COLOURS * lanes..];
            for (colour, count) in sample.output.colour_counts().into_iter().enumerate() {
                tray[colour * lanes + number % lanes] = count as u32;
            }
        }
        laid
    }
}

/// Lays out as many samples at a time as a cache line has words: each line is written once, and no row is looked at twice.
fn lay(grids: &[Words], lanes: usize, canvas: Size, anchor: Anchor) -> Vec<u32> {
    let each = PLANES * canvas.height * lanes;
    let mut laid = vec![0; grids.len().div_ceil(lanes) * each];
    let fits = |grid: &Words| grid.size.height <= canvas.height && grid.size.width <= canvas.width;
    for (tray, grids) in laid.chunks_mut(each).zip(grids.chunks(lanes)) {
        for (number, grids) in grids.chunks(VECTOR).enumerate() {
            // The first row of each grid, and how far its columns move; a grid that does not fit has no rows.
            let mut rows: [&[[u32; PLANES]]; VECTOR] = [&[]; VECTOR];
            let mut corners = [(0, 0); VECTOR];
            for (lane, grid) in grids.iter().enumerate().filter(|(_, grid)| fits(grid)) {
                (rows[lane], corners[lane]) = (&grid.rows, anchor.corner(canvas, grid.size));
            }
            for row in 0..canvas.height {
                let mut words = [[0; VECTOR]; PLANES];
                let mut any = false;
                for (lane, (rows, (top, left))) in rows.iter().zip(corners).enumerate() {
                    if let Some(row) = rows.get(row.wrapping_sub(top)) {
                        any = true;
                        (0..PLANES).for_each(|plane| words[plane][lane] = row[plane] << left);
                    }
                }
                if !any {
                    continue;
                }
                for (plane, words) in words.iter().enumerate() {
                    let at = (plane * canvas.height + row) * lanes + number * VECTOR;
                    tray[at..at + VECTOR].copy_from_slice(words);
                }
            }
        }
    }
    laid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_a_code_of_its_own_and_none_is_nothing() {
        let codes: Vec<u32> = (0..COLOURS as i32).map(code).collect();
        assert!(codes.iter().all(|code| *code != 0 && code >> PLANES == 0));
        assert!(codes.windows(2).all(|pair| pair[0] != pair[1]));
        const { assert!(MAX_SIDE < u32::BITS as usize) };
    }

    #[test]
    fn grids_lie_in_their_corner() {
        let grid = Grid::from_rows(&[vec![3, 7]]).unwrap();
        let pair = Pair { input: grid.clone(), output: grid };
        let buckets = Bucket::sort(&[&pair]);
        let laid = buckets[0].inputs(Anchor { bottom: true, right: true });
        let (side, lanes) = (buckets[0].side, buckets[0].lanes);
        let at = |row: usize, column: usize| {
            let bit = |plane: usize| laid[(plane * side + row) * lanes] >> column & 1;
            (0..PLANES).map(|plane| bit(plane) << plane).sum::<u32>()
        };
        let last = side - 1;
        assert_eq!((at(last, last - 1), at(last, last), at(0, 0)), (code(3), code(7), 0));
        let ones: u32 = laid.iter().map(|word| word.count_ones()).sum();
        assert_eq!(ones, code(3).count_ones() + code(7).count_ones());
    }
}
