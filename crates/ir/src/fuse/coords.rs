//! Coordinates: where a node is read from, seen from the kernel's loop variables, and what a view does to them.

use crate::expr::Condition;
use crate::index::{Index, Split};
use crate::shape::Shape;
use crate::tensor::View;

/// The flat row-major index of `coords` in `shape`.
pub(super) fn flat(coords: &[Index], shape: &Shape) -> Index {
    let strides = shape.strides();
    coords.iter().enumerate().fold(Index::default(), |sum, (axis, c)| sum.plus(c, strides[axis]))
}

/// The coordinates at which an argument of shape `from` is read when its user is at `coords`: aligned at the last
/// axis, extents of 1 read at 0.
pub(super) fn broadcast(coords: &[Index], from: &Shape) -> Vec<Index> {
    let skip = coords.len() - from.rank();
    let pick = |(axis, &dim): (usize, &usize)| if dim == 1 { Index::default() } else { coords[skip + axis].clone() };
    from.iter().enumerate().map(pick).collect()
}

/// Is an argument of shape `from` read at its user's own coordinates?
pub(super) fn is_same(coords: &[Index], from: &Shape) -> bool {
    let is_kept = |(coord, &dim): (&Index, &usize)| dim != 1 || *coord == Index::default();
    coords.len() == from.rank() && coords.iter().zip(from.iter()).all(is_kept)
}

/// What a view makes of coordinates: those of its argument, the conditions under which they are inside it, and a
/// split of a loop variable that would spare a division.
pub(super) struct Viewed {
    pub(super) coords: Vec<Index>,
    pub(super) conditions: Vec<Condition>,
    pub(super) split: Option<Split>,
}

pub(super) fn view(view: &View, coords: &[Index], to: &Shape, from: &Shape, extents: &[usize]) -> Viewed {
    let mut conditions = Vec::new();
    let mut split = None;
    let coords: Vec<Index> = match view {
        View::Reshape => {
            let mut rest = flat(coords, to);
            let mut out = vec![Index::default(); from.rank()];
            let first = from.iter().position(|&d| d != 1).unwrap_or(from.rank());
            for axis in (first..from.rank()).rev().filter(|&axis| from[axis] != 1) {
                if axis == first {
                    out[axis] = std::mem::take(&mut rest);
                    break;
                }
                let (quotient, remainder, wish) = rest.div_rem(from[axis] as i64, extents);
                split = split.or(wish);
                out[axis] = remainder;
                rest = quotient;
            }
            out
        }
        View::Permute { order } => {
            let mut out = vec![Index::default(); from.rank()];
            (0..from.rank()).for_each(|axis| out[usize::from(order[axis])] = coords[axis].clone());
            out
        }
        View::Expand => broadcast(coords, from),
        View::Strided { start, step } => {
            coords.iter().enumerate().map(|(axis, c)| c.times(step[axis]).shift(start[axis])).collect()
        }
        View::Pad { before, .. } => {
            let out: Vec<Index> = coords.iter().enumerate().map(|(axis, c)| c.clone().shift(-before[axis])).collect();
            for (axis, index) in out.iter().enumerate() {
                conditions.extend(condition(index, from[axis], extents));
            }
            out.into_iter().enumerate().map(|(axis, index)| only(index, from[axis])).collect()
        }
        View::Windows { axes, strides } => {
            let mut out: Vec<Index> = coords[..from.rank()].to_vec();
            for (place, (&axis, &stride)) in axes.iter().zip(strides).enumerate() {
                let axis = usize::from(axis);
                out[axis] = coords[axis].times(stride as i64).plus(&coords[from.rank() + place], 1);
            }
            out
        }
    };
    Viewed { coords, conditions, split }
}

/// A coordinate where its conditions hold: along an axis of one element there is but one. (A reshape of it would divide.)
pub(super) fn only(index: Index, dim: usize) -> Index {
    if dim == 1 { Index::default() } else { index }
}

/// `0 <= index < dim`, unless that always holds.
pub(super) fn condition(index: &Index, dim: usize, extents: &[usize]) -> Option<Condition> {
    let (low, high) = index.bounds(extents);
    let always = low >= 0 && high < dim as i64;
    (!always).then(|| Condition { index: index.clone(), below: dim as i64 })
}
