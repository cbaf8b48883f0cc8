//! Claims as people write them.

use super::*;

fn parsed(text: &str) -> Claim {
    Claim::parse(text, "--claim").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn claims_name_an_op_a_device_and_a_size() {
    let full = parsed(" add @ gpu:1 = 1.5M ");
    assert_eq!((&*full.op, &*full.device, full.at, &*full.unit), ("add", "gpu:1", Some(1_500_000), ""));
    let all = parsed("*=64Ki");
    assert_eq!((&*all.op, &*all.device, all.at, &*all.unit), ("*", "*", Some(65_536), "elements"));
    let matrices = parsed("matmul=512 n x n");
    assert_eq!((matrices.at, &*matrices.unit), (Some(512), "n x n"));
    assert_eq!(parsed("add=NEVER").at, None);
}

#[test]
fn other_texts_are_refused_with_examples() {
    for text in ["", "add", "=100k", "add=", "add=x", "add=-1", "add@=5", "add=0", "@gpu:0=5", "add=1e99"] {
        let message = Claim::parse(text, "--claim").expect_err(text).to_string();
        assert!(message.contains(&format!("`{text}` is no claim")) && message.contains("`add=100k`"), "{message}");
    }
}

#[test]
fn a_claim_is_about_ops_and_devices_that_it_names() {
    assert!(parsed("*=1k").is_about("exp", "gpu:3") && parsed("exp=1k").is_about("exp", "gpu:0"));
    assert!(parsed("exp@gpu=1k").is_about("exp", "gpu:7"));
    assert!(!parsed("exp=1k").is_about("add", "gpu:0") && !parsed("exp@gpu:1=1k").is_about("exp", "gpu:0"));
}

#[test]
fn elements_are_counted_in_matrices_and_tasks_too() {
    let all = parsed("*=100k");
    assert_eq!((all.is_reached(316, "n x n"), all.is_reached(317, "n x n")), (Some(false), Some(true)));
    assert_eq!((all.is_reached(390, "tasks of 256"), all.is_reached(391, "tasks of 256")), (Some(false), Some(true)));
    assert_eq!((all.is_reached(99_999, "elements"), all.is_reached(100_000, "elements")), (Some(false), Some(true)));
    assert_eq!(all.is_reached(5, "calls"), None, "nobody knows how many elements a call has");
    assert_eq!(parsed("x=5").is_reached(5, "calls"), Some(true), "a claim without a unit counts what the rows count");
    assert_eq!(parsed("x=never").is_reached(u64::MAX, "calls"), Some(false));
    assert_eq!(all.is_reached(u64::MAX, "n x n"), Some(true), "no overflow");
}
