//! A measured cost: sizes with their times enter, the time of any size leaves.
//!
//! Between two sizes the time is interpolated on logarithmic axes, where fixed cost, cache levels and bandwidth are
//! nearly straight lines. Outside of what was measured it is in proportion to the size.

use serde::{Deserialize, Serialize};

/// Times over sizes.
///
/// ```
/// use breakeven::cost::Curve;
/// let curve = Curve::new(vec![(1e3, 1e3), (1e5, 1e5)]);
/// assert!((curve.at(1e4).unwrap() - 1e4).abs() < 1.0);
/// assert_eq!(curve.at(1e6), Some(1e6));   // in proportion beyond what was measured
/// assert_eq!(Curve::default().at(1.0), None);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve {
    /// (size, nanoseconds), ascending.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve through these (size, nanoseconds) points. Points that are no positive numbers are left out; of several
    /// times for one size the last counts.
    pub fn new(points: Vec<(f64, f64)>) -> Curve {
        let mut curve = Curve::default();
        points.into_iter().for_each(|(size, ns)| curve.put(size, ns));
        curve
    }

    /// Adds a point, or changes it.
    pub fn put(&mut self, size: f64, ns: f64) {
        if !(size > 0.0 && ns > 0.0 && size.is_finite() && ns.is_finite()) {
            return;
        }
        match self.points.binary_search_by(|(other, _)| other.total_cmp(&size)) {
            Ok(at) => self.points[at].1 = ns,
            Err(at) => self.points.insert(at, (size, ns)),
        }
    }

    /// The measured points, by size.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Was nothing measured?
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The time of a size; `None` if nothing was measured.
    pub fn at(&self, size: f64) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        if size <= first.0 {
            return Some(first.1 * size / first.0);
        }
        if size >= last.0 {
            return Some(last.1 * size / last.0);
        }
        let above = self.points.partition_point(|(other, _)| *other < size);
        let (low, high) = (self.points[above - 1], self.points[above]);
        let share = (size / low.0).ln() / (high.0 / low.0).ln();
        Some((low.1.ln() + share * (high.1 / low.1).ln()).exp())
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.points.iter_mut().for_each(|(_, ns)| *ns *= factor);
    }

    /// As [`Curve::at`], but outside of what was measured it is as at the nearest end.
    pub(crate) fn near(&self, size: f64) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        self.at(size.clamp(first.0, last.0))
    }

    /// As it was read from a file: ascending sizes and positive numbers.
    pub(crate) fn is_sound(&self) -> bool {
        self.points.iter().all(|(size, ns)| can_be(*size) && can_be(*ns))
            && self.points.windows(2).all(|pair| pair[0].0 < pair[1].0)
    }
}

/// Sizes and times beyond this, an exabyte or thirty years, are nobody's; products of several would not be finite.
pub(crate) const LARGEST: f64 = 1e18;

fn can_be(number: f64) -> bool {
    number > 0.0 && number <= LARGEST
}

/// Curves over size for several values of something else, such as the length of a row: interpolated between both.
///
/// ```
/// use breakeven::cost::{Curve, Family};
/// let mut rows = Family::default();
/// *rows.curve(10.0) = Curve::new(vec![(1e6, 4e6)]);
/// *rows.curve(1000.0) = Curve::new(vec![(1e6, 1e6)]);
/// assert!((rows.at(100.0, 1e6).unwrap() - 2e6).abs() < 1.0);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Family {
    /// By the other value, ascending.
    curves: Vec<(f64, Curve)>,
}

impl Family {
    /// The curve at exactly this value, made if it is not there.
    pub fn curve(&mut self, value: f64) -> &mut Curve {
        let at = match self.curves.binary_search_by(|(other, _)| other.total_cmp(&value)) {
            Ok(at) => at,
            Err(at) => {
                self.curves.insert(at, (value, Curve::default()));
                at
            }
        };
        &mut self.curves[at].1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.curves.iter().all(|(_, curve)| curve.is_empty())
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.curves.iter_mut().for_each(|(_, curve)| curve.scale(factor));
    }

    /// The time of a size at a value; `None` if nothing was measured.
    pub fn at(&self, value: f64, size: f64) -> Option<f64> {
        if size <= 0.0 {
            // Nothing has no logarithm.
            return (!self.is_empty()).then_some(0.0);
        }
        let above = self.curves.partition_point(|(other, _)| *other < value);
        // A measurement that failed leaves a value without a curve: the next one that has one counts.
        let ns = |(value, curve): &(f64, Curve)| Some((*value, curve.at(size)?));
        let (below, above) = self.curves.split_at(above);
        match (below.iter().rev().find_map(ns), above.iter().find_map(ns)) {
            (Some((low, low_ns)), Some((high, high_ns))) => {
                let share = (value / low).ln() / (high / low).ln();
                Some((low_ns.ln() + share * (high_ns / low_ns).ln()).exp())
            }
            (Some((_, ns)), None) | (None, Some((_, ns))) => Some(ns),
            (None, None) => None,
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.curves.iter().all(|(value, curve)| can_be(*value) && curve.is_sound())
            && self.curves.windows(2).all(|pair| pair[0].0 < pair[1].0)
    }
}

#[cfg(test)]
#[path = "curve_tests.rs"]
mod tests;
