//! What a result must be: expected values enter, a result is judged against them before it is timed.

/// The expected result of a row.
pub struct Expected {
    values: Vec<f64>,
    tolerance: f64,
}

impl Expected {
    /// These values, with errors up to `tolerance` of their size (of 1 where they are smaller).
    pub fn within(values: Vec<f64>, tolerance: f64) -> Expected {
        Expected { values, tolerance }
    }

    /// These values and no others.
    pub fn exactly(values: &[f32]) -> Expected {
        Expected::within(values.iter().map(|&value| f64::from(value)).collect(), 0.0)
    }

    /// Whether a result is right, or where it is wrong.
    pub fn judge(&self, result: &[f32]) -> Result<(), String> {
        if result.len() != self.values.len() {
            return Err(format!("{} values, expected {}", result.len(), self.values.len()));
        }
        let wrong = result.iter().zip(&self.values).position(|(&found, &expected)| {
            let error = (f64::from(found) - expected).abs();
            error.is_nan() || error > self.tolerance * expected.abs().max(1.0)
        });
        match wrong {
            Some(at) => Err(format!("value {at} is {}, expected {}", result[at], self.values[at])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_missing_and_undefined_values_are_seen() {
        let expected = Expected::within(vec![1.0, 200.0], 1e-3);
        assert_eq!(expected.judge(&[1.0005, 200.1]), Ok(()));
        expected.judge(&[1.0, 201.0]).unwrap_err();
        expected.judge(&[1.0, f32::NAN]).unwrap_err();
        expected.judge(&[1.0]).unwrap_err();
    }
}
