//! Which sizes are measured, on the CPU and a simulated device.

use super::*;
use crate::scan::ops;
use crate::simulate;
use breakeven::Config;

fn arms() -> Vec<Arm> {
    let arm = |id: &str, told| Arm { id: id.into(), device: id.parse().unwrap(), told };
    vec![arm("cpu", false), arm(simulate::ID, true)]
}

fn sweep(ops: &[&str], elements: &[u64], time: Duration, stop: &dyn Fn() -> bool) -> Swept {
    let engine = simulate::engine("modern-discrete", Config::default()).unwrap();
    let arms = arms();
    let sweep = Sweep { engine: &engine, arms: &arms, samples: 3, deadline: Instant::now() + time, stop };
    let ops: Vec<Op> = ops.iter().map(|name| ops::parse(name).unwrap()).collect();
    sweep.run(&ops, elements, &mut |_, _, _| {})
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn every_op_is_measured_on_every_device() {
    let swept = sweep(&["add", "matmul", "many"], &[1000, 300, 300, 4000], LONG, &|| false);
    let at = |op: &str, device: &str| {
        let rows = swept.rows.iter().filter(|row| row.op == op && row.device == device);
        rows.map(|row| row.size).collect::<Vec<_>>()
    };
    for device in ["cpu", "gpu:0"] {
        assert_eq!(at("add", device), [300, 1000, 4000]);
        assert_eq!(at("matmul", device), [17, 32, 63]);
        assert_eq!(at("many", device), [1, 3, 15]);
    }
    assert!(swept.rows.iter().all(|row| row.stats.median_ns > 0));
    // Small sizes first.
    assert!(swept.rows[..6].iter().all(|row| row.size <= 300), "{:?}", swept.rows);
}

#[test]
fn who_is_far_behind_and_stays_there_is_left_out() {
    let ms = |ms: u64, fastest_us: u64| Some((ms * 1_000_000, fastest_us * 1_000));
    assert!(is_left_behind(ms(30, 1_000), ms(116, 4_000)));
    assert!(!is_left_behind(ms(60, 1_000), ms(120, 4_000)), "it is catching up");
    assert!(!is_left_behind(Some((90_000, 300)), Some((180_000, 310))), "a fixed cost and its noise");
    assert!(!is_left_behind(None, ms(300, 1_000)), "one size is no trend");
    assert!(!is_left_behind(ms(30, 10_000), ms(190, 10_000)));
    assert!(!is_left_behind(ms(30, 1_000), None));
}

#[test]
fn without_time_it_says_what_is_missing() {
    let swept = sweep(&["add", "sum"], &[1000, 4000], Duration::ZERO, &|| false);
    assert!(swept.rows.is_empty());
    assert_eq!(swept.notes.len(), 1, "{:?}", swept.notes);
    assert!(swept.notes[0].ends_with("a larger --budget has room for: add (1000 elements), sum (1000 elements)"));
}

#[test]
fn an_interruption_keeps_what_is_there() {
    assert!(sweep(&["add"], &[1000], LONG, &|| true).rows.is_empty());
}

#[test]
fn what_does_not_fit_is_said() {
    let sizes = [1000, u64::MAX];
    let swept = sweep(&["add"], &sizes, LONG, &|| false);
    if !memory::fits(u64::MAX) {
        assert_eq!(swept.rows.len(), 2);
        assert!(swept.notes.iter().any(|note| note.starts_with("the memory of this machine")), "{:?}", swept.notes);
    }
}
