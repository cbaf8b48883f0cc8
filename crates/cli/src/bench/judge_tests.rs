//! Which rows of a baseline a run has to have.

use super::*;
use crate::bench::groups;
use crate::interrupt::Interrupt;
use std::time::Duration;

fn suite<'a>(names: &[&str], devices: &[Device], interrupt: &'a Interrupt) -> Suite<'a> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Suite {
        threads: None,
        wanted: groups::select(&names).unwrap(),
        devices: devices.to_vec(),
        quick: true,
        samples: 3,
        passes: 2,
        seed: 1,
        shuffled: true,
        in_process: true,
        calm: Duration::ZERO,
        timeout: Duration::ZERO,
        inject: Vec::new(),
        interrupt,
    }
}

#[test]
fn only_what_was_asked_for_is_expected() {
    let interrupt = Interrupt::default();
    let row = |case: &str, size: u64, device: &str| Row {
        case: case.into(),
        size,
        unit: "elements".into(),
        device: device.into(),
        ..Row::default()
    };
    let expects = |names: &[&str], devices: &[Device], group: &str, row: &Row| {
        suite(names, devices, &interrupt).expects(group, row)
    };
    let exp = row("exp", 1 << 20, "gpu:0");
    assert_eq!(expects(&[], &[], "unary", &exp), Expected::Asked);
    assert_eq!(expects(&["unary/exp"], &[], "unary", &exp), Expected::Asked);
    assert_eq!(expects(&["unary/relu"], &[], "unary", &exp), Expected::NotAsked, "another case");
    assert_eq!(expects(&["rows"], &[], "unary", &exp), Expected::NotAsked, "another group");
    assert_eq!(expects(&[], &[Device::Cpu], "unary", &exp), Expected::NotAsked, "another device");
    assert_eq!(expects(&[], &[], "unary", &row("exp", 1 << 24, "cpu")), Expected::NotAsked, "not a quick size");
    assert_eq!(expects(&[], &[], "unary", &row("exp", 77, "cpu")), Expected::Unknown, "a size that is no more");
    assert_eq!(expects(&[], &[], "unary", &row("cosh", 1 << 20, "cpu")), Expected::Unknown, "a case that is no more");
}
