//! What moving bytes takes: a device's measurements of its transfers, as plain values.

/// Where bytes go.
///
/// ```
/// use breakeven_ir::backend::Direction;
/// assert_eq!(Direction::ALL.map(Direction::name), ["upload", "readback"]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Direction {
    /// To the device.
    Upload,
    /// From the device.
    Readback,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Upload, Direction::Readback];

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Upload => "upload",
            Direction::Readback => "readback",
        }
    }
}

/// How bytes get there.
///
/// ```
/// use breakeven_ir::backend::Way;
/// assert_eq!(Way::ALL.map(Way::name), ["pageable", "staged", "mapped"]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Way {
    /// From ordinary host memory; the driver's interface does whatever lies between.
    Pageable,
    /// Through a buffer that the host has mapped, and a copy on the device.
    Staged,
    /// Through the very memory that kernels use, which the host has mapped.
    Mapped,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::Pageable, Way::Staged, Way::Mapped];

    /// Its name everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Pageable => "pageable",
            Way::Staged => "staged",
            Way::Mapped => "mapped",
        }
    }
}

/// Transfers of one size that were timed.
///
/// ```
/// use breakeven_ir::backend::{Direction, Transfer, Way};
/// let samples_ns = vec![900_000, 500_000, 600_000];
/// let transfer = Transfer { direction: Direction::Upload, way: Way::Staged, bytes: 3_000_000, samples_ns };
/// assert_eq!((transfer.median_ns(), transfer.min_ns()), (600_000, 500_000));
/// assert_eq!(transfer.gb_per_s(), 5.0);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Where to.
    pub direction: Direction,
    /// How.
    pub way: Way,
    /// How many bytes each of them moved.
    pub bytes: usize,
    /// What each of them took, in their order.
    pub samples_ns: Vec<u64>,
}

impl Transfer {
    /// The middle sample, of an even number the mean of the middle two; 0 without any.
    pub fn median_ns(&self) -> u64 {
        let mut sorted = self.samples_ns.clone();
        sorted.sort_unstable();
        match sorted.len() {
            0 => 0,
            count => {
                let (low, high) = (sorted[(count - 1) / 2], sorted[count / 2]);
                low + (high - low) / 2
            }
        }
    }

    /// The quickest; 0 without any.
    pub fn min_ns(&self) -> u64 {
        self.samples_ns.iter().copied().min().unwrap_or(0)
    }

    /// Gigabytes a second, by the median: a gigabyte is 10^9 bytes.
    pub fn gb_per_s(&self) -> f64 {
        self.bytes as f64 / self.median_ns().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_need_no_order_and_no_samples() {
        let of = |samples_ns: &[u64]| {
            let samples_ns = samples_ns.to_vec();
            Transfer { direction: Direction::Readback, way: Way::Mapped, bytes: 8, samples_ns }
        };
        assert_eq!([of(&[9, 1]).median_ns(), of(&[3, 9, 1]).median_ns(), of(&[7]).median_ns()], [5, 3, 7]);
        assert_eq!(of(&[u64::MAX, u64::MAX - 2]).median_ns(), u64::MAX - 1);
        assert_eq!((of(&[]).median_ns(), of(&[]).min_ns(), of(&[]).gb_per_s()), (0, 0, 8.0));
    }
}
