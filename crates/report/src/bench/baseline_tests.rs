//! Which machines are the same.

use super::*;
use crate::bench::fixture_tests::bench;

#[test]
fn another_kernel_or_breakeven_is_the_same_machine() {
    let mut now = bench();
    now.machine.os = "linux 6.9-cloud".into();
    now.machine.breakeven = "0.2.0".into();
    now.devices.truncate(2);
    now.missing.clear();
    assert_eq!(matches(&bench(), &now), Ok(()));
    assert_eq!(matches(&now, &bench()), Ok(()));
}

#[test]
fn every_difference_is_told() {
    let mut now = bench();
    now.machine.cpu = "Other".into();
    now.machine.threads = 16;
    now.machine.simd.clear();
    now.machine.os = "windows 11".into();
    now.devices[1].driver = "Mesa 25.0\u{1b}".into();
    now.devices[2].name = "another card".into();
    let foreign = matches(&bench(), &now).unwrap_err();
    assert_eq!(
        foreign.differences,
        [
            "CPU: Intel Xeon 2.8 GHz then, Other now",
            "threads: 2 then, 16 now",
            "vector instructions: AVX-512 then, none now",
            "operating system: linux then, windows now",
            "driver of gpu:0: Mesa 22.3.6 then, Mesa 25.0  now",
            "adapter gpu:1: a card of 450 GB/s then, another card now",
        ]
    );
    let message = foreign.to_string();
    assert!(foreign.differences.iter().all(|difference| message.contains(difference)), "{message}");
    assert!(message.contains("`--save-baseline NAME`") && message.contains("`--foreign-baseline`"), "{message}");
}
