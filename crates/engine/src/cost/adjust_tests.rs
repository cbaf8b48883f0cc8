//! What whole expressions teach: as much as they know, for the kind of kernel that they are about.

use super::super::work::Work;
use super::*;
use breakeven_ir::{DType, Plan, Tensor};

fn kernel(record: impl Fn(&Tensor) -> Tensor, dims: [usize; 2]) -> KernelWork {
    let x = Tensor::input("x", DType::F32, dims).unwrap();
    let work = Work::of(&Plan::new(&[&record(&x)]).unwrap());
    assert_eq!(work.kernels.len(), 1);
    work.kernels.into_iter().next().unwrap()
}

fn softmax(dims: [usize; 2]) -> KernelWork {
    kernel(|x| x.softmax(1).unwrap(), dims)
}

fn sum(dims: [usize; 2]) -> KernelWork {
    kernel(|x| x.sum(&[1], false).unwrap(), dims)
}

fn map(dims: [usize; 2]) -> KernelWork {
    kernel(|x| x.exp().unwrap(), dims)
}

fn product(dims: [usize; 2]) -> KernelWork {
    kernel(|x| x.matmul(&x.transpose().unwrap()).unwrap(), dims)
}

const SIZES: [[usize; 2]; 12] = [
    [3, 100],
    [10, 100],
    [30, 64],
    [100, 16],
    [100, 300],
    [1000, 64],
    [300, 1000],
    [2000, 30],
    [4000, 100],
    [100, 4000],
    [1000, 1000],
    [20, 2000],
];

/// Kernels of all kinds of which those with several passes take `times` as long as predicted.
fn learned(times: f64, sizes: &[[usize; 2]]) -> Adjust {
    let kernels: Vec<(KernelWork, f64)> =
        sizes.iter().flat_map(|&dims| [(softmax(dims), times), (sum(dims), 1.0), (map(dims), 1.0)]).collect();
    let seen = kernels.iter().map(|(kernel, times)| {
        let predicted_ns = 100.0 + kernel.points;
        Seen { kernel, predicted_ns, measured_ns: times * predicted_ns, weight: 1.0 }
    });
    Adjust::learn(&seen.collect::<Vec<_>>())
}

#[test]
fn a_device_that_is_slow_at_several_passes_is_known_for_it() {
    let adjust = learned(2.0, &SIZES);
    for dims in [[50, 70], [500, 500], [3000, 40], [40, 3000]] {
        let factor = adjust.factor(&softmax(dims));
        assert!((factor / 2.0 - 1.0).abs() < 0.1, "{factor} at {dims:?}");
        for other in [sum(dims), map(dims), product(dims)] {
            let factor = adjust.factor(&other);
            assert!((factor - 1.0).abs() < 0.01, "{factor} for a {} at {dims:?}", other.class);
        }
    }
}

#[test]
fn a_factor_may_depend_on_the_size() {
    let kernels: Vec<KernelWork> = SIZES.into_iter().cycle().take(60).map(map).collect();
    // Small ones take twice as long as predicted, large ones half as long, with all between.
    let times = |kernel: &KernelWork| (kernel.points / 17_000.0).powf(-0.17);
    let seen = kernels.iter().map(|kernel| Seen {
        kernel,
        predicted_ns: kernel.points,
        measured_ns: times(kernel) * kernel.points,
        weight: 1.0,
    });
    let adjust = Adjust::learn(&seen.collect::<Vec<_>>());
    for dims in [[10, 50], [100, 100], [1000, 900]] {
        let (found, expected) = (adjust.factor(&map(dims)), times(&map(dims)));
        assert!((found / expected - 1.0).abs() < 0.25, "{found} instead of {expected} at {dims:?}");
    }
    assert!(adjust.factor(&map([10, 50])) > 1.2 * adjust.factor(&map([1000, 900])));
}

#[test]
fn few_samples_are_held_back() {
    assert_eq!(learned(2.0, &[]), Adjust::default());
    let factors: Vec<f64> =
        [1, 2, 4, 12].map(|count| learned(2.0, &SIZES[..count]).factor(&softmax([100, 100]))).to_vec();
    assert!(factors.is_sorted(), "{factors:?}");
    assert!(factors[0] > 1.1 && factors[0] < 1.8, "{factors:?}");
    assert!(factors[3] > 1.85, "{factors:?}");
}

#[test]
fn what_says_little_changes_little() {
    let kernel = softmax([100, 100]);
    let with = |weight| {
        let seen = Seen { kernel: &kernel, predicted_ns: 100.0, measured_ns: 300.0, weight };
        Adjust::learn(&[seen]).factor(&kernel)
    };
    assert!(with(0.05) < 1.15 && with(1.0) > 1.5, "{} {}", with(0.05), with(1.0));
}

#[test]
fn no_factor_is_beyond_bounds() {
    let far = learned(1e6, &SIZES);
    for dims in [[1, 1], [100, 100], [100_000, 100_000]] {
        let factor = far.factor(&softmax(dims));
        assert!((1.0..=MOST).contains(&factor), "{factor} at {dims:?}");
    }
    let kernel = map([10, 10]);
    for measured_ns in [0.0, f64::INFINITY] {
        let adjust = Adjust::learn(&[Seen { kernel: &kernel, predicted_ns: 1.0, measured_ns, weight: 1.0 }]);
        assert!(adjust.is_sound() && (1.0 / MOST..=MOST).contains(&adjust.factor(&kernel)), "{adjust:?}");
    }
    assert!(!Adjust { terms: [[f64::NAN; TERMS]; KINDS] }.is_sound());
}

#[test]
fn a_system_is_solved() {
    let matrix = [[4.0, 1.0, 0.5, 0.0], [1.0, 3.0, 0.0, 0.5], [0.5, 0.0, 5.0, 1.0], [0.0, 0.5, 1.0, 2.0]];
    let truth = [1.0, -2.0, 3.0, 0.25];
    let right = matrix.map(|row| row.iter().zip(truth).map(|(a, b)| a * b).sum());
    for (found, truth) in solve(matrix, right).into_iter().zip(truth) {
        assert!((found - truth).abs() < 1e-12, "{found} {truth}");
    }
}
