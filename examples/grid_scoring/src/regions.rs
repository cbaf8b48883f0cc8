//! Connected regions, by labels that are spread until nothing changes: canvases enter, labels of each cell leave, and what becomes of
//! the regions.
//!
//! Labels are numbers, one for each cell: `[rows, columns, lanes]`. A round takes the largest label of a whole run of cells of one
//! colour, first along rows and then along columns: a running maximum does that if labels of each run are above those of the one
//! before it. Straight lines are done in one round, however long they are.

use crate::canvas::{PLANES, code};
use crate::grid::{MAX_SIDE, Size};
use crate::program::Regions;
use crate::record::{Recorded, Result, along, any_plane, as_row, bits, is, set};
use crate::stage::Form;
use breakeven::{DType, Tensor, s};

/// Labels are below this, and runs are this far apart: a label has bits of its own in a number that is lifted.
pub(crate) const LABELS: u32 = 1024;
/// All bits that lift runs.
const LIFTS: u32 = LABELS * (MAX_SIDE as u32 + 1);
const _: () = assert!(LABELS.is_power_of_two() && (LIFTS / LABELS + 1).is_power_of_two());

/// The labels that spreading begins with, and how far those of each run are lifted, along rows and along columns.
pub fn first_labels(cells: &Tensor, size: Size) -> Result<Recorded> {
    let ink = any_plane(cells)?.and(is(cells, 0)?.not()?)?;
    let labels = own_labels(size)?.mul(spelled(&ink, size)?)?;
    let beside = any_plane(&cells.xor(cells.shl(1)?)?)?;
    let rows = cells.pad(&[(0, 0), (1, 0), (0, 0)], 0u32)?.slice(&[s(..), s(..-1), s(..)])?;
    let above = any_plane(&cells.xor(&rows)?)?;
    let lifted = |begins: &Tensor, axis: isize| spelled(begins, size)?.mul(LABELS)?.cumsum(axis);
    let outputs = vec![labels, lifted(&beside, 1)?, lifted(&above, 0)?];
    Ok(Recorded { inputs: vec![cells.clone()], outputs })
}

/// One round.
pub fn spread_labels(form: Form) -> Result<Recorded> {
    let Size { height, width } = form.canvas;
    let input = |name: &str| Tensor::input(name, DType::U32, [height, width, form.lanes]);
    let (labels, across, down) = (input("labels")?, input("across")?, input("down")?);
    let spread = |labels: &Tensor, lift: &Tensor, axis: isize| {
        let there = labels.or(lift)?.cummax(axis)?.and(LABELS - 1)?;
        // The last cell of each run has its largest label now. The other way runs come in the other order.
        there.or(lift.xor(LIFTS)?)?.flip(&[axis])?.cummax(axis)?.flip(&[axis])?.and(LABELS - 1)
    };
    let made = spread(&spread(&labels, &across, 1)?, &down, 0)?;
    let changed = made.ne(&labels)?.cast(DType::U32)?.max(&[0, 1], false)?;
    Ok(Recorded { inputs: vec![labels, across, down], outputs: vec![made, changed] })
}

/// What becomes of regions: what is known of them lies beside the canvas, as [`beside`] says.
pub fn of_regions(what: Regions, cells: &Tensor, known: &Tensor, size: Size) -> Result<Tensor> {
    match what {
        Regions::Largest => set(cells, &any_plane(cells)?.and(known.not()?)?, 0),
        Regions::BySize => {
            let background = Tensor::from_vec(bits(0).to_vec(), [PLANES, 1, 1])?;
            known.or(is(cells, 0)?.and(background)?)
        }
        Regions::Count => {
            let first = known.eq(own_labels(size)?)?;
            as_row(&first.cast(DType::U32)?.sum(&[0, 1], false)?.expand_dims(&[0])?)
        }
    }
}

/// What lies beside the canvas: the cells of the largest region, sizes as colours, or labels.
pub fn beside(what: Regions, form: Form) -> Result<Tensor> {
    let Size { height, width } = form.canvas;
    match what {
        Regions::Largest => Tensor::input("largest", DType::U32, [height, form.lanes]),
        Regions::BySize => Tensor::input("sizes", DType::U32, [PLANES, height, form.lanes]),
        Regions::Count => Tensor::input("labels", DType::U32, [height, width, form.lanes]),
    }
}

/// A label for each cell: the first one of a region, row by row, has its largest.
fn own_labels(size: Size) -> Result<Tensor> {
    let position = along(size.height, 3)?.mul(size.width as u32)?.add(along(size.width, 2)?)?;
    Tensor::scalar(size.cells() as u32).sub(position)
}

/// The bits of words, `[rows, lanes]`, as numbers of each cell.
fn spelled(words: &Tensor, size: Size) -> Result<Tensor> {
    words.expand_dims(&[1])?.shr(along(size.width, 2)?)?.and(1)
}

/// Lanes that are counted at once: the labels of one cell are a cache line of theirs, and what is counted stays in L1.
const COUNTED: usize = 16;
/// Above the code of a size: the region is the largest.
const IS_LARGEST: u8 = 1 << PLANES;

/// The regions of a tray, as words.
pub struct RegionWords {
    /// The cells of the largest one, of several the first: `[rows, lanes]`.
    pub largest: Vec<u32>,
    /// Cells with the size of their region as a colour, 9 at most; none that are background: `[planes, rows, lanes]`.
    pub sizes: Vec<u32>,
}

impl RegionWords {
    /// Of labels. Sums over regions need sums into computed places, which tensors have not; the labels are on the host between
    /// rounds in any case.
    pub fn of(labels: &[u32], size: Size, lanes: usize) -> RegionWords {
        let Size { height, width } = size;
        let (mut largest, mut sizes) = (vec![0; height * lanes], vec![0; PLANES * height * lanes]);
        let number = |label: &u32| *label as usize & (LABELS as usize - 1);
        let mut counts = vec![[0u16; LABELS as usize]; COUNTED];
        let mut marks = vec![[0u8; LABELS as usize]; COUNTED];
        for first in (0..lanes).step_by(COUNTED) {
            let of_cell =
                |cell: usize| &labels[cell * lanes + first..(cell * lanes + first + COUNTED).min((cell + 1) * lanes)];
            counts.iter_mut().for_each(|counts| counts[..=size.cells()].fill(0));
            for cell in 0..size.cells() {
                of_cell(cell).iter().zip(&mut counts).for_each(|(label, counts)| counts[number(label)] += 1);
            }
            for (counts, marks) in counts.iter().zip(&mut marks) {
                let by_size = |(label, count): (usize, &u16)| (*count, label);
                let regions = || counts[..=size.cells()].iter().enumerate().skip(1);
                // Of several the first one has the largest label.
                let largest = regions().map(by_size).max().map_or(0, |(_, label)| label);
                for (label, count) in regions() {
                    marks[label] = code((*count).min(9) as i32) as u8;
                }
                marks[largest] |= IS_LARGEST;
                marks[0] = 0;
            }
            for row in 0..height {
                let mut words = [[0u32; COUNTED]; PLANES + 1];
                for column in 0..width {
                    for (lane, (label, marks)) in of_cell(row * width + column).iter().zip(&marks).enumerate() {
                        let mark = u32::from(marks[number(label)]);
                        (0..=PLANES).for_each(|plane| words[plane][lane] |= (mark >> plane & 1) << column);
                    }
                }
                let end = (first + COUNTED).min(lanes);
                let put = |to: &mut [u32], at: usize, words: &[u32; COUNTED]| {
                    to[at * lanes + first..at * lanes + end].copy_from_slice(&words[..end - first]);
                };
                (0..PLANES).for_each(|plane| put(&mut sizes, plane * height + row, &words[plane]));
                put(&mut largest, row, &words[PLANES]);
            }
        }
        RegionWords { largest, sizes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_size_of_their_region_and_the_first_of_the_largest_is_kept() {
        // Two lanes of 2x2 cells: a region of two beside one, and two of one cell each.
        let labels = [4, 0, 3, 3, 4, 0, 0, 1];
        let RegionWords { largest, sizes } = RegionWords::of(&labels, Size { height: 2, width: 2 }, 2);
        assert_eq!(largest, [0b01, 0b10, 0b01, 0b00]);
        let at = |row: usize, column: usize, lane: usize| {
            (0..PLANES).map(|plane| (sizes[(plane * 2 + row) * 2 + lane] >> column & 1) << plane).sum::<u32>()
        };
        assert_eq!([at(0, 0, 0), at(0, 1, 0), at(1, 0, 0), at(1, 1, 0)], [code(2), code(1), code(2), 0]);
        assert_eq!([at(0, 0, 1), at(0, 1, 1), at(1, 0, 1), at(1, 1, 1)], [0, code(1), 0, code(1)]);
    }
}
