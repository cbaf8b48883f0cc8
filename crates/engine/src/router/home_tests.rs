//! Where data is kept, with made-up costs.

use super::super::{DEVICES, Router};
use crate::cost::{Costs, Curve};
use breakeven_ir::{DType, Shape};

/// A device that takes so many nanoseconds for each byte and each operation, and so many to begin.
fn costs(ns: f64, fixed_ns: f64) -> Costs {
    let curve = |ns: f64| Curve::new(vec![(1.0, ns)]);
    Costs { fixed_ns, memory: curve(ns), compute: curve(ns), upload: curve(1e-3), ..Costs::default() }
}

fn homes(devices: &[Option<(f64, f64)>], dims: &[usize]) -> Vec<usize> {
    let router = Router::new(10, 0.0);
    for (device, known) in devices.iter().enumerate() {
        known.iter().for_each(|(ns, fixed_ns)| router.set_costs(device, costs(*ns, *fixed_ns)));
    }
    router.homes(DType::F32, Shape::new(dims).unwrap())
}

#[test]
fn data_is_kept_where_large_batches_pay() {
    for dims in [&[][..], &[7], &[1000], &[64, 64], &[3, 500, 20]] {
        assert!(homes(&[], dims).is_empty(), "nothing is known");
        assert!(homes(&[Some((1.0, 0.0))], dims).is_empty(), "only the CPU is");
        assert_eq!(homes(&[Some((1.0, 0.0)), Some((0.1, 1e6))], dims), [1]);
        assert!(homes(&[Some((1.0, 0.0)), Some((3.0, 1e6))], dims).is_empty(), "a software device");
        // The best first, and those that never pay not at all.
        let three = [Some((1.0, 0.0)), Some((0.5, 1e6)), None, Some((0.1, 1e6)), Some((4.0, 0.0))];
        assert_eq!(homes(&three, dims), [3, 1], "{dims:?}");
    }
    assert!(homes(&[Some((1.0, 0.0)), Some((0.1, 1e6))], &[0, 5]).is_empty(), "there is nothing to keep");
}

#[test]
fn elements_of_any_kind_are_kept() {
    let router = Router::new(10, 0.0);
    router.set_costs(DEVICES - 1, costs(1e-3, 0.0));
    for dtype in [DType::F32, DType::I32, DType::U32, DType::Bool] {
        assert_eq!(router.homes(dtype, Shape::new(&[100, 100]).unwrap()), [DEVICES - 1]);
    }
}
