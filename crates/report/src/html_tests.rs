//! The page: nothing of a scan becomes markup, nothing is loaded, every tag is closed.

use super::*;
use crate::fixture_tests::{assert_balanced, rows, scan, tags};

#[test]
fn every_tag_is_closed_in_its_turn() {
    assert_balanced(&html(&scan()));
    assert_balanced(&html(&Scan::default()));
}

#[test]
fn no_element_has_an_attribute_twice() {
    for tag in tags(&html(&scan())) {
        let mut names: Vec<&str> = tag.split('"').step_by(2).filter_map(|part| part.trim().strip_suffix('=')).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{tag}");
    }
}

#[test]
fn nothing_is_loaded() {
    let page = html(&scan());
    for outside in
        ["http://", "https://", "src=", "href=", "@import", "url(", "//cdn", "fetch(", "XMLHttpRequest", "import("]
    {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn text_of_a_scan_never_becomes_markup() {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'><!--";
    let mut scan = scan();
    // Everywhere: each text of the scan is replaced.
    for device in &mut scan.devices[1..] {
        device.id = format!("{}{evil}", device.id);
        (device.name, device.backend, device.driver) = (evil.into(), evil.into(), evil.into());
    }
    let id = scan.devices[1].id.clone();
    scan.rows = rows(evil, evil, evil, &[("cpu", &[(1, 10), (100, 1000)]), (&id, &[(1, 100), (100, 100)])]);
    let m = &mut scan.machine;
    (m.cpu, m.simd, m.os, m.breakeven) = (evil.into(), evil.into(), evil.into(), evil.into());
    for overhead in &mut scan.overheads {
        (overhead.device, overhead.notes) = (evil.into(), vec![evil.into()]);
    }
    for fused in &mut scan.fused {
        (fused.what, fused.device, fused.unit) = (evil.into(), id.clone(), evil.into());
    }
    for transfer in &mut scan.transfers {
        transfer.device = id.clone();
    }
    (scan.transfers[0].direction, scan.transfers[1].way) = (evil.into(), evil.into());
    (scan.how.date, scan.how.notes) = (evil.into(), vec![evil.into()]);

    let page = html(&scan);
    assert_balanced(&page);
    assert!(!page.contains("<img") && !page.contains("<script>alert") && !page.contains("<!--"));
    // Two scripts of the page's own for one chart: the tooltip's words and the code.
    let scripts = page.matches("<script").count();
    assert_eq!((scripts, page.matches("</script").count()), (2, 2));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(page.contains("\\u003c/script>"), "the tooltip's words are there, without a `<`");
    let handler = |tag: &String| tag.split('"').step_by(2).any(|part| part.contains("onerror"));
    assert!(!tags(&page).iter().any(handler), "an attribute was broken out of");
}

#[test]
fn a_kind_of_device_never_becomes_a_class() {
    let mut scan = scan();
    scan.devices[1].kind = "hidden\" onclick=\"x".into();
    assert!(!html(&scan).contains("onclick=\"x"));
}

#[test]
fn charts_have_a_ring_for_each_crossing_and_say_its_size() {
    let page = html(&scan());
    assert_eq!(page.matches("<figure>").count(), 3);
    // exp and matmul cross on gpu:1; the many tasks are always faster there.
    assert_eq!(page.matches("class=\"ring ").count(), 2);
    assert!(page.contains(">4.5 M</text>") && page.contains(">240 x 240</text>"));
    assert!(page.contains("dot d1 software wide"), "a wide spread is a hollow dot");
    assert!(page.contains("&quot;") || page.contains("\"size\":\"10 M elements\""));
}

#[test]
fn each_class_has_one_group_whatever_the_order_of_rows() {
    let mut scan = scan();
    scan.rows.clear();
    for (op, class) in [("a", "new"), ("b", "map"), ("c", "newer"), ("d", "new"), ("e", "map")] {
        scan.rows.extend(rows(op, class, "elements", &[("cpu", &[(1, 10)]), ("gpu:1", &[(1, 5)])]));
    }
    let page = html(&scan);
    let groups: Vec<&str> = page.split("<h3>").skip(1).filter_map(|part| part.split("</h3>").next()).collect();
    assert_eq!(groups, ["Elementwise", "new", "newer"]);
}

#[test]
fn stand_ins_are_labelled_in_charts_and_tables() {
    let page = html(&scan());
    assert!(page.contains(">gpu:0 software</text>") && page.contains(">gpu:1 simulated</text>"));
    assert!(page.contains("gpu:0 software is llvmpipe (LLVM 15.0.6, 256 bits) (vulkan), run by the CPU itself"));
    for bare in [">gpu:0<", ">gpu:1<"] {
        assert!(!page.contains(bare), "{bare}");
    }
}

#[test]
fn odd_scans_have_a_page_too() {
    let mut alone = scan();
    alone.devices.truncate(1);
    alone.rows.retain(|row| row.device == "cpu");
    alone.how.interrupted = true;
    let page = html(&alone);
    assert_balanced(&page);
    assert!(page.contains("interrupted") && page.contains("no device but the CPU was measured"));

    let mut extreme = scan();
    for (number, row) in extreme.rows.iter_mut().enumerate() {
        row.size = if number % 2 == 0 { 0 } else { u64::MAX };
        row.stats = crate::Stats::of(&[0, u64::MAX, number as u64]).unwrap();
    }
    for (number, transfer) in extreme.transfers.iter_mut().enumerate() {
        transfer.bytes = if number % 2 == 0 { 0 } else { u64::MAX };
        transfer.stats = crate::Stats::of(&[0, u64::MAX, number as u64]).unwrap();
    }
    extreme.overheads[1].upload_ns_per_mib = u64::MAX;
    extreme.how.seconds = f64::NAN;
    let page = html(&extreme);
    assert_balanced(&page);
    assert!(
        !page.contains("NaN") && !page.contains("inf,") && !page.contains("\"inf"),
        "a place on the page is a number"
    );

    let mut single = scan();
    single.rows.truncate(1);
    assert_balanced(&html(&single));
}

#[test]
fn rates_have_bars_and_ways_that_are_not_there_have_none() {
    let mut scan = scan();
    let page = html(&scan);
    // Two sizes of a device that has all ways but one.
    assert_eq!(page.matches("class=\"rate d1 software\"").count(), 10);
    assert_eq!(page.matches(">not available</td>").count(), 2);
    assert!(page.contains("title=\"median 5.0 ms\">13 GB/s<i class=\"rate d1 software\" style=\"width:100.0%\">"));
    assert!(page.contains(">~5.6 GB/s<"), "a wide spread is marked");
    scan.transfers.clear();
    let page = html(&scan);
    assert!(!page.contains("not available") && !page.contains("How fast bytes go"));
}

#[test]
fn the_page_stays_small() {
    assert!(html(&scan()).len() < 60_000, "{} bytes", html(&scan()).len());
}
