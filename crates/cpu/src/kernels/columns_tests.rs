//! The kernels of columns are vector code: none takes many times as long as the plainest of them.

use super::{col_fold_at, col_prod_at, col_sum_at, col_sum_rows_at};
use crate::kernels::reduce::MaxF;
use crate::kernels::scan::ScanFns;
use crate::level::Level;
use breakeven_ir::{DType, ScanOp};
use std::time::{Duration, Instant};

/// Lanes of a tile.
const LANES: usize = 1024;
/// Times that a kernel runs in one sample.
const RUNS: usize = 200;

/// Folds lanes into these accumulators.
type Kernel<'a> = Box<dyn FnMut(*mut u64) + 'a>;

/// As scatters these were 10 to 19 times as slow as a maximum; f64 accumulators alone take twice as long.
#[test]
fn columns_with_wide_accumulators_are_vector_code() {
    let level = Level::detect();
    let src = vec![1.000_1f32.to_bits(); 4 * LANES];
    let mut dst = vec![0u32; LANES];
    let (fold, sum, prod, rows) =
        (col_fold_at::<MaxF>(level), col_sum_at(level), col_prod_at(level), col_sum_rows_at(level));
    let scan = |op, dtype| ScanFns::new(op, dtype, level);
    let (sums, products, maxima) =
        (scan(ScanOp::Sum, DType::F32), scan(ScanOp::Prod, DType::F32), scan(ScanOp::Max, DType::U32));
    let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
    // SAFETY: all of them read and write `LANES` lanes and accumulators, the rows four times as many lanes.
    let mut kernels: [(&str, Kernel<'_>); 8] = unsafe {
        [
            ("maximum", Box::new(|acc| fold(from, LANES, acc, 0))),
            ("sum", Box::new(|acc| sum(from, LANES, acc, 0))),
            ("product", Box::new(|acc| prod(from, LANES, acc, 0))),
            ("sum of four rows", Box::new(|acc| rows(from, LANES as isize, 4, LANES, acc))),
            ("running sum", Box::new(|acc| sums.col(from, to, LANES, acc))),
            ("running product", Box::new(|acc| products.col(from, to, LANES, acc))),
            ("running maximum", Box::new(|acc| maxima.col(from, to, LANES, acc))),
            ("running maximum in place", Box::new(|acc| maxima.col(to, to, LANES, acc))),
        ]
    };
    let mut best = [Duration::MAX; 8];
    for _ in 0..50 {
        for ((_, kernel), best) in kernels.iter_mut().zip(&mut best) {
            let mut acc = vec![0u64; LANES];
            let begun = Instant::now();
            (0..RUNS).for_each(|_| kernel(acc.as_mut_ptr()));
            *best = begun.elapsed().min(*best);
        }
    }
    for ((name, _), time) in kernels.iter().zip(best) {
        let ratio = time.as_secs_f64() / best[0].as_secs_f64();
        assert!(ratio < 6.0, "{name} takes {ratio:.1} times as long as a maximum");
    }
}
