//! What a row's result must be: inputs enter, expected values in f64 leave, and a result is judged against them.
//!
//! Written apart from every library and run once a row, because a fast wrong answer must not become the bar. Large
//! results are judged at evenly spaced places (whole rows for matrix products), so that the reference of a
//! 2048 x 2048 product costs milliseconds and an uncomputed block is still seen.

use crate::workload::{Array, CHAIN, Kind, LAYER_NORM_EPSILON, MLP_WIDTHS, ROW_COLS, ROWS, SMALL_SIDE, Spec};

/// Elements that are judged at most in an elementwise result.
const MAX_PLACES: usize = 1_000_000;
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
        let x = inputs[0].data.as_slice();
        let n = spec.n;
        match spec.kind {
            Kind::Add => {
                let y = &inputs[1].data;
                elementwise(x, 1e-6, |i, v| {
                    let sum = v + f64::from(y[i]);
                    (sum, sum.abs().max(1.0))
                })
            }
            Kind::Relu | Kind::Relu256Batched | Kind::Relu256Loop => {
                elementwise(x, 1e-6, |_, v| (v.max(0.0), v.abs().max(1e-6)))
            }
            Kind::Sigmoid => elementwise(x, 1e-4, |_, v| (sigmoid(v), sigmoid(v))),
            // Far left gelu is the difference of nearly equal numbers: judged against 0.1 there.
            Kind::Gelu => elementwise(x, 1e-4, |_, v| (gelu(v), gelu(v).abs().max(0.1))),
            Kind::Chain => elementwise(x, 1e-5, |_, v| chain(v)),
            Kind::Dot => {
                let products = || x.iter().zip(&inputs[1].data).map(|(&a, &b)| f64::from(a) * f64::from(b));
                total(products().sum(), products().map(f64::abs).sum())
            }
            Kind::Sum => {
                let terms = || x.iter().map(|&v| f64::from(v));
                total(terms().sum(), terms().map(f64::abs).sum())
            }
            Kind::Softmax => {
                let max = f64::from(x.iter().fold(f32::NEG_INFINITY, |max, &v| max.max(v)));
                let sum: f64 = x.iter().map(|&v| (f64::from(v) - max).exp()).sum();
                // As loose as plain f32 sums of 10^6 terms need; those of 10^7 that are off by a percent are void.
                elementwise(x, 5e-3, |_, v| ((v - max).exp() / sum, (v - max).exp() / sum))
            }
            Kind::RowSoftmax => softmax_rows(x, ROW_COLS),
            Kind::LayerNorm => layer_norm_rows(x, &inputs[1].data, &inputs[2].data),
            Kind::SumAxis0 => {
                let mut sums = vec![(0.0, 0.0); ROWS];
                for row in x.chunks_exact(ROWS) {
                    for (sum, &v) in sums.iter_mut().zip(row) {
                        *sum = (sum.0 + f64::from(v), sum.1 + f64::from(v.abs()));
                    }
                }
                all(&sums, 1e-4)
            }
            Kind::SumAxis1 => {
                let sum = |row: &[f32]| {
                    row.iter().fold((0.0, 0.0), |sum, &v| (sum.0 + f64::from(v), sum.1 + f64::from(v.abs())))
                };
                all(&x.chunks_exact(ROWS).map(sum).collect::<Vec<_>>(), 1e-4)
            }
            Kind::Matmul => {
                let mut expected = Expected { len: n * n, places: Vec::new(), tolerance: 1e-4 };
                for row in spread(n, MAX_PRODUCT_ROWS) {
                    let lhs: Vec<f64> = x[row * n..][..n].iter().map(|&v| v.into()).collect();
                    expected.push_row(row * n, &row_times_matrix(&lhs, &inputs[1].data, n));
                }
                expected
            }
            Kind::Mm32Batched | Kind::Mm32Loop => {
                let mut expected = Expected { len: x.len(), places: Vec::new(), tolerance: 1e-4 };
                for (row, lhs) in x.chunks_exact(SMALL_SIDE).enumerate() {
                    let lhs: Vec<f64> = lhs.iter().map(|&v| v.into()).collect();
                    let task = row / SMALL_SIDE * SMALL_SIDE * SMALL_SIDE;
                    let rhs = &inputs[1].data[task..][..SMALL_SIDE * SMALL_SIDE];
                    expected.push_row(row * SMALL_SIDE, &row_times_matrix(&lhs, rhs, SMALL_SIDE));
                }
                expected
            }
            Kind::Mlp => mlp(n, inputs),
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

    fn push_row(&mut self, start: usize, row: &[(f64, f64)]) {
        let place = |(i, &(value, magnitude))| Place { index: start + i, value, magnitude };
        self.places.extend(row.iter().enumerate().map(place));
    }
}

/// At most `most` evenly spaced indices below `len`, the first and the last among them.
fn spread(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = len.min(most);
    (0..count).map(move |i| if count == 1 { 0 } else { i * (len - 1) / (count - 1) })
}

fn elementwise(x: &[f32], tolerance: f64, f: impl Fn(usize, f64) -> (f64, f64)) -> Expected {
    let place = |index| {
        let (value, magnitude) = f(index, f64::from(x[index]));
        Place { index, value, magnitude }
    };
    Expected { len: x.len(), places: spread(x.len(), MAX_PLACES).map(place).collect(), tolerance }
}

/// A single number made of many terms. f32 sums of 10^7 terms lose three digits even where they are done well;
/// 1e-3 voids what is wrong, not what is merely less exact.
fn total(value: f64, magnitude: f64) -> Expected {
    Expected { len: 1, places: vec![Place { index: 0, value, magnitude }], tolerance: 1e-3 }
}

fn all(values: &[(f64, f64)], tolerance: f64) -> Expected {
    let mut expected = Expected { len: values.len(), places: Vec::new(), tolerance };
    expected.push_row(0, values);
    expected
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

fn gelu(v: f64) -> f64 {
    0.5 * v * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (v + 0.044715 * v * v * v)).tanh())
}

/// The chain and the magnitude of its error: the square root magnifies the error of what goes into it where that is
/// nearly zero, whoever computes it.
fn chain(v: f64) -> (f64, f64) {
    let (a, b, c) = (f64::from(CHAIN.0), f64::from(CHAIN.1), f64::from(CHAIN.2));
    let root = ((v * a + b) * sigmoid(v) - c).abs().sqrt();
    let value = gelu(root + v);
    (value, 1.0 + value.abs() + 1.0 / root.max(1e-2))
}

fn softmax_row(row: &[f64]) -> Vec<(f64, f64)> {
    let max = row.iter().fold(f64::NEG_INFINITY, |max, &v| max.max(v));
    let sum: f64 = row.iter().map(|&v| (v - max).exp()).sum();
    row.iter().map(|&v| ((v - max).exp() / sum, (v - max).exp() / sum)).collect()
}

fn softmax_rows(x: &[f32], cols: usize) -> Expected {
    let mut expected = Expected { len: x.len(), places: Vec::new(), tolerance: 1e-3 };
    for row in spread(x.len() / cols, MAX_PLACES / cols) {
        let values: Vec<f64> = x[row * cols..][..cols].iter().map(|&v| v.into()).collect();
        expected.push_row(row * cols, &softmax_row(&values));
    }
    expected
}

fn layer_norm_rows(x: &[f32], gain: &[f32], offset: &[f32]) -> Expected {
    let mut expected = Expected { len: x.len(), places: Vec::new(), tolerance: 1e-4 };
    for (row, values) in x.chunks_exact(ROW_COLS).enumerate() {
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / ROW_COLS as f64;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / ROW_COLS as f64;
        let scale = 1.0 / (variance + f64::from(LAYER_NORM_EPSILON)).sqrt();
        let norm = |(i, &v): (usize, &f32)| {
            let value = (f64::from(v) - mean) * scale * f64::from(gain[i]) + f64::from(offset[i]);
            (value, value.abs().max(1.0))
        };
        expected.push_row(row * ROW_COLS, &values.iter().enumerate().map(norm).collect::<Vec<_>>());
    }
    expected
}

/// One row of a product, with the sum of its terms' magnitudes as the size that errors are measured against.
fn row_times_matrix(lhs: &[f64], rhs: &[f32], cols: usize) -> Vec<(f64, f64)> {
    let mut out = vec![(0.0, 0.0); cols];
    for (&a, row) in lhs.iter().zip(rhs.chunks_exact(cols)) {
        for (sum, &b) in out.iter_mut().zip(row) {
            let term = a * f64::from(b);
            *sum = (sum.0 + term, sum.1 + term.abs());
        }
    }
    out
}

fn mlp(batch: usize, inputs: &[Array]) -> Expected {
    let (width, classes) = (MLP_WIDTHS[0], MLP_WIDTHS[3]);
    let mut expected = Expected { len: batch * classes, places: Vec::new(), tolerance: 1e-3 };
    for row in spread(batch, MAX_PRODUCT_ROWS) {
        let mut values: Vec<f64> = inputs[0].data[row * width..][..width].iter().map(|&v| v.into()).collect();
        for (layer, weights) in inputs[1..].chunks_exact(2).enumerate() {
            let product = row_times_matrix(&values, &weights[0].data, MLP_WIDTHS[layer + 1]);
            let biased = product.iter().zip(&weights[1].data).map(|(&(sum, _), &bias)| sum + f64::from(bias));
            values = if layer < 2 { biased.map(|v| v.max(0.0)).collect() } else { biased.collect() };
        }
        expected.push_row(row * classes, &softmax_row(&values));
    }
    expected
}
