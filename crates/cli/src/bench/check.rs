//! Results before times: what two devices computed enters, what is wrong leaves.

/// Results may differ by this share of the largest value of their array: GPUs add in another order and round otherwise.
/// A wrong result (a loop cut short, memory not written) is off by far more.
const TOLERANCE: f64 = 1e-3;

/// How a device's results differ from those that they are compared with, in words.
pub fn difference(found: &[Vec<f64>], expected: &[Vec<f64>]) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} results where there are {}", found.len(), expected.len()));
    }
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found.len() != expected.len() {
            return Some(format!("result {number} has {} elements and not {}", found.len(), expected.len()));
        }
        let scale = expected.iter().filter(|value| value.is_finite()).fold(0.0f64, |most, value| most.max(value.abs()));
        let is_same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * scale;
        let mut wrong = found.iter().zip(expected).enumerate().filter(|(_, (a, b))| !is_same(**a, **b));
        if let Some((at, (found, expected))) = wrong.next() {
            let more = wrong.count();
            let others = if more > 0 { format!(", as are {more} others") } else { String::new() };
            return Some(format!("element {at} of result {number} is {found} and not {expected}{others}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_allowed_and_nothing_else() {
        let expected = vec![vec![1.0, 1000.0, f64::NAN]];
        assert_eq!(difference(&[vec![1.5, 1000.2, f64::NAN]], &expected), None);
        let wrong = difference(&[vec![3.0, 0.0, f64::NAN]], &expected).unwrap();
        assert_eq!(wrong, "element 0 of result 0 is 3 and not 1, as are 1 others");
        assert!(difference(&[vec![1.0, 1000.0, 1.0]], &expected).is_some(), "NaN is a result, too");
        assert!(difference(&[vec![1.0]], &expected).unwrap().contains("1 elements and not 3"));
        assert!(difference(&[], &expected).is_some());
    }
}
