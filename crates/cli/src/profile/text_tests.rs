//! What people read of the example, and that nothing is missing from what is cut short.

use super::*;
use breakeven::profile::Profile;

fn shown(depth: Option<usize>, top: usize) -> String {
    text(&Profile::example().analysis().unwrap(), &Shown { top, depth })
}

#[test]
fn the_example_in_full() {
    insta::assert_snapshot!(shown(None, 12));
}

#[test]
fn the_example_cut_short() {
    insta::assert_snapshot!(shown(Some(1), 2));
}

/// The percentages of a part of the text that begins with this header.
fn sum(text: &str, header: &str) -> u64 {
    let lines = text.lines().skip_while(|line| !line.contains(header)).skip(1).take_while(|line| !line.is_empty());
    let share = |line: &str| line.split_once(" %")?.0.rsplit(' ').next()?.replace('.', "").parse::<u64>().ok();
    lines.filter_map(share).sum()
}

#[test]
fn percentages_add_up_to_100_however_little_is_shown() {
    for (depth, top) in [(None, 12), (Some(0), 1), (Some(1), 2), (Some(2), 5), (Some(9), 99)] {
        let text = shown(depth, top);
        for header in ["count  tree", "top by self time", "own %"] {
            assert_eq!(sum(&text, header), 1000, "{header} at depth {depth:?}:\n{text}");
        }
    }
}

#[test]
fn names_can_not_break_lines() {
    let mut profile = Profile::example();
    profile.title = "a\nb\x1b[2J".to_owned();
    profile.threads[0].frames[3].name = "c\rd".to_owned();
    let text = text(&profile.analysis().unwrap(), &Shown { top: 3, depth: None });
    assert!(text.starts_with("a b [2J: ") && !text.contains(['\r', '\x1b']));
}

#[test]
fn sums_are_rounded_once() {
    // A hundred of 0.034 % each, beside one that has all the rest.
    let mut profile = Profile::example();
    let thread = &mut profile.threads[0];
    thread.spans.clear();
    profile.batches.clear();
    thread.frames.truncate(2);
    thread.frames[0].self_ns = 96_600_000;
    thread.frames.truncate(1);
    for number in 0..100 {
        let frame = breakeven::profile::Frame {
            name: format!("stage {number}"),
            kind: FrameKind::Stage,
            parent: Some(0),
            count: 1,
            total_ns: 34_000,
            self_ns: 34_000,
        };
        thread.frames.push(frame);
    }
    let text = text(&profile.analysis().unwrap(), &Shown { top: 1, depth: Some(0) });
    for line in ["3.4 %         (100 others)", "3.4 %           (100 below)"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn plans_beyond_the_top_are_summed_up() {
    let text = shown(None, 1);
    let line = text.lines().find(|line| line.contains("(1 others)") && line.contains("7.00 ms"));
    assert!(line.is_some() && !text.contains("sort (not for GPUs)"), "{text}");
}

#[test]
fn one_thread_is_one() {
    let mut profile = Profile::example();
    profile.machine.threads = 1;
    let text = text(&profile.analysis().unwrap(), &Shown { top: 3, depth: None });
    assert!(text.contains("measured on Example CPU, 1 thread, gpu:0"), "{text}");
}
