//! The lanes of a tile as runs: a range of lanes enters, stretches leave along which an index is a line and conditions hold on
//! one interval.

use crate::place::{Bound, Place};
use std::ops::Range;

/// A range of lanes: `first..first + n` over the lane variables, at a point that fixes all others.
pub(crate) struct Lanes<'a> {
    /// The value of every variable; those of the lanes are moved while walking.
    pub(crate) point: &'a mut [usize],
    /// The extents of the lane variables, which are the last of the point.
    pub(crate) extents: &'a [usize],
    pub(crate) first: usize,
    pub(crate) n: usize,
}

/// A run: lanes of the tile, starting at the point and going along one of its variables.
pub(super) struct Run {
    /// The first lane's number within the tile.
    pub(super) at: usize,
    pub(super) len: usize,
    /// From one lane to the next.
    pub(super) step: usize,
    /// The variable.
    pub(super) var: usize,
}

impl Run {
    /// Sets those of its lanes to the value for each.
    ///
    /// # Safety
    /// `dst` holds the tile.
    #[inline(always)]
    pub(super) unsafe fn set(&self, dst: *mut u32, of: Range<usize>, mut value: impl FnMut(usize) -> u32) {
        // SAFETY: the run's lanes are inside the tile.
        unsafe {
            let first = dst.add(self.at);
            if self.step == 1 {
                let lanes = std::slice::from_raw_parts_mut(first.add(of.start), of.len());
                lanes.iter_mut().zip(of).for_each(|(lane, k)| *lane = value(k));
            } else {
                of.for_each(|k| first.add(k * self.step).write(value(k)));
            }
        }
    }
}

/// A last lane variable below this makes runs of it cost more than lanes that lie apart: joining two arrays of 10^6 elements
/// along a new last axis took 220 ms by runs of two.
const SHORT_LINE: usize = 16;

impl Lanes<'_> {
    /// Calls `run(point, lanes)` for stretches along the last lane variable, or the one before it if that is short.
    pub(super) fn lines(&mut self, run: impl FnMut(&[usize], Run)) {
        match *self.extents {
            [.., before, last] if last < SHORT_LINE && before > last => self.across(run),
            _ => self.runs(run),
        }
    }

    /// Calls `run(point, lanes)` for stretches along the last lane variable but one.
    fn across(&mut self, mut run: impl FnMut(&[usize], Run)) {
        let [rest @ .., before, last] = self.extents else { return };
        let base = self.point.len() - self.extents.len();
        let var = self.point.len() - 2;
        for value in 0..*last {
            // The first lane of the tile in which the last variable has this value.
            let mut at = (value + last - self.first % last) % last;
            let mut left = self.n.saturating_sub(at).div_ceil(*last);
            let mut prefix = (self.first + at) / last;
            self.point[var + 1] = value;
            while left > 0 {
                let along = prefix % before;
                let mut outer = prefix / before;
                for (axis, extent) in rest.iter().enumerate().rev() {
                    self.point[base + axis] = outer % extent;
                    outer /= extent;
                }
                self.point[var] = along;
                let len = (before - along).min(left);
                run(self.point, Run { at, len, step: *last, var });
                (at, prefix, left) = (at + len * last, prefix + len, left - len);
            }
        }
        self.point[base..].fill(0);
    }

    /// Calls `run(point, lanes)` for each stretch along the last lane variable.
    pub(super) fn runs(&mut self, mut run: impl FnMut(&[usize], Run)) {
        let Some((&last, rest)) = self.extents.split_last() else {
            // No lane variable: one lane, or the same one repeated.
            (0..self.n).for_each(|at| run(self.point, Run { at, len: 1, step: 1, var: usize::MAX }));
            return;
        };
        if self.n == 0 {
            return;
        }
        let base = self.point.len() - self.extents.len();
        let last_var = self.point.len() - 1;
        let mut along = self.first % last;
        let mut prefix = self.first / last;
        for (axis, &extent) in rest.iter().enumerate().rev() {
            self.point[base + axis] = prefix % extent;
            prefix /= extent;
        }
        let mut at = 0;
        loop {
            self.point[last_var] = along;
            let len = (last - along).min(self.n - at);
            run(self.point, Run { at, len, step: 1, var: last_var });
            at += len;
            if at >= self.n {
                break;
            }
            // The next line: one further along the last but one variable, and so on. Dividing takes longer than a short line.
            along = 0;
            for (axis, &extent) in rest.iter().enumerate().rev() {
                let value = &mut self.point[base + axis];
                *value += 1;
                if *value < extent {
                    break;
                }
                *value = 0;
            }
        }
        self.point[base..].fill(0);
    }
}

/// A place along a run: start and stride, or element by element.
pub(super) enum Line<'a> {
    Affine { start: i64, stride: i64 },
    General(&'a Place),
}

impl Place {
    pub(super) fn line(&self, point: &[usize], var: usize) -> Line<'_> {
        match self.general {
            None => Line::Affine { start: self.at(point), stride: self.coefficients.get(var).copied().unwrap_or(0) },
            Some(_) => Line::General(self),
        }
    }
}

/// The interval of `0..len` in which all affine bounds hold; bounds with divisions are left to the caller.
pub(super) fn inside(bounds: &[Bound], point: &[usize], run: &Run) -> Range<usize> {
    let (mut low, mut high) = (0i64, run.len as i64);
    for bound in bounds {
        let Line::Affine { start, stride } = bound.place.line(point, run.var) else { continue };
        // 0 <= start + stride * k < below
        match stride {
            0 if start >= 0 && start < bound.below => {}
            0 => return 0..0,
            // By far the most common one, and four divisions take as long as a short row.
            1 => (low, high) = (low.max(-start), high.min(bound.below - start)),
            s if s > 0 => {
                low = low.max((-start).div_euclid(s) + i64::from((-start).rem_euclid(s) != 0));
                let reach = bound.below - start;
                high = high.min(reach.div_euclid(s) + i64::from(reach.rem_euclid(s) != 0));
            }
            s => {
                let s = -s;
                // start - s k < below  <=>  k > (start - below) / s;  start - s k >= 0  <=>  k <= start / s
                low = low.max((start - bound.below).div_euclid(s) + 1);
                high = high.min(start.div_euclid(s) + 1);
            }
        }
    }
    if low >= high { 0..0 } else { low as usize..high as usize }
}

/// Do the bounds with divisions hold at this point?
pub(super) fn general_bounds_hold(bounds: &[Bound], point: &[usize]) -> bool {
    bounds.iter().filter(|b| b.place.general.is_some()).all(|b| (0..b.below).contains(&b.place.at(point)))
}
