//! What an explanation says.

use super::*;

fn predicted(device: &str, expected_ns: u64, measured: bool) -> Predicted {
    let parts = Prediction { fixed_ns: 100.0, kernels_ns: expected_ns as f64 - 100.0, ..Prediction::default() };
    Predicted { device: device.into(), expected_ns, parts, measured }
}

fn decision(predicted: Vec<Predicted>, regret_ns: Option<u64>) -> breakeven::Decision {
    breakeven::Decision {
        device: "cpu".into(),
        reason: "expected to be done first".into(),
        predicted,
        actual_ns: 1_600,
        regret_ns,
        kernels: 2,
        kernel_ns: vec![900, 0],
        timings: Default::default(),
        fallbacks: 0,
        faults: Vec::new(),
    }
}

#[test]
fn every_device_has_a_line_with_its_parts() {
    let both = vec![predicted("cpu", 1_500, false), predicted("gpu:0", 90_000, false)];
    let decision = Decision::new(decision(both, None), 1_600, &[]);
    let table = decision.expectations();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "expected         total         wait     fixed    upload   kernels  readback",
            "cpu            1.50 us =          -    100 ns         -   1.40 us         -  predicted <",
            "gpu:0         90.00 us =          -    100 ns         -  89.90 us         -  predicted",
        ]
    );
    assert_eq!(decision.time(), "expected 1.50 us, took 1.60 us");
}

#[test]
fn regret_and_earlier_runs_are_told_where_they_are_known() {
    let time = |predicted, regret, before: &[u64]| Decision::new(decision(predicted, regret), 1_600, before).time();
    assert_eq!(time(vec![], None, &[]), "took 1.60 us");
    assert_eq!(time(vec![], None, &[1_400, 1_500, 9_000]), "predicted 1.50 us from the runs before it, took 1.60 us");
    let measured = || vec![predicted("cpu", 1_500, true), predicted("gpu:0", 1_000, true)];
    assert_eq!(
        time(measured(), Some(600), &[]),
        "expected 1.50 us, took 1.60 us, 600 ns longer than another device lately took"
    );
    assert!(time(measured(), Some(0), &[]).ends_with("no other device was faster lately"));
    assert!(!Decision::new(decision(measured(), None), 1_600, &[]).expectations().contains('='));
}
