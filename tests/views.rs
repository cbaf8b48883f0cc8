//! Layouts: the same shape reached through every kind of movement, so that kernels meet every kind of index.

use crate::data::{random, rough};
use crate::pair::Pair;
use crate::reference::RefArray;
use breakeven::{DType, Slice, s};

/// The shape of every view.
pub const SHAPE: [usize; 3] = [4, 6, 5];

/// Python's `13:1:-2`.
const BACKWARDS: Slice = Slice { start: Some(13), stop: Some(1), step: -2 };

/// Named views of one dtype, all of [`SHAPE`], each of data of its own that has edges in it.
pub fn views(dtype: DType, seed: u64) -> Vec<(&'static str, Pair)> {
    let mut count = seed * 1_000;
    let mut leaf = |shape: &[usize]| {
        count += 1;
        Pair::leaf(rough(dtype, shape, count))
    };
    let indices = Pair::leaf(RefArray::exact(DType::I32, &[6], vec![3.0, -1.0, 0.0, 2.0, 3.0, -8.0]));
    let made = [
        ("contiguous", Some(leaf(&SHAPE))),
        ("transposed", leaf(&[5, 6, 4]).transpose()),
        ("permuted", leaf(&[6, 5, 4]).permute(&[2, 0, 1])),
        ("flipped", leaf(&SHAPE).flip(&[0, 2])),
        ("sliced", leaf(&[9, 14, 12]).slice(&[s(1..).step(2), BACKWARDS, s(-10..).step(2)])),
        ("offset", leaf(&[5, 7, 6]).slice(&[s(1..), s(..-1), s(1..)])),
        ("broadcast rows", leaf(&[6, 1]).broadcast_to(&SHAPE)),
        ("broadcast columns", leaf(&[4, 1, 5]).broadcast_to(&SHAPE)),
        ("a number", leaf(&[]).broadcast_to(&SHAPE)),
        ("padded", leaf(&[3, 4, 5]).pad(&[(1, 0), (0, 2), (0, 0)], 1.0)),
        ("windows", leaf(&[9, 5]).windows(&[0], &[6], &[1]).and_then(|w| w.swap_axes(1, 2))),
        ("joined", Pair::concat(&[&leaf(&[4, 2, 5]), &leaf(&[4, 4, 5])], 1)),
        ("taken", leaf(&[4, 8, 5]).take(&indices, 1)),
        ("tiled", leaf(&[2, 3, 5]).tile(&[2, 2, 1])),
        ("reshaped", leaf(&[5, 24]).transpose().and_then(|t| t.reshape(&[4, 6, 5]))),
    ];
    made.into_iter().map(|(name, pair)| (name, pair.unwrap_or_else(|| panic!("{name} is a view")))).collect()
}

/// Shapes that are awkward to walk over: none, one, around a vector's width, 0-d to 5-d.
pub const SHAPES: &[&[usize]] = &[
    &[],
    &[1],
    &[0],
    &[7],
    &[8],
    &[9],
    &[31],
    &[1023],
    &[1025],
    &[0, 3],
    &[3, 0, 2],
    &[1, 1],
    &[5, 4],
    &[33, 65],
    &[3, 1025],
    &[1025, 3],
    &[3, 4, 5],
    &[17, 1, 9],
    &[2, 3, 4, 5],
    &[2, 3, 2, 3, 2],
    &[1, 5, 1, 3, 1],
];

/// A leaf of everyday values.
pub fn smooth(dtype: DType, shape: &[usize], seed: u64) -> Pair {
    Pair::leaf(random(dtype, shape, seed))
}

/// A leaf with edges.
pub fn edgy(dtype: DType, shape: &[usize], seed: u64) -> Pair {
    Pair::leaf(rough(dtype, shape, seed))
}
