//! Rows that are cut into slices, on every adapter of this machine.

use crate::lower::device_tests::noise;
use crate::lower::rows::tests::{CASES, bytes, check, close, everywhere, f32s, i32s};
use crate::lower::tests::input;
use breakeven_ir::{DType, Slice};

#[test]
fn composites_of_few_long_rows() {
    for case in CASES {
        for (dims, axis) in [(&[20000][..], 0), (&[2, 17001], 1), (&[17000, 3], 0)] {
            check(case, dims, axis);
        }
    }
}

#[test]
fn a_long_sum_keeps_its_digits() {
    let count = 10_000_000;
    let x = input("x", DType::F32, &[count]);
    let data: Vec<f32> = noise(count, 11).iter().map(|v| v * 0.5 + 0.5).collect();
    let want: f64 = data.iter().map(|&v| f64::from(v)).sum();
    let outs = [x.sum(&[], false).unwrap(), x.argmax(None, false).unwrap()];
    let most = (0..count).fold(0, |best, i| if data[i] > data[best] { i } else { best });
    everywhere(&outs.iter().collect::<Vec<_>>(), &[bytes(&data)], |device, got| {
        let sum = f64::from(f32s(&got[0])[0]);
        assert!((sum - want).abs() <= 1e-6 * want, "{device}: {sum} should be {want}");
        assert_eq!(i32s(&got[1]), [most as i32], "{device}");
    });
}

#[test]
fn all_axes_of_a_transposed_window() {
    // The inner variables do not run as one.
    let x = input("x", DType::F32, &[150, 140]);
    let data = noise(150 * 140, 2);
    let y = x.transpose().unwrap();
    let cut = |start, stop| Slice { start: Some(start), stop: Some(stop), step: 1 };
    let part = y.slice(&[cut(1, 139), cut(2, 149)]).unwrap();
    let want: f64 =
        (1..139).flat_map(|c| (2..149).map(move |r| (r, c))).map(|(r, c)| f64::from(data[r * 140 + c])).sum();
    everywhere(&[&part.sum(&[], false).unwrap()], &[bytes(&data)], |device, got| {
        close(&f32s(&got[0]), &[want], 1e-5, device);
    });
}
