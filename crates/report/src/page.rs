//! What every page of this crate is made of: a title, a head and sections enter, one HTML file leaves that needs no
//! network, no server and no other file. The pages of scans, of the bench and of comparisons draw with it alone.
//!
//! Everything is drawn here, as inline SVG; the script only moves the tooltip and switches the theme, and the page is
//! complete without it. All text of a file goes through maud, which escapes it; the tooltip's words travel as JSON
//! without any `<`, and the page's own policy forbids every request.

mod chart;
mod scale;
mod strip;

pub(crate) use chart::Axes;
pub(crate) use strip::{Stretch, fastest};

use crate::crossover::Crossover;
use crate::curves::{Curves, ln};
use crate::lists::List;
use crate::scan::Device;
use crate::words::sized;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// How a device is drawn.
pub(crate) struct Look {
    /// Its id, which no other device of the page has.
    pub id: String,
    /// Its name at the end of a line.
    pub label: String,
    /// Classes of the style sheet: the colour by the device's number, the dashes by its kind.
    pub class: String,
}

/// How many colours the style sheet has for devices other than the CPU.
pub(crate) const COLOURS: usize = 6;

/// How many charts stand side by side on a wide screen; a class with fewer shares the row with another.
pub(crate) const MOST_COLUMNS: usize = 3;

/// No request leaves the page, whatever a file holds.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Rules for marks that several pages have.
pub(crate) const PARTS: &str = include_str!("page/parts.css");

/// What a page has of its own.
pub(crate) struct Page<'p> {
    pub title: String,
    /// The version of Breakeven, or nothing if several have to do with it.
    pub breakeven: &'p str,
    /// Rules beyond those that all pages share.
    pub style: &'static [&'static str],
    pub head: Markup,
    pub main: Markup,
}

impl Page<'_> {
    /// The file.
    pub fn into_string(self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="generator" content=(format!("Breakeven {}", self.breakeven).trim_end());
                    title { (self.title) }
                    style { (PreEscaped(include_str!("page/style.css"))) @for rules in self.style { (PreEscaped(rules)) } }
                }
                body {
                    (self.head)
                    main { (self.main) }
                    div #tip hidden {}
                    script { (PreEscaped(include_str!("page/script.js"))) }
                }
            }
        };
        page.into_string()
    }
}

/// The title, what it is about, how it came about, and the switch of the theme; below it what must not be overlooked.
pub(crate) fn head(title: &str, about: &str, how: &str, cautions: Markup) -> Markup {
    html! {
        header {
            div {
                h1 { (title) }
                p { (about) }
                p.quiet { (how) }
            }
            button #theme type="button" hidden { "Theme: auto" }
        }
        @if !cautions.0.is_empty() { aside { (cautions) } }
    }
}

/// One number with what it is and what belongs to it.
pub(crate) struct Tile {
    pub what: &'static str,
    pub value: String,
    pub note: String,
}

/// The tiles on top of a page.
pub(crate) fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        div.tiles {
            @for tile in tiles {
                div.tile {
                    div.what { (tile.what) }
                    div.value { (tile.value) }
                    div.note { (tile.note) }
                }
            }
        }
    }
}

/// How each device is drawn; the CPU has a colour of its own, which is none.
pub(crate) fn looks(devices: &[Device]) -> Vec<Look> {
    let mut others = 0;
    let look = |device: &Device| {
        let colour = if device.is_cpu() { 0 } else { others % COLOURS + 1 };
        others += usize::from(!device.is_cpu());
        Look { id: device.id.clone(), label: device.label(), class: format!("d{colour}{}", dashes(device)) }
    };
    devices.iter().map(look).collect()
}

/// The class of a device's kind. Only those that the style sheet knows: a class never comes from a file's text.
pub(crate) fn dashes(device: &Device) -> &'static str {
    match device.kind.as_str() {
        "software" => " software",
        "simulated" => " simulated",
        _ => "",
    }
}

/// A device's line, as a key.
pub(crate) fn swatch(look: &Look) -> Markup {
    html! {
        svg.swatch viewBox="0 0 22 8" aria-hidden="true" {
            line class={ "line " (look.class) } x1="0" x2="22" y1="4" y2="4" {}
        }
    }
}

/// A device's name with its line.
pub(crate) fn named(looks: &[Look], id: &str, label: &str) -> Markup {
    html! {
        span.device {
            @if let Some(look) = looks.iter().find(|look| look.id == id) { (swatch(look)) }
            (label)
        }
    }
}

/// The devices of the charts that follow.
pub(crate) fn legend(looks: &[Look]) -> Markup {
    html! { p.legend { @for look in looks { span { (swatch(look)) (look.label) } } } }
}

/// Who is the fastest from the smallest size to the largest, as a strip with its ends below.
pub(crate) fn strip(curves: &Curves<'_>, looks: &[Look]) -> Markup {
    let sizes = curves.sizes();
    let stretches = fastest(curves);
    let ends = sizes.first().zip(sizes.last()).map(|(&first, &last)| (first, last));
    let (from, to) = ends.map_or((0.0, 1.0), |(first, last)| (ln(first), ln(last)));
    // One size alone has no length, and fills the strip.
    let share = |length: f64| 100.0 * length / (to - from);
    let place = |s: &Stretch| if to > from { (share(s.from - from), share(s.to - s.from)) } else { (0.0, 100.0) };
    html! {
        svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            @for s in &stretches {
                @let (x, width) = place(s);
                rect class={ "strip " (looks[s.device].class) } x=(format!("{x:.2}")) y="0" height="10"
                    width=(format!("{width:.2}")) {}
            }
        }
        @if let Some((first, last)) = ends {
            div.ends { span { (sized(first, "")) } span { (sized(last, curves.unit)) } }
        }
    }
}

/// One chart under its name and verdicts.
pub(crate) fn figure(curves: &Curves<'_>, crossovers: &[Crossover], axes: &Axes, looks: &[Look]) -> Markup {
    let verdicts =
        || crossovers.iter().filter_map(|c| Some((looks.iter().find(|look| look.id == c.device)?, c.words())));
    let spoken: Vec<String> = verdicts().map(|(look, words)| format!("{}: {words}", look.label)).collect();
    // A `<` inside a script could end it.
    let tips = chart::tips(curves, axes, looks).to_string().replace('<', "\\u003c");
    html! {
        figure {
            figcaption {
                h4 { (curves.op) }
                ul { @for (look, words) in verdicts() { li { (swatch(look)) (look.label) ": " (words) } } }
            }
            div.plot role="img" aria-label={ (curves.op) ", time over size. " (spoken.join(". ")) } {
                (chart::chart(curves, axes, looks, crossovers))
            }
            script type="application/json" { (PreEscaped(tips)) }
        }
    }
}

/// A class of ops in words.
pub(crate) fn class_words(class: &str) -> &str {
    match class {
        "map" => "Elementwise",
        "reduce" => "Reductions",
        "rows" => "Row by row",
        "scan" => "Running totals",
        "contract" => "Matrix products",
        "many" => "Many small tasks",
        other => other,
    }
}

/// Charts side by side under a heading; as few as fit share a row with the next group.
pub(crate) fn group(heading: &str, figures: &[Markup]) -> Markup {
    html! {
        div class={ "group s" (figures.len().min(MOST_COLUMNS)) } {
            h3 { (heading) }
            div.charts { @for figure in figures { (figure) } }
        }
    }
}

/// Headed rows as a table that scrolls within itself where it is too wide. The first column names the row.
pub(crate) fn table<H: AsRef<str>>(label: &str, class: &str, list: &List<H>) -> Markup {
    let number = |column: usize| list.numbers.contains(&column).then_some("number");
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table class=[(!class.is_empty()).then_some(class)] {
                thead { tr {
                    @for (column, head) in list.header.iter().enumerate() {
                        th scope="col" class=[number(column)] { (capital(head.as_ref())) }
                    }
                } }
                tbody {
                    @for row in &list.rows {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                @if column == 0 { th scope="row" { (cell) } }
                                @else { td class=[number(column)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Words as a heading.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Names and what they stand for; those without are left out.
pub(crate) fn list(facts: &[(&str, &String)]) -> Markup {
    html! {
        dl {
            @for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
                div { dt { (name) } dd { (fact) } }
            }
        }
    }
}
