//! Random graphs: fused against unfused against the reference, several outputs in a batch.
//!
//! `BREAKEVEN_GRAPHS` and `BREAKEVEN_SEED` set how many graphs are tried and which: see `recipe`.

use breakeven::{Engine, Tensor};
use breakeven_tests::compare::{Zeros, identical};
use breakeven_tests::device::{api, engine};
use breakeven_tests::pair::Pair;
use breakeven_tests::program::Value;
use breakeven_tests::recipe::{Recipe, graphs, recipes, runner};
use breakeven_tests::run::compare;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many elements could be compared, of how many.
#[derive(Default)]
struct Tally {
    compared: AtomicUsize,
    total: AtomicUsize,
    operations: AtomicUsize,
}

/// Runs one graph in all ways.
fn try_graph(engine: &Engine, recipe: &Recipe, limit_elems: usize, tally: &Tally) -> Result<(), TestCaseError> {
    let program = recipe.program(limit_elems);
    let chosen = recipe.outputs(&program);
    let pairs: Vec<&Pair> = chosen.iter().map(|v| &v.pair).collect();
    let tensors: Vec<&Tensor> = pairs.iter().map(|p| &p.tensor).collect();
    let fail = |what: &str| {
        // A few values of each step with their bounds: enough to see where both sides part.
        let line = |v: &Value| {
            let some = (0..v.pair.expected.elems().min(4))
                .map(|i| format!(" {:e} +- {:.1e}", v.pair.expected.data[i], v.pair.expected.err[i]));
            format!("{}:{}", v.text, some.collect::<String>())
        };
        let recorded: Vec<String> = program.values.iter().map(line).collect();
        TestCaseError::fail(format!("{what}\n{}\noutputs: {tensors:?}", recorded.join("\n")))
    };
    let fused = engine.run(&tensors).map_err(|why| fail(&format!("fused: {why}")))?;
    let unfused = engine.run_unfused(&tensors).map_err(|why| fail(&format!("unfused: {why}")))?;
    let compared = compare(&pairs, &fused, Zeros::Same).map_err(|why| fail(&format!("fused: {why}")))?;
    compare(&pairs, &unfused, Zeros::Same).map_err(|why| fail(&format!("unfused: {why}")))?;
    // The unfused plan runs on the CPU, so that only there the two are the same to the bit.
    let same_device = api().is_none();
    for (i, _) in chosen.iter().enumerate().filter(|(_, v)| v.order_free && same_device) {
        identical(&fused[i].to_f64(), &unfused[i].to_f64())
            .map_err(|why| fail(&format!("output {i}, fused and unfused: {why}")))?;
    }
    tally.compared.fetch_add(compared, Ordering::Relaxed);
    tally.total.fetch_add(pairs.iter().map(|p| p.expected.elems()).sum(), Ordering::Relaxed);
    tally.operations.fetch_add(program.made().len(), Ordering::Relaxed);
    Ok(())
}

/// Tries `graphs` random graphs; of their elements at least `percent` must be such that the reference can judge them.
fn try_graphs(graphs: u64, recipes: impl Strategy<Value = Recipe>, limit_elems: usize, percent: usize) {
    let engine = engine();
    let tally = Tally::default();
    if let Err(why) = runner(graphs).run(&recipes, |recipe| try_graph(&engine, &recipe, limit_elems, &tally)) {
        panic!("{why}");
    }
    // A reference that could say nothing would agree with anything.
    let [compared, total, operations] =
        [&tally.compared, &tally.total, &tally.operations].map(|n| n.load(Ordering::Relaxed));
    assert!(compared * 100 >= total * percent, "only {compared} of {total} elements could be compared");
    assert!(operations as u64 >= graphs * 2, "only {operations} operations in {graphs} graphs");
}

#[test]
fn small_graphs() {
    let extents = [1usize..6, 1usize..9, 1usize..5];
    try_graphs(graphs(), recipes(extents, 1..16), 200, 75);
}

#[test]
fn graphs_with_empty_axes() {
    let extents = [0usize..3, 0usize..4, 0usize..3];
    try_graphs(graphs() / 8, recipes(extents, 1..12), 200, 75);
}

#[test]
fn large_graphs() {
    let extents = [20usize..70, 30usize..70, 1usize..40];
    try_graphs(graphs() / 20, recipes(extents, 1..14), 9_000, 75);
}

#[test]
fn long_graphs() {
    let extents = [1usize..5, 1usize..6, 1usize..4];
    try_graphs(graphs() / 20, recipes(extents, 40..120), 120, 50);
}
