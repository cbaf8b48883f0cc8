//! What is shown of transfers, and what is said of those that are not there.

use super::*;
use crate::fixture_tests::scan;

#[test]
fn a_way_that_is_not_there_is_not_available_and_never_zero() {
    let list = by_size(&scan());
    let expected = [
        "gpu:0 software",
        "4 KiB",
        "0.046 GB/s",
        "0.041 GB/s",
        "0.082 GB/s",
        "not available",
        "0.045 GB/s",
        "0.091 GB/s",
    ];
    assert_eq!(list.rows[0], expected);
    assert!(list.rows.iter().all(|row| row.len() == list.header.len() && row[5] == NOT_AVAILABLE));
    assert!(list.rows.iter().flatten().all(|cell| !cell.starts_with("0 ") && !cell.starts_with("0.0 ")));
}

#[test]
fn sizes_go_up_and_devices_without_transfers_have_no_rows() {
    let mut scan = scan();
    scan.transfers.reverse();
    let rows = rates(&scan);
    assert_eq!(rows.iter().map(|r| (r.device, r.bytes)).collect::<Vec<_>>(), [("gpu:0", 4096), ("gpu:0", 64 << 20)]);
    assert_eq!(best(&scan).rows.len(), 2);
    scan.transfers.clear();
    assert!(by_size(&scan).rows.is_empty() && best(&scan).rows.is_empty());
}

#[test]
fn the_best_rate_is_the_fastest_whatever_its_size() {
    let mut scan = scan();
    assert_eq!(best(&scan).rows[0][2..], ["4.2 GB/s at 64 MiB", "6.7 GB/s at 64 MiB", "13 GB/s at 64 MiB"]);
    assert_eq!(best(&scan).rows[1][2..], ["not available", "~5.6 GB/s at 64 MiB", "11 GB/s at 64 MiB"]);
    for transfer in scan.transfers.iter_mut().filter(|transfer| transfer.bytes == 4096) {
        transfer.stats = Stats::of(&[100]).unwrap();
    }
    assert_eq!(best(&scan).rows[0][2], "41 GB/s at 4 KiB");
}

#[test]
fn ways_of_a_later_version_are_left_out() {
    let mut scan = scan();
    let known = by_size(&scan).rows;
    let later = Transfer { way: "peer to peer".into(), ..scan.transfers[0].clone() };
    scan.transfers.insert(0, later);
    assert_eq!(by_size(&scan).rows, known);
}
