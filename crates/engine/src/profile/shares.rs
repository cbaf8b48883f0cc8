//! Shares that add up: times enter, whole numbers leave whose sum is exactly what it should be.

/// `whole` divided in the proportion of these parts, in whole numbers, by the method of the largest remainder: each is
/// rounded down, and what is left over goes to those that lost most. Parts of nothing get nothing.
///
/// ```
/// use breakeven::profile::apportion;
/// assert_eq!(apportion(&[1, 1, 1], 1000), [334, 333, 333]);
/// assert_eq!(apportion(&[0, 0], 1000), [0, 0]);
/// ```
pub fn apportion(parts: &[u64], whole: u64) -> Vec<u64> {
    let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if sum == 0 {
        return vec![0; parts.len()];
    }
    let exact = |part: &u64| u128::from(*part) * u128::from(whole);
    let mut shares: Vec<u64> = parts.iter().map(|part| (exact(part) / sum) as u64).collect();
    let left = whole - shares.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    // The order of equal remainders is that of the list, so that the same parts always give the same shares.
    order.sort_by_key(|at| std::cmp::Reverse(exact(&parts[*at]) % sum));
    for at in order.into_iter().take(left as usize) {
        shares[at] += 1;
    }
    shares
}

/// Thousandths of the whole, which add up to 1000, or to 0 if there is nothing.
pub(super) fn thousandths(parts: &[u64]) -> Vec<u64> {
    apportion(parts, 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_always_add_up(parts in prop::collection::vec(any::<u64>(), 1..40), whole in 0u64..1_000_000) {
            let shares = apportion(&parts, whole);
            let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
            prop_assert_eq!(shares.iter().sum::<u64>(), if sum == 0 { 0 } else { whole });
            for (part, share) in parts.iter().zip(shares) {
                let exact = *part as f64 / (sum as f64).max(1.0) * whole as f64;
                prop_assert!((share as f64 - exact).abs() <= 1.001, "{} of {}", share, exact);
            }
        }
    }
}
