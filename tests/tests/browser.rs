//! The pages of reports in a real browser: `check` is what all of them must do, `fixture` the scan that is shown. A page
//! of another kind is one test here that calls `check_page`.

#[path = "browser/check.rs"]
mod check;
#[path = "browser/fixture.rs"]
mod fixture;

use breakeven_report::compare::{self, Comparison};
use breakeven_report::{bench, html};
use check::{check_page, open};
use fixture::{LABELS, bench_run, scan};
use serde_json::json;

#[test]
fn the_page_of_a_scan() {
    check_page(&html(&scan()), &LABELS);
}

#[test]
fn the_page_of_a_comparison() {
    // The other side is another machine, which has no card.
    let (here, mut there) = (scan(), scan());
    there.machine.cpu = "another processor".into();
    there.devices.truncate(2);
    there.rows.retain(|row| row.device != "gpu:1");
    for row in &mut there.rows {
        row.stats.median_ns += row.stats.median_ns / 100;
    }
    let comparison = Comparison::of(vec![("here".into(), here), ("there".into(), there)]).unwrap();
    // All of them in one chart, and each side in a panel of its own.
    let together =
        ["here CPU", "here gpu:0 software", "here gpu:1 simulated", "there CPU", "there gpu:0 software"].into_iter();
    let labels: Vec<&str> = together.chain(LABELS).collect();
    check_page(&compare::html(&comparison), &labels);
}

#[test]
fn the_page_of_a_bench_run() {
    let (run, mut later) = (bench_run(), bench_run());
    for row in later.groups.iter_mut().flat_map(|group| &mut group.rows).filter(|row| row.case == "exp") {
        row.passes.iter_mut().flatten().for_each(|ns| *ns += *ns / 2);
    }
    let gate = bench::Gate::of(&run, &later, 0.1);
    assert!(gate.failed());
    check_page(&bench::html(&later, Some(&gate)), &LABELS);
}

#[test]
fn every_chart_of_a_scan_compares_every_device() {
    let mut opened = open(&html(&scan()));
    let labels = opened.page.eval("probe.charts().map((chart) => chart.devices.map((device) => device.label).sort())");
    assert_eq!(labels, json!(vec![LABELS; 6]));
}

#[test]
fn hostile_names_are_text() {
    let name = format!("<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;{}", "W".repeat(300));
    let mut scan = scan();
    let (id, label) = ("<i>'\"&", "<i>'\"& software");
    scan.devices[1].name = name.clone();
    scan.devices[1].driver = name.clone();
    scan.devices[1].id = id.into();
    for row in scan.rows.iter_mut().filter(|row| row.device == "gpu:0") {
        row.device = id.into();
    }
    scan.machine.cpu = name.clone();
    scan.how.notes.push(name.clone());
    let page = html(&scan);
    check_page(&page, &[LABELS[0], label, LABELS[2]]);

    let mut opened = open(&page);
    let text = opened.page.eval("document.body.innerText");
    // The processor twice, the software adapter's name and driver, its caution, the note.
    assert!(text.as_str().unwrap().matches(&name).count() >= 5, "{text}");
    assert_eq!(opened.page.eval("document.images.length"), 0);
    // One for each chart's words, and the page's own.
    assert_eq!(opened.page.eval("document.scripts.length"), 7);
}

#[test]
fn screenshots_show_light_and_dark() {
    use breakeven_tests::browser::{Medium, Scheme};
    let mut opened = open(&html(&scan()));
    let mut shot = |scheme| {
        opened.page.emulate_media(Medium::Screen, scheme);
        opened.page.screenshot()
    };
    let (light, dark) = (shot(Scheme::Light), shot(Scheme::Dark));
    assert!(light.starts_with(b"\x89PNG\r\n") && dark.starts_with(b"\x89PNG\r\n"));
    assert!(light.len() > 20_000 && light != dark, "{} and {} bytes", light.len(), dark.len());
}
