//! What stands around the groups: a run of the suite enters; what went wrong, the machine with what is missing, and how it
//! was measured leave.

use super::{label, percent};
use crate::bench::{Bench, ChangeKind, Gate, Group, How, Surroundings, Trouble, lists};
use crate::lists::List;
use crate::page::{self, Look, list, named};
use crate::words::{bytes, time};
use maud::{Markup, html};

/// What happened to which group.
pub(super) fn troubles(bench: &Bench) -> Markup {
    let all: Vec<(&Group, &Trouble)> =
        bench.groups.iter().flat_map(|group| group.troubles.iter().map(move |trouble| (group, trouble))).collect();
    html! {
        @if !all.is_empty() {
            section {
                h2 { "What went wrong" }
                ul.flags {
                    @for (group, trouble) in all {
                        li {
                            span.flag { (group.name) " " (trouble.kind.word()) }
                            " pass " (u64::from(trouble.pass) + 1)
                            @if let Some(device) = &trouble.device { " on " (label(bench, device)) }
                            ": " (trouble.why)
                        }
                    }
                }
            }
        }
    }
}

/// What changed since a baseline.
pub(super) fn changes(gate: &Gate) -> Markup {
    let kinds = [ChangeKind::Slower, ChangeKind::Suspect, ChangeKind::Faster];
    let changed = kinds.map(|kind| (kind, lists::changed(gate, kind)));
    let lost = lists::unmeasured(gate);
    html! {
        section {
            h2 { "Since the baseline" }
            p { @if gate.failed() { strong { (lists::verdict(gate)) } } @else { (lists::verdict(gate)) } }
            @if !lost.rows.is_empty() { (page::table("Not measured any more", "", &lost)) }
            @for (kind, list) in changed.iter().filter(|(_, list)| !list.rows.is_empty()) {
                h3 { (page::capital(kind.word())) }
                (page::table(kind.word(), "", list))
            }
        }
    }
}

/// The machine, its devices and those that are missing.
pub(super) fn machine(bench: &Bench, looks: &[Look]) -> Markup {
    let m = &bench.machine;
    let threads = m.threads.to_string();
    let facts = [
        ("Processor", &m.cpu),
        ("Threads", &threads),
        ("Vector instructions", &m.simd),
        ("System", &m.os),
        ("Breakeven", &m.breakeven),
    ];
    html! {
        section {
            h2 { "Machine and drivers" }
            (list(&facts))
            div.scroll tabindex="0" role="region" aria-label="Devices" {
                table {
                    thead { tr {
                        @for head in ["Device", "Name", "Kind", "Backend", "Driver"] { th scope="col" { (head) } }
                    } }
                    tbody {
                        @for d in &bench.devices {
                            tr {
                                th scope="row" { (named(looks, &d.id, &d.label())) }
                                td { (d.name) } td { (d.kind) } td { (d.backend) } td { (d.driver) }
                            }
                        }
                        @for missing in &bench.missing {
                            tr {
                                th scope="row" { (missing.device) }
                                td colspan="4" { strong.missing { "missing" } " " (missing.why) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How it was made, in one line.
pub(super) fn summary(how: &How) -> String {
    let mut parts = vec![how.date.clone()];
    let passes = if how.passes == 1 { "1 pass".to_owned() } else { format!("{} passes", how.passes) };
    parts.push(format!("{passes} of up to {} samples", how.samples));
    parts.extend(how.quick.then(|| "quick".to_owned()));
    // A cast saturates: a time that makes no sense is shown as one.
    parts.push(format!("took {}", time((how.seconds * 1e9) as u64)));
    parts.extend(how.interrupted.then(|| "interrupted".to_owned()));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// How it was measured.
pub(super) fn how(bench: &Bench) -> Markup {
    let h = &bench.how;
    let [samples, passes, seed] = [
        h.samples.to_string(),
        h.passes.to_string(),
        if h.order_given { "none: as given".to_owned() } else { h.seed.to_string() },
    ];
    let extent = if h.quick { "quick: fewer cases and samples" } else { "full" }.to_owned();
    let processes = if h.in_process { "all groups in one" } else { "one for each group and pass" }.to_owned();
    let complete = if h.interrupted { "no, it was interrupted" } else { "yes" }.to_owned();
    let took = time((h.seconds * 1e9) as u64);
    let null = bench.null.as_ref().map_or_else(
        || "not made".to_owned(),
        |null| {
            let cases = crate::bench::words::count(null.cases.len(), "case");
            let loaded = if null.loaded { ", under load" } else { "" };
            format!("{cases}, floor {}{loaded}", percent(null.floor))
        },
    );
    let facts = [
        ("Date", &h.date),
        ("Samples in a pass, at most", &samples),
        ("Passes", &passes),
        ("Extent", &extent),
        ("Processes", &processes),
        ("Null test", &null),
        ("Seed of the order", &seed),
        ("Complete", &complete),
        ("Took", &took),
    ];
    let (surroundings, notes) = (surroundings(bench), lists::notes(bench));
    html! {
        section {
            h2 { "How it was measured" }
            (list(&facts))
            @if !h.order.is_empty() { p { span.quiet { "Order: " } (h.order.join(", ")) } }
            @if !notes.is_empty() { ul.notes { @for note in &notes { li { (note) } } } }
            @if !surroundings.rows.is_empty() {
                h3 { "What the machine was doing otherwise" }
                (page::table("What the machine was doing otherwise", "data", &surroundings))
            }
        }
    }
}

/// What the machine was doing otherwise before each pass of each group; what is not visible is a dash.
fn surroundings(bench: &Bench) -> List {
    let dash = || "-".to_owned();
    let row = |group: &Group, pass: usize, s: &Surroundings| {
        vec![
            group.name.clone(),
            (pass + 1).to_string(),
            s.busy.map_or_else(dash, percent),
            s.stolen.map_or_else(dash, percent),
            s.free_bytes.map_or_else(dash, bytes),
            s.celsius.map_or_else(dash, |celsius| format!("{celsius:.0} C")),
            time((s.waited_seconds * 1e9) as u64),
            if s.loaded { "under load" } else { "calm" }.to_owned(),
        ]
    };
    let of_group =
        |group: &Group| group.surroundings.iter().enumerate().map(|(pass, s)| row(group, pass, s)).collect::<Vec<_>>();
    let header = vec!["group", "pass", "others took", "stolen", "memory free", "hottest", "waited", "state"];
    List { header, rows: bench.groups.iter().flat_map(of_group).collect(), numbers: 1..7 }
}
