//! Files as spreadsheets and scripts write them, and bytes that are none.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Scan {
    let scan = csv(text.as_bytes(), "old").unwrap_or_else(|error| panic!("{error}\n{text}"));
    scan.check().unwrap();
    scan
}

/// (size, device, median, P90) of each row.
fn rows(scan: &Scan) -> Vec<(u64, &str, u64, u64)> {
    scan.rows.iter().map(|row| (row.size, &*row.device, row.stats.median_ns, row.stats.p90_ns)).collect()
}

#[test]
fn order_case_blanks_separators_marks_and_line_ends_make_no_difference() {
    let expected = [(1000, "cpu", 1_500, 0), (1000, "gpu:0", 90_000, 0)];
    for text in [
        "size,cpu_us,gpu_us\n1000,1.5,90\n",
        "\u{feff}size,cpu_us,gpu_us\r\n1000,1.5,90\r\n",
        "GPU us ; Size ; CPU_US\n90 ; 1000 ; 1,5",
        "size\tgpu_us\tcpu_us\n1k\t90\t1.5\n\n",
        "# a remark\n\"size\",\"cpu (\u{b5}s)\",\"gpu (\u{b5}s)\"\n# another\n1e3,1.5,90\n,,\n",
        "size,cpu_ns,gpu_ms,cpu_mean_us\n1000,1500,0.09,77\n",
    ] {
        assert_eq!(rows(&read(text)), expected, "{text}");
    }
}

#[test]
fn medians_and_p90_are_taken_where_they_are_and_nothing_is_made_up() {
    let scan = read("size,cpu_us,cpu_median_us,cpu_p90_us,gpu_median_us\n1000,9,1,2,90\n");
    assert_eq!(rows(&scan), [(1000, "cpu", 1_000, 2_000), (1000, "gpu:0", 90_000, 0)]);
    let stats = scan.rows[0].stats;
    assert_eq!((stats.samples, stats.band(), stats.known(stats.min_ns)), (0, None, None));
    assert_eq!(stats.known(stats.p90_ns), Some(2_000));
}

#[test]
fn cells_without_a_time_are_rows_that_are_not_there() {
    let scan = read("size,cpu_us,gpu_us\n1000,1,\n2000,n/a,90\n3000,3\n");
    assert_eq!(rows(&scan), [(1000, "cpu", 1_000, 0), (2000, "gpu:0", 90_000, 0), (3000, "cpu", 3_000, 0)]);
    let alone = read("size,cpu_us\n1000,1\n");
    assert_eq!(alone.devices.len(), 1, "a GPU that was not measured is no device");
    assert!(alone.how.notes.contains(&"the CSV has no GPU times".to_owned()));
}

#[test]
fn comments_tell_what_it_is_and_what_somebody_claims() {
    let scan = read(
        "# op: exp\n# unit: n x n\n# cpu: Ryzen\n# gpu: Radeon\n# backend: vulkan\n# date: 2020-02-20\n\
         # crossover add gpu:0 100000\n# crossover: 64k\n# Crossover never\n# crossover is what it is\nsize,cpu_us,gpu_us\n8,1,2\n",
    );
    assert_eq!((&*scan.rows[0].op, &*scan.rows[0].unit, &*scan.machine.cpu), ("exp", "n x n", "Ryzen"));
    assert_eq!(
        (&*scan.devices[1].name, &*scan.devices[1].backend, &*scan.how.date),
        ("Radeon", "vulkan", "2020-02-20")
    );
    let claims: Vec<_> = scan.claims.iter().map(|claim| (&*claim.op, &*claim.device, claim.at)).collect();
    assert_eq!(claims, [("add", "gpu:0", Some(100_000)), ("*", "*", Some(64_000)), ("*", "*", None)]);
    assert_eq!(scan.claims[0].source, "line 7 of the CSV");
    assert!(scan.how.notes.iter().any(|note| note.starts_with("line 10 is no claim")), "{:?}", scan.how.notes);
}

#[test]
fn ops_may_have_a_column() {
    let scan = read("op,size,cpu_us\n\"add, twice\",10,1\nexp,10,2\n,10,3\n");
    let ops: Vec<&str> = scan.rows.iter().map(|row| row.op.as_str()).collect();
    assert_eq!(ops, ["add, twice", "exp", "old"], "without one it is the file's");
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    for (text, message) in [
        ("", "line 1 has no column `size`"),
        ("# nothing\n", "line 1 has no column `size`"),
        ("\n\na,b\n", "line 3 has no column `size`"),
        ("size,time\n1,2\n", "line 1 has no column `cpu_us` or `gpu_us`"),
        ("op,size,device,median_ns\n", "name the scan.json beside it"),
        ("size,cpu_us,cpu_ms\n", "line 1 has two columns for `cpu_ms`"),
        ("size,cpu_us\n", "it has no times"),
        ("size,cpu_us\n0,1\n", "line 2, column 1 (`size`): `0` is no size"),
        ("size,cpu_us\n1.5,1\n", "`1.5` is no size"),
        ("size,cpu_us\n10,-1\n", "line 2, column 2 (`cpu_us`): `-1` is no time"),
        ("size,cpu_us\n10,inf\n", "`inf` is no time"),
        ("size,cpu_us\n10,0\n", "`0` is no time"),
        ("size,cpu_us\n10,1e300\n", "`1e300` is no time"),
        ("size,cpu_us\n10,1,5\n", "line 2, column 3 (``): `5` has no column in the header"),
        ("size,cpu_median_us,cpu_p90_us\n10,5,4\n", "line 2, column 3 (`cpu_p90_us`): `4` is less than the median"),
        ("size,cpu_us\n10,1\n20,1\n10,2\n", "line 4 has the same operation and size as line 2"),
    ] {
        let error = csv(text.as_bytes(), "old").expect_err(text).to_string();
        assert!(error.contains(message), "{text:?}: {error}");
    }
    assert_eq!(csv(b"size,\xff", "old"), Err(CsvError::Encoding { byte: 5 }));
    assert!(csv(b"size,cpu_us\n1,1\n", "").is_err_and(|error| error.to_string().contains("name one in a column `op`")));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_sound(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(scan) = csv(&bytes, "old") {
            prop_assert!(scan.check().is_ok());
        }
    }

    #[test]
    fn arbitrary_cells_are_refused_or_sound(cells in "[-#0-9a-z,;\"\\.\t\r\n \u{b5}]{0,200}") {
        if let Ok(scan) = csv(format!("size,cpu_us,gpu_us,gpu_p90_us\n{cells}").as_bytes(), "old") {
            prop_assert!(scan.check().is_ok());
            prop_assert!(scan.rows.len() <= cells.len());
        }
    }
}
