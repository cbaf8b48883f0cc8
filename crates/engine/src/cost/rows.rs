//! What is measured over rows: sizes with rows of some lengths enter, the time of any size with rows of any length leaves.
//!
//! Rows that are whole vectors are another matter than all others, whose ends and beginnings are dear: on software Vulkan
//! 107,000 elements are scanned in 200 us by rows of 1,024, and in 400 to 690 us by rows of 1,063.

use super::curve::{Curve, Family};
use serde::{Deserialize, Serialize};

/// Times over sizes for several lengths of rows, of those that are whole vectors and of the others.
///
/// ```
/// use breakeven::cost::{Curve, Rows};
/// let mut rows = Rows::new(4);
/// *rows.curve(64) = Curve::new(vec![(1e6, 1e6)]);
/// *rows.curve(67) = Curve::new(vec![(1e6, 2e6)]);
/// assert_eq!((rows.at(128.0, 1e6), rows.at(129.0, 1e6)), (Some(1e6), Some(2e6)));
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Elements of a vector.
    lanes: usize,
    whole: Family,
    others: Family,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows::new(1)
    }
}

impl Rows {
    /// Nothing measured yet, on a device with so many elements in a vector.
    pub fn new(lanes: usize) -> Rows {
        Rows { lanes, whole: Family::default(), others: Family::default() }
    }

    /// The curve of rows of this length, made if it is not there.
    pub fn curve(&mut self, row: usize) -> &mut Curve {
        let family = if row.is_multiple_of(self.lanes) { &mut self.whole } else { &mut self.others };
        family.curve(row as f64)
    }

    /// The time of a size with rows of this length; `None` if nothing was measured. Where one kind of rows was not
    /// measured, they are as the others.
    pub fn at(&self, row: f64, size: f64) -> Option<f64> {
        let is_whole = row % self.lanes as f64 == 0.0;
        let (first, second) = if is_whole { (&self.whole, &self.others) } else { (&self.others, &self.whole) };
        first.at(row, size).or_else(|| second.at(row, size))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.others.is_empty()
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        [&mut self.whole, &mut self.others].into_iter().for_each(|family| family.scale(factor));
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.lanes > 0 && self.whole.is_sound() && self.others.is_sound()
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
