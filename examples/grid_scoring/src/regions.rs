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

/// Labels are below this; runs are this far apart, and sizes of regions are kept above labels.
pub(crate) const LABELS: u32 = 1024;

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
        let there = labels.add(lift)?.cummax(axis)?.sub(lift)?;
        // The other way runs come in the other order.
        let lift = Tensor::scalar(LABELS * (MAX_SIDE as u32 + 1)).sub(lift)?;
        let back = labels.add(&lift)?.flip(&[axis])?.cummax(axis)?.flip(&[axis])?.sub(&lift)?;
        there.maximum(back)
    };
    let made = spread(&spread(&labels, &across, 1)?, &down, 0)?;
    let changed = made.ne(&labels)?.cast(DType::U32)?.max(&[0, 1], false)?;
    Ok(Recorded { inputs: vec![labels, across, down], outputs: vec![made, changed] })
}

/// What becomes of regions whose cells have the size of theirs and its label as a key.
pub fn of_regions(what: Regions, cells: &Tensor, keys: &Tensor, size: Size) -> Result<Tensor> {
    match what {
        Regions::Largest => {
            let kept = keys.eq(keys.max(&[0, 1], true)?)?.and(keys.gt(0)?)?;
            set(cells, &any_plane(cells)?.and(word(&kept.cast(DType::U32)?, size)?.not()?)?, 0)
        }
        Regions::BySize => {
            let sizes = keys.shr(LABELS.ilog2())?.minimum(9)?;
            let codes = Tensor::where_(&sizes.gt(0)?, sizes.add(code(0))?, 0u32)?;
            let inked = word(&codes.shr(along(PLANES, 4)?)?.and(1)?, size)?;
            let background = Tensor::from_vec(bits(0).to_vec(), [PLANES, 1, 1])?;
            inked.or(is(cells, 0)?.and(background)?)
        }
        Regions::Count => {
            let first = keys.and(LABELS - 1)?.eq(own_labels(size)?)?.and(keys.gt(0)?)?;
            as_row(&first.cast(DType::U32)?.sum(&[0, 1], false)?.expand_dims(&[0])?)
        }
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

/// Bits of each cell, `[.., rows, columns, lanes]`, as words.
fn word(cells: &Tensor, size: Size) -> Result<Tensor> {
    cells.shl(along(size.width, 2)?)?.sum(&[-2], false)
}

/// Labels of a tray as keys: the size of each cell's region is put above its label. Sums over regions need sums into
/// computed places, which tensors have not; the labels are on the host between rounds in any case.
pub fn add_sizes(labels: &mut [u32], lanes: usize) {
    let mut sizes = [0u32; LABELS as usize];
    let number = |label: u32| label as usize & (LABELS as usize - 1);
    for lane in 0..lanes {
        sizes.fill(0);
        labels.iter().skip(lane).step_by(lanes).for_each(|label| sizes[number(*label)] += 1);
        sizes[0] = 0;
        labels.iter_mut().skip(lane).step_by(lanes).for_each(|label| *label += sizes[number(*label)] * LABELS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_size_above_the_label() {
        let mut labels = [0, 0, 0, 7, 0, 7, 0, 3];
        add_sizes(&mut labels, 2);
        assert_eq!(labels, [0, 0, 0, 2 * LABELS + 7, 0, 2 * LABELS + 7, 0, LABELS + 3]);
    }
}
