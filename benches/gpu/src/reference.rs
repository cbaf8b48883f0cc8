//! What a row's result must be: inputs enter, expected values in f64 leave, and a result is judged against them.
//!
//! Written apart from every library and run once a row, because a fast wrong answer must not become the bar. On Mesa
//! 22.3.6 that is no theory: a driver that stops loops early makes some peers' sums wrong.

use crate::workload::{Array, Kind, Spec};

/// Rows that are judged at most in a matrix product.
const MAX_PRODUCT_ROWS: usize = 32;

/// One place of the result: where, what, and the size that an error is measured against.
struct Place {
    index: usize,
    value: f64,
    magnitude: f64,
}

/// The expected result of a row.
pub struct Expected {
    len: usize,
    places: Vec<Place>,
    tolerance: f64,
}

impl Expected {
    /// Computes the reference in f64.
    pub fn of(spec: Spec, inputs: &[Array]) -> Expected {
        let x: Vec<f64> = inputs[0].data.iter().map(|&v| v.into()).collect();
        let y: Vec<f64> = inputs.get(1).map_or(&[][..], |y| &y.data).iter().map(|&v| v.into()).collect();
        let n = spec.n;
        match spec.kind {
            Kind::Add => all(x.iter().zip(&y).map(|(a, b)| (a + b, 1.0)), 1e-6),
            Kind::Relu | Kind::Tasks | Kind::Many => all(x.iter().map(|v| (v.max(0.0), 1.0)), 1e-6),
            Kind::Chain => all(x.iter().map(|&v| (chain(v), 1.0 + chain(v).abs())), 1e-4),
            Kind::Dot => total(x.iter().zip(&y).map(|(a, b)| a * b)),
            Kind::Sum => total(x.iter().copied()),
            Kind::Softmax => all(softmax(&x).into_iter(), 1e-4),
            Kind::RowSoftmax => all(x.chunks_exact(n).flat_map(softmax), 1e-4),
            Kind::Matmul => {
                let mut expected = Expected { len: n * n, places: Vec::new(), tolerance: 1e-4 };
                let rows = n.min(MAX_PRODUCT_ROWS);
                for row in (0..rows).map(|i| i * (n - 1) / (rows - 1)) {
                    for column in 0..n {
                        let terms = || (0..n).map(|k| x[row * n + k] * y[k * n + column]);
                        let (value, magnitude) = (terms().sum(), terms().map(f64::abs).sum());
                        expected.places.push(Place { index: row * n + column, value, magnitude });
                    }
                }
                expected
            }
        }
    }

    /// The largest error relative to its place's magnitude; `Err` says what is wrong.
    pub fn judge(&self, result: &[f32]) -> Result<f64, String> {
        if result.len() != self.len {
            return Err(format!("{} elements instead of {}", result.len(), self.len));
        }
        let mut worst = 0.0f64;
        for place in &self.places {
            let got = f64::from(result[place.index]);
            let error = (got - place.value).abs() / place.magnitude;
            if error > self.tolerance || error.is_nan() {
                return Err(format!("element {} is {got:e} instead of {:e}", place.index, place.value));
            }
            worst = worst.max(error);
        }
        Ok(worst)
    }
}

/// The chain of twenty elementwise operations. The root and the division stay away from zero, so that whoever
/// computes it in f32 stays within 1e-4.
pub fn chain(x: f64) -> f64 {
    let gate = 1.0 / (1.0 + (-(x * 1.5 + 0.5)).exp()); // multiply, add, sigmoid
    let root = ((gate * x - 0.25).abs() + 0.1).sqrt(); // multiply, subtract, abs, add, sqrt
    let bent = ((root + x).tanh() * 0.5 + 1.0) * x; // add, tanh, multiply, add, multiply
    let fallen = (-bent.max(0.0)).exp() * 2.0; // relu, negate, exp, multiply
    let third = (fallen - x) / 3.0; // subtract, divide
    third * third // multiply
}

fn all(values: impl Iterator<Item = (f64, f64)>, tolerance: f64) -> Expected {
    let place = |(index, (value, magnitude))| Place { index, value, magnitude };
    let places: Vec<Place> = values.enumerate().map(place).collect();
    Expected { len: places.len(), places, tolerance }
}

/// A single number made of many terms; 1e-4 of their magnitudes voids what is wrong, not what is merely less exact.
fn total(terms: impl Iterator<Item = f64> + Clone) -> Expected {
    let magnitude = terms.clone().map(f64::abs).sum();
    Expected { len: 1, places: vec![Place { index: 0, value: terms.sum(), magnitude }], tolerance: 1e-4 }
}

fn softmax(row: &[f64]) -> Vec<(f64, f64)> {
    let max = row.iter().fold(f64::NEG_INFINITY, |max, &v| max.max(v));
    let sum: f64 = row.iter().map(|&v| (v - max).exp()).sum();
    row.iter().map(|&v| ((v - max).exp() / sum, (v - max).exp() / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_lacks_a_part_is_refused() {
        let spec = Spec { kind: Kind::Sum, n: 1000 };
        let inputs = [Array { shape: vec![1000], data: vec![1.0; 1000] }];
        let expected = Expected::of(spec, &inputs);
        assert!(expected.judge(&[1000.0]).is_ok());
        assert!(expected.judge(&[999.0]).is_err());
        assert!(expected.judge(&[f32::NAN]).is_err());
        assert!(expected.judge(&[]).is_err());
    }
}
