//! Recipes of random graphs: what is written down and read again has the same plan, and computes the same from the same data.

use breakeven::{Engine, Tensor, View, parse_recipe, recipe};
use breakeven_ir::plan_key;
use breakeven_tests::compare::identical;
use breakeven_tests::recipe::{Recipe, graphs, recipes, runner};
use proptest::test_runner::TestCaseError;

fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

/// Writes a graph down, reads it, and runs both.
fn try_graph(engine: &Engine, graph: &Recipe) -> Result<(), TestCaseError> {
    let program = graph.program(200);
    let tensors: Vec<&Tensor> = graph.outputs(&program).iter().map(|value| &value.pair.tensor).collect();
    let text = recipe(&tensors);
    let fail = |why: String| TestCaseError::fail(format!("{why}\n{text}"));
    let again = parse_recipe(&text).map_err(|error| fail(error.to_string()))?;
    let (key, leaves) = plan_key(&tensors);
    if plan_key(&refs(&again.outputs)).0 != key {
        return Err(fail("the plan is another one".to_owned()));
    }
    if leaves.len() != again.leaves.len() {
        return Err(fail(format!("{} leaves instead of {}", again.leaves.len(), leaves.len())));
    }
    let mut data = leaves.iter();
    let bound =
        again.bound(|_| Ok(data.next().map(|leaf| (*leaf).clone()))).map_err(|error| fail(error.to_string()))?;
    let expected = engine.run(&tensors).map_err(|error| fail(error.to_string()))?;
    let found = engine.run(&refs(&bound)).map_err(|error| fail(error.to_string()))?;
    for (expected, found) in expected.iter().zip(&found) {
        identical(&found.to_f64(), &expected.to_f64()).map_err(&fail)?;
    }
    // As a program, with the same values for its inputs.
    let inputs: Vec<&Tensor> = again.leaves.iter().map(|leaf| &leaf.tensor).collect();
    let program = engine.compile(&inputs, &refs(&again.outputs)).map_err(|error| fail(error.to_string()))?;
    let views: Vec<View<'_>> = leaves.iter().filter_map(|leaf| View::of(leaf)).collect();
    let found = program.run(&views).map_err(|error| fail(error.to_string()))?;
    for (expected, found) in expected.iter().zip(&found) {
        identical(&found.to_f64(), &expected.to_f64()).map_err(&fail)?;
    }
    Ok(())
}

#[test]
fn random_graphs_come_back() {
    let engine = Engine::with_config(breakeven::Config::default()).unwrap();
    for (extents, share) in [([1usize..6, 1usize..9, 1usize..5], 2), ([0usize..3, 0usize..4, 0usize..3], 8)] {
        let graphs = recipes(extents, 1..16);
        runner(self::graphs() / share)
            .run(&graphs, |graph| try_graph(&engine, &graph))
            .unwrap_or_else(|why| panic!("{why}"));
    }
}
