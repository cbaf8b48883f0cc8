//! Dates, and how fusion moves the crossover.

use super::*;
use breakeven_report::Stats;

#[test]
fn dates_are_those_of_the_calendar() {
    let date = |seconds| date_of(Duration::from_secs(seconds));
    assert_eq!(date(0), "1970-01-01 00:00 UTC");
    assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
    assert_eq!(date(1_735_689_599), "2024-12-31 23:59 UTC");
    assert_eq!(date(1_740_787_200), "2025-03-01 00:00 UTC");
    assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
}

#[test]
fn fusion_moves_the_crossover() {
    let row = |op: ops::Op, device: &str, size: u64, ns: u64| Row {
        op: op.name.into(),
        class: op.class.into(),
        size,
        unit: op.unit.into(),
        device: device.into(),
        stats: Stats::of(&[ns]).unwrap(),
    };
    let devices = vec![cpu(), Device { id: "gpu:0".into(), kind: "discrete".into(), ..Device::default() }];
    let mut rows = Vec::new();
    for size in [1000, 1_000_000, 100_000_000] {
        rows.push(row(ops::CHAIN, "cpu", size, size));
        rows.push(row(ops::CHAIN, "gpu:0", size, 100_000 + size / 10));
        rows.push(row(ops::CALLS, "cpu", size, 3 * size));
        rows.push(row(ops::CALLS, "gpu:0", size, 10_000_000 + size));
    }
    let found = fused(&devices, &rows);
    assert_eq!((found.len(), &*found[0].device, &*found[0].unit), (1, "gpu:0", "elements"));
    let (separate, together) = (found[0].separate_crossover.unwrap(), found[0].fused_crossover.unwrap());
    assert!(separate > 1_000_000 && together < 1_000_000, "{separate} {together}");
    // What was not measured on both is not told.
    rows.retain(|row| row.op == ops::CHAIN.name || row.device == "cpu");
    assert!(fused(&devices, &rows).is_empty());
}
