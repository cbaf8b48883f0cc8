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
use crate::rounds::copy_lane;
use crate::stage::Form;
use breakeven::{DType, Tensor, s};

/// Labels are below this, and runs are this far apart: a label has bits of its own in a number that is lifted.
pub(crate) const LABELS: u32 = 1024;
/// All bits that lift runs.
const LIFTS: u32 = LABELS * (MAX_SIDE as u32 + 1);
const _: () = assert!(LABELS.is_power_of_two() && (LIFTS / LABELS + 1).is_power_of_two());

/// The labels that spreading begins with, and how far those of each run are lifted, along rows and along columns: each in the order
/// in which [`spread_labels`] needs it.
pub fn first_labels(cells: &Tensor, size: Size) -> Result<Recorded> {
    let ink = any_plane(cells)?.and(is(cells, 0)?.not()?)?;
    let labels = own_labels(size)?.mul(spelled(&ink, size)?)?;
    let beside = any_plane(&cells.xor(cells.shl(1)?)?)?;
    let rows = cells.pad(&[(0, 0), (1, 0), (0, 0)], 0u32)?.slice(&[s(..), s(..-1), s(..)])?;
    let above = any_plane(&cells.xor(&rows)?)?;
    let across = spelled(&beside, size)?.mul(LABELS)?.cumsum(1)?;
    let down = spelled(&above, size)?.mul(LABELS)?.flip(&[1])?.cumsum(0)?;
    let labels = labels.flip(&[0, 1])?.or(down.xor(LIFTS)?.flip(&[0])?)?;
    Ok(Recorded { inputs: vec![cells.clone()], outputs: vec![labels, across, down] })
}

/// One round. Labels enter and leave as its last pass makes them, so that nothing has to be done with them after it: from the last
/// cell to the first, and lifted as runs are from there. Passes along columns begin with the last column, as the pass before
/// them ends: what they read and write lies in one direction, and all columns of a row are one run of memory.
pub fn spread_labels(form: Form) -> Result<Recorded> {
    let Size { height, width } = form.canvas;
    let input = |name: &str| Tensor::input(name, DType::U32, [height, width, form.lanes]);
    let (labels, across, down) = (input("labels")?, input("across")?, input("down")?);
    let label = |lifted: &Tensor| lifted.and(LABELS - 1);
    // The last cell of each run has its largest label after the first pass. The other way runs come in the other order.
    let spread = |labels: &Tensor, lift: &Tensor, axis: isize| {
        let there = label(&label(labels)?.or(lift)?.cummax(axis)?)?;
        there.or(lift.xor(LIFTS)?)?.flip(&[axis])?.cummax(axis)
    };
    let made = spread(&spread(&labels.flip(&[0, 1])?, &across, 1)?, &down, 0)?;
    let changed = made.xor(&labels)?.max(&[0, 1], false)?;
    Ok(Recorded { inputs: vec![labels, across, down], outputs: vec![made, changed] })
}

/// What becomes of regions: what is known of them lies beside the canvas, as [`beside`] says.
pub fn of_regions(what: Regions, cells: &Tensor, known: &Tensor, to: Size) -> Result<Tensor> {
    match what {
        Regions::Largest => set(cells, &any_plane(cells)?.and(known.not()?)?, 0),
        Regions::BySize => {
            let background = Tensor::from_vec(bits(0).to_vec(), [PLANES, 1, 1])?;
            known.or(is(cells, 0)?.and(background)?)
        }
        Regions::Count => as_row(std::slice::from_ref(known), to),
    }
}

/// What lies beside the canvas: the cells of the largest region, sizes as colours, or how many there are.
pub fn beside(what: Regions, form: Form) -> Result<Tensor> {
    let Size { height, .. } = form.canvas;
    match what {
        Regions::Largest => Tensor::input("largest", DType::U32, [height, form.lanes]),
        Regions::BySize => Tensor::input("sizes", DType::U32, [PLANES, height, form.lanes]),
        Regions::Count => Tensor::input("count", DType::U32, [form.lanes]),
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
    /// How many there are: `[lanes]`.
    pub count: Vec<u32>,
}

impl RegionWords {
    /// Of labels as a round leaves them. Sums over regions need sums into computed places, which tensors have not; the labels are on the host between
    /// rounds in any case.
    pub fn of(labels: &[u32], size: Size, lanes: usize) -> RegionWords {
        let Size { height, width } = size;
        let (mut largest, mut sizes) = (vec![0; height * lanes], vec![0; PLANES * height * lanes]);
        let mut count = vec![0; lanes];
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
            for ((counts, marks), count) in counts.iter().zip(&mut marks).zip(&mut count[first..]) {
                let by_size = |(label, count): (usize, &u16)| (*count, label);
                let regions = || counts[..=size.cells()].iter().enumerate().skip(1);
                // Of several the first one has the largest label.
                let largest = regions().map(by_size).max().map_or(0, |(_, label)| label);
                *count = regions().filter(|(_, count)| **count > 0).count() as u32;
                for (label, count) in regions() {
                    marks[label] = code((*count).min(9) as i32) as u8;
                }
                marks[largest] |= IS_LARGEST;
                marks[0] = 0;
            }
            for row in 0..height {
                let mut words = [[0u32; COUNTED]; PLANES + 1];
                for column in 0..width {
                    let cell = size.cells() - 1 - (row * width + column);
                    let mut found = [0; COUNTED];
                    for (found, (label, marks)) in found.iter_mut().zip(of_cell(cell).iter().zip(&marks)) {
                        *found = u32::from(marks[number(label)]);
                    }
                    for (plane, words) in words.iter_mut().enumerate() {
                        words.iter_mut().zip(found).for_each(|(word, mark)| *word |= (mark >> plane & 1) << column);
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
        RegionWords { largest, sizes, count }
    }

    /// No regions.
    pub fn none(size: Size, lanes: usize) -> RegionWords {
        let words = |count: usize| vec![0; count * lanes];
        RegionWords { largest: words(size.height), sizes: words(PLANES * size.height), count: words(1) }
    }

    /// Takes over the samples of a part, from this one on.
    pub fn put_part(&mut self, lanes: usize, first: usize, from: &RegionWords, from_lanes: usize) {
        let parts =
            [(&mut self.largest, &from.largest), (&mut self.sizes, &from.sizes), (&mut self.count, &from.count)];
        for (to, from) in parts {
            for (to, from) in to.chunks_mut(lanes).zip(from.chunks(from_lanes)) {
                to[first..].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// Takes over a sample from other regions.
    pub fn put(&mut self, lanes: usize, lane: usize, from: &RegionWords, from_lanes: usize, from_lane: usize) {
        let parts =
            [(&mut self.largest, &from.largest), (&mut self.sizes, &from.sizes), (&mut self.count, &from.count)];
        parts.into_iter().for_each(|(to, from)| copy_lane(from, from_lanes, from_lane, to, lanes, lane));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_size_of_their_region_and_the_first_of_the_largest_is_kept() {
        // Two lanes of 2x2 cells, the last one first: a region of two beside one, and two of one cell each.
        let labels = [0, 1, 4, 0, 3, 3, 4, 0];
        let RegionWords { largest, sizes, count } = RegionWords::of(&labels, Size { height: 2, width: 2 }, 2);
        assert_eq!(count, [2, 2]);
        assert_eq!(largest, [0b01, 0b10, 0b01, 0b00]);
        let at = |row: usize, column: usize, lane: usize| {
            (0..PLANES).map(|plane| (sizes[(plane * 2 + row) * 2 + lane] >> column & 1) << plane).sum::<u32>()
        };
        assert_eq!([at(0, 0, 0), at(0, 1, 0), at(1, 0, 0), at(1, 1, 0)], [code(2), code(1), code(2), 0]);
        assert_eq!([at(0, 0, 1), at(0, 1, 1), at(1, 0, 1), at(1, 1, 1)], [0, code(1), 0, code(1)]);
    }
}
