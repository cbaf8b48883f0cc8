//! Outputs larger than the caches, which are written past them or not, whichever turns out faster: the results of the first runs, which
//! try both, are the same and right wherever the caller's memory begins, and nothing around them is written.

use breakeven::{Config, DType, Engine, Tensor, View};

/// Rows and lanes of outputs of more than 8 MB, whose rows begin in the middle of a cache line.
const ROWS: usize = 2_050;
const LANES: usize = 1_027;
const COUNT: usize = ROWS * LANES;

#[test]
fn results_are_the_same_wherever_they_begin() {
    let value = |i: usize| (i % 1013) as f32 * 0.25 - 120.0;
    let data: Vec<f32> = (0..COUNT + 16).map(value).collect();
    let row: Vec<f32> = (0..LANES).map(|i| i as f32).collect();
    let column: Vec<f32> = (0..ROWS).map(|i| i as f32 * 0.5).collect();
    let [x, y] = ["x", "y"].map(|name| Tensor::input(name, DType::F32, [ROWS, LANES]).unwrap());
    let [v, w] =
        [("v", [1, LANES]), ("w", [ROWS, 1])].map(|(name, dims)| Tensor::input(name, DType::F32, dims).unwrap());
    type Expected<'a> = Box<dyn Fn(usize, f32, f32) -> f32 + 'a>;
    let cases: [(&str, Tensor, Expected<'_>); 6] = [
        ("relu", x.relu().unwrap(), Box::new(|_, x, _| x.max(0.0))),
        ("add", (&x + &y).unwrap(), Box::new(|_, x, y| x + y)),
        ("scaled", (&x * 2.5).unwrap(), Box::new(|_, x, _| x * 2.5)),
        ("added to rows", (&x + &v).unwrap(), Box::new(|i, x, _| x + row[i % LANES])),
        ("added to columns", (&x + &w).unwrap(), Box::new(|i, x, _| x + column[i / LANES])),
        ("two steps", (x.relu().unwrap() - &y).unwrap(), Box::new(|_, x, y| x.max(0.0) - y)),
    ];
    for threads in [1, 2] {
        let engine = Engine::with_config(Config { threads: Some(threads), ..Config::default() }).unwrap();
        for (name, tensor, expected) in &cases {
            let program = engine.compile(&[&x, &y, &v, &w], &[tensor]).unwrap();
            for run in 0..10 {
                // Every place in a line, of what is read and of what is written.
                let (from, to) = (run * 5 % 16, run * 3 % 16);
                let (xs, ys) = (&data[from..from + COUNT], &data[16 - from..][..COUNT]);
                let mut out = vec![f32::NAN; COUNT + 32];
                let views: [View<'_>; 4] = [xs.into(), ys.into(), row.as_slice().into(), column.as_slice().into()];
                program.run_into(&views, &mut [(&mut out[to..to + COUNT]).into()]).unwrap();
                let right = (0..COUNT).all(|i| out[to + i] == expected(i, xs[i], ys[i]));
                assert!(right, "{name} with {threads} threads from {from} to {to}");
                let around = out[..to].iter().chain(&out[to + COUNT..]);
                assert!(around.clone().all(|x| x.is_nan()), "{name} from {from} to {to}: nothing around it");
            }
        }
    }
}
