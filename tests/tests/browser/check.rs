//! What every page of Breakeven must do, whatever it reports: its HTML and its devices enter, a panic leaves if it does not.

use breakeven_tests::browser::{Browser, Medium, Page, Scheme};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use tempfile::TempDir;

/// What WCAG asks for of text, and of lines that carry meaning.
const TEXT_CONTRAST: f64 = 4.5;
const LINE_CONTRAST: f64 = 3.0;

/// A page in a browser of its own.
pub struct Opened {
    /// The page.
    pub page: Page,
    // Dropped after the page, in this order.
    _browser: Browser,
    _folder: TempDir,
}

/// Opens a page from a file.
#[track_caller]
pub fn open(html: &str) -> Opened {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a page.html");
    std::fs::write(&file, html).unwrap();
    let mut browser = Browser::start().unwrap_or_else(|error| panic!("{error}"));
    let mut page = browser.open(&file).unwrap_or_else(|error| panic!("{error}"));
    prepare(&mut page);
    Opened { page, _browser: browser, _folder: folder }
}

/// Opens a page and checks everything that all pages have in common. `devices` are the labels of those that its charts
/// compare; a chart may leave some out.
#[track_caller]
pub fn check_page(html: &str, devices: &[&str]) {
    let mut opened = open(html);
    let page = &mut opened.page;
    check_silence(page);
    check_charts(page, devices);
    check_tooltips(page);
    check_keyboard(page);
    check_themes(page);
    check_widths(page);
    check_print(page);
    check_silence(page);
}

/// Hands the page the functions of `probe.js` and unfolds it.
fn prepare(page: &mut Page) {
    page.eval(include_str!("probe.js"));
    page.eval("probe.unfold()");
}

/// Nothing went wrong, and nothing was asked for.
#[track_caller]
fn check_silence(page: &mut Page) {
    assert_eq!(page.requests(), [""; 0], "requests of the page");
    assert_eq!(page.errors(), [""; 0], "errors on the page");
}

/// Each chart has a line for each of its devices that can be seen, and all charts together have these devices.
#[track_caller]
fn check_charts(page: &mut Page, devices: &[&str]) {
    let charts = page.eval("probe.charts()");
    let mut drawn = BTreeSet::new();
    for chart in list(&charts) {
        assert!(number(&chart["box"]["width"]) > 100.0 && number(&chart["box"]["height"]) > 50.0, "{chart}");
        assert!(!list(&chart["devices"]).is_empty(), "a chart without devices: {chart}");
        for device in list(&chart["devices"]) {
            assert!(number(&device["lines"]) >= 1.0, "{device} has no line: {chart}");
            drawn.insert(words(&device["label"]));
        }
    }
    assert_eq!(drawn, devices.iter().copied().collect(), "the devices of all charts");
}

/// Wherever the mouse points at a chart, there is a tooltip with each device's name and time.
#[track_caller]
fn check_tooltips(page: &mut Page) {
    for chart in 0..charts(page) {
        let area = page.eval(&format!("probe.show({chart})"));
        let tips = page.eval(&format!("probe.tips({chart})"));
        let mut seen = BTreeSet::new();
        for part in [0.2, 0.45, 0.7] {
            let (x, y) = within(&area, part, 0.5);
            page.move_mouse(x, y);
            seen.insert(check_tip(page, &tips, "where the mouse points"));
        }
        assert!(seen.len() > 1 || list(&tips).len() == 1, "the tooltip does not follow the mouse: {seen:?}");
        page.move_mouse(1.0, 1.0);
        assert_eq!(page.eval("probe.tip().shown"), false, "the tooltip stays when the mouse has left");
    }
}

/// The tooltip that is shown; its heading.
#[track_caller]
fn check_tip(page: &mut Page, tips: &Value, when: &str) -> String {
    let tip = page.eval("probe.tip()");
    assert_eq!(tip["shown"], true, "no tooltip {when}: {tip}");
    assert_eq!(tip["inside"], true, "the tooltip leaves the window {when}: {tip}");
    let (heading, text) = (words(&tip["heading"]), words(&tip["text"]));
    let expected = list(tips).iter().find(|tip| tip["heading"] == heading);
    let devices = &expected.unwrap_or_else(|| panic!("no size of the chart {when}: {tip}"))["devices"];
    for device in list(devices) {
        let line = text.lines().find(|line| line.contains(words(device)));
        let line = line.unwrap_or_else(|| panic!("{device} is not in the tooltip {when}: {text}"));
        assert!(has_time(line), "{device} has no time {when}: {text}");
    }
    heading.to_owned()
}

/// Charts are reached by Tab, and arrows go through their sizes.
#[track_caller]
fn check_keyboard(page: &mut Page) {
    let charts = charts(page);
    let mut reached = BTreeSet::new();
    // A page has a few things besides its charts that can be focused, and no more.
    for _ in 0..charts + 40 {
        if reached.len() == charts {
            break;
        }
        page.press("Tab");
        let chart = page.eval("probe.focused()").as_i64().unwrap();
        if chart < 0 || !reached.insert(chart) {
            continue;
        }
        let tips = page.eval(&format!("probe.tips({chart})"));
        let heading = |at: usize| words(&tips[at]["heading"]);
        let last = list(&tips).len() - 1;
        let mut expect = |key: &str, at: usize| {
            page.press(key);
            assert_eq!(check_tip(page, &tips, &format!("after {key}")), heading(at), "after {key}");
        };
        expect("Home", 0);
        expect("ArrowRight", 1.min(last));
        expect("End", last);
        expect("ArrowLeft", last.saturating_sub(1));
        page.press("Escape");
        assert_eq!(page.eval("probe.tip().shown"), false, "the tooltip stays after Escape");
    }
    assert_eq!(reached.len(), charts, "charts that Tab reaches");
}

/// Light and dark, as the reader's system prefers and as the button says; everything is legible in both.
#[track_caller]
fn check_themes(page: &mut Page) {
    let light = ground(page, Medium::Screen, Scheme::Light);
    check_legible(page, "in light");
    let dark = ground(page, Medium::Screen, Scheme::Dark);
    check_legible(page, "in dark");
    assert!(light > 0.5 && dark < 0.1, "light is {light}, dark is {dark}");

    choose(page, "light");
    assert_eq!(ground(page, Medium::Screen, Scheme::Dark), light, "light by the button, against the system");
    check_legible(page, "in light by the button");
    choose(page, "dark");
    assert_eq!(ground(page, Medium::Screen, Scheme::Light), dark, "dark by the button, against the system");
    check_legible(page, "in dark by the button");
    page.reload();
    prepare(page);
    assert_eq!(page.eval("probe.ground()"), dark, "the choice is forgotten");
    choose(page, "auto");
    assert_eq!(ground(page, Medium::Screen, Scheme::Light), light, "as the system again");
    assert_eq!(ground(page, Medium::Screen, Scheme::Dark), dark, "as the system again");
}

/// Clicks the button until it says this.
#[track_caller]
fn choose(page: &mut Page, theme: &str) {
    for _ in 0..3 {
        let button = page.eval("probe.button()");
        let (x, y) = within(&button, 0.5, 0.5);
        page.click(x, y);
        if words(&page.eval("document.getElementById('theme').textContent")).ends_with(theme) {
            return;
        }
    }
    panic!("the button never says {theme}");
}

/// All text and all lines stand out from what is behind them.
#[track_caller]
fn check_legible(page: &mut Page, when: &str) {
    let texts = page.eval("probe.texts()");
    assert!(list(&texts).len() > 20, "next to no text {when}");
    let worst = &texts[0];
    assert!(number(&worst["contrast"]) >= TEXT_CONTRAST, "hard to read {when}: {worst}");
    let charts = page.eval("probe.charts()");
    for device in list(&charts).iter().flat_map(|chart| list(&chart["devices"])) {
        assert!(number(&device["contrast"]) >= LINE_CONTRAST, "a line is hard to see {when}: {device}");
    }
}

/// Nothing is cut off or makes the whole page scroll sideways, on a phone as little as on a desktop.
#[track_caller]
fn check_widths(page: &mut Page) {
    for (width, height, mobile) in [(390, 844, true), (768, 1024, true), (1600, 900, false)] {
        page.resize(width, height, mobile);
        let scrolls = page.eval("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(scrolls <= width.into(), "{scrolls} px at {width} px: {}", page.eval("probe.sticking()"));
        assert_eq!(page.eval("probe.sticking()"), Value::Array(Vec::new()), "cut off at {width} px");
        let area = page.eval("probe.show(0)");
        let tips = page.eval("probe.tips(0)");
        for part in [0.15, 0.7] {
            let (x, y) = within(&area, part, 0.5);
            page.move_mouse(x, y);
            check_tip(page, &tips, &format!("at {width} px"));
        }
        page.move_mouse(1.0, 1.0);
    }
    page.resize(1280, 900, false);
}

/// Paper is white and its colours are the same, whatever the screen was.
#[track_caller]
fn check_print(page: &mut Page) {
    let plain = printed_colours(page, Scheme::Light);
    choose(page, "dark");
    assert_eq!(ground(page, Medium::Print, Scheme::Dark), 1.0, "paper is white");
    for area in list(&page.eval("probe.areas()")) {
        assert!(number(&area["light"]) > 0.8, "dark on paper: {area}");
    }
    check_legible(page, "on paper");
    assert_eq!(printed_colours(page, Scheme::Dark), plain, "paper differs between light and dark");
    choose(page, "auto");
}

/// The colours that a page is printed with, for a reader who prefers this.
#[track_caller]
fn printed_colours(page: &mut Page, scheme: Scheme) -> BTreeSet<String> {
    page.emulate_media(Medium::Screen, scheme);
    let pdf = page.pdf();
    assert!(pdf.starts_with(b"%PDF-"), "no PDF");
    assert!(String::from_utf8_lossy(&pdf).contains("/Type /Page\n"), "a PDF without a page");
    let mut colours = BTreeSet::new();
    for start in pdf.windows(7).enumerate().filter(|(_, bytes)| bytes == b"stream\n").map(|(at, _)| at + 7) {
        let mut content = Vec::new();
        // Fonts and pictures, and the words `endstream`, are not what is looked for: they have no such lines.
        let _ = flate2::read::ZlibDecoder::new(&pdf[start..]).read_to_end(&mut content);
        for line in
            String::from_utf8_lossy(&content).lines().filter(|line| line.ends_with(" rg") || line.ends_with(" RG"))
        {
            // Three parts and an operator: RG for lines, rg for areas; both may share a line.
            let tokens: Vec<&str> = line.split_whitespace().collect();
            let set = tokens.windows(4).filter(|four| ["RG", "rg"].contains(&four[3]));
            colours.extend(set.map(|four| four[..3].join(" ")));
        }
    }
    assert!(colours.len() > 5, "next to no colours on paper: {colours:?}");
    colours
}

/// How light the page's ground is.
fn ground(page: &mut Page, medium: Medium, scheme: Scheme) -> f64 {
    page.emulate_media(medium, scheme);
    number(&page.eval("probe.ground()"))
}

fn charts(page: &mut Page) -> usize {
    let charts = list(&page.eval("probe.charts()")).len();
    assert!(charts > 0, "a page without charts");
    charts
}

/// A place within an extent.
fn within(area: &Value, across: f64, down: f64) -> (f64, f64) {
    let side = |name: &str| number(&area[name]);
    (side("left") + across * side("width"), side("top") + down * side("height"))
}

/// Is there a number with a unit of time?
fn has_time(text: &str) -> bool {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let is_number = |word: &str| word.trim_start_matches('~').parse::<f64>().is_ok();
    tokens.windows(2).any(|pair| is_number(pair[0]) && ["ns", "us", "ms", "s"].contains(&pair[1]))
}

#[track_caller]
fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no words: {value}"))
}
