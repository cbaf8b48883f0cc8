//! The borders between units, where rounding goes wrong first.

use super::*;

#[test]
fn sizes_at_the_borders() {
    let words = [0, 1, 9_999, 10_000, 99_949, 999_499, 999_500, 1_000_000, 9_949_999, 9_950_000, u64::MAX].map(size);
    assert_eq!(words, ["0", "1", "9999", "10 k", "100 k", "999 k", "1.0 M", "1.0 M", "9.9 M", "10 M", "18 E"]);
}

#[test]
fn times_at_the_borders() {
    let words = [0, 999, 1_000, 9_949, 9_950, 999_499, 999_500, 59_000_000_000, u64::MAX].map(time);
    assert_eq!(words, ["0 ns", "999 ns", "1.0 us", "9.9 us", "10 us", "999 us", "1.0 ms", "59 s", "18446744074 s"]);
}

#[test]
fn ratios_keep_two_digits() {
    assert_eq!(
        [0.0, 0.0042, 0.049, 0.42, 0.997, 1.0, 9.96, 3127.0].map(ratio),
        ["0.0000000x", "0.0042x", "0.049x", "0.42x", "1.0x", "1.0x", "10x", "3127x"]
    );
}

#[test]
fn interpolated_sizes_keep_two_digits() {
    assert_eq!([0, 1, 9, 10, 99, 104, 105, 995, 1_250_000].map(rounded), [0, 1, 9, 10, 99, 100, 110, 1000, 1_300_000]);
    assert_eq!(rounded(u64::MAX), 18_000_000_000_000_000_000);
}

#[test]
fn a_unit_with_n_takes_the_number_in_its_place() {
    assert_eq!(sized(2048, "n x n"), "2048 x 2048");
    assert_eq!(sized(20_000, "elements"), "20 k elements");
    assert_eq!(sized(5, ""), "5");
}

#[test]
fn bytes_have_the_unit_that_keeps_them_below_1024() {
    assert_eq!([0, 1, 1023, 1024, 1536, 64 << 20].map(bytes), ["0 B", "1 B", "1023 B", "1 KiB", "1.5 KiB", "64 MiB"]);
    assert_eq!(bytes(u64::MAX), "16 EiB");
}

#[test]
fn rates_have_two_digits() {
    assert_eq!(rate(1000, 1000), "1.0 GB/s");
    assert_eq!(rate(123_456, 1000), "123 GB/s");
    assert_eq!(rate(4, 1_000_000), "0.0000040 GB/s");
    assert_eq!(rate(5, 0), "5.0 GB/s");
}

#[test]
fn control_characters_become_spaces() {
    assert_eq!(plain("a\u{1b}[31m\nb"), "a [31m b");
}
