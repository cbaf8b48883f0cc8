//! The table of groups is what it says it is.

use super::*;
use breakeven::{Config, Device};

fn names(wanted: &[Wanted]) -> Vec<(&str, Vec<&str>)> {
    wanted.iter().map(|w| (w.group.name, w.cases.iter().map(String::as_str).collect())).collect()
}

fn chosen(list: &[&str]) -> Result<Vec<Wanted>, String> {
    select(&list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

#[test]
fn names_mean_groups_and_cases() {
    assert_eq!(chosen(&[]).unwrap().len(), GROUPS.len());
    assert_eq!(names(&chosen(&["unary/e", "matmul"]).unwrap()), [("unary", vec!["e"]), ("matmul", vec![])]);
    assert_eq!(names(&chosen(&["unary/exp", "unary/relu"]).unwrap()), [("unary", vec!["exp", "relu"])]);
    assert_eq!(names(&chosen(&["unary/exp", "unary"]).unwrap()), [("unary", vec![])]);
    assert_eq!(names(&chosen(&["unary", "unary/exp"]).unwrap()), [("unary", vec![])]);
    assert!(chosen(&["trinary"]).err().unwrap().contains("there are matmul, fused"));
    assert!(chosen(&["unary/nothing"]).err().unwrap().contains("there are relu, exp"));
}

#[test]
fn names_are_unique_and_what_they_are_beside_exists() {
    let mut seen = std::collections::HashSet::new();
    for group in &GROUPS {
        for case in group.cases {
            assert!(seen.insert((group.name, case.name)), "{}/{}", group.name, case.name);
            assert!(!case.quick.is_empty() && case.quick.is_sorted() && case.full.is_sorted());
            let beside = case.beside.is_none_or(|beside| group.cases.iter().any(|other| other.name == beside));
            assert!(beside, "{}/{}", group.name, case.name);
        }
    }
    assert!(GROUPS.iter().all(|group| list().contains(group.about)));
}

#[test]
fn every_case_runs_and_what_is_beside_it_computes_the_same() {
    let engine = Engine::with_config(Config { device: Device::Cpu, ..Config::default() }).unwrap();
    // Other processes are this program's, and tests are another.
    for group in GROUPS.iter().filter(|group| group.name != "cold") {
        for case in group.cases {
            let How::Each(make) = case.how else { continue };
            let size = if case.power == 3 { 64 } else { case.quick[0].min(4096) };
            let mut subject = make(&engine, size).unwrap();
            assert!(subject.run(Device::Cpu).unwrap() > 0, "{}/{}", group.name, case.name);
            let results = subject.results(Device::Cpu).unwrap();
            let beside = group.cases.iter().find(|other| Some(other.name) == case.beside);
            let Some(Case { how: How::Each(make), .. }) = beside else { continue };
            let other: Vec<f64> = make(&engine, size).unwrap().results(Device::Cpu).unwrap().concat();
            if !results.is_empty() {
                assert_eq!(super::super::check::difference(&[results.concat()], &[other]), None, "{}", case.name);
            }
        }
    }
}
