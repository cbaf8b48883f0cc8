//! Stacks as flame graphs read them: by a strict reader of our own, and by inferno.

use super::super::fixture_tests::{profile, queued, thread};
use super::*;

/// `frame;frame;frame number`, nothing else, each stack once.
fn read(text: &str) -> Vec<(Vec<&str>, u64)> {
    assert!(text.is_empty() || text.ends_with('\n'));
    let stacks: Vec<(Vec<&str>, u64)> = text
        .lines()
        .map(|line| {
            let (stack, number) = line.rsplit_once(' ').unwrap();
            assert!(!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()), "{line:?}");
            let frames: Vec<&str> = stack.split(';').collect();
            assert!(frames.iter().all(|frame| !frame.trim().is_empty()), "{line:?}");
            (frames, number.parse().unwrap())
        })
        .collect();
    let mut sorted = stacks.clone();
    sorted.sort();
    sorted.dedup_by(|a, b| a.0 == b.0);
    assert_eq!(sorted.len(), stacks.len(), "a stack is there twice");
    stacks
}

#[test]
fn microseconds_add_up_to_those_of_the_threads() {
    let stacks = |profile: &Profile| read(&profile.folded().unwrap()).iter().map(|(_, us)| us).sum::<u64>();
    assert_eq!(stacks(&Profile::example()), 100_000);
    assert_eq!(stacks(&queued()), 18, "17.5 us");
    let rows = [
        ("t", FrameKind::Thread, None, 333),
        ("a", FrameKind::Stage, Some(0), 333),
        ("b", FrameKind::Stage, Some(0), 334),
    ];
    assert_eq!(stacks(&profile(vec![thread("t", 0, &rows)])), 1);
}

#[test]
fn stacks_of_the_example() {
    insta::assert_snapshot!(Profile::example().folded().unwrap() + &queued().folded().unwrap());
}

#[test]
fn inferno_draws_them() {
    for profile in [Profile::example(), queued()] {
        let text = profile.folded().unwrap();
        let mut svg = Vec::new();
        let mut options = inferno::flamegraph::Options::default();
        options.count_name = "us".to_owned();
        inferno::flamegraph::from_lines(&mut options, text.lines(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let sum: u64 = read(&text).iter().map(|(_, us)| us).sum();
        let samples: String = sum.to_string();
        let total = svg.replace(',', "");
        assert!(total.contains(&format!("<title>all ({samples} us")), "{total}");
    }
}
