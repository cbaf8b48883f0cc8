//! How large things are that a scan measures: `64k` enters, 64,000 leaves.

use breakeven_report::words;

/// Elements that are measured by default, as powers of two: a quarter of a page to more than any cache holds.
const FULL: [u32; 9] = [8, 10, 12, 14, 16, 18, 20, 22, 24];
/// As [`FULL`], for those in a hurry.
const QUICK: [u32; 6] = [10, 14, 16, 18, 20, 22];
/// An array of more elements takes over a GiB.
const MOST: u64 = 1 << 28;

/// The sizes that are measured if none are asked for, in elements.
pub fn usual(quick: bool) -> Vec<u64> {
    let logs: &[u32] = if quick { &QUICK } else { &FULL };
    logs.iter().map(|log| 1 << log).collect()
}

/// A number of elements: `10`, `64k`, `1.5M`; `64Ki` is 65,536.
pub fn parse(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a number of elements from 1 to {MOST}, such as 10, 64k, 1M or 64Ki");
    words::parse_size(text).filter(|size| *size <= MOST).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [("1", 1), ("10", 10), ("64k", 64_000), ("64K", 64_000), ("1M", 1_000_000), ("1.5M", 1_500_000)];
        for (text, size) in sizes.into_iter().chain([("64Ki", 65_536), ("1Mi", 1 << 20), ("268435456", 1 << 28)]) {
            assert_eq!(parse(text), Ok(size), "{text}");
        }
        let bad =
            ["", "0", "k", "-1", "+1", "1.5", "0.1k1", "1e3", "inf", "nan", "10x", "10i", "1 k", "1kk", "1G", "."];
        for text in bad {
            assert!(parse(text).is_err_and(|message| message.contains("such as 10, 64k, 1M")), "{text}");
        }
    }

    #[test]
    fn usual_sizes_go_up() {
        for quick in [true, false] {
            let sizes = usual(quick);
            assert!(sizes.is_sorted() && sizes.iter().all(|size| *size <= MOST), "{sizes:?}");
        }
    }
}
